"""Git as a source of bytes: the first-parent line with its times, the changes of each commit, blobs, trees.

Gives: `Git` (one repository), `Commit`, `Change`. Only plumbing commands run (`rev-list`, `diff-tree`, `cat-file`,
`ls-tree`), so the user's configuration does not affect the result, and nothing configured by the repository is
executed.

Note: commit times may repeat and go backwards. `Commit.time` is `max(committer time, previous time + 1 microsecond)`,
so that every commit of the line has its own `as_of`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO

from ...nodes.errors import InputError

__all__ = ["ABSENT", "Blobs", "Change", "Commit", "Git", "may_find_repository"]

ABSENT = "000000"
"""Mode of the side of a change where the file is absent."""
_PATHSPECS = 200
"""With more paths than this, git is run without them and its output filtered: command lines have a limit."""
_LAST_SECOND = 253_402_300_799 - 86_400
"""Times after the year 9999 count as its last day."""
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the first-parent line; `time` in microseconds since 1970, strictly increasing along the line."""

    sha: str
    parent: str | None
    time: int


@dataclass(frozen=True, slots=True)
class Change:
    """A path after a commit, where it differs from the first parent; `mode` is `ABSENT` if it was removed."""

    commit: Commit
    path: bytes
    mode: str
    blob: str


def may_find_repository(path: Path) -> bool:
    """Whether git may find a repository at a folder or above; if not, no process needs to be started."""
    folder = path.resolve()
    return any(os.path.lexists(each / name) for each in (folder, *folder.parents) for name in (".git", "HEAD"))


class Git:
    """One repository, with a work tree or bare."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """
        Raises:
            InputError: there is no git repository, or no git.
        """
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(f"Expected a folder, got none - at {path}")
        shown = self.try_("rev-parse", "--git-dir")
        if shown is None:
            raise InputError(
                f"Expected a git repository, got a folder without one - at {path}",
                hint="check the folder with `git status`; index a folder without git without `--git`.",
            )

    def run(self, *arguments: str) -> bytes:
        """The output of a command.

        Raises:
            InputError: the command failed.
        """
        done = self._run(arguments)
        if done.returncode:
            first = done.stderr.decode("utf-8", "replace").strip().split("\n", 1)[0]
            raise InputError(f"Expected git {arguments[0]} to succeed, got {first!r} - at {self.path}")
        return done.stdout

    def try_(self, *arguments: str) -> bytes | None:
        """The output of a command, or None if it failed."""
        done = self._run(arguments)
        return None if done.returncode else done.stdout

    def top(self) -> Path | None:
        """The root of the work tree; None in a bare repository."""
        shown = self.try_("rev-parse", "--show-toplevel")
        return Path(os.fsdecode(shown.rstrip(b"\n"))) if shown and shown.strip() else None

    def branch(self, name: str | None) -> tuple[str | None, str | None]:
        """Name and head commit of a branch, the current one by default; the name is None if no branch is checked out,
        the commit is None if there are no commits.

        Raises:
            InputError: there is no such branch.
        """
        if name is None:
            shown = self.try_("symbolic-ref", "--quiet", "--short", "HEAD")
            head = self.try_("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
            return (_line(shown) or None) if shown else None, _line(head) if head else None
        valid = self.try_("check-ref-format", f"refs/heads/{name}") is not None
        for prefix in ("refs/heads/", "refs/remotes/", "refs/remotes/origin/") if valid else ():
            head = self.try_("rev-parse", "--verify", "--quiet", f"{prefix}{name}^{{commit}}")
            if head:
                return name, _line(head)
        listed = self.run("for-each-ref", "--format=%(refname:short)", "--count=20", "refs/heads").decode().split()
        raise InputError.one_of(listed or ["(no branch)"], name, "branch")

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

    def changes(self, commits: Sequence[Commit], paths: Sequence[bytes] = ()) -> Iterator[Change]:
        """The changes of each commit against its first parent, in the order of commits; a rename is two changes.

        With `paths`, only the changes of these.

        Raises:
            InputError: the repository lacks objects of the line.
        """
        asked = "".join(f"{c.sha} {c.parent}\n" if c.parent else f"{c.sha}\n" for c in commits).encode()
        arguments = ("diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-renames", "--no-abbrev")
        wanted = set(paths)
        if 0 < len(wanted) <= _PATHSPECS:
            arguments = ("--literal-pathspecs", *arguments, "--", *map(os.fsdecode, sorted(wanted)))
        by_sha = {c.sha: c for c in commits}
        with self._process(arguments) as process, _fed(process, asked) as output:
            fields = _split(output)
            commit = None
            for field in fields:
                if field.startswith(b":"):
                    _, mode, _, blob, _ = field.decode("ascii").split(" ")
                    assert commit is not None  # git prints the commit before its changes
                    path = next(fields)
                    if not wanted or path in wanted:
                        yield Change(commit, path, mode, blob)
                else:
                    commit = by_sha[field.decode("ascii")]
            if process.wait():
                raise InputError(f"Expected git diff-tree to succeed, got status {process.returncode} - at {self.path}")

    def tree(self, commit: str) -> list[tuple[str, str, bytes]]:
        """Mode, object id and path of every entry of a commit's tree."""
        entries = []
        for entry in self.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            if entry:
                meta, path = entry.split(b"\t", 1)
                mode, _, blob = meta.decode("ascii").split(" ")
                entries.append((mode, blob, path))
        return entries

    @contextmanager
    def blobs(self) -> Iterator[Blobs]:
        """One process that returns blobs by id."""
        with self._process(("cat-file", "--batch")) as process:
            yield Blobs(process)

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                ["git", *_SAFE, "-C", str(self.path), *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                env=_environment(),
            )
        except FileNotFoundError as error:
            raise InputError("Expected git on the search path, got none - at PATH") from error

    @contextmanager
    def _process(self, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            ["git", *_SAFE, "-C", str(self.path), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
        try:
            yield process
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not pipe.closed:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue
            process.terminate()
            process.wait()


class Blobs:
    """Blobs by id from one `cat-file --batch`, one request at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._ask, self._answer = process.stdin, process.stdout

    def get(self, blob: str, limit: int) -> bytes | None:
        """The blob's bytes, truncated after `limit` + 1; None if the repository lacks it."""
        self._ask.write(blob.encode("ascii") + b"\n")
        self._ask.flush()
        header = self._answer.readline().split()
        if len(header) != 3:
            return None
        size = int(header[2])
        data = self._answer.read(min(size, limit + 1))
        left = size - len(data) + 1
        while left > 0:
            left -= len(self._answer.read(min(left, 1 << 20)) or b"\0" * left)
        return data


@contextmanager
def _fed(process: subprocess.Popen[bytes], asked: bytes) -> Iterator[IO[bytes]]:
    """The output of a process that is fed from a thread, so that neither pipe can fill and block the other."""
    assert process.stdin is not None and process.stdout is not None
    feed = process.stdin

    def write() -> None:
        try:
            with feed:
                feed.write(asked)
        except (BrokenPipeError, ValueError, OSError):
            return  # the reader stopped early

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield process.stdout
    finally:
        process.terminate()
        thread.join()


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    """NUL-terminated fields of a stream."""
    left = b""
    while part := stream.read(1 << 16):
        *whole, left = (left + part).split(b"\0")
        yield from whole


def _line(shown: bytes) -> str:
    return shown.decode("utf-8", "replace").strip()


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name == "GIT_CEILING_DIRECTORIES"
    }
    return kept | {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }
