"""Functions shared by readers of records: fields every record may have, chunks of long texts, tables of rows.

Gives: `rows_of_files(...)`, `common_fields(record)`, `rows_of_text(...)`, `tables(rows)`, `table_of(rows)` and `source_of(...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.tables import IMPORT_ROWS
from ...nodes.vocabulary import SAFETIES, VISIBILITIES, ZONES
from ..parsing.values import authority_rank
from ..redaction.masking import masked_digest
from ..redaction.private_keys import MATERIAL
from .chunking import read_document
from .column_types import PLACE
from .file_kinds import file_kind
from .jsonl import LINES, Record, note_unread, read_lines
from .parts import has_parts
from .report import SourceReport

__all__ = ["common_fields", "rows_of_files", "rows_of_text", "source_of", "table_of", "tables"]

ROW_CHARACTERS = 4_000
"""A record's text up to this length is one row; a longer text is chunked like a file."""
_BATCH = 8_192
_PLACE = ("line_start", "line_end", "byte_start", "byte_end")
_SCHEMA = IMPORT_ROWS.schema.append(pa.field(PLACE, pa.string()))


Rows = Iterable[dict[str, Any]]


def source_of(kind: str, path: str | PathLike[str]) -> str:
    """The id of the source at a path: its kind, and the name of the folder, or of the file without its suffix."""
    root = Path(path).resolve()
    return f"{kind}:{(root.stem if root.is_file() else root.name) or 'root'}"


def rows_of_files(
    files: Iterable[tuple[Path, str]],
    report: SourceReport,
    of_record: Callable[[Record, Path], Rows],
    of_document: Callable[[Path, str], Rows] | None = None,
) -> list[dict[str, Any]]:
    """The rows of files, as `files_of` lists them: of each record of JSON lines, and of each other file as a document.

    Records are counted as read, and rows of documents; fields that no reader used are noted.
    """
    rows: list[dict[str, Any]] = []
    for file, place in files:
        if of_document is not None and file.suffix.lower() not in LINES:
            found = [*of_document(file, place)]
            report.read += len(found)
            rows += found
            continue
        records = read_lines(file)
        for record in records:
            rows += of_record(record, file)
        report.read += len(records)
        note_unread(records, report, file.name)
    return rows


def common_fields(record: Record) -> dict[str, Any]:
    """The fields that any record may have, under snake_case and camelCase names."""
    authority, at = record.value("authority", "trustTier"), record.place("authority", "trustTier")
    return {
        PLACE: record.at,
        "title": record.text("title"),
        "uri": record.text("uri", "url"),
        "document_type": record.text("documentType"),
        "domain": record.text("domain"),
        "level": record.text("level"),
        "namespace": record.text("namespace"),
        "branch": record.text("branch"),
        "workspace_root": record.text("workspaceRoot"),
        "test_suite": record.text("testSuite", "suite"),
        "session_id": record.identifier("sessionId"),
        "owner_user": record.text("user", "userId", "ownerUser"),
        "principals": record.strings("principals"),
        "applicable_roles": record.strings("applicableRoles"),
        "excluded_roles": record.strings("excludedRoles"),
        "zone": record.word(ZONES, "zone", "sensitivity"),
        "declared_visibility": record.word(VISIBILITIES, "visibility", "declaredVisibility"),
        "declared_safety": record.word(SAFETIES, "safety", "declaredSafety"),
        "authority": None if authority is None else authority_rank(authority, at),
        "source_refs": record.strings("sourceRefs", "sourceRef"),
        "tags": record.strings("tags"),
        "valid_from": record.instant("validFrom"),
        "valid_until": record.instant("validUntil"),
        "recorded_time": record.instant("recordedAt", "recordedTime"),
        "superseded_by": record.identifier("supersededBy"),
        "superseded_at": record.instant("supersededAt"),
        "supersedes": record.strings("supersedes"),
        "conflict_set": record.identifier("conflictSet", "conflictSetId"),
        "language": record.text("language"),
    }


def rows_of_text(text: str, name: str, row: Mapping[str, Any], *, own_lines: bool = True) -> Iterator[dict[str, Any]]:
    """One row, or one per chunk of a long text. `name` determines the kind of file the text is chunked as.

    Rows without a version get `masked_digest` of the text. With `own_lines` the text counts as a document, with lines and
    bytes of its own; else those in `row` are kept.
    """
    row = {**row, "version": row.get("version") or masked_digest(text)}
    if len(text) <= ROW_CHARACTERS and not has_parts(file_kind(name).splitter):
        place = {
            "line_start": 1,
            "line_end": text.rstrip("\n").count("\n") + 1,
            "byte_start": 0,
            "byte_end": len(text.encode()),
        }
        yield {**row, **(place if own_lines else {}), "text": text}
        return
    for position, chunk in enumerate(read_document(name, text).chunks, start=1):
        section = " > ".join(part for part in (row.get("section"), chunk.section or f"part {position}") if part)
        yield {
            **row,
            **chunk.columns(),
            **({} if own_lines else {name: row.get(name) for name in _PLACE}),
            "section": section,
        }


def tables(rows: Iterable[dict[str, Any]]) -> Iterator[pa.Table]:
    """The rows as tables with the columns that any of them has, in declared order and type, and their places."""
    listed, end = list(rows), 0
    while (start := end) < len(listed):
        end = start + _BATCH
        while end < len(listed) and MATERIAL.search(listed[end - 1]["text"]):
            end += 1  # no table ends inside a private key whose lines are rows
        batch = listed[start:end]
        yield table_of(batch)


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows as one table with the columns that any of them has, in declared order and type, and their places."""
    present = {name for row in rows for name, value in row.items() if value is not None} | {"source_id", "text"}
    schema = pa.schema([field for field in _SCHEMA if field.name in present])
    return pa.table({f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in schema}, schema=schema)
