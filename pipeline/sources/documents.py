"""Folders of documents that are not a work tree: decision records, team standards, external texts.

Gives: `read_decisions`, `read_standards`, `read_external`. Documents are chunked like those of a work tree; a header (S1.1)
fills zone, version, tags, dates and state.

Note: `entity: decision` in a header is the kind of document. The record's id is its number (`ADR-011`) or the name of
its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from .headers import Header, record_number
from .jsonl import LINES, Record
from .record_rows import common_fields, file_rows, read_files, rows_of_lines, rows_of_text
from .report import SourceReport

__all__ = ["read_decisions", "read_external", "read_standards"]

_MARKDOWN = (".md", ".markdown", ".mdx")
_PROSE = (*_MARKDOWN, ".txt", ".rst", ".html", ".htm", ".adoc", ".pdf", ".docx")
_STATES = {
    "accepted": "verified",
    "approved": "verified",
    "active": "verified",
    "implemented": "verified",
    "final": "verified",
    "proposed": "candidate",
    "draft": "candidate",
    "pending": "candidate",
    "deprecated": "deprecated",
    "superseded": "deprecated",
    "replaced": "deprecated",
    "rejected": "revoked",
    "withdrawn": "revoked",
}
_SUPERSEDED = re.compile(r"superseded by[:\s]+\[?(?P<by>[^\s\])(,;]+)", re.IGNORECASE)


def read_decisions(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per chunk of every Markdown decision record; `source_id` is `decision-record:<folder>`.

    A file without a header is skipped. Status determines the lifecycle: accepted is verified, proposed candidate,
    superseded deprecated, rejected revoked. The header's date is both event time and recorded time. Authority is 2,
    preferred.

    Raises:
        InputError: naming file, line and field.
    """

    def of_file(file: Path, place: str, base: dict[str, Any]) -> list[dict[str, Any]]:
        def of_header(header: Header, title: str | None) -> dict[str, Any] | None:
            if header.fields:
                return _decision_columns(header, title, file, report)
            report.skip("decision record without a header (front matter, a `Status:` line or `## Status`)", at=place)
            return None

        columns = {**base, "evidence_kind": "decision-record", "authority": 2}
        return file_rows(file, place, columns, report, of_header)

    return read_files(path, "decision-record", _MARKDOWN, of_file, project=project, report=report)


def read_standards(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per chunk of every team standard: rules of authority 2; `source_id` is `team-standard:<folder>`.

    Raises:
        InputError: naming file, line and field.
    """

    def of_file(file: Path, place: str, base: dict[str, Any]) -> list[dict[str, Any]]:
        return file_rows(file, place, {**base, "evidence_kind": "rule", "authority": 2}, report)

    return read_files(path, "team-standard", _PROSE, of_file, project=project, report=report)


def read_external(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per chunk of external documents: a folder, or one JSON object per line; `source_id` is `external:<folder>`.

    Always authority 0 and standing untrusted, whatever the documents declare.

    Raises:
        InputError: naming file, line and field.
    """

    def of_file(file: Path, place: str, base: dict[str, Any]) -> list[dict[str, Any]]:
        columns = {**base, "evidence_kind": "doc", "authority": 0, "declared_standing": "untrusted",
                   "declared_safety": "requires-review"}  # fmt: skip
        if file.suffix.lower() in LINES:
            return rows_of_lines(file, lambda record: _external(record, columns), report)
        return file_rows(file, place, columns, report)

    return read_files(path, "external", (*_PROSE, *LINES), of_file, project=project, report=report)


def _decision_columns(header: Header, title: str | None, file: Path, report: SourceReport) -> dict[str, Any]:
    status = header.text("status") or ""
    word = re.match(r"[A-Za-z]*", status)[0].lower()  # type: ignore[index]
    if word not in _STATES:
        report.default("lifecycle", "candidate")
        report.note(
            f"a decision record whose status is not one of {', '.join(_STATES)} counts as candidate",
            at=header.place("status"),
        )
    by = _SUPERSEDED.search(status)
    own = record_number(title or "") or record_number(file.stem) or file.stem
    return {
        "entity": header.text("id") or own,
        "lifecycle": _STATES.get(word, "candidate"),
        "superseded_by": header.text("superseded_by") or (by["by"] if by else None),
    }


def _external(record: Record, base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    common = common_fields(record, ("id", "docId"), ("documentType",), ("publishedAt", "createdAt", "eventTime"))
    identifier = common["entity"] or f"line-{record.line}"
    row = {**common, **base, "entity": identifier, "path": record.text("path") or identifier}
    yield from rows_of_text(record.required("text", "content", "body"), "document.md", row)
