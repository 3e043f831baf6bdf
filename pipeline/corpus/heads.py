"""Heads of a corpus: which generation is current, and the chain of all generations that were published.

    CURRENT     "<generation> <sequence>", then the head: the line of HEADS for this generation; while the manifest of
                the current generation is being replaced, its next head follows as a third line
    HEADS       a line per publication, `<sha256 of the JSON> <JSON>`: number, sequence, generation, SHA-256 of the
                manifest, hash of the line before; a signature follows if there is a key, see `trust.py`. On an object
                store, `HEADS/<number>`, an object per line

Both are in the folder of the corpus, or in another one with fewer writers (the setting `corpus_head`); `path` is that
folder here.

A publication writes the manifest, then CURRENT, then the line of HEADS. After a crash between the last two, CURRENT is
one line ahead, and that line names the last one of HEADS: readers accept this, and the next writer appends the line.
So CURRENT is never older than the last line of HEADS, unless it was rolled back.

A corpus of schema version 1 has no HEADS, and only the first line in CURRENT. It can be read; the next writer, or
`corpus upgrade`, begins its chain.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from ...nodes.errors import StoreError
from ..storage.durable import exists, read_whole, sync_path
from ..storage.file_access import open_new
from ..storage.places import ObjectPlace, Place

__all__ = [
    "HEADS",
    "START",
    "Head",
    "Pointer",
    "anchored",
    "append_head",
    "chain",
    "checked_pointer",
    "next_head",
    "read_pointer",
]

HEADS = "HEADS"
START = "0" * 64
"""The `previous` hash of the first line."""
_WINDOW = 1 << 13
"""Bytes read from the end of HEADS to find its last line; a line is shorter than 500."""
_ATTEMPTS = 50
"""How often a reader starts over because writers published while it read."""
_CHANGED = (
    "if you did not restore an older copy yourself, the corpus was changed: compare it with a backup. Put back a "
    "whole copy of the corpus, or index the sources into a new one."
)


@dataclass(frozen=True)
class Head:
    """One publication. `number` counts the lines of HEADS; `sequence` is that of the manifest."""

    number: int
    sequence: int
    generation: str
    manifest_sha256: str
    previous: str
    signature: str = ""
    """Base64 of an Ed25519 signature; empty without one."""

    @property
    def text(self) -> str:
        """The JSON that is hashed and signed: sorted keys, no spaces."""
        fields = {name: value for name, value in asdict(self).items() if name != "signature"}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """SHA-256 of `text`, 64 hex digits: an anchor to keep elsewhere."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def line(self) -> str:
        """The line of HEADS, without its line break."""
        return f"{self.hash} {self.text} {self.signature}".rstrip()


class Pointer(NamedTuple):
    """The content of CURRENT. A corpus of schema version 1 has no head."""

    generation: str
    sequence: int
    head: Head | None
    prepared: Head | None


def read_pointer(path: Place) -> Pointer:
    """CURRENT, not verified.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
        StoreError: it cannot be read now.
    """
    first, *rest = read_whole(path / "CURRENT").decode().splitlines()
    generation, sequence = first.split()
    heads = [_parsed(line) for line in rest]
    if len(heads) > 2 or any(head.generation != generation for head in heads):
        raise ValueError(first)
    head, prepared = (*heads, None, None)[:2]
    if head is not None and head.sequence != int(sequence):
        raise ValueError(first)
    return Pointer(generation, int(sequence), head, prepared)


def pointer_bytes(head: Head, prepared: Head | None = None) -> bytes:
    """The content of CURRENT."""
    lines = [f"{head.generation} {head.sequence}", head.line, *([prepared.line] if prepared else [])]
    return "".join(f"{line}\n" for line in lines).encode()


def checked_pointer(path: Place) -> Pointer:
    """CURRENT, verified against HEADS.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
        StoreError: it is not the end of the chain, or cannot be read now.
    """
    pointer, problem = read_pointer(path), None
    for _ in range(_ATTEMPTS):
        last = _last(path, pointer.head.number if pointer.head else 0)
        again = read_pointer(path)
        if again == pointer and (problem := _difference(path, pointer.head, last)) is None:
            return pointer
        if again == pointer and _behind(pointer.head, last):
            break  # CURRENT is written before the line, so a concurrent writer cannot be the cause
        pointer = again
    raise StoreError(
        problem or f"Expected CURRENT to stay the same, got a change on every read - at {path}", hint=_CHANGED
    )


def next_head(before: Head | None, sequence: int, generation: str, manifest_sha256: str) -> Head:
    """The head after `before`; None begins the chain."""
    number, previous = (before.number, before.hash) if before else (0, START)
    return Head(number + 1, sequence, generation, manifest_sha256, previous)


