"""LOG, the chain of a folder of runs: a line is the commit of what it names; see `storage.chain`.

live     snapshots of a session, each with its id, whose it is, its digest and the SHA-256 of its file
begin    a batch, with its number of shards
shard    a shard of a batch, or some snapshots of a session: each with its digest, and the parts with the SHA-256 of each
run      every shard of a batch has its line
discard  a batch that is not finished, and is not to be: it does not exist
erase    the receipt of an erasure: the removed texts, and the part of the texts of a shard without them
sweep    files that no line names are being removed
answer   the findings in an answer
context  a record of model inputs: its tables and the file of its texts

Note: what no line names does not exist, and a sweep removes it. A writer whose file was there before a `sweep`, and whose
line would come after it, writes under another name: no clock decides whether a file is still being written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...nodes.errors import MovedOnError, VerificationError
from ..storage.chain import Chain, Line, LineInDoubtError
from ..storage.durable import exists, make_folders, sync_path, write_atomic
from ..storage.file_access import system_errors
from ..storage.places import Place
from ..storage.signing import UNSIGNED, Signer

LOG = "LOG"
_OF_RUN = re.compile(rb'"run_id":"(run-[0-9a-v]+)"')


class RunLog(Chain):
    """The log of one folder of runs."""

    def __init__(self, folder: Place, signer: Signer = UNSIGNED) -> None:
        super().__init__(folder / LOG, signer)

    def of(self, run_id: str) -> list[Line]:
        """The lines of one run, none if it was discarded; of the chain, only they are verified."""
        lines = self._about(run_id)
        return [] if of_kind(lines, "discard") else lines

    def after(self, lines: Sequence[Line]) -> list[Line]:
        """The lines of a run after these of it; of the chain, only later ones are read."""
        return self._about(lines[-1].body["run_id"], lines[-1].number)

    def _about(self, run_id: str, after: int = 0) -> list[Line]:
        found = self.lines_with(f'"run_id":"{run_id}"', after)
        return [line for line in found if line.body.get("run_id") == run_id]

    def by_run(self) -> dict[str, list[Line]]:
        """The lines of every run that was not discarded, by run, oldest first; each is verified only against its own hash.

        A run of which a line was changed has none. If the changed line does not say whose it is, that run is `LOG`.
        """
        found, changed = dict[str, list[Line]](), set[str]()
        for line in self.each():
            if isinstance(line, bytes):
                named = _OF_RUN.search(line)
                changed.add(named[1].decode() if named else LOG)
            elif "run_id" in line.body:
                found.setdefault(line.body["run_id"], []).append(line)
        found |= {run_id: [] for run_id in changed}
        return {run_id: found[run_id] for run_id in sorted(found) if not of_kind(found[run_id], "discard")}

    def sweeps(self) -> Callable[[], bool]:
        """A function that says whether files that no line names were removed since this call."""
        number = last.number if (last := self.last()) else 0
        return lambda: bool(of_kind(self.lines_with('"kind":"sweep"', number), "sweep"))

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
    """Whether these are the lines of a batch that is not finished."""
    kinds = {line.body["kind"] for line in lines}
    return "begin" in kinds and "run" not in kinds


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

    def commit_files(
        self, kind: str, write: Callable[[list[Place]], Mapping[str, Any]], allowed: Callable[[], bool] = lambda: True
    ) -> Line | None:
        """Append the line that `write` returns, unless it is not `allowed`, after it wrote the files that the line names: it
        adds each to the list that it gets before it writes it. After a sweep, which may have removed some, it writes others.
        Files without a line are removed: they may contain what was erased since.

        Raises:
            LineInDoubtError: a store may have accepted the line: its files stay.
            StoreError: they cannot be written.
        """
        files = list[Place]()
        while True:
            swept = self.log.sweeps()
            try:
                with system_errors(self.path):
                    body = write(files)
                line, failed = self.log.commit(kind, body, lambda swept=swept: allowed() and not swept()), None
            except LineInDoubtError:
                raise
            except Exception as error:
                line, failed = None, error
            if line is not None:
                return line
            for file in files:
                with suppress(OSError):
                    file.unlink(missing_ok=True)
            if not swept():
                if failed is not None:
                    raise failed
                return None


def of_kind(lines: Iterable[Line], *kinds: str) -> list[Line]:
    """The lines of these kinds."""
    return [line for line in lines if line.body["kind"] in kinds]


def digests_named(body: Mapping[str, Any]) -> Mapping[str, str]:
    """The snapshots that a `live` or a `shard` line names, by id, each with its digest."""
    named = body["snapshots"]
    return named if body["kind"] == "shard" else {one["snapshot_id"]: one["snapshot_digest"] for one in named}


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
