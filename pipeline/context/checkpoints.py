"""Checkpoints of a session log: the facts of earlier events that later turns need, so that those are not read again.

A checkpoint at event N contains the last assertions of the events after an earlier checkpoint, its base: that of 320 =
0b101 · 64 has 256 as its base, that of 256 has the beginning. So a state is assembled from as many checkpoints as N /
64 has one bits, and each event is in as many as N / 64 has binary digits: together they take a fraction of the log.

Note: a checkpoint is derived data and is used only with the exact lines from which it was made. Each stores the chain
of digests up to it and that of its base; the lines of its last block are read again and verified.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.context_state import latest_assertions
from ...nodes.context_tables import LOG_EVENTS, STATE_FACTS
from ...nodes.errors import ScopedRetrievalError
from ..storage.durable import names_in, read_whole, write_atomic
from .log_lines import EVERY, START, Lines, chained
from .work_places import WorkPlace

__all__ = ["BEGINNING", "Checkpoint", "Checkpoints", "base_of", "continued", "joined_facts"]

FORMAT = 66
"""Incremented when folding the events yields other facts: checkpoints of earlier formats are made again."""
SUFFIX = ".checkpoint"
LEVEL = 6
"""Compression level: higher ones take longer and save almost nothing."""
_DAMAGED = (ValueError, KeyError, TypeError, OSError, pa.ArrowException)
"""Errors raised by reading a damaged file."""
_OTHERS = "it was made from other lines"


@dataclass(frozen=True)
class Checkpoint:
    """The facts before event `seq` that were asserted after `since`."""

    seq: int
    since: int
    chain: bytes
    since_chain: bytes
    before: bytes
    """The digest of the chain before its last block."""
    turn: int
    turn_id: str | None
    last: datetime | None
    place: WorkPlace
    base: int
    """The number of events in parts when it was made."""
    start: int
    """The offset of its last block in the file of the lines from `base` on; -1 if the block is in a part."""
    offset: int
    """The offset of the line of event `seq` in that file."""
    facts: pa.Table

    def to_bytes(self, session_id: str) -> bytes:
        """The file: the SHA-256 of the rest, a line of JSON, an Arrow stream."""
        about = {
            "format": FORMAT, "session_id": session_id, "seq": self.seq, "since": self.since, "chain": self.chain.hex(),
            "since_chain": self.since_chain.hex(), "before": self.before.hex(), "turn": self.turn, "turn_id": self.turn_id,
            "last": self.last and self.last.isoformat(), "place": astuple(self.place), "base": self.base, "start": self.start, "offset": self.offset,
        }  # fmt: skip
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=LEVEL))
        with pa.ipc.new_stream(sink, self.facts.schema, options=options) as writer:
            writer.write_table(self.facts.combine_chunks())
        data = json.dumps(about).encode() + b"\n" + sink.getvalue().to_pybytes()
        return hashlib.sha256(data).hexdigest().encode() + b"\n" + data

    @classmethod
    def from_bytes(cls, data: bytes, session_id: str) -> Checkpoint:
        """The checkpoint of a file.

        Raises:
            ValueError: it is damaged, or belongs to another session or version.
        """
        digest, _, rest = data.partition(b"\n")
        if hashlib.sha256(rest).hexdigest().encode() != digest:
            raise ValueError("damaged")
        head, _, stream = rest.partition(b"\n")
        about: dict[str, Any] = json.loads(head)
        if (about["format"], about["session_id"]) != (FORMAT, session_id):
            raise ValueError("of another session or version")
        with pa.ipc.open_stream(stream) as reader:
            facts = STATE_FACTS.check(reader.read_all())
        return cls(
            about["seq"], about["since"], bytes.fromhex(about["chain"]), bytes.fromhex(about["since_chain"]), bytes.fromhex(about["before"]),
            about["turn"], about["turn_id"], about["last"] and datetime.fromisoformat(about["last"]), WorkPlace.of(about["place"]), about["base"],
            about["start"], about["offset"], facts,
        )  # fmt: skip


BEGINNING = Checkpoint(0, 0, START, START, START, -1, None, None, WorkPlace(), 0, 0, 0, STATE_FACTS.empty())


def base_of(seq: int) -> int:
    """The base of the checkpoint at `seq`: `seq / EVERY` with its lowest one bit cleared."""
    block = seq // EVERY
    return (block & (block - 1)) * EVERY


class Checkpoints:
    """The checkpoints of a log folder."""

    def __init__(self, folder: Path, session_id: str) -> None:
        self.folder, self.session_id = folder, session_id

    def marks(self) -> list[int]:
        """The events at which there are checkpoints, in order."""
        stems = (name.removesuffix(SUFFIX) for name in names_in(self.folder) if name.endswith(SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit() and int(stem) % EVERY == 0)

    def nearest(
        self, seq: int, lines: Lines, chains: Mapping[int, bytes] = MappingProxyType({})
    ) -> tuple[tuple[Checkpoint, ...], list[str]]:
        """The last checkpoint before an event, preceded by its bases, oldest first; and notes about skipped ones.

        If there is none, that of the beginning. Each note names a skipped checkpoint and the reason. `chains` are the
        digests of the lines, as far as known.
        """
        notes = []
        for mark in reversed([mark for mark in self.marks() if mark <= seq]):
            try:
                return self._stack(mark, lines, chains), notes
            except (FileNotFoundError, ScopedRetrievalError, *_DAMAGED) as error:
                why = "one that it continues is missing" if isinstance(error, FileNotFoundError) else "damaged"
                why = error.args[0] if type(error) is ValueError else why
                notes.append(f"the checkpoint at event {mark} was not used: {why}")
        return (BEGINNING,), notes

    def _stack(self, mark: int, lines: Lines, chains: Mapping[int, bytes]) -> tuple[Checkpoint, ...]:
        """A checkpoint preceded by its chain of bases.

        Raises:
            ValueError, and the errors of reading it: one of them is missing, damaged or was made from other lines.
        """
        found: list[Checkpoint] = []
        seq = mark
        while seq:
            one = self._read(seq)
            if (found and found[-1].since_chain != one.chain) or chains.get(seq, one.chain) != one.chain:
                raise ValueError(_OTHERS)
            found.append(one)
            seq = base_of(seq)
        newest = found[0]
        chain, same = newest.before, newest.base == lines.base and newest.start >= 0
        for _, line in lines.read(mark - EVERY, mark, offset=newest.start if same else None):
            chain = chained(chain, line)
        if found[-1].since_chain != START or chain != newest.chain:
            raise ValueError(_OTHERS)
        return (BEGINNING, *reversed(found))

    def _read(self, seq: int) -> Checkpoint:
        found = Checkpoint.from_bytes(read_whole(self.folder / f"{seq}{SUFFIX}"), self.session_id)
        if (found.seq, found.since) != (seq, base_of(seq)):
            raise ValueError("of another event")
        return found

    def chains(self) -> dict[int, bytes]:
        """The digests stored in the readable checkpoints."""
        found = {}
        for mark in self.marks():
            with suppress(FileNotFoundError, ScopedRetrievalError, *_DAMAGED):
                found[mark] = self._read(mark).chain
        return found

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, replacing one of the same event.

        Raises:
            OSError: it cannot be written.
        """
        file = self.folder / f"{checkpoint.seq}{SUFFIX}"
        write_atomic(file, checkpoint.to_bytes(self.session_id), sync=False)

    def drop(self, chains: Mapping[int, bytes]) -> list[str]:
        """Remove the checkpoints that do not match the digests of the log; returns a sentence for each."""
        known = self.chains()
        gone = [mark for mark in self.marks() if known.get(mark) is None or known[mark] != chains.get(mark)]
        for mark in gone:
            (self.folder / f"{mark}{SUFFIX}").unlink(missing_ok=True)
        return [f"the checkpoint at event {mark} is rebuilt" for mark in gone]


