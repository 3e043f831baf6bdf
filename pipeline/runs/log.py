"""The log of a runs folder: one line per run, snapshot, erasure or answer, each with the hash of the line before.

A line is `<sha256 of the JSON> <JSON>`; the JSON is canonical (sorted keys, no spaces), so that no byte of a line can
change unnoticed. With the last hash kept elsewhere (`--anchor`), a log that was rewritten as a whole is detected.

Note: a later line never replaces an earlier one. A file is named once, so that no second line can vouch for a changed
file.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from sys import intern
from typing import Any

from ...nodes.errors import ScopedRetrievalError, StoreError, VerificationError
from ..storage.durable import exists, read_whole, sync_path
from ..storage.file_access import open_new
from ..storage.places import ObjectPlace, Place
from .files import locked
from .log_lines import START, LogEntry, canonical
from .signed_head import Signer, sign_next, sign_written

LOG = "LOG"
WINDOW = 1 << 16
"""Bytes read from the end of the log at first, to find its last line; doubled until it is found."""
_CHANGED = "restore LOG from a backup of the runs folder; `verify` then shows which runs are intact"


class LineInDoubtError(StoreError):
    """A store confirmed neither success nor failure of an append: the log may contain the line."""


def manifest_named(lines: Collection[LogEntry]) -> str | None:
    """SHA-256 of the manifest named by the lines of one run; None if there is none.

    Raises:
        VerificationError: two lines name a manifest, or an upgrade does not continue from the one before.
    """
    named = _once((line, "manifest.json", line.body["manifest_sha256"]) for line in lines if line.kind == "run").get(
        "manifest.json"
    )
    for line in lines:
        if line.kind == "upgrade":
            if line.body["before_sha256"] != named:
                raise VerificationError(
                    f"Expected an upgrade of the manifest of {line.run_id}, got one of another - at {LOG}:{line.sequence}"
                )
            named = line.body["manifest_sha256"]
    return named


def files_named(lines: Iterable[LogEntry]) -> dict[str, str]:
    """SHA-256 by name of the interactive files named by the lines of one run.

    Raises:
        VerificationError: two lines name the same file.
    """
    return _once((line, line.body["file"], line.body["sha256"]) for line in lines if line.kind == "live")


def _once(named: Iterable[tuple[LogEntry, str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line, name, sha256 in named:
        if name in found:
            raise VerificationError(
                f"Expected one line for {name} of {line.run_id}, got two - at {LOG}:{line.sequence}"
            )
        found[name] = sha256
    return found


class RunLog(ABC):
    """The log of one runs folder, local or on an object store."""

    def __init__(self) -> None:
        self._read: tuple[bytes, list[LogEntry]] = b"", []
        """The last result of `lines`: a log only grows at its end, so repeated calls check each line once."""

    @abstractmethod
    def append(self, kind: str, run_id: str, *, sync: bool = True, **body: Any) -> str:
        """Add a line; returns its hash.

        Raises:
            LineInDoubtError: the log may contain the line. After any other error it does not.
        """

    @abstractmethod
    def sync(self) -> None:
        """Sync every added line to disk."""

    @abstractmethod
    def _data(self) -> bytes:
        """The whole log."""

    def lines(self) -> list[LogEntry]:
        """Every line, with the chain checked. Bytes unchanged since the last call are not checked again.

        Raises:
            VerificationError: a line does not match its hash, its place or the line before.
            StoreError: the log cannot be read now.
        """
        data = self._data()
        data = data[: data.rfind(b"\n") + 1]
        before, known = self._read
        start = len(before) if data.startswith(before) else 0
        lines = list(known) if start else []
        previous = lines[-1].hash if lines else START
        for number, raw in enumerate(data[start:].split(b"\n")[:-1], start=len(lines) + 1):
            line = _parse(raw, number)
            if line.body.get("previous") != previous or line.sequence != number:
                raise VerificationError(
                    f"Expected line {number} to continue the chain, got another - at {LOG}:{number}", hint=_CHANGED
                )
            previous = line.hash
            lines.append(line)
        self._read = data, lines
        return list(lines)

    def named(self, kind: str) -> set[str]:
        """The ids of the runs named by lines of one kind. The chain is not checked: lists have a hundred thousand
        lines.

        Raises:
            VerificationError: one of these lines does not match its hash.
            StoreError: the log cannot be read now.
        """
        return {line.run_id for line in self._with(f'"kind":"{kind}"')}

    def graphs(self, run_id: str) -> set[str | None]:
        """SHA-256 of the graph named by an interactive run's lines: one, or none without lines. The chain is not
        checked.

        Raises:
            VerificationError: one of these lines does not match its hash.
            StoreError: the log cannot be read now.
        """
        lines = self._with(f'"run_id":"{run_id}"')
        return {line.body.get("lineage_sha256") for line in lines if line.kind == "live"}

    def _with(self, mark: str) -> Iterator[LogEntry]:
        """The lines whose JSON contains `mark`."""
        sought, data = mark.encode(), self._data()
        whole = data[: data.rfind(b"\n") + 1].split(b"\n")
        return (_parse(raw, number) for number, raw in enumerate(whole, start=1) if sought in raw)

    def head(self) -> str:
        """The hash of the last line."""
        lines = self.lines()
        return lines[-1].hash if lines else START


class Log(RunLog):
    """The log of a folder: one file."""

    def __init__(self, folder: Path, signer: Signer | None = None) -> None:
        super().__init__()
        self.path = folder / LOG
        self._signer = signer
        self._lock = folder / ".LOG.lock"

    def append(self, kind: str, run_id: str, *, sync: bool = True, **body: Any) -> str:
        """Add a line under the lock; returns its hash. A partial line left by a crash is dropped first.

        If this raises, the log is unchanged: the caller may write the line again.
        """
        with locked(self._lock, "the log"):
            previous, sequence = self._tail()
            digest, data = _line(kind, run_id, body, previous, sequence)
            if self._signer is not None:
                sign_next(self.path.parent, self._signer, previous, sequence, digest)
            size = self.path.stat().st_size if exists(self.path) else None
            try:
                with open_new(self.path, append=True) as file:
                    file.write(data)
                    file.flush()
                    if sync:
                        os.fsync(file.fileno())
                if size is None:
                    sync_path(self.path.parent)
            except BaseException as error:
                self._take_back(size)
                if isinstance(error, OSError):
                    raise StoreError(f"{error.strerror}: {LOG}") from error
                raise
            if sync and self._signer is not None:
                sign_written(self.path.parent, self._signer, sequence + 1, digest)
            return digest

    def sync(self) -> None:
        """Sync every added line to disk."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        if self._signer is not None and self._signer.signs:
            with locked(self._lock, "the log"), self.path.open("rb") as file:
                os.fsync(file.fileno())
                hash_, sequence = self._tail()
                sign_written(self.path.parent, self._signer, sequence, hash_)

    def recent(self) -> list[LogEntry]:
        """The last whole lines within `WINDOW` bytes, each verified only against its own hash."""
        try:
            with self.path.open("rb") as file:
                start = max(0, file.seek(0, os.SEEK_END) - WINDOW)
                file.seek(start)
                raw = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        return [_parse(line, 0) for line in raw[1 if start else 0 :]]

    def _take_back(self, size: int | None) -> None:
        """Restore the log to `size` bytes, or remove it for None; if that fails, `verify` reports it."""
        with suppress(OSError):
            if size is None:
                self.path.unlink(missing_ok=True)
            else:
                os.truncate(self.path, size)

    def _data(self) -> bytes:
        try:
            return read_whole(self.path)
        except FileNotFoundError:
            return b""

    def _tail(self) -> tuple[str, int]:
        if not exists(self.path):
            return START, 0
        with self.path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            window = WINDOW
            while True:
                start = max(0, size - window)
                file.seek(start)
                data = file.read(size - start)
                whole = data.rfind(b"\n") + 1
                before = data.rfind(b"\n", 0, max(0, whole - 1)) + 1
                if before or not start:
                    break
                window *= 2
            if whole < len(data):
                file.truncate(start + whole)
        if not whole:
            return START, 0
        line = _parse(data[before : whole - 1], 0)
        return line.hash, line.sequence


