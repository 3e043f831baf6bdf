"""The state of each path of a history in the corpus, from which reading resumes.

Gives: `PathState`, and `states_of` stored rows.
Note: the stored text of a chunk with a secret is masked, and rows imported in another way are not part of this history.
A path with either has no state and is read from its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..corpus.identity import ID_COLUMNS, evidence_ids
from ..corpus.source_states import PathStatus
from .chunking import DocumentChunk

__all__ = ["STORED", "First", "Key", "Live", "PathState", "states_of"]

Key = tuple[str | None, str, int]
"""Section, text and occurrence, which identify a chunk of a path."""
STORED = (
    *(name for name in ID_COLUMNS if name != "occurrence"), "evidence_id", "title", "text", "event_time", "generated",
    "content_type", "symbols", "calls", "links", "redactions",
    "version", "line_start", "line_end", "byte_start", "byte_end", "recorded_time", "superseded_at", "deleted_at",
)  # fmt: skip
"""Columns of stored rows, one row per placement."""
_CHUNK = ("section", "content_type", "text", "line_start", "line_end", "byte_start", "byte_end", "occurrence")
_MASKED = ("path", "title", "section", "symbols", "calls", "links")
_MARK = "[REDACTED:"
_OCCURRENCES = 64


@dataclass(frozen=True, slots=True)
class First:
    """The values of a row except time and place, from its first appearance, so that all its placements share them."""

    time: int
    title: str | None
    generated: bool
    chunk: DocumentChunk

    def at(self, chunk: DocumentChunk) -> DocumentChunk:
        """The chunk of the first appearance at the place of another one with the same section and text."""
        place = ("line_start", "line_end", "byte_start", "byte_end")
        return replace(self.chunk, **{name: getattr(chunk, name) for name in place})


@dataclass(frozen=True, slots=True)
class Live:
    """An open placement: the chunk in its place, and the commit in which it began."""

    first: First
    chunk: DocumentChunk
    version: str
    recorded: int

    def is_at(self, chunk: DocumentChunk) -> bool:
        """Whether another chunk of the same text is in the same place."""
        return (self.chunk.line_start, self.chunk.byte_start) == (chunk.line_start, chunk.byte_start)


@dataclass(slots=True)
class PathState:
    """A path in the middle of its history: open placements, first appearances of chunks, and the ids of its rows."""

    live: dict[Key, Live] = field(default_factory=dict)
    first: dict[Key, First] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()


def states_of(stored: pa.Table, statuses: Mapping[str, PathStatus]) -> dict[str, PathState]:
    """The states of those paths that are stored exactly as they were read.

    Args:
        stored: STORED of one source and branch, without rows of work trees.
        statuses: by path, the counts recorded when it was read.
    """
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    occurrences = _occurrences(stored)
    times = {name: stored[name].cast(pa.int64()).to_pylist() for name in ("event_time", "recorded_time")}
    for number, row in enumerate(stored.to_pylist()):
        row |= {name: values[number] for name, values in times.items()}
        rows[row["path"]].append(row | {"occurrence": int(occurrences[number])})
    states = {path: _state(rows[path]) for path, status in statuses.items() if _as_read(rows[path], status)}
    return {path: state for path, state in states.items() if state is not None}


def _as_read(rows: list[dict[str, Any]], status: PathStatus) -> bool:
    counted = (len({row["evidence_id"] for row in rows}), len(rows))
    whole = all(row["occurrence"] >= 0 and row["event_time"] is not None for row in rows)
    return counted == (status.rows, status.places) and whole and not status.masked and not any(map(_masked, rows))


def _masked(row: dict[str, Any]) -> bool:
    return bool(row["redactions"]) or any(_MARK in value for name in _MASKED for value in _words(row[name]))


def _words(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


def _state(rows: list[dict[str, Any]]) -> PathState | None:
    """The state from these placements of one path; None if a chunk is in two places at once."""
    state = PathState(ids=frozenset(row["evidence_id"] for row in rows))
    for row in rows:
        key = (row["section"], row["text"], row["occurrence"])
        names: dict[str, Any] = {name: tuple(row[name] or ()) for name in ("symbols", "calls", "links")}
        chunk = DocumentChunk(**{name: row[name] for name in _CHUNK}, **names)
        first = state.first.setdefault(key, First(row["event_time"], row["title"], row["generated"], chunk))
        if row["superseded_at"] is None and row["deleted_at"] is None:
            if key in state.live:
                return None
            state.live[key] = Live(first, first.at(chunk), row["version"], row["recorded_time"])
    return state


def _occurrences(stored: pa.Table) -> np.ndarray:
    """The occurrence of each row, found by its id; -1 if it is not among the first `_OCCURRENCES`."""
    found = np.full(stored.num_rows, -1, dtype=np.int64)
    open_ = np.arange(stored.num_rows)
    for occurrence in range(_OCCURRENCES):
        if not len(open_):
            break
        some = stored.take(pa.array(open_)).combine_chunks()
        some = some.append_column("occurrence", pa.repeat(pa.scalar(occurrence, pa.int32()), len(open_)))
        same = np.array(some["evidence_id"].to_pylist(), dtype=object) == np.array(
            evidence_ids(some).to_pylist(), dtype=object
        )
        found[open_[same]] = occurrence
        open_ = open_[~same]
    return found