def append_head(path: Place, head: Head) -> None:
    """Append a line to HEADS unless it is the last one already; the caller holds the lock.

    Raises:
        StoreError: HEADS does not end with the line before, or cannot be written now.
    """
    last = _last(path, head.number)
    if last == head:
        return
    if (problem := _difference(path, head, last)) is not None:
        raise StoreError(problem, hint=_CHANGED)
    data, file = f"{head.line}\n".encode(), path / HEADS
    if isinstance(file, ObjectPlace):
        entry = file / f"{head.number:09d}"
        try:
            entry.create(data)
        except FileExistsError:
            if read_whole(entry) != data:  # if equal, the response to an earlier put was lost
                raise StoreError(f"Expected no line {head.number}, got another - at {entry}", hint=_CHANGED) from None
        return
    with open_new(file, append=True) as lines:
        whole = _whole_lines(path)
        if lines.tell() != whole:
            lines.truncate(whole)  # a partial line left by a crash
        lines.write(data)
    sync_path(file)
    sync_path(path)  # makes the name of a new file durable


def chain(path: Place) -> list[Head]:
    """Every line of HEADS and, if a crash prevented its append, the head in CURRENT; the chain is verified.

    Raises:
        StoreError: a line does not match its hash or the line before, or HEADS cannot be read now.
    """
    file = path / HEADS
    if isinstance(file, ObjectPlace):
        data = b"".join(file.read_all(sorted(entry.name for entry in file.iterdir())))
    else:
        data = read_whole(file) if exists(file) else b""
    found, before = list[Head](), None
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n")[:-1], start=1):
        try:
            head = _parsed(line)
            expected = next_head(before, head.sequence, head.generation, head.manifest_sha256)
            expected = replace(expected, signature=head.signature)
        except ValueError:
            head = expected = None
        if head is None or head != expected:
            message = f"Expected line {number} to continue the chain, got a changed one - at {path / HEADS}:{number}"
            raise StoreError(message, hint=_CHANGED)
        found.append(head)
        before = head
    try:
        now = checked_pointer(path).head
    except (FileNotFoundError, ValueError):
        now = None  # reported when the corpus is opened
    return [*found, now] if now is not None and now.number == len(found) + 1 else found


def anchored(path: Place, anchor: str) -> str | None:
    """The problem if the chain does not contain `anchor`, the hash of a head that was kept elsewhere; else None."""
    if anchor in {head.hash for head in chain(path)}:
        return None
    return f"Expected the anchor among the heads of the corpus, got another chain - at {path / HEADS}"


def _difference(path: Place, head: Head | None, last: Head | None) -> str | None:
    """How CURRENT contradicts the last line of HEADS; None if it does not."""
    if head is None:
        return None if last is None else f"Expected CURRENT to name line {last.number} of HEADS, got none - at {path}"
    number, digest = (last.number, last.hash) if last else (0, START)
    if head == last or (head.number == number + 1 and head.previous == digest):
        return None
    if head.number < number:
        return (
            f"Expected CURRENT at sequence {last.sequence if last else 0}, got {head.sequence}: the corpus was rolled "
            f"back - at {path}"
        )
    return f"Expected HEADS to end with line {head.number} or the one before it, got line {number} - at {path / HEADS}"


def _behind(head: Head | None, last: Head | None) -> bool:
    return last is not None and (head is None or head.number < last.number)


def _last(path: Place, number: int) -> Head | None:
    """The last line of HEADS; on an object store the last of the lines next to `number`, without a listing."""
    try:
        if isinstance(path, ObjectPlace):
            for each in (number + 1, number, number - 1):
                if each > 0 and (entry := _entry(path, each)).is_file():
                    return _parsed(read_whole(entry).decode().rstrip("\n"))
            return None
        file = path / HEADS
        if not exists(file):
            return None
        with file.open("rb") as lines:
            lines.seek(max(0, lines.seek(0, 2) - _WINDOW))
            whole = lines.read().split(b"\n")[:-1]
        return _parsed(whole[-1].decode()) if whole else None
    except ValueError as error:
        message = f"Expected a last line that matches its hash, got a changed one - at {path / HEADS}"
        raise StoreError(message, hint=_CHANGED) from error


def _whole_lines(path: Place) -> int:
    """The size of HEADS up to its last line break."""
    return read_whole(path / HEADS).rfind(b"\n") + 1


def _entry(path: ObjectPlace, number: int) -> ObjectPlace:
    return path / HEADS / f"{number:09d}"


def _parsed(line: str) -> Head:
    """Parse a line of HEADS.

    Raises:
        ValueError: the line is malformed or does not match its hash.
    """
    try:
        _, fields, *rest = line.split(" ")
        head = Head(**json.loads(fields), signature=" ".join(rest))
    except (TypeError, AttributeError) as error:
        raise ValueError(line) from error
    if head.line != line:
        raise ValueError(line)
    return head