def continued(
    stack: Sequence[Checkpoint], events: pa.Table, *, place: WorkPlace, chain: bytes, base: int, start: int, offset: int
) -> tuple[Checkpoint, ...]:
    """The checkpoints after one more block of events, which ends in `place`; the new one merges those it replaces."""
    before = stack[-1]
    seq = before.seq + EVERY
    since = base_of(seq)
    kept = [each for each in stack if each.seq <= since]
    merged = [each.facts for each in stack if each.seq > since]
    facts = latest_assertions(events, pa.concat_tables(merged) if merged else STATE_FACTS.empty())
    turn_ids = [each for each in events["turn_id"].to_pylist() if each is not None]
    last = events.slice(events.num_rows - 1).to_pylist()[0]
    new = Checkpoint(
        seq, since, chain, kept[-1].chain, before.chain, last["turn"], turn_ids[-1] if turn_ids else before.turn_id, last["created_at"],
        place, base, start, offset, facts,
    )  # fmt: skip
    return (*kept, new)


def joined_facts(stack: Sequence[Checkpoint]) -> pa.Table:
    """The facts that hold at the last checkpoint of a chain, and ends of constraints that a harness may pass with its
    state, which begins before the log (see `inputs.seed_facts`).
    """
    found = latest_assertions(LOG_EVENTS.empty(), pa.concat_tables([each.facts for each in stack]))
    given = pc.and_(pc.equal(found["slot"], "constraint"), pc.starts_with(found["fact"], "state"))
    return found.filter(pc.or_(pc.is_valid(found["value"]), given)).combine_chunks()
