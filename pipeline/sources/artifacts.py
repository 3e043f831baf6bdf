"""Artifacts: logs and outputs that commands left behind, as a folder, one file, or a manifest of one object per line.

Gives: `read_artifacts`. A manifest line names a `path` below the manifest's folder (or carries `text`) and may have
`visibility`, `summary`, `createdAt`, `testSuite`, `sessionId`, `command` and the fields every record may have.

Note: an artifact with a `summary` shows that summary to the model; the original is `runtime-only` unless `visibility`
is given (S0.44).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from .file_kinds import file_kind
from .jsonl import LINES, Record
from .record_rows import common_fields, file_rows, read_files, rows_of_lines, rows_of_text
from .report import SourceReport

__all__ = ["read_artifacts"]


def read_artifacts(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per failure block or chunk; `source_id` is `artifact:<folder>`, standing untrusted.

    The event time is `createdAt`, or the modification time of a file, never later than `now`.

    Raises:
        InputError: naming file, line and field.
    """
    manifest = Path(path).is_file() and Path(path).suffix.lower() in LINES

    def of_file(file: Path, place: str, base: dict[str, Any]) -> Iterable[dict[str, Any]]:
        base["declared_standing"] = "untrusted"
        if manifest:
            return rows_of_lines(file, lambda record: _described(record, file.parent, base, now, report), report)
        modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        own = {**base, "evidence_kind": _kind(place), "event_time": min(modified, now), "recorded_time": None}
        return file_rows(file, place, own, report)

    return read_files(path, "artifact", (), of_file, project=project, report=report)


def _described(
    record: Record, folder: Path, base: Mapping[str, Any], now: datetime, report: SourceReport
) -> Iterator[dict[str, Any]]:
    times = ("createdAt", "eventTime", "capturedAt")
    common = common_fields(record, ("id", "artifactId"), ("documentType", "kind", "type", "command"), times)
    common = {key: value for key, value in common.items() if value is not None}
    place = record.text("path", "file")
    text = record.text("text", "content")
    summary = record.text("summary", "projection")
    if place is None and text is None and summary is None:
        raise InputError.expected("a path, a text or a summary", None, f"{record.at}.path")
    shown_as = place or f"artifacts/{common.get('entity', f'line-{record.line}')}"
    row = {
        **common,
        **base,
        "path": shown_as,
        "evidence_kind": _kind(shown_as),
    }
    if "event_time" in row:
        row["event_time"] = min(row["event_time"], now)
    if summary is not None:
        shown = {**row, "section": "summary", "declared_visibility": "model-visible"}
        yield from rows_of_text(summary, "summary.md", shown)
        row.setdefault("declared_visibility", "runtime-only")
    if text is not None:
        yield from rows_of_text(text, shown_as if place else "artifact.log", row)
    elif place is not None:
        file = (folder / place).resolve()
        if not file.is_relative_to(folder.resolve()) or not file.is_file():
            raise InputError.expected("a file below the manifest's folder", place, f"{record.at}.path")
        stated = {key: value for key, value in row.items() if value is not None}
        yield from file_rows(file, place, {}, report, lambda header, title: stated)


def _kind(place: str) -> str:
    return "test-log" if file_kind(place).evidence_kind == "test-log" else "tool-output"
