"""The report of a reader: rows returned, files and rows skipped and why, values assumed.

Gives: `SourceReport`, which every reader fills and `index` prints. It contains counts and names of files, no text of
any source. Skipped rows are counted by reason, assumed values by column.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

__all__ = ["SourceReport"]

NAMED = 20
"""Maximum number of skipped files or rows named per reason."""


@dataclass
class SourceReport:
    """Running totals of one import; readers mutate the report that they receive.

    `complete_sources` are the source ids that were read completely: stored rows that such a source no longer has have
    ended. It does not include sources that were read in part or are append-only.
    """

    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_at: dict[str, list[str]] = field(default_factory=dict)
    """By reason, the first `NAMED` files or rows."""
    defaulted: Counter[str] = field(default_factory=Counter)
    complete_sources: set[str] = field(default_factory=set)
    commits: dict[str, pa.Table] = field(default_factory=dict)
    """By source id of a history, `version` and `recorded_time` of every commit of its line; not printed."""
    defaulted_to: dict[str, Counter[str]] = field(default_factory=dict)
    """By column, the assumed values, in words."""
    notes: list[str] = field(default_factory=list)
    noted_at: dict[str, list[str]] = field(default_factory=dict)
    """By note, the first `NAMED` places."""

    def skip(self, reason: str, count: int = 1, *, at: str | None = None) -> None:
        """Count `count` rows or files skipped for `reason`; `at` names one of them."""
        if count:
            self.skipped[reason] += count
            if at is not None:
                _name(self.skipped_at, reason, at)

    def default(self, column: str, count: int = 1, to: str | None = None) -> None:
        """Count `count` assumed values of `column`; `to` is the value."""
        if count:
            self.defaulted[column] += count
            if to is not None:
                self.defaulted_to.setdefault(column, Counter())[to] += count

    def note(self, text: str, *, at: str | None = None) -> None:
        """Add a note about the import as a whole, or about the file and line at `at`, once."""
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
        """The report as plain values in a fixed order, for JSON and tables."""
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
