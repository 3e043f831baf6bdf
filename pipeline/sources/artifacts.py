"""Artifacts: logs and outputs that commands left behind, as a folder, one file, or a manifest of one object per line.

Gives: `read_artifacts`. A manifest line names a `path` below the manifest's folder (or carries `text`) and may have
`visibility`, `summary`, `createdAt`, `testSuite`, `sessionId`, `command` and the fields every record may have.

Note: an artifact with a `summary` shows that summary to the model; the original is `runtime-only` unless `visibility`
is given (S0.44).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from .documents import file_rows
from .file_kinds import file_kind
from .jsonl import LINES, Record
from .record_rows import common_fields, rows_of_files, rows_of_text, source_of, tables
from .report import SourceReport
from .selection import Selection
from .work_tree import file_at

__all__ = ["read_artifacts"]


def read_artifacts(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per failure block or chunk; `source_id` is `artifact:<folder>`, standing untrusted.

    The event time is `createdAt`, or the modification time of a file, never later than `now`.

    Raises:
        InputError: naming file, line and field.
    """
    root = Path(path)
    source = source_of("artifact", root)
    base = {"source_id": source, "origin_class": "artifact", "declared_standing": "untrusted", "owner_project": project}
    if root.is_file() and root.suffix.lower() in LINES:
        named = [(root, root.name)]
        rows = rows_of_files(named, report, lambda record, _: _described(record, root.parent, base, now, report))
    else:
        folder = root if root.is_dir() else root.parent
        listed = Selection().files(root, report) if root.is_dir() else [root.name.encode()]
        rows = [row for raw in sorted(listed) for row in _file(folder, raw, base, now, report)]
        report.read += len(rows)
    yield from tables(rows)
    report.complete_sources.add(source)


def _file(
    folder: Path, raw: bytes, base: Mapping[str, Any], now: datetime, report: SourceReport
) -> list[dict[str, Any]]:
    found = file_at(folder, raw, report)
    if found is None:
        return []
    place, status = found
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    common = {**base, "evidence_kind": _kind(place), "event_time": min(modified, now)}
    return [{**row, **common, "recorded_time": None} for row in file_rows(folder / place, place, common, report)]


def _described(
    record: Record, folder: Path, base: Mapping[str, Any], now: datetime, report: SourceReport
) -> Iterator[dict[str, Any]]:
    common = {key: value for key, value in common_fields(record).items() if value is not None}
    identifier = record.identifier("id", "artifactId")
    place = record.text("path", "file")
    text = record.text("text", "content")
    summary = record.text("summary", "projection")
    if place is None and text is None and summary is None:
        raise InputError.expected("a path, a text or a summary", None, f"{record.at}.path")
    shown_as = place or f"artifacts/{identifier or f'line-{record.line}'}"
    happened = record.instant("createdAt", "eventTime", "capturedAt")
    row = {
        **common,
        **base,
        "entity": identifier,
        "path": shown_as,
        "document_type": common.get("document_type") or record.text("kind", "type", "command"),
        "evidence_kind": _kind(shown_as),
        "event_time": happened and min(happened, now),
        "version": record.text("version"),
    }
    if summary is not None:
        shown = {**row, "section": "summary", "declared_visibility": "model-visible"}
        yield from rows_of_text(summary, "summary.md", shown)
        row.setdefault("declared_visibility", "runtime-only")
    if text is not None:
        yield from rows_of_text(text, shown_as if place else "artifact.log", row)
    elif place is not None:
        own = {key: value for key, value in row.items() if value is not None}
        for chunk in file_rows(_inside(folder, place, record), place, row, report):
            yield {**chunk, **own, "section": chunk["section"]}


def _inside(folder: Path, place: str, record: Record) -> Path:
    """The file a manifest names; it must be inside the manifest's folder."""
    file = (folder / place).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        raise InputError.expected("a file below the manifest's folder", place, f"{record.at}.path")
    return file


def _kind(place: str) -> str:
    return "test-log" if file_kind(place).evidence_kind == "test-log" else "tool-output"
