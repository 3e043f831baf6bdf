"""Entries of LOG, one per line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["START", "LogEntry", "canonical"]

START = "0" * 64
"""The `previous` hash of the first line."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry: `kind` is run (a manifest), upgrade (a manifest in a later format), live (one interactive snapshot),
    erase (the receipt of an erasure) or answer (a verified answer)."""

    sequence: int
    kind: str
    run_id: str
    body: dict[str, Any]
    hash: str

    @property
    def text(self) -> str:
        """Its JSON in LOG, the input of `hash`."""
        return canonical({"kind": self.kind, "run_id": self.run_id, "sequence": self.sequence, **self.body})


def canonical(body: dict[str, Any]) -> str:
    """The JSON of a line: keys sorted, no spaces, ASCII."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
