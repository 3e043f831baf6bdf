"""Git as a source of bytes: the first-parent line with its times, the changes of each commit, blobs, trees, files.

Gives: `Git` (one repository), `Commit`, `Change`, `work_tree_root`. `Git._started` is the only place that starts git: it
runs the plumbing commands of `_PLUMBING` with `_OFF` and `_environment`, so that nothing that the repository configures
is executed and no remote is contacted. The work tree is the folder that contains `.git`; `core.worktree` may not name another.

Note: commit times may repeat and go backwards. `Commit.time` is `max(committer time, previous time + 1 microsecond)`,
so that every commit of the line has its own `as_of`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...nodes.errors import InputError

ABSENT = "000000"
"""Mode of the side of a change where the file is absent."""
_PROMISED = "promisor remote"
"""In git's message about an object that a partial clone lacks."""
_LAST_SECOND = 253_402_300_799 - 86_400
"""Times after the year 9999 count as its last day."""
_PLUMBING = frozenset((
    "cat-file", "check-ignore", "diff-tree", "ls-files", "ls-tree", "rev-list", "rev-parse", "symbolic-ref",
))  # fmt: skip
"""The commands that may run. None compares the work tree, which would run filters, or verifies signatures."""
_OFF = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "safe.bareRepository=explicit")
_ENVIRONMENT = {
    "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip
"""Instead of every `GIT_` variable of the caller. No protocol is allowed, so no helper, ssh or credential program starts."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the first-parent line; `time` in microseconds since 1970, strictly increasing along the line."""

    sha: str
    parent: str | None
    time: int


@dataclass(frozen=True, slots=True)
class Change:
    """A path after a commit, where it differs from the first parent; `mode` is `ABSENT` if it was removed, `before` if it
    was added.
    """

    commit: Commit
    path: bytes
    mode: str
    blob: str
    before: str = ABSENT


def work_tree_root(folder: Path) -> Path | None:
    """The nearest folder, this one or above, that contains `.git`; None if there is none."""
    here = folder.resolve()
    return next((each for each in (here, *here.parents) if os.path.lexists(each / ".git")), None)


class Git:
    """One repository, with a work tree or bare, and the folder of it that is read: paths are those below this folder.

    `root` is the root of the work tree, None if it has none; `repository` is the same for all work trees of a repository.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """
        Raises:
            InputError: there is no git repository, or no git, or the work tree is elsewhere.
        """
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(f"Expected a folder, got none - at {path}")
        here = self.path.resolve()
        bare = not os.path.lexists(here / ".git") and all(
            (here / name).exists() for name in ("HEAD", "objects", "refs")
        )
        root = None if bare else work_tree_root(here)
        if root is None and not bare:
            raise InputError(
                f"Expected a git repository, got a folder without one - at {path}",
                hint="index a folder without git without `--history`.",
            )
        self.root: Path | None = None
        self.folder = self.repository = here
        self.below = b"" if root is None or root == here else os.fsencode(here.relative_to(root)) + b"/"
        self._options = ["-C", str(root or here), *((f"--git-dir={here}",) if bare else ())]
        # git finds a work tree's repository itself, so that it checks the owner
        asked = ("--show-cdup", "--is-bare-repository", "--absolute-git-dir", "--git-common-dir")
        *kind, own, common, _ = self.run("rev-parse", *asked).split(b"\n")
        if kind not in ([b"", b"false"], [b"true"]):
            raise InputError(
                f"Expected a work tree in the folder of .git, got one elsewhere - at {root or here}",
                hint="see `core.worktree` in the configuration of the repository.",
            )
        if not self._is_of(root or here, own, common):
            raise InputError(
                f"Expected the repository of the folder, got one elsewhere - at {root or here}",
                hint="a linked work tree or a submodule is one that its repository names, too; see `git worktree repair`.",
            )
        if root is not None:
            self.root = root if kind[-1] == b"false" else None
            self._options += [f"--git-dir={root / '.git'}", *([f"--work-tree={root}"] if self.root else [])]

    def _is_of(self, folder: Path, *folders: bytes) -> bool:
        """Whether the repository lies in the folder, or names the folder itself as a linked work tree or a submodule: a
        `.git` file, a link or `commondir` alone could name any repository of this user. `folders` are its own and the one
        that it shares with its work trees, as git names them.
        """
        own, common = ((folder / os.fsdecode(path)).resolve() for path in folders)
        self.repository = common
        if own.is_relative_to(folder) and common.is_relative_to(folder):
            return True
        with suppress(OSError, ValueError):
            if own.is_relative_to(common / "worktrees"):
                return Path(os.fsdecode((own / "gitdir").read_bytes().strip())).resolve() == folder / ".git"
        # its work tree is then that of `core.worktree`
        given, self._options = self._options, ["-C", "/", f"--git-dir={own}"]
        named = self.run("rev-parse", "--show-toplevel")
        self._options = given
        return own == common and Path(os.fsdecode(named.rstrip(b"\n"))).resolve() == folder

    def source_id(self, name: str | None) -> str:
        """`git:<name>`; by default the name of the folder that is read, or of the bare repository without `.git`."""
        return f"git:{name or self.folder.name.removesuffix('.git') or 'repository'}"

    def run(self, *arguments: str, folder: Path | None = None, asked: bytes = b"", no: bool = False) -> bytes:
        """The output of a command, run in `folder`, by default in the root; `asked` is its input. With `no`, it may answer no,
        by status 1 and no output.

        Raises:
            InputError: the command failed.
        """
        return self._ended(self._started(arguments, folder), asked, {0, 1} if no else {0})

    def branch(self) -> tuple[str | None, str | None]:
        """Name and head commit of the current branch; the name is None if no branch is checked out, the commit is None if
        there are no commits.
        """
        shown = self.run("symbolic-ref", "--quiet", "--short", "HEAD", no=True)
        head = self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", no=True)
        return shown.decode("utf-8", "replace").strip() or None, head.decode("ascii").strip() or None

    def head(self) -> str:
        """The commit that is checked out.

        Raises:
            InputError: there are no commits.
        """
        if (head := self.branch()[1]) is None:
            raise InputError.described("a repository with commits", "one without", str(self.path))
        return head

    def commits(self, head: str) -> list[Commit]:
        """The first-parent line up to `head`, oldest first."""
        listed = self.run("rev-list", "--first-parent", "--reverse", "--format=%H %ct %P", head)
        line: list[Commit] = []
        before = -(2**62)
        for row in listed.decode("ascii").splitlines():
            if row.startswith("commit "):
                continue
            sha, seconds, *parents = row.split()
            before = max(min(int(seconds), _LAST_SECOND) * 1_000_000, before + 1)
            line.append(Commit(sha, parents[0] if parents else None, before))
        return line

    def changes(self, commits: Sequence[Commit]) -> list[Change] | None:
        """The changes of each commit against its first parent, in the order of commits; a rename is two changes. None if a
        partial clone lacks some of their trees.

        Raises:
            InputError: the repository lacks objects of the line.
        """
        asked = "".join(f"{c.sha} {c.parent}\n" if c.parent else f"{c.sha}\n" for c in commits).encode()
        options = [
            "--stdin",
            "-r",
            "-z",
            "--root",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "--no-ext-diff",
            "--no-textconv",
        ]
        try:
            fields = self.run("diff-tree", *options, f"--relative={os.fsdecode(self.below)}", asked=asked).split(b"\0")
        except InputError as error:
            if _PROMISED in error.message:
                return None
            raise
        by_sha, found, listed = {c.sha: c for c in commits}, list[Change](), iter(fields)
        sha = ""  # git prints the commit before its changes
        for field in listed:
            if field.startswith(b":"):
                before, mode, _, blob, _ = field[1:].decode("ascii").split(" ")
                found.append(Change(by_sha[sha], next(listed), mode, blob, before))
            else:
                sha = field.decode("ascii")
        return found

    def tree(self, commit: str) -> list[tuple[str, str, bytes]]:
        """Mode, object id and path of every entry of a commit's tree."""
        entries = []
        for entry in self.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            if entry:
                meta, path = entry.split(b"\t", 1)
                mode, _, blob = meta.decode("ascii").split(" ")
                if path.startswith(self.below):
                    entries.append((mode, blob, path.removeprefix(self.below)))
        return entries

    def files(self) -> dict[bytes, str]:
        """Paths that are tracked, or neither tracked nor ignored, with git's tag: `S` if the file is left out of a sparse
        checkout, `?` if it is not tracked.
        """
        listed = self.run("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", folder=self.folder)
        return {entry[2:]: entry[:1].decode() for entry in listed.split(b"\0") if entry}

    def ignored(self) -> list[bytes]:
        """Paths that are neither tracked nor listed by `files`, because they are ignored."""
        listed = self.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", folder=self.folder)
        return [path for path in listed.split(b"\0") if path]

    def _started(self, arguments: Sequence[str], folder: Path | None = None) -> subprocess.Popen[bytes]:
        if arguments[0] not in _PLUMBING:
            raise InputError.one_of(sorted(_PLUMBING), arguments[0], "git command")
        settings = [part for setting in _OFF for part in ("-c", setting)]
        options = [*self._options, *(("-C", str(folder)) if folder else ())]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            return subprocess.Popen(
                ["git", "--no-pager", *settings, *options, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=kept | _ENVIRONMENT,
            )
        except OSError as error:
            raise InputError("Expected git on the search path, got none - at PATH") from error

    def _ended(self, command: subprocess.Popen[bytes], asked: bytes, expected: set[int]) -> bytes:
        """The output of a command.

        Raises:
            InputError: another status than expected, with git's reason.
        """
        output, errors = command.communicate(asked)
        if command.returncode not in expected:
            lines = errors.decode("utf-8", "replace").strip().split("\n")
            reason = next((line for line in lines if line.startswith("fatal: ")), lines[0])
            name = next(word for word in command.args if word in _PLUMBING)  # type: ignore[union-attr]  # a list
            partial = "`git fetch --refetch` fetches what this clone lacks; without `--history`, the work tree is read."
            raise InputError(
                f"Expected git {name} to succeed, got status {command.returncode}, {reason!r} - at {self.path}",
                hint=partial if _PROMISED in reason else "",
            )
        return output


class Blobs:
    """Blobs by id from one `cat-file --batch`, one request at a time.

    Note: in a partial clone, which has a pack of a promisor, git would end at a blob that was not fetched.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._command = git._started(("cat-file", "--batch"))
        self._known: frozenset[bytes] | None = None
        if any((git.repository / "objects" / "pack").glob("*.promisor")):
            listed = git.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
            self._known = frozenset(listed.split())

    def get(self, blob: str, limit: int) -> bytes | None:
        """The blob's bytes, truncated after `limit` + 1; None if the repository lacks it.

        Raises:
            InputError: git ended.
        """
        name = blob.encode("ascii")
        if self._known is not None and name not in self._known:
            return None
        asked, output = self._command.stdin, self._command.stdout
        assert asked is not None and output is not None
        with suppress(BrokenPipeError):
            asked.write(name + b"\n")
            asked.flush()
        header = output.readline().split()
        if not header:
            self._git._ended(self._command, b"", set())
        if len(header) != 3:
            return None
        size = int(header[2])
        data = output.read(min(size, limit + 1))
        left = size - len(data) + 1
        while left > 0:
            left -= len(output.read(min(left, 1 << 20)) or b"\0" * left)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._command.terminate()
        with suppress(BrokenPipeError):
            self._command.communicate()
