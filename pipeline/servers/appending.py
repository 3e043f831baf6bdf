"""Adds a caller's own rows through an interface, in a project where a grant permits appending.

Reads: rows as JSON, the current grants. Gives: `appended`, and `ROW_FIELDS`, the fields of a row.

Note: a caller sets the content of a row and never its trust. Owner, project, zone, authority, lifecycle and standing
follow from its kind, as in an import of that kind, and the name of the source begins with the kind, so that no selector
matches it as another. Secrets are masked as in every import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ...nodes.columns.digests import text_sha256
from ...nodes.errors import AccessError, InputError
from ...nodes.tables import IMPORT_ROWS
from ..config.grants import load_grants
from ..config.opening import corpus_of
from ..config.settings import Settings
from ..context.masking import expect_unicode
from ..corpus.identity import evidence_ids
from ..progress import counted
from ..redaction.masking import REDACTOR
from ..sources.importing import normalize

__all__ = ["KINDS", "ROW_FIELDS", "appendable", "appended"]

KINDS = ("memory", "session-event", "artifact", "external")
"""Classes of source that a program may add to, none of which is trusted."""
_TEXTS = ("title", "section", "uri", "session_id", "namespace", "branch")
_TIMES = ("event_time", "valid_from", "valid_until")
_LISTS = ("tags", "source_refs")
ROW_FIELDS = ("text", "kind", "source", *_TEXTS, *_TIMES, *_LISTS)


def appendable(settings: Settings) -> list[str]:
    """The projects that the principal may currently append to."""
    return load_grants(settings.grants_path).appendable(settings.principal, datetime.now(UTC))


def appended(
    settings: Settings, rows: Sequence[Mapping[str, Any]], project: str | None, encoder: Any
) -> dict[str, Any]:
    """Add rows, all or none; returns `models.Appended`. Duplicate rows are stored once.

    Raises:
        AccessError: no grant lets the principal append to the project.
        InputError: a row is invalid; nothing was added.
        StoreError: the corpus cannot be read or written.
    """
    project = project or settings["project"]
    if not project:
        raise InputError.described("a project", "none", "project", hint="name the project that the rows belong to")
    if project not in appendable(settings):
        hint = "`append` of a principal in the grants file lists the projects; see docs/serve.md"
        raise AccessError(f"Permission denied: you may not add rows to project {project!r} - at project", hint=hint)
    now = datetime.now(UTC)
    table = _table([_row(row, f"rows[{place}]") for place, row in enumerate(rows)], project, settings.principal)
    table, report = normalize(table, project=project, principal=settings.principal, now=now)
    if table.num_rows != len(rows):
        raise InputError.described("a text in every row", "an empty one", "rows")
    ids = evidence_ids(table.append_column("text_sha256", text_sha256(table["text"]))).to_pylist()
    corpus_of(settings).publish(table, user=settings.principal, now=now, encoder=encoder, redactor=REDACTOR)
    return {"project": project, "evidence_ids": ids, "masked": report.redacted}


def _row(row: Any, at: str) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise InputError.of_kind("an object", row, at)
    for name, value in row.items():
        if name not in ROW_FIELDS:
            raise InputError.one_of(ROW_FIELDS, name, at)
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise InputError.of_kind("a list of texts", value, f"{at}.{name}")
        elif not isinstance(value, str):
            raise InputError.of_kind("text", value, f"{at}.{name}")
        expect_unicode(value, f"{at}.{name}")
    if not str(row.get("text", "")).strip():
        raise InputError.described("a text", "none", f"{at}.text")
    kind, source = row.get("kind", "memory"), row.get("source", "appended")
    if kind not in KINDS:
        raise InputError.one_of(KINDS, kind, f"{at}.kind")
    if not source.strip() or len(source) > 200 or not source.isprintable():
        got = counted(len(source), "character") if source.isprintable() else "others"
        raise InputError.described("1 to 200 printable characters", got, f"{at}.source")
    given = {name: value for name, value in row.items() if name not in ("kind", "source")}
    return {"origin_class": kind, "source_id": f"{kind}:{source}", **given}


def _table(rows: Sequence[Mapping[str, Any]], project: str, principal: str) -> pa.Table:
    names = ("origin_class", "source_id", "text", *_TEXTS, *_TIMES, *_LISTS)
    columns = {
        name: pa.array(
            [row.get(name) for row in rows], pa.string() if name in _TIMES else IMPORT_ROWS.columns[name].type
        )
        for name in names
    }
    whose = {"owner_project": project, "owner_user": principal}
    columns |= {name: pa.array([value] * len(rows), pa.string()) for name, value in whose.items()}
    return pa.table(columns)
