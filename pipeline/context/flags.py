"""Flags of a record: what it states about who may see it and what kind of file it is.

Gives `sight_of` (zone and visibility) and `flags_of` (a file made by a tool, by its path where the record does not say;
a public interface).
"""

from __future__ import annotations

from ...nodes.vocabulary import VISIBILITIES, ZONES, Vocabulary
from ..sources.file_kinds import made_elsewhere
from ..sources.jsonl import Record


def flags_of(path: str | None, record: Record | None = None) -> dict[str, bool]:
    """The columns `generated` and `public_api` of a file."""
    if path is None:
        return {"generated": False, "public_api": False}
    generated = record.value("generated") if record else None
    return {
        "generated": generated if isinstance(generated, bool) else made_elsewhere(path),
        "public_api": record is not None and record.value("publicApi") is True,
    }


def sight_of(*records: Record) -> dict[str, str]:
    """The zone and the visibility of records, the most restrictive of each; a record and its container both count."""
    zone = _narrowest(ZONES, records, "zone", "sensitivity")
    visibility = _narrowest(VISIBILITIES, records, "visibility")
    return {name: value for name, value in (("zone", zone), ("visibility", visibility)) if value is not None}


def _narrowest(words: Vocabulary, records: tuple[Record, ...], *names: str) -> str | None:
    """The most restrictive word of a vocabulary, ordered from open to closed, that any of the records has."""
    found = [word for each in records if (word := each.word(words, *names))]
    return max(found, key=words.values.index, default=None)
