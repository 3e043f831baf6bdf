"""Governed memories and preferences: facts remembered about a project or a user, with status and confidence.

Gives: `read_memory` (records of S0.114) and `read_preferences`. A memory has `id`, `content`, `status`, `scope`,
`sourceRefs`, `confidence`, `validFrom`, and may have `validUntil`, `supersededBy`, `supersededAt`, `conflictSet`.

Note: `conflicted` and `private` are not states. A conflicted memory is a verified one that belongs to a conflict set, a
private one is a verified one that belongs to a user (C4, C5).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ...nodes.vocabulary import Vocabulary
from ..parsing.quoting import shown
from .column_types import PLACE
from .jsonl import LINES, Record
from .record_rows import common_fields, file_rows, read_files, rows_of_lines, rows_of_text
from .report import SourceReport

__all__ = ["read_memory", "read_preferences"]

_CONFIDENCE = {"low": 0.25, "medium": 0.5, "high": 0.9}
_SCOPE_VISIBILITY = Vocabulary("visibility", ("project", "user"), {"team": "project", "private": "user"})
_SCOPED = ("namespace", "branch", "workspace_root", "test_suite", "session_id", "owner_user")
"""Columns that a memory may state in its scope."""
_WHOLE_PROJECT = ""
"""`owner_user` of a project-wide row in a class whose rows belong to users (see `importing`)."""
_EXPECTED_CONFIDENCE = "low, medium, high or a number from 0 to 1"


def read_memory(path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport) -> Iterator[pa.Table]:
    """One row per memory; `source_id` is `memory:<file>`, `path` `memory/<id>`.

    Each memory is a document of its own, with its own lines. It belongs to the user named in it or its scope, else to
    the importing principal; with `"visibility": "project"` in its scope, to the whole project. If an
    id occurs twice in a file, the later one ends the earlier, and so does one that is named in `supersededBy`; of several
    files, `versions` decides.

    Raises:
        InputError: naming file, line and field.
    """

    def of_file(file: Path, place: str, base: dict[str, Any]) -> list[dict[str, Any]]:
        rows = rows_of_lines(file, lambda record: _memory(record, base), report)
        _supersede_earlier(rows)
        return rows

    return read_files(path, "memory", LINES, of_file, project=project, report=report, by_file=True)


def read_preferences(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per preference of a JSONL file, or per section of a Markdown file; they belong to one user.

    `source_id` is `user-preference:<file>`; a record without `user` becomes the importing principal's.

    Raises:
        InputError: naming file, line and field.
    """

    def of_file(file: Path, place: str, base: dict[str, Any]) -> list[dict[str, Any]]:
        base["evidence_kind"] = "rule"
        if file.suffix.lower() in LINES:
            return rows_of_lines(file, lambda record: _preference(record, base), report)
        return file_rows(file, place, base, report)

    suffixes = (*LINES, ".md", ".markdown", ".txt")
    return read_files(path, "user-preference", suffixes, of_file, project=project, report=report, by_file=True)


def _memory(record: Record, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = record.required("content", "text")
    status = record.required("status", "lifecycle", "state")
    scope = record.mapping("scope")
    shared = _shared(scope)
    kinds = ("documentType", "kind", "type", "category")
    common = common_fields(record, ("id", "memoryId"), kinds, ("createdAt", "eventTime"))
    within = common_fields(scope)
    if common["entity"] is None:
        raise InputError.expected("the memory's id", None, f"{record.at}.id")
    scoped = {key: common[key] or within[key] for key in _SCOPED}
    if shared and scoped["owner_user"]:
        raise InputError.expected("no user with visibility project", scoped["owner_user"], f"{scope.at}.user")
    if shared:
        scoped["owner_user"] = _WHOLE_PROJECT
    row = {
        **common,
        **base,
        **scoped,
        "evidence_kind": "memory",
        "content_type": "paragraph",
        "path": f"memory/{common['entity']}",
        "owner_project": scope.text("project", "projectId") or base["owner_project"],
        "lifecycle": status.lower(),
        "tags": [*(common["tags"] or ()), *(record.strings("userContextScopes") or ())] or None,
        "confidence": _confidence(record),
        "importance": record.number("importance"),
        "reinforcement_count": record.whole("reinforcementCount"),
        "last_verified_at": record.instant("lastVerifiedAt"),
        "event_time": common["event_time"] or common["valid_from"],
    }
    yield from rows_of_text(text, "memory.md", row)


def _shared(scope: Record) -> bool:
    """Whether the scope is visible to the whole project; removes the field from the scope."""
    word = scope.word(_SCOPE_VISIBILITY, "visibility")
    scope.fields = {name: value for name, value in scope.fields.items() if name != "visibility"}
    return word == "project"


def _preference(record: Record, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    common = common_fields(record, ("id", "preferenceId"), ("documentType",), ("createdAt", "eventTime", "updatedAt"))
    identifier = common["entity"] or f"line-{record.line}"
    own = {"entity": identifier, "path": f"preferences/{identifier}", "lifecycle": record.text("status", "lifecycle")}
    row = {**common, **base, **own, "content_type": "paragraph"}
    yield from rows_of_text(record.required("text", "content", "preference"), "preference.md", row)


def _supersede_earlier(rows: list[dict[str, Any]]) -> None:
    """End each version of a memory when its file says the next one begins: the later by time, else by lines; and one that
    names another memory of its file in `supersededBy` when that one begins.
    """
    versions: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        whose = (row["source_id"], row["owner_project"], row["owner_user"], row["entity"])
        versions.setdefault(whose, {}).setdefault(row[PLACE], []).append(row)
    for same in versions.values():
        ordered = list(same.values())
        if all(_begins(each[0]) for each in ordered):
            ordered.sort(key=lambda each: _begins(each[0]))
        for old, new in pairwise(ordered):
            for row in old:
                row["superseded_at"] = row["superseded_at"] or _begins(new[0])
                row["superseded_by"] = row["superseded_by"] or (None if row["superseded_at"] else row["entity"])
    for row in rows:
        other = versions.get((row["source_id"], row["owner_project"], row["owner_user"], row["superseded_by"]))
        if other is not None and row["superseded_at"] is None:
            began, own = _begins(next(iter(other.values()))[0]), _begins(row)
            row["superseded_at"] = began if began and own and began > own else None


def _begins(row: dict[str, Any]) -> Any:
    return row["recorded_time"] or row["event_time"]


def _confidence(record: Record) -> float | None:
    value = record.value("confidence")
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1):
        return value
    if isinstance(value, str) and value.lower() in _CONFIDENCE:
        return _CONFIDENCE[value.lower()]
    raise InputError.expected(_EXPECTED_CONFIDENCE, shown(value), f"{record.at}.confidence")