class ObjectLog(RunLog):
    """The log of runs on an object store: `LOG/<sequence>`, one object per line, which together are the bytes of a log.

    To append is to create the next number, which succeeds for one writer: the chain cannot fork and needs no lock.
    """

    def __init__(self, folder: ObjectPlace) -> None:
        super().__init__()
        self._lines = folder / LOG
        self._newest = ("", b"")
        """The name and bytes of the last line that `append` read or wrote."""

    def append(self, kind: str, run_id: str, *, sync: bool = True, **body: Any) -> str:
        """Add a line, durable whatever `sync` says; returns its hash.

        The lines are listed only if none is known or another writer was first, as listing time grows with their number.
        The last known line is looked up each time, as a log may be restored from a copy.
        """
        while True:
            if not self._newest[0] or not (self._lines / self._newest[0]).is_file():
                names = self._names()
                self._newest = (names[-1], (self._lines / names[-1]).read_bytes()) if names else ("", b"")
            last = _parse(self._newest[1].rstrip(b"\n"), 0) if self._newest[0] else None
            previous, sequence = (last.hash, last.sequence) if last else (START, 0)
            digest, data = _line(kind, run_id, body, previous, sequence)
            entry = self._lines / f"{sequence + 1:09d}"
            try:
                entry.create(data)
            except (FileExistsError, ScopedRetrievalError) as error:
                # The store may have accepted this line, and only the response was lost.
                if not _was_created(entry, data):
                    if isinstance(error, FileExistsError):  # another writer was first
                        self._newest = ("", b"")
                        continue
                    raise
            self._newest = entry.name, data
            return digest

    def sync(self) -> None:
        """Does nothing: a store confirms an object once it is durable."""

    def _data(self) -> bytes:
        return b"".join(self._lines.read_all(self._names()))

    def _names(self) -> list[str]:
        return sorted(entry.name for entry in self._lines.iterdir())


