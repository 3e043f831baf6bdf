"""What a reader did: how many rows it gave, what it left out and why, which values it assumed.

Gives: `SourceReport`, which every reader fills as it goes and `index` prints. Counts and the names of files; no text of
any source is in it. A row that is skipped is counted by reason, a value that is assumed is counted by column.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SourceReport"]

NAMED = 20
"""Of what is left out for one reason, this many are named."""


@dataclass
class SourceReport:
    """Running totals of one import; readers mutate the report they are handed.

    `complete_sources` are the source ids that were read whole: rows of the corpus that such a source no longer has have
    ended. A source that was read in part, or is only ever appended to, is not named there.
    """

    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_at: dict[str, list[str]] = field(default_factory=dict)
    """Per reason the first `NAMED` files or rows."""
    defaulted: Counter[str] = field(default_factory=Counter)
    complete_sources: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def skip(self, reason: str, count: int = 1, *, at: str | None = None) -> None:
        """Count `count` rows or files left out for `reason`; `at` names one of them."""
        if count:
            self.skipped[reason] += count
            if at is not None:
                self._name(reason, at)

    def default(self, column: str, count: int = 1) -> None:
        """Count `count` values of `column` that were assumed."""
        if count:
            self.defaulted[column] += count

    def note(self, text: str) -> None:
        """Say something about the import as a whole, once."""
        if text not in self.notes:
            self.notes.append(text)

    def merge(self, other: SourceReport) -> SourceReport:
        """Add `other` to this report; returns this report."""
        self.read += other.read
        self.skipped.update(other.skipped)
        for reason, named in other.skipped_at.items():
            for at in named:
                self._name(reason, at)
        self.defaulted.update(other.defaulted)
        self.complete_sources |= other.complete_sources
        for text in other.notes:
            self.note(text)
        return self

    def _name(self, reason: str, at: str) -> None:
        named = self.skipped_at.setdefault(reason, [])
        if at not in named and len(named) < NAMED:
            named.append(at)

    def as_dict(self) -> dict[str, Any]:
        """Plain values in a fixed order, for JSON and tables."""
        return {
            "read": self.read,
            "skipped": dict(sorted(self.skipped.items())),
            "skipped_at": {reason: named for reason, named in sorted(self.skipped_at.items()) if named},
            "defaulted": dict(sorted(self.defaulted.items())),
            "complete_sources": sorted(self.complete_sources),
            "notes": list(self.notes),
        }
