"""The signed head of LOG: without the signing key, no line can be added or removed, and the log cannot be rewritten.

    LOG.signed      "<sequence> <hash of the line before> <hash> <signature>", replaced before each line is appended; once
                    the line is on disk, "written" is added and signed, too

Reads: the lines of LOG, and a signer. Gives: `sign_next` and `sign_written`, which a writer calls under the lock of
LOG, and `head_problem`, which verifies the head. A log on an object store has no signed head.

Note: the head is written before its line, so a crash may leave a head one line ahead, but never an unsigned line. The
line of a head marked `written` is on disk: a log that lacks it was rolled back. A session writes the mark as it ends. A
writer signs a line only if the log ends with the signed head, so lines added without the key are never signed later.
`runs upgrade` begins to sign a log that has lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from ..storage.durable import exists, read_whole, write_atomic
from ..storage.places import Place
from .log_lines import START, LogEntry

__all__ = ["FILE", "Signer", "head_problem", "sign", "sign_next", "sign_written"]

FILE = "LOG.signed"
_SIGNED = "scoped-retrieval/run-log/1\n"
_WRITTEN = "written"


class Signer(Protocol):
    """Signs texts, and verifies signatures against the trusted key."""

    @property
    def signs(self) -> bool:
        """Whether there is a signing key."""
        ...

    def signature(self, text: str) -> str:
        """The signature of a text, in base64."""
        ...

    def is_signature(self, text: str, signature: str) -> bool:
        """Whether a text is signed with the trusted key."""
        ...


class _Signed(NamedTuple):
    sequence: int
    previous: str
    hash: str
    signature: str
    state: str = ""

    @property
    def text(self) -> str:
        return f"{_SIGNED}{self.sequence} {self.previous} {self.hash} {self.state}".rstrip()

    def follows(self, hash_: str, sequence: int) -> bool:
        """Whether a log that ends with this line is the signed one, or lacks only a line that may not exist."""
        if (hash_, sequence) == (self.hash, self.sequence):
            return True
        return self.state != _WRITTEN and (hash_, sequence) == (self.previous, self.sequence - 1)


def sign_next(folder: Path, signer: Signer, previous: str, sequence: int, hash_: str) -> None:
    """Sign the line to be appended after line `sequence`, if the log ends with the signed head.

    If the file cannot be written, the line stays unsigned, which `head_problem` reports.
    """
    if not signer.signs:
        return
    known = _read(folder)
    new = known is None and sequence == 0
    if new or (
        known is not None and signer.is_signature(known.text, known.signature) and known.follows(previous, sequence)
    ):
        _write(folder, signer, sequence + 1, previous, hash_)


def sign_written(folder: Path, signer: Signer, sequence: int, hash_: str) -> None:
    """Mark the last signed line, if the log ends with it, as written to disk."""
    known = _read(folder) if signer.signs else None
    if known is None or known.state == _WRITTEN or (known.sequence, known.hash) != (sequence, hash_):
        return
    if signer.is_signature(known.text, known.signature):
        _write(folder, signer, sequence, known.previous, hash_, _WRITTEN)


def sign(folder: Path, signer: Signer, lines: Sequence[LogEntry]) -> bool:
    """Sign the log as it is, whatever was signed before; False if it has no lines or the file cannot be written."""
    previous = lines[-2].hash if len(lines) > 1 else START
    return bool(lines) and _write(folder, signer, len(lines), previous, lines[-1].hash, _WRITTEN)


def head_problem(folder: Place, signer: Signer, lines: Sequence[LogEntry]) -> str | None:
    """The problem with the head of a log with a valid chain; None if it is signed with the trusted key."""
    if not isinstance(folder, Path):
        return None
    known = _read(folder)
    if known is None:
        return "the signed head is missing or unreadable; `runs upgrade` signs a log that has none"
    if not signer.is_signature(known.text, known.signature):
        return "the trusted key did not sign the head"
    last, count = (lines[-1].hash if lines else START), len(lines)
    if known.follows(last, count):
        return None
    if count < known.sequence:
        return "the log ends before the signed line: it was rolled back"
    if lines[known.sequence - 1].hash != known.hash:
        return "the log has another line in place of the signed one: it was rewritten"
    return "lines follow the signed head: who added them had no key; if that was you, `runs upgrade` signs them"


def _read(folder: Path) -> _Signed | None:
    if not exists(folder / FILE):
        return None
    with suppress(ValueError, TypeError, OSError):
        sequence, *rest = read_whole(folder / FILE).decode().split()
        return _Signed(int(sequence), *rest)
    return None


def _write(folder: Path, signer: Signer, sequence: int, previous: str, hash_: str, state: str = "") -> bool:
    head = _Signed(sequence, previous, hash_, "", state)
    data = f"{sequence} {previous} {hash_} {signer.signature(head.text)} {state}".rstrip().encode() + b"\n"
    with suppress(OSError):
        write_atomic(folder / FILE, data, sync=False)
        return True
    return False
