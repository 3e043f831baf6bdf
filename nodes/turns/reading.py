"""What the steps of the context policy pass on: a turn with its sources, as records.

Gives `TurnSources` and `escaped_id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .words import Phase

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class TurnSources:
    """A turn with its state, its phase and its sources. Each step gives the same sources with more fields."""

    turn: Row
    state: Row
    phase: Phase
    sources: Rows
    tokens: int = 0
    """Tokens of the whole input, once it is fitted."""
    failed: bool = False
    """What it requires alone does not fit."""

    def adding(self, made: Iterable[Row], **fields: Any) -> TurnSources:
        """The same with further fields of each source, and of the turn."""
        sources = [{**source, **more} for source, more in zip(self.sources, made, strict=True)]
        return replace(self, sources=sources, **fields)


def escaped_id(snapshot_id: str) -> str:
    """The id of a snapshot inside of another id, where `:` ends it."""
    return snapshot_id.replace("%", "%25").replace(":", "%3A")
