"""A chain: a sequence of lines, each with the hash of the line before, whose last line says what is current.

    <hash> {"body":{...},"number":7,"previous":"<hash of line 6>"} <Ed25519 signature>

The hash of a line is the SHA-256 of its JSON with that of the body in place of it (`sealed`): so a chain of hashes can be
shown without what its lines say.

Gives: `Chain`, the commit rule of a corpus (`HEADS`) and of runs (`LOG`). Whatever a line names is synced before the
line is appended; what no line names does not exist. On a local disk a chain is one file, and its writers take turns by
a file lock. On an object store every line is an object, `HEADS/000000007`, and creating it is the compare-and-swap: the
store creates an object once, so of two writers after line 6 one gets `MovedOnError` and runs again. No clock decides
anything, and a writer succeeds only if its line is in the chain.

Note: a line is written and synced first, and its line break after that. So the last line of a file may lack the line
break: if it matches its hash, it counts; if it does not, a crash cut it off before it was acknowledged, and the next
writer removes it. A line with a line break that does not match its hash was changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from filelock import FileLock, Timeout

from ...nodes.errors import BusyError, MovedOnError, ScopedRetrievalError, StoreError, VerificationError
from .durable import read_whole, sync_path
from .file_access import system_errors
from .places import ObjectPlace, Place
from .signing import UNSIGNED, Signer

START = "0" * 64
"""The `previous` hash of the first line."""
WAIT_SECONDS = 10.0
"""How long a local writer waits for others."""
_WINDOW = 1 << 16
"""Bytes read from the end of a file at first, to find its last line."""
_CHANGED = "if you did not restore an older copy yourself, it was changed: restore it from a backup."


class LineInDoubtError(StoreError):
    """A store confirmed neither success nor failure of an append: the chain may contain the line."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chain; `number` counts from 1."""

    number: int
    previous: str
    body: Mapping[str, Any]
    hash: str
    """64 hex digits: an anchor to keep elsewhere."""
    signature: str = ""
    """Base64; empty without one."""

    @property
    def text(self) -> str:
        """Its JSON."""
        return _json({"body": self.body, "number": self.number, "previous": self.previous})


