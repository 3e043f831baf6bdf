"""Renderings: one stored snapshot in every format, the same bytes over every interface.

Reads: a snapshot that the principal may see. Gives: `rendered`, `FORMS`, which the leak test reads, too, and `answer_values` of a
retrieval or replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import Vocabulary
from ..config.policies.roles import max_age_days
from ..config.settings import Settings
from ..reading.access import readable_replay
from ..reading.across_runs import snapshot_named
from ..reading.auditing.export import exported
from ..runs import Replay
from ..runs.ids import is_snapshot
from ..views.audit_snapshot import audit_snapshot
from ..views.bundle import bundle
from ..views.printed import json_document, printed
from ..views.recall_xray import envelope, recall_xray, render_xray
from ..views.report import Timings, snapshot_page
from ..views.xray import render_text, rows_of

if TYPE_CHECKING:
    from ..asking.retrieval import Retrieval


@dataclass(frozen=True)
class Shown:
    """A snapshot as its reader may see it: the replay with all tables, and whether the reader audits it."""

    replay: Replay
    audit: bool
    max_age_days: float | None = None
    """The age of a stale row under the role of the request, if it sets one."""
    took: Timings | None = None
    """For auditors, the times of its line, if measured."""

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """All of its rows; views reduce them to a caller's part."""
        return rows_of(self.replay.tables)

    @cached_property
    def xray(self) -> dict[str, Any]:
        """The `RecallXraySnapshot` of document 002."""
        looked_up = self.took.nodes.get("exact_hits") if self.took else None
        return recall_xray(self.rows, audit=self.audit, looked_up_ms=looked_up and round(1_000 * looked_up, 3))

    @cached_property
    def answer(self) -> Replay:
        """The reader's part of the answer."""
        return self.replay if self.audit else self.replay.for_caller()


FORMS: Mapping[str, Callable[[Shown], Any]] = {
    "json": lambda seen: envelope(seen.xray),
    "text": lambda seen: render_xray(seen.xray),
    "markdown": lambda seen: render_xray(seen.xray, "markdown"),
    "xray": lambda seen: render_text(seen.rows, audit=seen.audit),
    "audit": lambda seen: audit_snapshot(seen.rows, audit=seen.audit),
    "html": lambda seen: snapshot_page(seen.rows, audit=seen.audit, took=seen.took),
    "bundle": lambda seen: bundle(seen.rows, audit=seen.audit, max_age_days=seen.max_age_days),
    "replay": lambda seen: answer_values(seen.answer),
    "block": lambda seen: seen.answer.block or "",
    "observation": lambda seen: seen.answer.observation,
    "context-block": lambda seen: seen.answer.context_block,
}
"""What a reader gets in each format: text, or plain values, which are printed as JSON."""
FORMATS = Vocabulary("format", (*FORMS, "export"))
"""json, text, markdown: the x-ray of document 002; xray: as people read it, with what was not shown; audit: the
RetrievalAuditSnapshot of document 000; bundle: the RetrievalBundle of document 004; replay: the
values of the answer; block: the text for the model; observation, context-block: the same for a harness, in the forms of document 000; export: one file for auditors, which `verify FILE` checks.
"""
XRAY = Vocabulary("format", ("json", "text", "markdown"))
"""The formats of the x-ray of document 002."""
_MEDIA_TYPES = {"markdown": "text/markdown", "html": "text/html"}


@dataclass(frozen=True)
class Rendering:
    """A snapshot in one format: plain values if it is JSON, and always the file content as text."""

    snapshot_id: str
    format: str
    value: Any
    """Plain values; None if the format is text."""
    text: str
    """The sanitized text for every interface and for files."""
    status: str = ""
    withheld: tuple[str, ...] = ()
    """What it lacks since rights were withdrawn, in words: a format without conditions cannot say so itself."""

    @classmethod
    def of(cls, snapshot_id: str, format_: str, made: Any, status: str = "") -> Rendering:
        """What a form made, as it is printed; a block stays as the model read it."""
        if not isinstance(made, str):
            return cls(snapshot_id, format_, made, json_document(made), status)
        return cls(snapshot_id, format_, None, made if format_ == "block" else printed(made), status)

    @property
    def media_type(self) -> str:
        if self.value is not None:
            return "application/json"
        return f"{_MEDIA_TYPES.get(self.format, 'text/plain')}; charset=utf-8"


def rendered(settings: Settings, name: str, format_: str) -> Rendering:
    """A snapshot, by its id or by the reference in its block, as far as the principal may see it.

    Raises:
        AccessError: it does not exist or belongs to another principal.
        InputError: the format is not one of `FORMATS`; the message lists them.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    format_ = FORMATS.canonical(format_, "format")
    snapshot_id = snapshot_named(settings, name)
    if not is_snapshot(snapshot_id):
        expected = "a snapshot id such as retr-snap-<token>-0007, or the id that a block prints"
        raise InputError.expected(expected, snapshot_id, "snapshot_id")
    seen = shown(settings, snapshot_id)
    made = exported(settings, snapshot_id) if format_ == "export" else FORMS[format_](seen)
    told = seen.replay.conditions.to_pylist()
    withheld = tuple(row["message"] for row in told if row["condition"] == "rights_withdrawn")
    return replace(Rendering.of(snapshot_id, format_, made, seen.replay.status), withheld=withheld)


def shown(settings: Settings, snapshot_id: str) -> Shown:
    """A stored snapshot as far as the principal may see it; raises what `rendered` raises."""
    seen, found = readable_replay(settings, snapshot_id)
    limit = max_age_days(seen.run.stored("role_policies"), found.request.get("role"))
    took = seen.run.timings_of(snapshot_id) if seen.audit else None
    return Shown(found, seen.audit, limit, took)


def answer_values(found: Retrieval | Replay) -> dict[str, Any]:
    """The reader's part of a retrieval or of a replay as plain values."""
    own: dict[str, Any]
    if isinstance(found, Replay):
        own = {"run_id": found.run_id, "erased": list(found.erased)}
        tables = {"citations": found.citations.to_pylist(), "conditions": found.conditions.to_pylist()}
    else:
        own, tables = {"action": found.action}, {"citations": found.citations, "conditions": list(found.conditions)}
    names = ("snapshot_id", "status", "block_ref", "event", "block")
    return own | tables | {name: getattr(found, name) for name in names}
