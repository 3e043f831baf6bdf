"""LOG, the chain of a folder of runs: a line is the commit of what it names; see `storage.chain`.

live     snapshots of a session, each with its id, whose it is, its digest and the SHA-256 of its file
begin    a batch, with its number of shards
shard    the parts of a shard of a batch, or of some snapshots of a session, with the SHA-256 of each
run      every shard of a batch has its line
discard  a batch that is not finished, and is not to be: it does not exist
erase    the receipt of an erasure: the removed texts, and the part of the texts of a shard without them
sweep    files that no line names are being removed
answer   the findings in an answer

Note: what no line names does not exist, and a sweep removes it. A writer whose file was there before a `sweep`, and whose
line would come after it, writes under another name: no clock decides whether a file is still being written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...nodes.errors import MovedOnError, VerificationError
from ..storage.chain import Chain, Line
from ..storage.durable import exists, make_folders, sync_path, write_atomic
from ..storage.places import Place
from ..storage.signing import UNSIGNED, Signer

LOG = "LOG"
_OF_RUN = re.compile(rb'"kind":"([a-z]+)"[^\n]*?"run_id":"(run-[0-9a-v]+)"')
"""The kind and run of a line: the keys of its JSON are sorted."""


class RunLog(Chain):
    """The log of one folder of runs."""

    def __init__(self, folder: Place, signer: Signer = UNSIGNED) -> None:
        super().__init__(folder / LOG, signer)

    def of(self, run_id: str) -> list[Line]:
        """The lines of one run, none if it was discarded; of the chain, only they are verified."""
        lines = [line for line in self.lines_with(f'"run_id":"{run_id}"') if line.body["run_id"] == run_id]
        return [] if of_kind(lines, "discard") else lines

    def after(self, lines: Sequence[Line]) -> list[Line]:
        """The lines of a run after these of it; of the chain, only later ones are read."""
        last = lines[-1]
        return [line for line in self.lines_after(last.number) if line.body.get("run_id") == last.body["run_id"]]

    def by_run(self) -> Mapping[str, list[Line]]:
        """The lines of every run, by run, in the order of their first line; only those that are asked for are verified."""
        data, found = self._places()
        return _ByRun(self, data, {run_id: [at for _, at in lines] for run_id, lines in found.items()})

    def unfinished(self) -> list[str]:
        """The ids of batches that are not finished, oldest first."""
        kinds = {run_id: {kind for kind, _ in lines} for run_id, lines in self._places()[1].items()}
        return sorted(run_id for run_id, of in kinds.items() if "begin" in of and "run" not in of)

    def _places(self) -> tuple[bytes, dict[str, list[tuple[str, int]]]]:
        """The bytes of the log, and kind and place of each line of a run, by run; without discarded ones."""
        data, found = self.data(), dict[str, list[tuple[str, int]]]()
        for match in _OF_RUN.finditer(data):
            found.setdefault(match[2].decode(), []).append((match[1].decode(), match.start()))
        return data, {run_id: lines for run_id, lines in found.items() if "discard" not in dict(lines)}

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
                return self._append(last, {"kind": kind, **body}) if allowed() else None


def is_unfinished(lines: Iterable[Line]) -> bool:
    """Whether these are the lines of a batch that is not finished, and may be."""
    kinds = {line.body["kind"] for line in lines}
    return "begin" in kinds and kinds.isdisjoint(("run", "discard"))


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

    def commit_parts(self, kind: str, write: Callable[[], Mapping[str, Any]], allowed: Callable[[], bool]) -> bool:
        """Write parts of a run and append the line that names them, unless it is not `allowed`; after a sweep, which may have
        removed them, write them again. Parts without a line are removed: they may contain what was erased since.
        """
        while True:
            begun, body = self.log.number(), write()
            line = self.log.commit(kind, body, lambda since=begun: allowed() and not self.log.swept(since))
            if line is not None:
                return True
            for path in body["parts"]:
                (self.path / body["run_id"] / path).unlink(missing_ok=True)
            if not self.log.swept(begun):
                return False


def of_kind(lines: Iterable[Line], *kinds: str) -> list[Line]:
    """The lines of these kinds."""
    return [line for line in lines if line.body["kind"] in kinds]


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
