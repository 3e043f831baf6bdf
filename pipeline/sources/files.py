"""Converts the bytes of a file to a document, or returns why not; and collects rows of documents into Arrow tables.

Gives: `ReadOptions` (the declared limits), `readable(kind, data, options)`, `is_generated`, `RowBuilder`. Readers of files
share the trust columns written here: zone internal, authority 1, verified, model-visible, safe.

Note: an encoding is a fact of the file, never a guess (`decoded`). The byte order mark of UTF-8, `\\r\\n` and control
characters are kept; a NUL character makes a file binary.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ...nodes.schema import TIMESTAMP
from ...nodes.tables import IMPORT_ROWS
from .chunking import Document, DocumentChunk, read_document
from .extracting import EXTRACTED, extracted
from .file_kinds import FileKind, file_kind
from .parts import has_parts

__all__ = [
    "FileFacts",
    "ReadOptions",
    "RowBuilder",
    "decoded",
    "document_of",
    "is_generated",
    "microseconds",
    "readable",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GENERATED = re.compile(
    rb"@generated\b|code generated (?:by|from)\b|(?:automatically|auto-?) ?generated\b.{0,200}?do not (?:edit|modify)"
    rb"|do not (?:edit|modify)\b.{0,80}?generated",
    re.IGNORECASE | re.DOTALL,
)
_HEADER_BYTES = 1_500
_MINIFIED_LINE = 5_000
_MINIFIED_MEAN = 400


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The declared limits of the file readers.

    `max_file_bytes`: a larger file has no rows; `max_log_bytes` applies to logs, which grow, and to notebooks, web pages
    and documents with pictures.
    `batch_rows`, `batch_bytes`: a table is yielded when either is reached.
    """

    max_file_bytes: int = 500_000
    max_log_bytes: int = 32_000_000
    batch_rows: int = 8_192
    batch_bytes: int = 32_000_000

    def limit(self, kind: FileKind) -> int:
        """The maximum size in bytes of a file of this kind."""
        long = kind.evidence_kind == "test-log" or has_parts(kind.splitter)
        return max(self.max_log_bytes, self.max_file_bytes) if long else self.max_file_bytes

    def limit_at(self, path: str) -> int:
        """The maximum size in bytes of the file at a path."""
        return self.limit(file_kind(path))


def readable(kind: FileKind, data: bytes, options: ReadOptions) -> tuple[str | None, str]:
    """The text of a file, or None and the reason it is skipped."""
    if not kind.text_by_name:
        return None, "not text by name"
    if len(data) > options.limit(kind):
        return None, "over the size limit"
    if data.startswith(_LFS):
        return None, "a Git LFS pointer; `git lfs pull` fetches the file"
    if kind.splitter in EXTRACTED:
        return extracted(kind.splitter, data)
    text = decoded(data)
    if text is None:
        return None, "binary" if b"\0" in data else "neither UTF-8 nor in a declared encoding"
    return (text, "") if text.strip() else (None, "empty")


_LFS = b"version https://git-lfs.github.com/spec/"
_BOMS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_DECLARED = re.compile(rb"(?:coding\s*[:=]|charset[\s=])\s*[\"']?\s*([A-Za-z][\w.-]+)", re.IGNORECASE)
"""In a comment (PEP 263, Emacs, Vim), in XML, HTML or CSS."""
_CHARSETS = re.compile(r"ascii|cp\d+|iso\d+|euc|gb|big5|hz|johab|koi8|mac|ptcp|shift|tis|utf-")


def decoded(data: bytes) -> str | None:
    """The text of bytes by their byte order mark, as UTF-8, or in the encoding that the first lines declare.

    In a text without `\\n`, `\\r` ends the lines. None if the bytes are in none of these, or not text.
    """
    marked = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    declared = (found[1].decode() for found in _DECLARED.finditer(data, 0, _HEADER_BYTES))
    for name in (marked,) if marked else ("utf-8", *declared):
        with suppress(LookupError, UnicodeError):
            if _CHARSETS.match(codecs.lookup(name).name):
                text = data.decode(name)
                return None if "\0" in text else text if "\n" in text else text.replace("\r", "\n")
    return None


def is_generated(kind: FileKind, data: bytes) -> bool:
    """Whether a tool generated the file: by its name (lock files, `.min.js`), by a header, or as minified code."""
    if kind.generated_by_name or _GENERATED.search(data[:_HEADER_BYTES]):
        return True
    if kind.content_type != "code" or len(data) < _MINIFIED_LINE:
        return False
    lines = data.split(b"\n")
    return len(data) > _MINIFIED_MEAN * len(lines) and max(map(len, lines)) > _MINIFIED_LINE


