"""A line of LOG, as it was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["START", "Line"]

START = "0" * 64
"""What stands for the line before the first."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `kind` is run (a manifest), upgrade (the manifest of a later format), live (one interactive snapshot), erase (the receipt of an erasure)
    or answer (an answer that was verified)."""

    sequence: int
    kind: str
    run_id: str
    body: dict[str, Any]
    hash: str