class Chain:
    """The chain at a place: a file, or a prefix of an object store. It is empty until the first `append`.

    Safe for use by several threads and processes.
    """

    def __init__(self, place: Place, signer: Signer = UNSIGNED) -> None:
        self.place, self.signer = place, signer
        self._lock: FileLock | None = None
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._known = 0
        """The number of the last line seen on an object store, so that lines are listed once."""
        self._read: tuple[bytes, list[Line | bytes]] = b"", []
        """The last result of `each`: a chain only grows, so each line is verified once."""

    def lines(self) -> list[Line]:
        """All lines, each verified against its hash and the line before.

        Raises:
            VerificationError: a line was changed or is missing.
            StoreError: the chain cannot be read now.
        """
        found = list[Line]()
        for line in self.each():
            number, previous = len(found) + 1, found[-1].hash if found else START
            if isinstance(line, bytes) or (line.number, line.previous) != (number, previous):
                raise self._changed(number)
            found.append(line)
        return found

    def each(self, text: str = "") -> list[Line | bytes]:
        """All lines, or those with a text, each verified only against its own hash; of one that was changed, its bytes.

        Raises:
            StoreError: the chain cannot be read now.
        """
        whole = self.data()
        if text:
            return [_parsed(raw) or raw for raw in whole.split(b"\n")[:-1] if text.encode() in raw]
        before, known = self._read
        start = len(before) if whole.startswith(before) else 0
        found = (known if start else []) + [_parsed(raw) or raw for raw in whole[start:].split(b"\n")[:-1]]
        self._read = whole, found
        return found

    def data(self) -> bytes:
        """All lines, each with its line break: the file of a local chain. Nothing is verified.

        Raises:
            StoreError: the chain cannot be read now.
        """
        if isinstance(self.place, ObjectPlace):
            return b"".join(line + b"\n" for line in self.place.read_all(self._names()))
        try:
            return _whole_lines(read_whole(self.place))
        except FileNotFoundError:
            return b""

    def lines_with(self, text: str, after: int = 0) -> list[Line]:
        """The lines after a number whose JSON contains a text, verified only against their own hashes: a change of other
        lines is no matter of the caller, and of a long chain only its end is read.

        Raises:
            VerificationError: one of them was changed, or the last one of the chain.
            StoreError: the chain cannot be read now.
        """
        found = [self._verified(raw) for raw in self._after(after) if text.encode() in raw]
        return [line for line in found if line.number > after]

    def _after(self, number: int) -> list[bytes]:
        """The lines after a number, counted from the last one."""
        if isinstance(self.place, ObjectPlace) and number:
            last = self.last()
            return self.place.read_all([_name(each) for each in range(number + 1, last.number + 1 if last else 1)])
        window = _WINDOW
        while True:
            data, start = self._end(window) if number else (self.data(), 0)
            raw = _whole_lines(data).split(b"\n")[1 if start else 0 : -1]
            count = self._verified(raw[-1]).number - number if raw and number else len(raw)
            if not start or (raw and count <= len(raw)):
                return raw[max(0, len(raw) - count) :]
            window *= 4

    def _verified(self, raw: bytes) -> Line:
        if (line := _parsed(raw)) is None:
            raise self._changed(None)
        return line

    def last(self) -> Line | None:
        """The last line, verified against its hash and, with a trusted key, its signature; None if there is none.

        Raises:
            VerificationError: it was changed, or is not signed with the trusted key.
            StoreError: it cannot be read now.
        """
        raw = self._last_object() if isinstance(self.place, ObjectPlace) else self._tail()[0]
        if raw is None:
            return None
        line = self._verified(raw)
        self.signer.expect_signed(self._signed_text(line.hash), line.signature, self.place)
        return line

    def append(self, expected_last: Line | None, body: Mapping[str, Any]) -> Line:
        """Append a line after `expected_last`, None for the first; it is durable when this returns.

        Raises:
            MovedOnError: the chain has another last line; nothing was appended.
            BusyError: another process held the lock for `WAIT_SECONDS`.
            LineInDoubtError: the store confirmed neither success nor failure.
            VerificationError: the last line was changed, or is not signed with the trusted key.
            StoreError: nothing was appended.
        """
        with self.writing():
            last, expected = self.last(), expected_last
            if (last.hash if last else START) != (expected.hash if expected else START):
                raise self._moved_on(expected.number + 1 if expected else 1)
            return self._append(last, body)

    def _append(self, last: Line | None, body: Mapping[str, Any]) -> Line:
        """Append a line after the last one, as read while `writing`; another writer of an object store may be first."""
        self.signer.expect_signer()
        number, previous = (last.number + 1, last.hash) if last else (1, START)
        text = _json({"body": body, "number": number, "previous": previous})
        digest = _sha256(sealed(text))
        signature = self.signer.signature(self._signed_text(digest))
        data = f"{digest} {text} {signature}".rstrip().encode()
        with system_errors(self.place):
            if isinstance(self.place, ObjectPlace):
                self._create(self.place / _name(number), number, data)
            else:
                self._add(data)
        return Line(number, previous, json.loads(text)["body"], digest, signature)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of a local chain, in which `append` cannot lose to others; a thread may nest it. On an object
        store, nothing is held.

        Raises:
            BusyError: another process or thread held it for `WAIT_SECONDS`.
        """
        if isinstance(self.place, ObjectPlace):
            yield
            return
        with self._guard:
            if self._lock is None or self._process != os.getpid():  # nobody may use the lock of their parent
                self._process = os.getpid()
                self.place.parent.mkdir(parents=True, exist_ok=True)
                self._lock = FileLock(self.place.with_name(f".{self.place.name}.lock"))
        try:
            self._lock.acquire(WAIT_SECONDS)
        except Timeout as error:
            hint = "wait for the other writer to finish."
            raise BusyError(f"Expected no other writer, got a held lock - at {self.place}", hint=hint) from error
        try:
            yield
        finally:
            self._lock.release()

    def _add(self, data: bytes) -> None:
        """Append a line to the file, whose lock is held."""
        assert not isinstance(self.place, ObjectPlace)
        raw, end, acknowledged = self._tail()
        size = end + 1 if acknowledged else end
        with self.place.open("ab") as file:
            os.truncate(self.place, size)  # without what a crash cut off
            try:
                file.write(data if acknowledged or raw is None else b"\n" + data)
                file.flush()
                os.fsync(file.fileno())
                if not acknowledged:  # the file may be new
                    sync_path(self.place.parent)
            except BaseException:
                self._take_back(size)
                raise
            with suppress(OSError):  # the line counts without it
                file.write(b"\n")
                file.flush()

    def _take_back(self, size: int) -> None:
        """Restore the file to a size after a failed append."""
        try:
            os.truncate(str(self.place), size)
        except OSError as error:
            raise LineInDoubtError(f"{error.strerror}: {self.place}") from error

    def _create(self, entry: ObjectPlace, number: int, data: bytes) -> None:
        """Create the object of a line. A store may accept it and lose the response: then its bytes are found there."""
        entry.parent.expect_create()
        try:
            entry.create(data)
        except (FileExistsError, ScopedRetrievalError) as error:
            try:
                found = self._object(number)
            except ScopedRetrievalError as second:
                raise LineInDoubtError(
                    second.message, hint="run it again; `verify` tells whether it is there."
                ) from error
            if found is None:
                raise
            if found != data:
                raise self._moved_on(number) from error
        self._known = number

    def _last_object(self) -> bytes | None:
        """The last line on an object store. Lines are listed once, as listing takes longer the more there are; the last
        known one is read again, as an older copy may have been restored.
        """
        assert isinstance(self.place, ObjectPlace)
        found = self._object(self._known)
        if found is None:
            self._known = max((int(name) for name in self._names()), default=0)
            found = self._object(self._known)
        while (after := self._object(self._known + 1)) is not None:
            self._known, found = self._known + 1, after
        return found

    def _object(self, number: int) -> bytes | None:
        assert isinstance(self.place, ObjectPlace)
        try:
            return read_whole(self.place / _name(number)) if number else None
        except FileNotFoundError:
            return None

    def _names(self) -> list[str]:
        assert isinstance(self.place, ObjectPlace)
        return sorted(entry.name for entry in self.place.iterdir() if entry.name.isdecimal())

    def _tail(self) -> tuple[bytes | None, int, bool]:
        """The last line of the file, where it ends, and whether its line break follows."""
        window = _WINDOW
        while True:
            data, start = self._end(window)
            whole = _whole_lines(data)
            _, before, line = whole[:-1].rpartition(b"\n")
            if before or not start:
                return (line, start + len(whole) - 1, data.startswith(whole)) if whole else (None, 0, False)
            window *= 2

    def _end(self, size: int) -> tuple[bytes, int]:
        """The last bytes of the file, and where they start; none without a file."""
        try:
            with self.place.open("rb") as file:
                start = max(0, file.seek(0, os.SEEK_END) - size)
                file.seek(start)
                return file.read(), start
        except (FileNotFoundError, NotADirectoryError):
            return b"", 0
        except OSError as error:
            raise StoreError(f"{error.strerror}: {self.place}") from error

    def _signed_text(self, hash_: str) -> str:
        return f"scoped-retrieval/line/1 {self.place.name} {hash_}"

    def _moved_on(self, number: int) -> MovedOnError:
        hint = "another writer was first; run it again."
        return MovedOnError(f"Expected to append line {number}, got another last line - at {self.place}", hint=hint)

    def _changed(self, number: int | None) -> VerificationError:
        which, at = (f"line {number}", f"{self.place}:{number}") if number else ("a line", str(self.place))
        return VerificationError(
            f"Expected {which} that matches its hash and the line before, got a changed one - at {at}", hint=_CHANGED
        )


def sealed(text: str) -> str:
    """The JSON of a line with the SHA-256 of its body in place of it; its own SHA-256 is the hash of the line."""
    body, number, rest = text.removeprefix('{"body":').rpartition(',"number":')
    return f'{{"body":"{_sha256(body)}"{number}{rest}'


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _name(number: int) -> str:
    """The object of a line."""
    return f"{number:09d}"


def _whole_lines(data: bytes) -> bytes:
    """The end of a file, without what a crash cut off. The last line break may be missing, damaged or, after a loss of
    power, zero, as may all bytes after it.
    """
    end = data.rfind(b"\n") + 1
    if not (tail := data[end:]):
        return data
    last = next((each + b"\n" for each in (tail, tail[:-1], tail.partition(b"\0")[0]) if _parsed(each)), b"")
    return data[:end] + last


def _parsed(raw: bytes) -> Line | None:
    """A line; None if it does not match its hash."""
    try:
        digest, _, rest = raw.decode().partition(" ")
        text, brace, signature = rest.rpartition("}")
        if _sha256(sealed(text + brace)) != digest or signature[:1] not in ("", " "):
            return None
        found = json.loads(text + brace)
        return Line(found["number"], found["previous"], found["body"], digest, signature[1:])
    except (ValueError, KeyError, TypeError):
        return None
