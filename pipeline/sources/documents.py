"""Folders of documents that are not a work tree: decision records, team standards, external texts.

Gives: `read_decisions`, `read_standards`, `read_external`, and `file_rows` for one file. Documents are chunked like those
of a work tree; a header (S1.1) fills zone, version, tags, dates and state.

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

from ...nodes.vocabulary import ZONES
from .chunking import read_document
from .file_kinds import file_kind
from .files import ReadOptions, readable
from .headers import Header, read_header, record_number
from .jsonl import LINES, Record, files_of
from .record_rows import common_fields, rows_of_files, rows_of_text, source_of, tables
from .report import SourceReport

__all__ = ["file_rows", "read_decisions", "read_external", "read_standards"]

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
    base = {"origin_class": "decision-record", "evidence_kind": "decision-record", "authority": 2}
    return _read(path, _MARKDOWN, base, project, report, decision=True)


def read_standards(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per chunk of every team standard: rules of authority 2; `source_id` is `team-standard:<folder>`.

    Raises:
        InputError: naming file, line and field.
    """
    base = {"origin_class": "team-standard", "evidence_kind": "rule", "authority": 2}
    return _read(path, _PROSE, base, project, report)


def read_external(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per chunk of external documents: a folder, or one JSON object per line; `source_id` is `external:<folder>`.

    Always authority 0 and standing untrusted, whatever the documents declare.

    Raises:
        InputError: naming file, line and field.
    """
    base = {"origin_class": "external", "evidence_kind": "doc", "authority": 0, "declared_standing": "untrusted",
            "declared_safety": "requires-review"}  # fmt: skip
    return _read(path, (*_PROSE, *LINES), base, project, report)


def _read(
    path: str | PathLike[str],
    suffixes: tuple[str, ...],
    base: Mapping[str, Any],
    project: str,
    report: SourceReport,
    *,
    decision: bool = False,
) -> Iterator[pa.Table]:
    source = source_of(base["origin_class"], path)
    own = {**base, "source_id": source, "owner_project": project}
    rows = rows_of_files(
        files_of(path, suffixes, report),
        report,
        lambda record, _: _external(record, own),
        lambda file, place: file_rows(file, place, own, report, decision=decision),
    )
    yield from tables(rows)
    report.complete_sources.add(source)


def file_rows(
    file: Path, place: str, base: Mapping[str, Any], report: SourceReport, *, decision: bool = False
) -> list[dict[str, Any]]:
    """The chunks of one document with its header's fields; none, with the reason counted, if it is skipped."""
    kind = file_kind(place)
    try:
        data = file.read_bytes()
    except OSError:
        report.skip("not readable", at=place)
        return []
    text, reason = readable(kind, data, ReadOptions())
    if text is None:
        report.skip(reason, at=place)
        return []
    header = read_header(text, str(file))
    if decision and not header.fields:
        report.skip("decision record without a header (front matter, a `Status:` line or `## Status`)", at=place)
        return []
    document = read_document(place, text)
    title = header.text("title") or document.title
    common = {
        **_header_columns(header),
        **base,
        "title": title,
        "path": place,
        "language": kind.language,
        "generated": False,
    }
    common["version"] = common["version"] or document.version
    if decision:
        common |= _decision_columns(header, title, file, report)
    return [{**common, **chunk.columns()} for chunk in document.chunks if chunk.line_end > header.above]


def _header_columns(header: Header) -> dict[str, Any]:
    dated = header.instant("date", dates=True)
    return {
        "document_type": header.text("document_type", "type", "entity"),
        "level": header.text("level"),
        "zone": header.word(ZONES, "zone"),
        "version": header.text("version"),
        "tags": header.strings("tags"),
        "uri": header.text("source_path"),
        "domain": header.text("domain"),
        "branch": header.text("branch"),
        "namespace": header.text("namespace"),
        "entity": header.text("id"),
        "event_time": dated,
        "recorded_time": dated,
        "valid_from": header.instant("valid_from", dates=True),
        "valid_until": header.instant("valid_until", dates=True),
        "superseded_by": header.text("superseded_by"),
    }


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
    identifier = record.identifier("id", "docId") or f"line-{record.line}"
    common = common_fields(record)
    row = {
        **common,
        **base,
        "entity": identifier,
        "path": record.text("path") or identifier,
        "event_time": record.instant("publishedAt", "createdAt", "event_time"),
        "version": record.text("version"),
    }
    yield from rows_of_text(record.required("text", "content", "body"), "document.md", row)
