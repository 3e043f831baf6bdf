"""Manifests: what a generation consists of, as JSON, and the one pointer that says which is current.

    CURRENT                     the id of the current generation, and its sequence number
    generations/<id>.json       its manifest
    packs/<id>/                 what one publication wrote, see `packs.py`
    LOCK                        held by the one writer

A generation's id is a digest of its content: rows, placements, commit tables, which rows are encoded, encoder profile,
analyzers. The same content has the same id wherever, in whatever order and in however many segments it was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...nodes.errors import StoreError
from ..durable import write_atomic
from ..locks import confirm
from ..places import ObjectPlace, Place
from .identity import MultisetHash
from .packs import Segment

SCHEMA_VERSION = 1
LOCK = "LOCK"
ANALYZERS = ("code/1", "prose/1")
"""The analyzers of stored rows; part of every generation's id."""


@dataclass(frozen=True)
class Manifest:
    """One generation. `sequence` orders generations in this folder; `created` is envelope, in no digest."""

    sequence: int
    created: str
    encoder_profile: str | None
    content: MultisetHash
    placements: int
    segments: Sequence[Segment] = ()
    packs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Files of every pack in use: name -> bytes, sha256."""
    changes: str | None = None
    """The pack that holds what changed about stored rows, see `amendments.py`."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """Project -> the pack that holds its commit table."""
    redactors: Sequence[str] = ()
    """Every detector of secrets, with its version, that rows of this corpus went through at import; envelope."""

    @property
    def generation(self) -> str:
        """The id of this content, 32 hex digits."""
        return self.content.digest(f"generation/{SCHEMA_VERSION}", self.encoder_profile or "", *ANALYZERS)[:32]

    @property
    def rows(self) -> int:
        """Rows of evidence."""
        return sum(segment.size for segment in self.segments)

    def write(self, path: Place) -> None:
        """Make this the current generation of the corpus at `path`: its manifest, then the pointer."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "generation": self.generation,
            "sequence": self.sequence,
            "created": self.created,
            "encoder_profile": self.encoder_profile,
            "analyzers": ANALYZERS,
            "content": self.content.hex(),
            "rows": self.rows,
            "placements": self.placements,
            "changes": self.changes,
            "commits": self.commits,
            "redactors": self.redactors,
            "packs": self.packs,
            "segments": self.segments,
        }
        write_atomic(path / "generations" / f"{self.generation}.json", json.dumps(document).encode())
        confirm(path / LOCK)
        write_atomic(path / "CURRENT", f"{self.generation} {self.sequence}\n".encode())

    @classmethod
    def read(cls, path: Place, generation: str | None = None) -> Manifest:
        """The manifest of a generation, of the current one by default.

        Raises:
            StoreError: there is no corpus or no such generation, or another version wrote it.
        """
        if generation is None:
            generation, _ = current(path)
        at = path / "generations" / f"{generation}.json"
        try:
            document = json.loads(at.read_bytes())
        except OSError as error:
            known = ", ".join(generations(path)) or "none"
            raise StoreError(f"Expected one of the generations {known}, got {generation!r} - at {path}") from error
        except ValueError as error:
            raise StoreError(f"Expected a manifest, got a damaged file - at {at}") from error
        if (version := document.get("schema_version")) != SCHEMA_VERSION:
            hint = "index the sources again with this version."
            raise StoreError(f"Expected schema version {SCHEMA_VERSION}, got {version} - at {at}", hint=hint)
        if (names := tuple(document["analyzers"])) != ANALYZERS:
            hint = "index the sources again with this version."
            raise StoreError(f"Expected analyzers {', '.join(ANALYZERS)}, got {', '.join(names)} - at {at}", hint=hint)
        return cls(
            sequence=document["sequence"],
            created=document["created"],
            encoder_profile=document["encoder_profile"],
            content=MultisetHash.from_hex(document["content"]),
            placements=document["placements"],
            segments=[Segment(*row) for row in document["segments"]],
            packs=document["packs"],
            changes=document["changes"],
            commits=document.get("commits", {}),
            redactors=document.get("redactors", ()),
        )


def current(path: Place) -> tuple[str, int]:
    """The id of the current generation, and which writing of it.

    Raises:
        StoreError: there is no corpus.
    """
    try:
        generation, sequence = (path / "CURRENT").read_text().split()
        return generation, int(sequence)
    except OSError as error:
        hint = "`scoped-retrieval index PATH --corpus DIR --project P` builds one."
        raise StoreError(f"Expected a corpus, got no file CURRENT - at {path}", hint=hint) from error
    except ValueError as error:
        raise StoreError(f"Expected a generation, got a damaged file - at {path / 'CURRENT'}") from error


def generations(path: Place) -> list[str]:
    """The ids of the stored generations, oldest first; one whose writer died before it became current is none."""
    now, newest = current(path)
    found = [(_sequence(at), at.stem) for at in (path / "generations").glob("*.json")]
    return [name for sequence, name in sorted(found) if 0 <= sequence <= newest or name == now]


def remove_ghosts(path: Place, *, all_: bool = False) -> None:
    """Remove manifests whose writer died before they became current; the caller holds the lock.

    The next generation would take their number, and they would pass for its elders. A ghost is younger than the pointer,
    so that a writer reads only such manifests; `all_` reads every one.
    """
    now, newest = current(path)
    for at in (path / "generations").glob("*.json"):
        if at.stem != now and (all_ or _younger(at, path / "CURRENT")) and _sequence(at) > newest:
            at.unlink()


def _younger(at: Place, pointer: Place) -> bool:
    """Whether a manifest may have been written after the pointer; what stores say of times is too coarse to tell."""
    if isinstance(at, ObjectPlace) or isinstance(pointer, ObjectPlace):
        return True
    return at.stat().st_mtime_ns >= pointer.stat().st_mtime_ns


def _sequence(at: Place) -> int:
    """The number of a manifest; -1 if it cannot be read."""
    try:
        return json.loads(at.read_bytes())["sequence"]
    except (OSError, ValueError, KeyError):
        return -1
