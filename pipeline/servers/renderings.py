"""Renderings: one stored snapshot in every format, the same bytes over every interface.

Reads: a snapshot that the principal may see. Gives: `rendered`, `answer_values` of a retrieval and
`replay_values` of a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import Vocabulary
from ..config.settings import Settings
from ..reading.across_runs import last_of_session, snapshot_named
from ..reading.auditing.export import exported
from ..reading.replaying import bundle_of, replayed, rows_for
from ..reading.reports import report_of
from ..runs.ids import is_snapshot
from ..views.audit_snapshot import audit_snapshot
from ..views.block_forms import BLOCK_FORMS, block_form
from ..views.printed import json_document, printed
from ..views.recall_text import envelope, render_xray
from ..views.recall_xray import TABLES_READ, recall_xray
from ..views.xray import TABLES_READ as XRAY_TABLES
from ..views.xray import caller_rows, render_text

if TYPE_CHECKING:
    from ..asking.retrieval import Retrieval
    from ..runs import Replay

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "XRAY",
    "Rendering",
    "answer_values",
    "explained",
    "rendered",
    "replay_values",
    "xray_of",
]

FORMATS = Vocabulary(
    "format",
    (
        "json",
        "text",
        "markdown",
        "xray",
        "audit",
        "tables",
        "html",
        "bundle",
        "replay",
        "export",
        "block",
        *BLOCK_FORMS.values,
    ),
    {"md": "markdown", **BLOCK_FORMS.aliases},
)
"""json, text, markdown: the x-ray of document 002; xray: as people read it, with what was
not shown; audit: the RetrievalAuditSnapshot of document 000; tables: rows by table; replay: the values of the answer; export: one file for auditors, which `verify FILE` checks; block: the text for
the model, and its forms.
"""
XRAY = Vocabulary("format", ("json", "text", "markdown"), {"md": "markdown"})
"""The formats of the x-ray of document 002."""
MEDIA_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("json", "audit", "tables", "bundle", "replay", "export", *BLOCK_FORMS.values), "application/json"),
    **dict.fromkeys(("text", "xray", "block"), "text/plain; charset=utf-8"),
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}


@dataclass(frozen=True)
class Rendering:
    """A snapshot in one format: plain values if it is JSON, and always the file content as text."""

    snapshot_id: str
    format: str
    value: Any
    text: str
    """The sanitized text for every interface and for files."""
    status: str | None = None
    """That of the answer, where it was replayed for the format."""

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.format]


def rendered(settings: Settings, name: str, format_: str, at: str = "format") -> Rendering:
    """A snapshot, by its id or by the reference in its block, as far as the principal may see it.

    Raises:
        AccessError: it does not exist or belongs to another principal.
        InputError: the format is not one of `FORMATS`; the message lists them.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    format_ = FORMATS.canonical(format_, at)
    snapshot_id = snapshot_named(settings, name)
    if not is_snapshot(snapshot_id):
        expected = "a snapshot id such as retr-snap-<token>-0007, or the id that a block prints"
        raise InputError.expected(expected, snapshot_id, "snapshot_id")
    replay = replayed(settings, snapshot_id) if format_ in _REPLAYED else None
    value, text = _of_replay(format_, replay) if replay else _MAKERS[format_](settings, snapshot_id)
    text = json_document(value) if value is not None else text if format_ == "block" else printed(text)
    return Rendering(snapshot_id, format_, value, text, replay.status if replay else None)


def explained(settings: Settings, session: str | None, format_: str) -> Rendering:
    """The last recall that the principal may see, of a session or of all, in a format (`/recall/explain`, S2.38 and S2.39).

    Nothing is retrieved again. If there is none, JSON is `{"snapshotFound": false}`, and text states it.

    Raises:
        InputError: the format is not one of `FORMATS`.
    """
    format_ = FORMATS.canonical(format_, "format")
    if (snapshot_id := last_of_session(settings, session)) is not None:
        return rendered(settings, snapshot_id, format_)
    value = envelope(None) if format_ == "json" else None
    text = "no snapshot of this session that you may read\n"
    return Rendering("", format_, value, json_document(value) if value else text)


def xray_of(settings: Settings, snapshot_id: str) -> dict[str, Any]:
    """The `RecallXraySnapshot` of document 002 of a stored snapshot, as far as the principal may see it."""
    rows, audit = _rows(settings, snapshot_id)
    return recall_xray(rows, audit=audit)


def answer_values(found: Retrieval) -> dict[str, Any]:
    """The caller's part of one retrieval as plain values."""
    return {
        "snapshot_id": found.snapshot_id,
        "block_ref": found.block_ref,
        "status": found.status,
        "action": found.action,
        "conditions": list(found.conditions),
        "citations": found.citations,
        "event": found.event,
        "observation": found.observation,
        "context_block": found.context_block,
        "block": found.block,
    }


def replay_values(found: Replay) -> dict[str, Any]:
    """A replay as plain values."""
    return {
        "snapshot_id": found.snapshot_id,
        "run_id": found.run_id,
        "status": found.status,
        "block_ref": found.block_ref,
        "citations": found.citations.to_pylist(),
        "conditions": found.conditions.to_pylist(),
        "event": found.event,
        "observation": found.observation,
        "context_block": found.context_block,
        "erased": list(found.erased),
        "block": found.block,
    }


def _rows(settings: Settings, snapshot_id: str) -> tuple[dict[str, list[dict[str, Any]]], bool]:
    return rows_for(settings, snapshot_id, TABLES_READ)


def _xray(settings: Settings, snapshot_id: str) -> tuple[Any, str]:
    rows, audit = _rows(settings, snapshot_id)
    return None, render_text(rows, audit=audit)


def _audit(settings: Settings, snapshot_id: str) -> tuple[Any, str]:
    rows, audit = _rows(settings, snapshot_id)
    return audit_snapshot(rows, audit=audit), ""


def _tables(settings: Settings, snapshot_id: str) -> tuple[Any, str]:
    rows, audit = _rows(settings, snapshot_id)
    tables = {name: rows[name] for name in XRAY_TABLES}
    return (tables if audit else caller_rows(tables)), ""


def _of_replay(format_: str, found: Replay) -> tuple[Any, str]:
    if format_ == "replay":
        return replay_values(found), ""
    if format_ == "block":
        return None, found.block or ""
    return block_form(format_, found.block, found.citations.to_pylist(), found.context_block), ""


_REPLAYED = ("replay", "block", *BLOCK_FORMS.values)
_MAKERS: Mapping[str, Callable[[Settings, str], tuple[Any, str]]] = {
    "json": lambda settings, name: (envelope(xray_of(settings, name)), ""),
    "text": lambda settings, name: (None, render_xray(xray_of(settings, name))),
    "xray": _xray,
    "markdown": lambda settings, name: (None, render_xray(xray_of(settings, name), "markdown")),
    "audit": _audit,
    "tables": _tables,
    "html": lambda settings, name: (None, report_of(settings, name)),
    "bundle": lambda settings, name: (bundle_of(settings, name), ""),
    "export": lambda settings, name: (exported(settings, name), ""),
}
"""Functions that return the value or the text of each other format."""
