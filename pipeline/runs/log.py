"""LOG, the chain of a folder of runs: a line is the commit of what it names; see `storage.chain`.

live     snapshots of a session, each with its id, whose it is, its digest and the SHA-256 of its file
close    a session's run gets no more snapshots: it is about to be compacted
run      a finished run, with all that is known of it: its settings, and the SHA-256 of each of its parts
erase    the receipt of an erasure: the removed texts, and the SHA-256 of each part without them
sweep    files that no line names are being removed
answer   the findings in an answer

Note: what no line names does not exist, and a sweep removes it. A writer whose file was there before a `sweep`, and
whose line would come after it, writes under another name: no clock decides whether a file is still being written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...nodes.errors import MovedOnError, VerificationError
from ..storage.chain import Chain, Line, LineInDoubtError
from ..storage.durable import exists, make_folders, sync_path, write_atomic
from ..storage.places import Place
from ..storage.signing import UNSIGNED, Signer

__all__ = ["LOG", "Line", "LineInDoubtError", "RunFolder", "RunLog", "finished", "of_kind", "snapshots_named"]

LOG = "LOG"
_OF_RUN = re.compile(rb'"run_id":"(run-[0-9a-v]+)"')


class RunLog(Chain):
    """The log of one folder of runs."""

    def __init__(self, folder: Place, signer: Signer = UNSIGNED) -> None:
        super().__init__(folder / LOG, signer)

    def of(self, run_id: str) -> list[Line]:
        """The lines of one run; of the chain, only they are verified."""
        return [line for line in self.lines_with(f'"run_id":"{run_id}"') if line.body["run_id"] == run_id]

    def by_run(self) -> Mapping[str, list[Line]]:
        """The lines of every run, by run, in the order of their first line; only those that are asked for are verified."""
        data, found = self.data(), dict[str, list[int]]()
        for match in _OF_RUN.finditer(data):
            found.setdefault(match[1].decode(), []).append(match.start())
        return _ByRun(self, data, found)

    def number(self) -> int:
        """The number of the last line."""
        return last.number if (last := self.last()) else 0

    def swept(self, since: int) -> bool:
        """Whether files that no line names were removed after a line."""
        return bool(of_kind(self.lines_after(since), "sweep"))

    def commit(self, kind: str, body: Mapping[str, Any], allowed: Callable[[], bool] = lambda: True) -> Line | None:
        """Append a line if `allowed`, given all lines before it; None if it is not.

        Raises:
            LineInDoubtError: the log may contain the line. After any other error it does not.
        """
        while True:
            with suppress(MovedOnError), self.writing():
                last = self.last()
                return self.append(last, {"kind": kind, **body}) if allowed() else None


class _ByRun(Mapping[str, list[Line]]):
    def __init__(self, log: RunLog, data: bytes, found: Mapping[str, list[int]]) -> None:
        self._log, self._data, self._found = log, data, found

    def __getitem__(self, run_id: str) -> list[Line]:
        return [self._log.line_at(self._data, at) for at in self._found[run_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class RunFolder:
    """A folder of runs: its log, and the files that its runs share."""

    def __init__(self, path: Place, signer: Signer = UNSIGNED) -> None:
        self.path, self.log = path, RunLog(path, signer)

    def share(self, data: bytes | memoryview) -> str:
        """Store a file once under its SHA-256, which is returned."""
        sha256 = hashlib.sha256(data).hexdigest()
        make_folders(self.path / "shared", self.path)
        if exists(self.shared(sha256)):
            sync_path(self.path / "shared")  # another process may have written and not synced its name yet
        else:
            write_atomic(self.shared(sha256), data)
        return sha256

    def shared(self, sha256: str) -> Place:
        """The shared file with this SHA-256."""
        return self.path / "shared" / sha256


def of_kind(lines: Iterable[Line], kind: str) -> list[Line]:
    """The lines of one kind."""
    return [line for line in lines if line.body["kind"] == kind]


def finished(lines: Iterable[Line]) -> Mapping[str, Any] | None:
    """What the lines of one run say of it as finished; None if it is not.

    Raises:
        VerificationError: two lines say it: an old anchor would vouch for both.
    """
    named = [line.body for line in of_kind(lines, "run")]
    if len(named) > 1:
        raise VerificationError(f"Expected one line that ends a run, got {len(named)} - at {LOG}")
    return named[0] if named else None


def snapshots_named(lines: Iterable[Line]) -> dict[str, dict[str, Any]]:
    """The snapshots that the lines of one run name, by id: what `listing` says of each, `snapshot_digest` and `sha256` of the file.

    Raises:
        VerificationError: two lines name the same snapshot.
    """
    named = [one for line in of_kind(lines, "live") for one in line.body["snapshots"]]
    found = {one["snapshot_id"]: one for one in named}
    if len(found) < len(named):
        raise VerificationError(f"Expected each snapshot once, got one twice - at {LOG}")
    return found
