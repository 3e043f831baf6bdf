"""The report of a reader: rows returned, files and rows skipped and why.

Gives: `SourceReport`, which every reader and `normalize` fill and `index` prints. It contains counts and names of files, no
text of any source.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

PLACE = "read_at"
"""An optional column of readers' tables: file and line of each row, for messages; the corpus does not store it."""
NAMED = 20
"""Maximum number of skipped files or rows named per reason."""


@dataclass
class SourceReport:
    """Running totals of one import; readers mutate the report that they receive.

    `complete_sources` are the source ids that were read completely: stored rows that such a source no longer has have
    ended. It does not include sources that were read in part or are append-only.
    """

    read: int = 0
    masked: int = 0
    """Rows with a masked secret."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Files and rows by reason."""
    skipped_at: dict[str, list[str]] = field(default_factory=dict)
    """By reason, the first `NAMED` files or rows."""
    notes: dict[str, list[str]] = field(default_factory=dict)
    """By note, the first `NAMED` places."""
    complete_sources: set[str] = field(default_factory=set)
    commits: dict[str, pa.Table] = field(default_factory=dict)
    """By source id of a history, `version` and `recorded_time` of every commit of its line; not printed."""

    def skip(self, reason: str, count: int = 1, *, at: str | None = None) -> None:
        """Count `count` rows or files skipped for `reason`; `at` names one of them."""
        if count:
            self.skipped[reason] += count
            _name(self.skipped_at, reason, at)

    def note(self, text: str, *, at: str | None = None) -> None:
        """Add a note about the import as a whole, or about the file and line at `at`, once."""
        _name(self.notes, text, at)

    def merge(self, other: SourceReport) -> SourceReport:
        """Add `other` to this report; returns this report."""
        self.read += other.read
        self.masked += other.masked
        self.skipped.update(other.skipped)
        for mine, theirs in ((self.skipped_at, other.skipped_at), (self.notes, other.notes)):
            for reason, named in theirs.items():
                for at in named or [None]:
                    _name(mine, reason, at)
        self.complete_sources |= other.complete_sources
        self.commits |= other.commits
        return self

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values in a fixed order, for JSON and tables."""
        return {
            "read": self.read,
            "masked": self.masked,
            "skipped": dict(sorted(self.skipped.items())),
            "skipped_at": dict(sorted(self.skipped_at.items())),
            "notes": self.notes,
            "complete_sources": sorted(self.complete_sources),
        }


def _name(places: dict[str, list[str]], reason: str, at: str | None) -> None:
    named = places.setdefault(reason, [])
    if at is not None and at not in named and len(named) < NAMED:
        named.append(at)
