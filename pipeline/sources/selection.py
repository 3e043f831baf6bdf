"""Which files of a folder are read: what Git lists, or `.gitignore` files leave, then `.scopedignore` files and patterns.

Gives: `Selection`; `walk`, `file_at` and `through_link`, for files below any folder. `.scopedignore` files have the syntax of `.gitignore`; those of all folders from the top of the work
tree down count, the deepest first. `!PATTERN` also includes files that Git ignores, in whatever folder. Patterns of
`--exclude` and `--include` precede the files, and `--include` precedes `--exclude`.

Note: symbolic links are neither followed nor read as ignore files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from .git_commands import Git, work_tree_root
from .report import SourceReport

IGNORE_FILE = ".scopedignore"
_LEFT_OUT = f"left out by {IGNORE_FILE} or --exclude"
_OF_GIT = frozenset([".git", ".hg", ".svn"])
_TOOL_FOLDERS = _OF_GIT | {"node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Patterns in the syntax of `.gitignore`, relative to the folder that is read.

    A folder outside of Git is listed by its `.gitignore` files. With `submodules`, the files of checked out submodules are
    read, too.
    """

    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    submodules: bool = False

    def files(self, root: Path, report: SourceReport) -> list[bytes]:
        """Paths of the files under `root` that are read, relative to it, separated by `/`.

        Raises:
            InputError: Git cannot list them; has Git's reason.
        """
        rules = self.rules(root)
        in_git = work_tree_root(root) is not None
        if in_git:
            listed = self._listed(root, report)
        else:
            of_git = Rules(root, ".gitignore")
            listed = list(walk(root, lambda path: _name(path) in _TOOL_FOLDERS or of_git.says(path), report))
        if not (ruled := rules.folders(listed)):
            return listed
        kept = [path for path in listed if path.rpartition(b"/")[0] not in ruled or not rules.excludes(path)]
        report.skip(_LEFT_OUT, len(listed) - len(kept))
        if not rules.includes(ruled):
            return kept
        known = set(listed)
        ignored = Git(root).ignored() if in_git else walk(root, lambda path: _name(path) in _OF_GIT, SourceReport())
        return kept + [path for path in ignored if path not in known and rules.says(os.fsdecode(path)) is False]

    def rules(self, root: Path) -> Rules:
        """What ignore files and patterns say about paths below `root`."""
        lines = [*self.exclude, *(f"!{pattern}" for pattern in self.include)]
        return Rules(root, IGNORE_FILE, lines)

    def _listed(self, root: Path, report: SourceReport) -> list[bytes]:
        """The paths that Git lists."""
        git = Git(root)
        paths = list(git.files())
        if not paths and git.run("check-ignore", ".", folder=git.folder, no=True):
            report.note("Git ignores this folder, so none of its files was read; copy it elsewhere", at=str(root))
        for path in list(paths) if self.submodules else ():
            below = root / os.fsdecode(path)
            if os.path.lexists(below / ".git") and not path.endswith(b"/"):
                paths.remove(path)
                paths += [path + b"/" + each for each in self._listed(below, report)]
        return paths


class Rules:
    """What patterns, and ignore files of a name, say about paths below a folder. Files in the folder and those below it
    count, and for files of this package, those above it up to the top of the work tree.
    """

    def __init__(self, root: Path, name: str, patterns: Sequence[str] = ()) -> None:
        """`patterns` precede the files."""
        here = root.resolve()
        self._name, self._top = name, (work_tree_root(here) if name == IGNORE_FILE else None) or here
        self._here = "" if self._top == here else here.relative_to(self._top).as_posix() + "/"
        self._given = [(len(self._here), GitIgnoreSpec.from_lines(patterns))] if patterns else []
        self._files: dict[str, list[tuple[int, GitIgnoreSpec]]] = {}

    def excludes(self, path: bytes) -> bool:
        """Whether a path is excluded."""
        return self.says(os.fsdecode(path)) is True

    def folders(self, listed: Iterable[bytes]) -> dict[bytes, list[tuple[int, GitIgnoreSpec]]]:
        """The patterns about files in the folder of each of those listed, and in this one, where there are any: most folders have
        none, and asking for each file takes as long as Git.
        """
        names = {b"", *(path.rpartition(b"/")[0] for path in listed)}
        about = {name: [*self._given, *self._in((self._here + os.fsdecode(name)).rstrip("/"))] for name in names}
        return {name: specs for name, specs in about.items() if specs}

    @staticmethod
    def includes(folders: Mapping[bytes, list[tuple[int, GitIgnoreSpec]]]) -> bool:
        """Whether a file that Git ignores may be included."""
        specs = [spec for specs in folders.values() for _, spec in specs]
        return any(pattern.include is False for spec in specs for pattern in spec.patterns)

    def says(self, path: str) -> bool | None:
        """Whether a path is excluded, None if no pattern matches; the deepest file with a pattern for it decides. A folder
        ends with `/`.
        """
        whole = self._here + path
        for length, spec in self._about(whole):
            if (include := spec.check_file(whole[length:]).include) is not None:
                return include
        return None

    def _about(self, path: str) -> list[tuple[int, GitIgnoreSpec]]:
        """The patterns, then the ignore files in the folders above a path, the deepest first, each with the length of the
        path of its folder.
        """
        return [*self._given, *self._in(path.rstrip("/").rpartition("/")[0])]

    def _in(self, folder: str) -> list[tuple[int, GitIgnoreSpec]]:
        if folder not in self._files:
            spec = _spec(f"{self._top}/{folder}/{self._name}")
            above = self._in(folder.rpartition("/")[0]) if folder else []
            self._files[folder] = [(len(folder) + 1 if folder else 0, spec), *above] if spec else above
        return self._files[folder]


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _spec(file: str) -> GitIgnoreSpec | None:
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.lstat(file).st_mode):
            return GitIgnoreSpec.from_lines(Path(file).read_text("utf-8", "replace").splitlines())
    return None


def walk(root: Path, ignored: Callable[[str], bool | None], report: SourceReport) -> Iterator[bytes]:
    """Files below `root`, without ignored ones; the path of a folder ends with `/`."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        below: list[str] = []
        for entry in entries:
            path = folder + entry.name
            if entry.is_dir(follow_symlinks=False):
                path += "/"
            if ignored(path):
                report.skip("ignored")
            elif path.endswith("/"):
                below.append(path)
            else:
                yield os.fsencode(path)
        waiting.extend(reversed(below))


def file_at(root: Path, raw: bytes, report: SourceReport) -> tuple[str, os.stat_result] | None:
    """Path and status of a file that can be read; None, with the reason counted, if it is skipped.

    A file that no longer exists is not counted.
    """
    try:
        path = raw.decode("utf-8")
    except UnicodeDecodeError:
        report.skip("path not utf-8", at=ascii(raw))
        return None
    if path.endswith("/"):
        report.skip("nested repository", at=path)
        return None
    try:
        if through_link(root, path):
            report.skip("symbolic link", at=path)
            return None
        status = os.lstat(f"{root}/{path}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        report.skip("not readable", at=path)
        return None
    if not stat.S_ISREG(status.st_mode):
        report.skip("submodule" if stat.S_ISDIR(status.st_mode) else "not a regular file", at=path)
        return None
    return path, status


def through_link(root: Path, path: str) -> bool:
    """Whether a folder of a path below `root`, or the file itself, is a symbolic link."""
    with suppress(ValueError):  # a path with NUL
        return os.path.realpath(root / path) != f"{os.path.realpath(root)}/{path}"
    return False