def _was_created(entry: ObjectPlace, data: bytes) -> bool:
    """Whether an object whose creation was not confirmed has these bytes.

    Raises:
        LineInDoubtError: the object cannot be read either.
    """
    try:
        return entry.read_bytes() == data
    except FileNotFoundError:
        return False
    except ScopedRetrievalError as error:
        raise LineInDoubtError(error.message, hint="the log may hold the line; `verify` tells.") from error


def log_at(folder: Place, signer: Signer | None = None) -> RunLog:
    """The log of a runs folder; on an object store, no head is signed."""
    return ObjectLog(folder) if isinstance(folder, ObjectPlace) else Log(folder, signer)


def _line(kind: str, run_id: str, body: dict[str, Any], previous: str, sequence: int) -> tuple[str, bytes]:
    """The hash and the bytes of the line after `previous`."""
    text = canonical({"kind": kind, "run_id": run_id, "sequence": sequence + 1, "previous": previous, **body})
    digest = hashlib.sha256(text.encode()).hexdigest()
    return digest, f"{digest} {text}\n".encode()


def _parse(raw: bytes, number: int) -> LogEntry:
    digest, _, text = raw.partition(b" ")
    try:
        body = json.loads(text)
        sound = (
            hashlib.sha256(text).hexdigest().encode() == digest
            and canonical(body).encode() == text
            and isinstance(body["sequence"], int)
        )
        if sound:
            kept = {intern(name): value for name, value in body.items() if name not in ("kind", "run_id", "sequence")}
            return LogEntry(body["sequence"], intern(body["kind"]), intern(body["run_id"]), kept, digest.decode())
    except (ValueError, KeyError, TypeError):
        pass
    raise VerificationError(
        f"Expected a line that matches its hash, got a changed one - at {LOG}:{number or 'last'}", hint=_CHANGED
    )
