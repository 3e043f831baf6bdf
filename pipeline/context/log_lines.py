"""The lines of a session log on disk: read, verified against a chain of digests, appended, compacted.

A log folder has `events.jsonl`, one JSON object per line. Compaction moves the lines into `parts/FIRST-END.parquet`;
the lines from event N on are then in `events-N.jsonl`. `head.json` records the number of events written and the digest
of their chain.

- `LogLines.opened` returns the lines unverified, `LogLines.checked` their number and chain.
- `append`, `heal` and `compact` write; the caller holds the lock of the log.
- `log_parts` reads the lines of one state of the log.

Note: the file name contains the number of the first event. A compaction that is killed at any step leaves a published
part and an obsolete file, never the same lines twice. Bytes after the last newline are an append that is in progress or
was interrupted: readers skip them, and the next append removes them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ...nodes.errors import StoreError
from ..runs.files import write_bytes
from ..storage.durable import names_in, read_whole, sync_path, write_atomic
from ..storage.file_access import open_new
from .log_parts import RESTORE, ROWS, Lines, LogPart, damaged, misplaced

__all__ = ["EVERY", "START", "Checked", "Lines", "LogLines", "chained", "unfinished"]

EVERY = 64
"""Number of events between two checkpoints; each stores the chain of digests."""
START = hashlib.sha256(b"").digest()
"""The chain of a log without events."""
WINDOW = 1 << 16
_ACCEPT = "or remove head.json to take the log as it now is: checkpoints are made again"


def chained(before: bytes, line: bytes) -> bytes:
    """The digest of a chain extended by one line."""
    return hashlib.sha256(before + line).digest()


@dataclass(frozen=True)
class Checked:
    """A verified log: its number of events, their chain, and the bytes of the growing file.

    `marks` are the digests at every `EVERY`th event if all lines were read; `trusted` if none had to be.
    """

    events: int
    chain: bytes
    base: int
    size: int
    marks: Mapping[int, bytes] = field(default_factory=dict)
    trusted: bool = False
    before: bytes = START
    """The chain without the last event."""
    ends: Mapping[int, bytes] = field(default_factory=dict)
    """The digests at the ends of parts, as far as known: they locate the file with a changed line."""


class LogLines:
    """The files that store the lines of a log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.head = folder / "head.json"

    # --- reading ----------------------------------------------------------------------------------------------------

    @contextmanager
    def opened(self) -> Iterator[Lines]:
        """The current lines, isolated from concurrent appends and compaction.

        Raises:
            StoreError: the parts do not continue each other, or a file cannot be read.
        """
        while True:
            parts = self._parts()
            base = parts[-1].end if parts else 0
            path = self.live(base)
            try:
                file = path.open("rb")
            except FileNotFoundError:
                if self._parts() != parts:
                    continue  # compacted between the two reads
                yield Lines(parts, base, path, None, 0, 0)
                return
            except OSError as error:
                raise StoreError(f"{error.strerror}: {path}") from error
            with file:
                size, torn = _whole(file)
                yield Lines(parts, base, path, file, size, torn)
            return

    def live(self, base: int) -> Path:
        """The file of the lines after the first `base` events."""
        return self.folder / ("events.jsonl" if base == 0 else f"events-{base}.jsonl")

    def _parts(self) -> list[LogPart]:
        found = []
        for name in sorted(names_in(self.folder / "parts")):
            first, _, end = name.removesuffix(".parquet").partition("-")
            if name.endswith(".parquet") and first.isdecimal() and end.isdecimal():
                found.append(LogPart(int(first), int(end), self.folder / "parts" / name))
        for part, start in zip(found, [0, *(part.end for part in found)], strict=False):
            if part.first != start or part.end <= part.first:
                raise misplaced(part, start)
        return found

    def checked(
        self, lines: Lines, *, whole: bool = False, known: Callable[[], Mapping[int, bytes]] = dict[int, bytes]
    ) -> Checked:
        """The number of events and the chain of their lines.

        If no file has changed since `head.json` was written, its values are used; otherwise, and with `whole`, every
        line is read. `known` returns digests at some events, which help locate changed lines.

        If only the beginning of the last line remains, without its newline, the lines before it are the log. A crash
        does not remove a whole line: `head.json` is written after the lines that it counts.

        Raises:
            StoreError: lines are missing or changed; the message names the file and the place.
        """
        head = self._head()
        if head is not None and not whole and not lines.torn and head["files"] == lines.stats() and self._later(lines):
            chain, before = bytes.fromhex(head["chain"]), bytes.fromhex(head["before"])
            return Checked(head["events"], chain, lines.base, lines.size, trusted=True, before=before, ends=_ends(head))
        wanted = head["events"] if head is not None else 0
        chain, before, count, marks, ends = START, START, 0, dict[int, bytes](), dict.fromkeys(lines.ends(), START)
        at_head = chain if wanted == 0 else None
        for _, line in lines.read():
            before, chain, count = chain, chained(chain, line), count + 1
            if count % EVERY == 0:
                marks[count] = chain
            if count in ends:
                ends[count] = chain
            if count == wanted:
                at_head = chain
        cut = head is not None and count == wanted - 1 and chain.hex() == head["before"] and bool(lines.torn)
        if cut:  # a part of the last event remains: like an interrupted append
            if error := damaged(lines):
                raise error
        elif head is not None and (at_head is None or at_head.hex() != head["chain"]):
            named = {**known(), **_ends(head), wanted - 1: bytes.fromhex(head["before"])}
            raise _changed(lines, wanted, count, {**marks, **ends, count - 1: before}, named)
        return Checked(count, chain, lines.base, lines.size, marks, before=before, ends=ends)

    def _head(self) -> dict[str, Any] | None:
        """The values of `head.json`; None if it is missing or damaged: they can be computed again."""
        try:
            found = json.loads(read_whole(self.head))
            bytes.fromhex(found["chain"]), bytes.fromhex(found["before"])
            return found if isinstance(found["events"], int) and isinstance(found["files"], dict) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _later(self, lines: Lines) -> bool:
        """Whether `head.json` is newer than every file: a change within one clock tick may not show in the times."""
        try:
            written = self.head.stat().st_ctime_ns
        except OSError:
            return False
        return all(times[-1] < written for times in lines.stats().values())

    # --- writing, under the lock ------------------------------------------------------------------------------------

    def heal(self) -> int:
        """Remove an unfinished append and leftovers of compactions; returns the bytes of the append.

        Raises:
            StoreError: it cannot be removed.
        """
        with self.opened() as lines:
            torn, size, path, base = lines.torn, lines.size, lines.path, lines.base
        try:
            if torn:
                os.truncate(path, size)
                sync_path(path)
            for name in names_in(self.folder):
                begins = 0 if name == "events.jsonl" else _begins(name)
                if begins is not None and begins < base:
                    (self.folder / name).unlink()  # its lines are in a part
        except OSError as error:
            raise StoreError(f"{error.strerror}: {path}") from error
        return torn

    def append(self, data: bytes, at: Checked) -> None:
        """Append whole lines durably. If this raises, the file is unchanged.

        Raises:
            StoreError: the lines cannot be written.
        """
        path = self.live(at.base)
        new = not path.exists()
        try:
            with open_new(path, append=True) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if new:
                sync_path(path.parent)
        except BaseException as error:  # any failure, also an interrupt, leaves the file unchanged
            with suppress(OSError):  # if it cannot be truncated, the rest has no newline, or is complete and valid
                if new:
                    path.unlink(missing_ok=True)
                else:
                    os.truncate(path, at.size)
            if isinstance(error, OSError):
                hint = "no event was added: free disk space and append them again"
                raise StoreError(f"{error.strerror}: {path}", hint=hint) from error
            raise

    def record(self, checked: Checked) -> None:
        """Write `head.json`: the number and chain of the lines.

        Raises:
            OSError: it cannot be written; the log is valid without it.
        """
        with self.opened() as lines:
            known = {**checked.ends, checked.events: checked.chain}
            head = {
                "events": checked.events, "chain": checked.chain.hex(), "before": checked.before.hex(), "files": lines.stats(),
                "ends": {str(end): known[end].hex() for end in lines.ends() if end in known},
            }  # fmt: skip
        write_atomic(self.head, json.dumps(head).encode(), sync=False)

    def compact(self, known: Callable[[], Mapping[int, bytes]] = dict[int, bytes]) -> int:
        """Convert the lines of the file to a part, byte for byte; returns how many. `known` as in `checked`.

        Raises:
            StoreError: lines were changed, or the part cannot be written; the log is unchanged.
        """
        import pyarrow.parquet as pq

        with self.opened() as lines:
            self.checked(lines, whole=True, known=known)
            found = [line for _, line in lines.read(lines.base)]
            if not found:
                return 0
            sink = pa.BufferOutputStream()
            table = pa.table({"line": pa.array(found, pa.large_binary())})
            pq.write_table(table, sink, compression="zstd", compression_level=1, write_statistics=False, use_dictionary=False, row_group_size=ROWS)  # fmt: skip
            end = lines.base + len(found)
            write_bytes(
                self.folder / "parts" / f"{lines.base:012d}-{end:012d}.parquet", memoryview(sink.getvalue()), sync=True
            )
        self.heal()
        sync_path(self.folder)
        return len(found)


