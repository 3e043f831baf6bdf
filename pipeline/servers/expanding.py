"""More of a cited document: a new retrieval inside the contract of the snapshot, narrowed to that document.

Reads: a stored snapshot that the principal may read. Gives: `expansion_of`, the request of the child.

Note: nothing is read past the walls. The child repeats its parent's request as of the same time under current rights;
it can only be narrower. Its `intent_id` names the citation that it expands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...nodes.errors import InputError
from ...nodes.tables import REQUESTS
from ..config.settings import Settings
from ..reading.across_runs import snapshot_named
from ..reading.replaying import replayed
from ..requests.fields import is_plugin_weight

__all__ = ["TOKENS", "expansion_of"]

TOKENS = 4_000
"""Default tokens of the child's block."""
_OWN = frozenset({"request_id", "asked_at", "asked_by", "preset", "intent_id", "intent_source", "required_evidence"})
"""Columns that the child does not copy from the parent."""
_LIMITS = frozenset({"max_chars", "max_items", "max_items_per_source", "max_chunk_tokens", "max_tokens"})
_WILD = re.compile(r"[*?\[]")


def expansion_of(settings: Settings, name: str, label: str, max_tokens: int | None) -> tuple[dict[str, Any], str, str]:
    """The request of the child, the id of its parent and the cited evidence id.

    Raises:
        AccessError: the snapshot does not exist or belongs to another principal.
        InputError: it has no such citation; the message lists its citations.
    """
    parent = replayed(settings, snapshot_named(settings, name))
    cited: dict[str, Mapping[str, Any]] = {row["label"]: row for row in parent.citations.to_pylist()}
    if label not in cited:
        if not cited:
            raise InputError.described("a block with citations", "one that cites nothing", "label")
        raise InputError.one_of(cited, label, "label")
    row = cited[label]
    asked = {
        column: value
        for column, value in parent.request.items()
        if value is not None
        and (column in REQUESTS.columns or is_plugin_weight(column))
        and column not in _OWN | _LIMITS
    }
    narrowed: dict[str, Any] = {"allowed_sources": [_literal(row["source_id"])]}
    if row["path"] is not None:
        narrowed["allowed_paths"] = [_literal(row["path"])]
    own = {
        "intent_id": f"expand:{parent.snapshot_id}:{label}",
        "intent_source": "model",
        "max_tokens": max_tokens or TOKENS,
        "detail": "full",
    }
    return {**asked, **narrowed, **own}, parent.snapshot_id, row["evidence_id"]


def _literal(name: str) -> str:
    """A pattern that matches only this name."""
    return _WILD.sub(lambda found: f"[{found[0]}]", name)
