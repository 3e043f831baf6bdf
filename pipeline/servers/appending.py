"""Adds a caller's own rows through an interface, in a project where a grant permits appending.

Reads: rows as JSON, the current grants. Gives: `appended`, and `NewRow`, a row as a caller gives it.

Note: a caller sets the content of a row and never its trust. Owner, project, zone, authority, lifecycle and standing
follow from its kind, as in an import of that kind, and the name of the source begins with the kind, so that no selector
matches it as another. Secrets are masked as in every import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from ...nodes.columns.digests import text_sha256
from ...nodes.errors import AccessError, InputError
from ...nodes.tables import IMPORT_ROWS
from ..config.grants import load_grants
from ..config.opening import corpus_of
from ..config.settings import Settings
from ..context.masking import expect_unicode
from ..corpus.identity import evidence_ids
from ..parsing.documents import Text, expected
from ..redaction.masking import REDACTOR
from ..sources.importing import normalize

KINDS = ("memory", "session-event", "artifact", "external")
"""Classes of source that a program may add to, none of which is trusted."""
_TEXTS = ("title", "section", "uri", "session_id", "namespace", "branch")
_TIMES = ("event_time", "valid_from", "valid_until")
_LISTS = ("tags", "source_refs", "supersedes")


def _named(source: str) -> str:
    if not source.strip() or not source.isprintable():
        raise expected("printable characters", "others")
    return source


if TYPE_CHECKING:
    NewRow = BaseModel
else:
    NewRow = create_model(
        "NewRow",
        __config__=ConfigDict(extra="forbid", strict=True),
        __doc__="A row of evidence of the principal's own; how far it is trusted follows from its kind.",
        text=(Text, Field(description=IMPORT_ROWS.columns["text"].doc)),
        kind=(Literal[KINDS], Field(default="memory", description="what sort of source it is")),
        source=(
            Annotated[str, AfterValidator(_named)],
            Field(default="appended", max_length=200, description="name of the source; the kind is put before it"),
        ),
        id=(
            str,
            Field(default=None, min_length=1, description="of a memory: a later row with the same id replaces it"),
        ),
        **{
            name: (list[str] if name in _LISTS else str, Field(default=None, description=IMPORT_ROWS.columns[name].doc))
            for name in (*_TEXTS, *_TIMES, *_LISTS)
        },
    )


def appendable(settings: Settings) -> list[str]:
    """The projects that the principal may currently append to."""
    return load_grants(settings.grants_path).appendable(settings.principal, datetime.now(UTC))


def appended(
    settings: Settings, rows: Sequence[Mapping[str, Any]], project: str | None, encoder: Any
) -> dict[str, Any]:
    """Add rows, the values of `NewRow`s, all or none; returns `models.Appended`. Duplicate rows are stored once.

    Raises:
        AccessError: no grant lets the principal append to the project.
        InputError: a row is invalid; nothing was added.
        StoreError: the corpus cannot be read or written.
    """
    if len(rows) > (most := settings["serve_max_requests"]):
        raise InputError.described(f"1 to {most} rows", str(len(rows)), "rows")
    expect_unicode(rows, "rows")
    project = project or settings["project"]
    if not project:
        raise InputError.described("a project", "none", "project", hint="name the project that the rows belong to")
    if project not in appendable(settings):
        hint = "`append` of a principal in the grants file lists the projects; see docs/serve.md"
        raise AccessError(f"Permission denied: you may not add rows to project {project!r} - at project", hint=hint)
    now = datetime.now(UTC)
    table = _table(rows, project, settings.principal, now)
    table, report = normalize(table, project=project, principal=settings.principal, now=now)
    if table.num_rows != len(rows):
        raise InputError.described("a text in every row", "an empty one", "rows")
    ids = evidence_ids(table.append_column("text_sha256", text_sha256(table["text"]))).to_pylist()
    corpus_of(settings).publish(table, user=settings.principal, now=now, encoder=encoder, redactor=REDACTOR)
    return {"project": project, "evidence_ids": ids, "masked": report.masked}


def _table(rows: Sequence[Mapping[str, Any]], project: str, principal: str, now: datetime) -> pa.Table:
    made = []
    for place, row in enumerate(rows):
        kind = row.get("kind", "memory")
        # A row that may replace another one is recorded now and in its order, each time that it is added.
        at = now + timedelta(microseconds=place) if row.get("id") or row.get("supersedes") else None
        whose = {"owner_project": project, "owner_user": principal}
        identity = {"entity": row.get("id"), "recorded_time": at, "version": at and at.isoformat()}
        source = {"origin_class": kind, "source_id": f"{kind}:{row.get('source', 'appended')}"}
        made.append({name: row.get(name) for name in ("text", *_TEXTS, *_TIMES, *_LISTS)} | whose | identity | source)
    types = {name: pa.string() if name in _TIMES else IMPORT_ROWS.columns[name].type for name in made[0]}
    return pa.Table.from_pylist(made, schema=pa.schema(types.items()))