def unfinished(lines: Lines) -> list[str]:
    """A note about an unfinished append at the end of a log."""
    if not lines.torn:
        return []
    end = f"{lines.path.name} ends with {lines.torn} bytes of an append that is under way or was interrupted"
    return [f"{end}: they are left out, and the next append removes them"]


def _whole(file: BinaryIO) -> tuple[int, int]:
    """The number of bytes up to the last newline, and after it."""
    size = end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - WINDOW)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1, size - start - found - 1
        end = start
    return 0, size


def _begins(name: str) -> int | None:
    """The first event of a file of lines, from its name."""
    number = name.removeprefix("events-").removesuffix(".jsonl")
    return int(number) if name == f"events-{number}.jsonl" and number.isdigit() else None


def _ends(head: Mapping[str, Any]) -> dict[int, bytes]:
    """The digests at the ends of parts in `head.json`; none if invalid or written by an earlier version."""
    try:
        return {int(end): bytes.fromhex(chain) for end, chain in head.get("ends", {}).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _changed(
    lines: Lines, wanted: int, count: int, marks: Mapping[int, bytes], known: Mapping[int, bytes]
) -> StoreError:
    """The error for lines that differ from those written: a damaged line, missing lines, or replaced ones."""
    if error := damaged(lines):
        return error
    if count < wanted:
        expected = f"the {wanted} events that were written, got {count}"
        return StoreError(f"Expected {expected} - at {lines.path}", hint=f"{RESTORE}, {_ACCEPT}")
    sound = max((mark for mark, chain in known.items() if marks.get(mark) == chain), default=0)
    end = min((mark for mark in known if mark > sound), default=wanted)
    found = f"others from event {sound} to {end - 1} - at {lines.span(sound, end - 1)}"
    return StoreError(f"Expected the events that were written, got {found}", hint=f"{RESTORE}, {_ACCEPT}")