def document_of(path: str, kind: FileKind, data: bytes, options: ReadOptions) -> tuple[Document | None, str]:
    """The chunks of a file, or None and the reason it is skipped."""
    text, reason = readable(kind, data, options)
    document = None if text is None else read_document(path, text)
    return (document, "") if document is not None and document.chunks else (None, reason or "without text")


def microseconds(instant: datetime, at: str) -> int:
    """Microseconds since 1970 of an instant with a time zone.

    Raises:
        InputError: the instant is naive.
    """
    if instant.tzinfo is None:
        raise InputError(f"Expected an instant with a time zone, got a naive one - at {at}")
    return (instant - _EPOCH) // timedelta(microseconds=1)


_COLUMNS = (
    "source_id", "origin_class", "evidence_kind", "document_type", "content_type", "entity", "level", "title", "path",
    "section", "event_time", "tags",
    "owner_project", "workspace_root", "branch", "zone", "declared_visibility", "authority", "lifecycle",
    "declared_safety", "declared_standing", "language", "symbols", "calls", "links", "generated", "text", "occurrence",
    "version", "line_start", "line_end", "byte_start", "byte_end", "recorded_time", "superseded_at", "deleted_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The values shared by all chunks of one version of a file; `metadata` are columns from the document's header."""

    path: str
    kind: FileKind
    title: str | None
    generated: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)


class RowBuilder:
    """Collects rows of one source and yields them as tables of the columns above."""

    schema = pa.schema([IMPORT_ROWS.schema.field(name) for name in _COLUMNS])

    def __init__(self, options: ReadOptions, **constant: str | None) -> None:
        """`constant`: source_id, owner_project, branch and workspace_root, the same in every row."""
        self._options = options
        self._constant: dict[str, Any] = {
            "zone": "internal",
            "declared_visibility": "model-visible",
            "authority": 1,
            "lifecycle": "verified",
            "declared_safety": "safe",
            **constant,
        }
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def add(
        self,
        file: FileFacts,
        chunk: DocumentChunk,
        *,
        event_time: int,
        version: str,
        recorded: int,
        superseded: int | None = None,
        deleted: int | None = None,
    ) -> None:
        """Add one placement of one chunk; times in microseconds since 1970.

        A chunk with a time of its own (of a log) gets that as event time if it is not later than `event_time`.
        """
        if chunk.happened is not None:
            event_time = min(event_time, microseconds(chunk.happened, file.path))
        kind = chunk.kind or file.kind
        row = self._file(file.path, kind, version, recorded, event_time, chunk.text)
        row |= chunk.columns()
        row |= {
            "title": file.title,
            "language": kind.language,
            "generated": file.generated,
            "superseded_at": superseded,
            "deleted_at": deleted,
            **file.metadata,
        }

    def add_note(self, path: str, kind: FileKind, text: str, *, version: str, recorded: int) -> None:
        """Add one row with a note about a file instead of its text; it has no lines and no bytes."""
        self._file(path, kind, version, recorded, recorded, text)

    def full(self) -> Iterator[pa.Table]:
        """Yield the collected rows if they fill a table."""
        if len(self._rows) >= self._options.batch_rows or self._bytes >= self._options.batch_bytes:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield the collected rows, if any."""
        rows, self._rows, self._bytes = self._rows, [], 0
        if not rows:
            return
        arrays = []
        for column in self.schema:
            if column.name in rows[0]:
                arrays.append(_array([row[column.name] for row in rows], column.type))
            else:
                arrays.append(pa.repeat(pa.scalar(self._constant.get(column.name), column.type), len(rows)))
        yield pa.Table.from_arrays(arrays, schema=self.schema)

    def _file(
        self, path: str, kind: FileKind, version: str, recorded: int, event_time: int, text: str
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            "origin_class": kind.origin_class,
            "evidence_kind": kind.evidence_kind,
            "document_type": kind.document_type,
            "declared_standing": kind.standing,
            "path": path,
            "version": version,
            "recorded_time": recorded,
            "event_time": event_time,
            "text": text,
            "zone": self._constant["zone"],
            **_WITHOUT_CHUNK,
        }
        self._rows.append(row)
        self._bytes += len(text)
        return row


_WITHOUT_CHUNK = {
    "entity": None,
    "level": None,
    "tags": None,
    "content_type": "excerpt",
    "title": None,
    "section": None,
    "language": None,
    "symbols": (),
    "calls": (),
    "links": (),
    "generated": False,
    "occurrence": 0,
    "line_start": None,
    "line_end": None,
    "byte_start": None,
    "byte_end": None,
    "superseded_at": None,
    "deleted_at": None,
}


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if type_ == TIMESTAMP:
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)
