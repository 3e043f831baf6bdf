"""What a reader did: how many rows it gave, what it left out and why, which values it assumed.

Gives: `SourceReport`, which every reader fills as it goes and `index` prints. Counts and the names of files; no text of
any source is in it. A row that is skipped is counted by reason, a value that is assumed is counted by column.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

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
    commits: dict[str, pa.Table] = field(default_factory=dict)
    """Per history read, `version` and `recorded_time` of every commit of its line; not shown."""
    defaulted_to: dict[str, Counter[str]] = field(default_factory=dict)
    """Per column what the assumed values are, in words."""
    notes: list[str] = field(default_factory=list)
    noted_at: dict[str, list[str]] = field(default_factory=dict)
    """For each note, the first `NAMED` places it concerns."""

    def skip(self, reason: str, count: int = 1, *, at: str | None = None) -> None:
        """Count `count` rows or files left out for `reason`; `at` names one of them."""
        if count:
            self.skipped[reason] += count
            if at is not None:
                _name(self.skipped_at, reason, at)

    def default(self, column: str, count: int = 1, to: str | None = None) -> None:
        """Count `count` values of `column` that were assumed, and what they are."""
        if count:
            self.defaulted[column] += count
            if to is not None:
                self.defaulted_to.setdefault(column, Counter())[to] += count

    def note(self, text: str, *, at: str | None = None) -> None:
        """Say something about the import as a whole, or about the file and line at `at`, once."""
        if text not in self.notes:
            self.notes.append(text)
        if at is not None:
            _name(self.noted_at, text, at)

    def merge(self, other: SourceReport) -> SourceReport:
        """Add `other` to this report; returns this report."""
        self.read += other.read
        self.skipped.update(other.skipped)
        for reason, named in other.skipped_at.items():
            for at in named:
                _name(self.skipped_at, reason, at)
        self.defaulted.update(other.defaulted)
        for column, values in other.defaulted_to.items():
            self.defaulted_to.setdefault(column, Counter()).update(values)
        self.complete_sources |= other.complete_sources
        self.commits |= other.commits
        for text in other.notes:
            self.note(text)
            for at in other.noted_at.get(text, ()):
                self.note(text, at=at)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Plain values in a fixed order, for JSON and tables."""
        return {
            "read": self.read,
            "skipped": dict(sorted(self.skipped.items())),
            "skipped_at": {reason: named for reason, named in sorted(self.skipped_at.items()) if named},
            "defaulted": dict(sorted(self.defaulted.items())),
            "defaulted_to": {
                column: dict(values.most_common()) for column, values in sorted(self.defaulted_to.items())
            },
            "complete_sources": sorted(self.complete_sources),
            "notes": list(self.notes),
            "noted_at": {text: named for text, named in self.noted_at.items() if named},
        }


def _name(places: dict[str, list[str]], reason: str, at: str) -> None:
    named = places.setdefault(reason, [])
    if at not in named and len(named) < NAMED:
        named.append(at)
