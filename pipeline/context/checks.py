"""Checks and their names: what a check is, which passes end its failure, and which failures its pass ends.

Gives: `Check`, `EVERYTHING`, and `place_of` and `path_from`, which name folders and files.

Note: a name has the program, the place where it runs, and what it is narrowed to: `pytest in web:tests/a.py`. A failure ends where a
check of its own name passes, or one that is known to take it in: the file of a test, a folder of the file, all that there is.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

__all__ = ["EVERYTHING", "IN_HOME", "Check", "is_absolute", "of_drive", "path_from", "place_of"]

EVERYTHING = "*"
"""The name of a check of all that there is."""
IN_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?P<path>/[^$`*?\[]*)?")
"""A folder or a file of the user's home."""
_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|\Z)")
"""Where the home of a user is."""
_DRIVE = re.compile(r"[A-Za-z]:(?=[/\\]|\Z)")
_GIT_BASH = re.compile(r"/(?P<drive>[A-Za-z])(?=/|\Z)")
"""A drive of Windows, as its programs and as Git Bash name it."""


@dataclass(frozen=True)
class Check:
    """A program of a command line that checks."""

    family: str
    """test, lint, types, build, or all"""
    program: str
    place: str = ""
    """The folder in which it runs; `` = where the session works."""
    selection: tuple[str, ...] = ()
    """Files, names and packages that it is narrowed to, in the order of words; none = all that there is."""
    other: tuple[str, ...] = ()
    """Words that make another check of it: of another environment, of a wider set, or words that are not understood."""
    understood: bool = True
    """Every word of it is."""
    wide: bool = False
    """It takes in what the program does without `other`."""
    usual: bool = False
    """Its selection is by convention all that there is."""
    takes_in: tuple[str, ...] = ()
    """Other programs all of whose work it does."""

    @property
    def name(self) -> str:
        """Its name: a later check of the same name repeats it."""
        return self._named(*self.selection)

    @property
    def covers(self) -> tuple[str, ...]:
        """The names of the checks that have passed where it passes, its own first."""
        found = [self.name]
        paths = [part for part in self.selection if not part.startswith("-")]
        if not self.understood:
            return (self.name,)
        programs, whole = (self.program, *self.takes_in), ((), (EVERYTHING,))
        if self.selection:
            found += [self._named(*self.selection, program=each) for each in self.takes_in]
        else:
            found += [self._named(*rest, program=each) for each in programs for rest in whole]
            found += [self._named(*rest, program=each, plain=True) for each in programs for rest in whole if self.wide]
        if self.selection and len(paths) == len(self.selection):
            found += [self._named(path) for path in paths]
            found += [self._named()] if self.usual else []
        return tuple(dict.fromkeys(found))

    @property
    def within(self) -> tuple[str, ...]:
        """The names of the checks that end its failure where they pass, its own first."""
        found = [self.name]
        paths = [part for part in self.selection if not part.startswith("-")]
        if self.understood and self.selection:
            if len(paths) == 1:
                found += [self._named(path) for path in _wider(paths[0])]
            found.append(self._named(EVERYTHING))
        return tuple(dict.fromkeys((*found, EVERYTHING)))

    def _named(self, *selection: str, program: str = "", plain: bool = False) -> str:
        words = " ".join((program or self.program, *(() if plain else self.other)))
        head = f"{words} in {self.place}" if self.place else words
        return f"{head.replace(':', '%3A')}:{' '.join(selection)}".replace("\n", " ")


def _wider(path: str) -> list[str]:
    """A test, and the groups of tests, files and folders that hold it."""
    parts = path.split("::")
    found = ["::".join(parts[:count]) for count in range(len(parts), 0, -1)]
    folder = posixpath.dirname(parts[0])
    while folder not in ("", "/", ".."):
        found.append(folder)
        folder = posixpath.dirname(folder)
    return found


def place_of(folder: str, root: str, word: str = "") -> str:
    """A folder or a file as its place is named: below the root of the session from there, `` for the root itself. The user's home is known
    where the root lies in it.
    """
    if (of_home := IN_HOME.fullmatch(word)) is not None:
        home = _HOME.match(root)
        folder, word = home[0] if home else "~", (of_home["path"] or "").lstrip("/")
    folder, root, word = map(of_drive, (folder, root, word))
    path, above = posixpath.normpath(word if is_absolute(word) else posixpath.join(folder, word)), root.rstrip("/")
    if _DRIVE.match(above) and (by_bash := _GIT_BASH.match(path)) is not None:
        path = f"{by_bash['drive'].upper()}:{path[by_bash.end() :] or '/'}"
    if above and path.startswith(".."):  # one folder has one name, however a line names it
        path = posixpath.normpath(posixpath.join(above, path))
    if above and (path == above or path.startswith(f"{above}/")):
        path = path[len(above) :].lstrip("/")
    return "" if path == "." else path


def of_drive(path: str) -> str:
    """A path as it is; one of a drive of Windows in one spelling."""
    return path[0].upper() + path[1:].replace("\\", "/") if _DRIVE.match(path) else path


def is_absolute(path: str) -> bool:
    """Whether a path is named from the root of a file system or of a drive."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def path_from(place: str, root: str, word: str) -> str:
    """An argument as it is named from the place where a check runs; options stay as they are."""
    if word.startswith("-"):
        return word
    path, sign, test = word.partition("::")
    if is_absolute(path):
        path = place_of("", root, path)
        path = path.removeprefix(f"{place}/") if place else path
    return posixpath.normpath(path) + sign + test
