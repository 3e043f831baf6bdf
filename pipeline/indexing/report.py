"""What `index` did, for programs and for people: rows by source, skipped rows, the new generation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ..progress import counted
from ..sources.report import SourceReport
from ..storage.places import Place

_UNITS = {"history": "version"}
SHOWN = 3
"""The report for people lists this many skipped rows or notes of a kind."""


@dataclass
class IndexReport:
    """The result of an import: rows by kind of source, skipped rows, and the new generation.

    `rows` counts rows of evidence, `places` their placements: in a history, one text is in many versions.
    `unread` counts by kind the files, or versions of files in a history, that were read by an earlier import.
    `granted` is the grants file if this import granted the principal access to the project.
    """

    project: str
    corpus: Place
    generation: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    sources: SourceReport = field(default_factory=SourceReport)
    unread: dict[str, int] = field(default_factory=dict)
    published: Counter[str] = field(default_factory=Counter)
    """The counts of its publications."""
    granted: str = ""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def unreadable(self) -> bool:
        """Whether nothing was read although something is there."""
        return not any(self.rows.values()) and bool(self.sources.skipped or self.sources.notes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return found | {
            "corpus": str(self.corpus),
            "sources": self.sources.as_dict(),
            "seconds": round(self.seconds, 3),
        }

    def text(self) -> str:
        """The report for people: one line per fact."""
        sources = self.sources
        lines = [f"{kind}: {_found(kind, count, self.places.get(kind, count))}" for kind, count in self.rows.items()]
        lines += [
            f"not read again: {counted(count, _UNITS.get(kind, 'file'))} unchanged"
            for kind, count in self.unread.items()
        ]
        for reason, count in sorted(sources.skipped.items()):
            lines.append(f"skipped: {count} {reason}{_first(sources.skipped_at[reason])}")
        if sources.masked:
            lines.append(f"masked: a secret in {counted(sources.masked, 'row')}")
        if ended := self.published.get("closed_placements"):
            lines.append(f"ended: {counted(ended, 'row')} that {'was' if ended == 1 else 'were'} removed or moved")
        if erased := self.published.get("erased_rows"):
            lines.append(f"kept out: {counted(erased, 'row')} that {'was' if erased == 1 else 'were'} erased before")
        lines += [f"note: {note}{_first(named)}" for note, named in sources.notes.items()]
        if self.rows.get("uncommitted"):
            lines.append("note: `ask --workspace FOLDER` shows uncommitted files; without it, what is committed")
        if self.granted:
            lines.append(f"granted access to {self.project} in {self.granted}")
        lines.append(f"corpus: {self.corpus}, generation {self.generation}, {self.seconds:.1f} s")
        return "\n".join(lines) + "\n"


def _found(kind: str, rows: int, places: int) -> str:
    """The number of rows of a source, and of their places if it differs."""
    if not rows and kind != "uncommitted":
        return "0 rows, nothing was read"
    return counted(rows, "row") + (f" in {counted(places, 'place')}" if places != rows else "")


def _first(named: Sequence[str]) -> str:
    """The first few names, in parentheses."""
    if not named:
        return ""
    return f" ({', '.join(named[:SHOWN])}{', ...' if len(named) > SHOWN else ''})"
