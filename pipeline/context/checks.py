"""Checks and their names: which passes end the failure of a check, and which failures its pass ends.

Gives: `Check`, `EVERYTHING`, and `place_of` and `path_from`, which name folders and files.

Note: a name consists of the program, the folder where it runs, and its selection: `pytest in web:tests/a.py`. A failure
ends when a check of the same name passes, or one known to include it: of its file, of a folder, of everything.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace

__all__ = ["EVERYTHING", "IN_HOME", "Check", "is_absolute", "of_drive", "path_from", "place_of"]

EVERYTHING = "*"
"""Names a check of everything, or its selection."""
IN_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?P<path>/[^$`*?\[]*)?")
"""A folder or a file in the user's home directory."""
_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|\Z)")
"""Home directories."""
_DRIVE = re.compile(r"[A-Za-z]:(?=[/\\]|\Z)")
_GIT_BASH = re.compile(r"/(?P<drive>[A-Za-z])(?=/|\Z)")
"""A Windows drive, as Git Bash spells it."""

_OF_PACKAGES = ("go test", "go vet", "go build")
"""Programs for which a folder is one package, without the packages below it."""


@dataclass(frozen=True)
class Check:
    """A check: a program of a command line."""

    family: str
    """test, lint, types, build, or all"""
    program: str
    place: str = ""
    """The folder in which it runs; `` = the working directory of the session."""
    selection: tuple[str, ...] = ()
    """Files, names and packages to which it is narrowed, in the order of the words; none = everything."""
    other: tuple[str, ...] = ()
    """Words that make it a different check: another environment, a wider set, or words that are not understood."""
    understood: bool = True
    """Whether every word of it is understood."""
    wide: bool = False
    """Whether it includes what the program does without `other`."""
    skips: bool = False
    """Whether it skips all that it would check (`mvn test -DskipTests`), so that it cannot pass."""
    usual: bool = False
    """Whether its selection is by convention everything."""
    takes_in: tuple[str, ...] = ()
    """Other programs, with their options for targets, whose work it includes."""
    targets: tuple[str, ...] = ()
    """Options of Cargo that select targets, sorted; they are part of the name of its program."""
    included_in: tuple[str, ...] = ()
    """Other programs, with their options for targets, that include its work."""

    @property
    def name(self) -> str:
        """Its name: a later check of the same name repeats it."""
        return self._named(*self.selection)

    @property
    def covers(self) -> tuple[str, ...]:
        """The names of the checks that have passed if it passes, its own first."""
        found = [self.name]
        paths = [part for part in self.selection if not part.startswith("-")]
        if not self.understood:
            return (self.name,)
        programs, whole = ("", *self.takes_in), ((), (EVERYTHING,))
        if self.selection:
            found += [self._named(*self.selection, program=each) for each in self.takes_in]
        else:
            found += [self._named(*rest, program=each) for each in programs for rest in whole]
            found += [self._named(*rest, program=each, plain=True) for each in programs for rest in whole if self.wide]
        if self.selection and len(paths) == len(self.selection):
            found += [self._named(path) for path in paths]
            found += [self._named()] if self.usual else []
            found += [replace(self, place="")._named(each) for each in self._packages()]
        return tuple(dict.fromkeys(found))

    @property
    def within(self) -> tuple[str, ...]:
        """The names of the checks whose pass ends its failure, its own first."""
        found = [self.name]
        paths = [part for part in self.selection if not part.startswith("-")]
        if self.understood and self.selection:
            if len(paths) == 1:
                wider = _wider(paths[0])
                if self.program in _OF_PACKAGES:
                    wider = [paths[0], *(f"{folder}/..." for folder in wider)]
                found += [self._named(path) for path in wider]
            found += [self._named(EVERYTHING), *self._of_package()]
        if self.understood:
            found += [
                self._named(*rest, program=each)
                for each in self.included_in
                for rest in (self.selection, (EVERYTHING,))
            ]
        return tuple(dict.fromkeys((*found, EVERYTHING)))

    def _packages(self) -> list[str]:
        """The folders of the Go packages to which it is narrowed, relative to the root of the session."""
        paths = [part for part in self.selection if not part.startswith("-")]
        if self.program not in _OF_PACKAGES:
            return []
        folders = [posixpath.normpath(posixpath.join(self.place, path)) for path in paths]
        return [each for each in folders if not each.startswith((".", "/")) and not _DRIVE.match(each)]

    def _of_package(self) -> list[str]:
        """The names of the checks that include its Go package: of the package and of the folders around it, up to that in
        which it runs, which may be a module; a package run in its own folder belongs to any module around it.
        """
        folders = self._packages()
        if len(folders) != 1 or "..." in folders[0] or sum(not part.startswith("-") for part in self.selection) > 1:
            return []
        around = "" if "." in self.selection else self.place
        inside = [each for each in _wider(folders[0]) if not around or each.startswith(f"{around}/")]
        names = [folders[0], *(f"{each}/..." for each in inside), *([] if around else [EVERYTHING])]
        return [
            *(replace(self, place="")._named(each) for each in names),
            *(replace(self, place=each)._named(EVERYTHING) for each in inside),
        ]

    def _named(self, *selection: str, program: str = "", plain: bool = False) -> str:
        programs = (program,) if program else (self.program, *self.targets)
        words = " ".join((*programs, *(() if plain else self.other)))
        head = f"{words} in {self.place}" if self.place else words
        return f"{head.replace(':', '%3A')}:{' '.join(selection)}".replace("\n", " ")


def _wider(path: str) -> list[str]:
    """A test, and the test groups, files and folders that contain it."""
    parts = path.split("::")
    found = ["::".join(parts[:count]) for count in range(len(parts), 0, -1)]
    folder = posixpath.dirname(parts[0])
    while folder not in ("", "/", ".."):
        found.append(folder)
        folder = posixpath.dirname(folder)
    return found


def place_of(folder: str, root: str, word: str = "") -> str:
    """The canonical name of a folder or a file: relative to the root of the session if below it, `` for the root
    itself. The user's home directory is recognized if the root lies in it.
    """
    if (of_home := IN_HOME.fullmatch(word)) is not None:
        home = _HOME.match(root)
        folder, word = home[0] if home else "~", (of_home["path"] or "").lstrip("/")
    folder, root, word = map(of_drive, (folder, root, word))
    path, above = posixpath.normpath(word if is_absolute(word) else posixpath.join(folder, word)), root.rstrip("/")
    if _DRIVE.match(above) and (by_bash := _GIT_BASH.match(path)) is not None:
        path = f"{by_bash['drive'].upper()}:{path[by_bash.end() :] or '/'}"
    if above and path.startswith(".."):  # one folder has one name, regardless of its spelling
        path = posixpath.normpath(posixpath.join(above, path))
    if above and (path == above or path.startswith(f"{above}/")):
        path = path[len(above) :].lstrip("/")
    return "" if path == "." else path


def of_drive(path: str) -> str:
    """A path with Windows drives in one spelling; other paths unchanged."""
    return path[0].upper() + path[1:].replace("\\", "/") if _DRIVE.match(path) else path


def is_absolute(path: str) -> bool:
    """Whether a path begins at the root of a file system or of a drive."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def path_from(place: str, root: str, word: str) -> str:
    """An argument relative to the folder in which a check runs; options stay unchanged."""
    if word.startswith("-"):
        return word
    path, sign, test = word.partition("::")
    if is_absolute(path):
        path = place_of("", root, path)
        path = path.removeprefix(f"{place}/") if place else path
    return posixpath.normpath(path) + sign + test
