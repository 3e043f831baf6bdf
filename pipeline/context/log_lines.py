"""The lines of a session log on disk, byte for byte: read, checked against a chain of digests, appended, compacted.

A log folder holds `events.jsonl`, one JSON object per line. Compaction moves the lines into `parts/FIRST-END.parquet`; the lines
behind event N are then in `events-N.jsonl`. `head.json` records how many events were written and the digest of their chain.

- `LogLines.opened` gives the lines as they are, `LogLines.checked` their number and chain.
- `append`, `heal` and `compact` write; the caller holds the lock of the log.
- `log_parts` has the lines themselves, at one moment.

Note: the name of the file says which event it begins with. A compaction that is killed at any step
leaves a published part and a file that no longer counts, never the same lines twice. Bytes behind the last newline are an append
that is under way or was interrupted: readers leave them out, and the next append removes them.
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
"""Events between two checkpoints; the chain of digests is known at each."""
START = hashlib.sha256(b"").digest()
"""The chain of a log without events."""
WINDOW = 1 << 16
_ACCEPT = "or remove head.json to take the log as it now is: checkpoints are made again"


def chained(before: bytes, line: bytes) -> bytes:
    """The digest of a chain with one more line."""
    return hashlib.sha256(before + line).digest()


@dataclass(frozen=True)
class Checked:
    """A log whose bytes are those that were written: its number of events, their chain, and the bytes of the file that grows.

    `marks` are the digests at every `EVERY`th event, where all lines were read; `trusted` says that none had to be.
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
    """The digests at the ends of parts, as far as they are known: they tell which file has a changed line."""


class LogLines:
    """The files of one log that hold its lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.head = folder / "head.json"

    # --- reading ----------------------------------------------------------------------------------------------------

    @contextmanager
    def opened(self) -> Iterator[Lines]:
        """The lines as they are now, isolated from concurrent appends and compaction.

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
                    continue  # compacted between the two looks
                yield Lines(parts, base, path, None, 0, 0)
                return
            except OSError as error:
                raise StoreError(f"{error.strerror}: {path}") from error
            with file:
                size, torn = _whole(file)
                yield Lines(parts, base, path, file, size, torn)
            return

    def live(self, base: int) -> Path:
        """The file of the lines behind the first `base` events."""
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
        """How many events there are and the chain of their lines.

        Where no file has changed since `head.json` was written, its word is taken; else, and with `whole`, every line is read.
        `known` gives digests at some events, which narrow down where lines have changed.

        Where of the last line that was written the beginning is left, without its newline, the lines before it are the log. A line
        that is gone as a whole was not torn by a crash: `head.json` is written behind the lines that it names.

        Raises:
            StoreError: lines that were written are gone or changed; the message names the file and where.
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
        if cut:  # of the last event a part is left: it is as an append that was interrupted
            if error := damaged(lines):
                raise error
        elif head is not None and (at_head is None or at_head.hex() != head["chain"]):
            named = {**known(), **_ends(head), wanted - 1: bytes.fromhex(head["before"])}
            raise _changed(lines, wanted, count, {**marks, **ends, count - 1: before}, named)
        return Checked(count, chain, lines.base, lines.size, marks, before=before, ends=ends)

    def _head(self) -> dict[str, Any] | None:
        """What `head.json` says; None where there is none, or one that is damaged: it is a copy."""
        try:
            found = json.loads(read_whole(self.head))
            bytes.fromhex(found["chain"]), bytes.fromhex(found["before"])
            return found if isinstance(found["events"], int) and isinstance(found["files"], dict) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _later(self, lines: Lines) -> bool:
        """Whether `head.json` is younger than every file: one that changed in the same tick of the clock may keep its times."""
        try:
            written = self.head.stat().st_ctime_ns
        except OSError:
            return False
        return all(times[-1] < written for times in lines.stats().values())

    # --- writing, under the lock ------------------------------------------------------------------------------------

    def heal(self) -> int:
        """Remove an unfinished append and what compactions left; returns the bytes of the append.

        Raises:
            StoreError: the disk does not let it be removed.
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
        """Add whole lines, durably. Where this raises, the file is as it was.

        Raises:
            StoreError: the disk does not take them.
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
        except BaseException as error:  # whatever stops it, an interrupt too, leaves the file as it was
            with suppress(
                OSError
            ):  # what cannot be cut has no newline, or is what the caller wanted: it is read as such
                if new:
                    path.unlink(missing_ok=True)
                else:
                    os.truncate(path, at.size)
            if isinstance(error, OSError):
                hint = "no event was added: free disk space and append them again"
                raise StoreError(f"{error.strerror}: {path}", hint=hint) from error
            raise

    def record(self, checked: Checked) -> None:
        """Write `head.json`: number and chain of the lines.

        Raises:
            OSError: the disk does not take it; the log is sound without it.
        """
        with self.opened() as lines:
            known = {**checked.ends, checked.events: checked.chain}
            head = {
                "events": checked.events, "chain": checked.chain.hex(), "before": checked.before.hex(), "files": lines.stats(),
                "ends": {str(end): known[end].hex() for end in lines.ends() if end in known},
            }  # fmt: skip
        write_atomic(self.head, json.dumps(head).encode(), sync=False)

    def compact(self, known: Callable[[], Mapping[int, bytes]] = dict[int, bytes]) -> int:
        """Turn the lines of the file into a part, byte for byte; returns how many. `known` as in `checked`.

        Raises:
            StoreError: lines are not those that were written, or the disk does not take the part; the log is as it was.
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
    """What to tell about the end of a log."""
    if not lines.torn:
        return []
    end = f"{lines.path.name} ends with {lines.torn} bytes of an append that is under way or was interrupted"
    return [f"{end}: they are left out, and the next append removes them"]


def _whole(file: BinaryIO) -> tuple[int, int]:
    """Bytes up to the last newline, and those behind it."""
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
    """The event that a file of lines begins with, by its name."""
    number = name.removeprefix("events-").removesuffix(".jsonl")
    return int(number) if name == f"events-{number}.jsonl" and number.isdigit() else None


def _ends(head: Mapping[str, Any]) -> dict[int, bytes]:
    """The digests at the ends of parts that `head.json` names; it is a copy, and earlier versions named none."""
    try:
        return {int(end): bytes.fromhex(chain) for end, chain in head.get("ends", {}).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _changed(
    lines: Lines, wanted: int, count: int, marks: Mapping[int, bytes], known: Mapping[int, bytes]
) -> StoreError:
    """The error of lines that are not those that were written: a damaged line, missing lines, or the place of replaced ones."""
    if error := damaged(lines):
        return error
    if count < wanted:
        expected = f"the {wanted} events that were written, got {count}"
        return StoreError(f"Expected {expected} - at {lines.path}", hint=f"{RESTORE}, {_ACCEPT}")
    sound = max((mark for mark, chain in known.items() if marks.get(mark) == chain), default=0)
    end = min((mark for mark in known if mark > sound), default=wanted)
    found = f"others from event {sound} to {end - 1} - at {lines.span(sound, end - 1)}"
    return StoreError(f"Expected the events that were written, got {found}", hint=f"{RESTORE}, {_ACCEPT}")
