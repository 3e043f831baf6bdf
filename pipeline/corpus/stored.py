"""The rows of some segments as one row space, for the writer: to compare, hash and rewrite them; and the verification of a
stored generation.

Note: the SHA-256 in a manifest does not protect against a user who can write both file and manifest. Ids and row
digests are derived from the rows, and the generation's id from these, so all of them are recomputed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.digests import text_sha256
from ...nodes.columns.ragged import starts_of
from ...nodes.frames import SegmentPostings
from ..storage.durable import file_sha256
from .commits import commit_hash
from .deltas import applied, described
from .frame import stored_evidence, stored_placements
from .generation import Generation
from .identity import MultisetHash, elements, evidence_ids, row_digests
from .incoming import Incoming
from .manifest import manifest_of, stored
from .packs import FILES, VECTORS, PackSegment
from .parts import Part, moved, shifted, with_rows
from .postings import Postings

_HASHED_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class StoredRows:
    """Row `i` of `evidence` is a stored row; segment `s` has the rows `starts[s]:starts[s + 1]`. Segments are in the order
    of their packs.
    """

    base: Generation
    segments: Sequence[PackSegment]
    starts: NDArray[np.int64]
    evidence: pa.Table
    amended_placements: pa.Table | None = None
    """PLACEMENTS of the rows, if others than the stored ones."""

    @classmethod
    def of(cls, base: Generation, segments: Sequence[PackSegment]) -> StoredRows:
        """The rows of these segments with all changes."""
        segments = sorted(segments, key=lambda one: (one.pack, one.place))
        starts = starts_of(np.array([segment.size for segment in segments], dtype=np.int64))
        return cls(base, segments, starts, stored_evidence(segments, base.packs, base.deltas.descriptions))

    @cached_property
    def placements(self) -> pa.Table:
        """PLACEMENTS of the rows: of a history many more than rows, so they are read when they are needed."""
        if self.amended_placements is not None:
            return self.amended_placements
        return stored_placements(self.segments, self.base.packs, self.base.deltas.changes)

    def with_segments(self, rows: NDArray[np.bool_], packs: Collection[str]) -> StoredRows:
        """The rows of the segments that have any of these rows, or are in one of these packs."""
        wanted = {*self.segments_of(np.flatnonzero(rows)).tolist()}
        return StoredRows.of(self.base, [s for at, s in enumerate(self.segments) if at in wanted or s.pack in packs])

    def amended(self, changed: pa.Table, rows: NDArray[np.int64], descriptions: pa.Table) -> StoredRows:
        """The same rows with all placements of the rows in `changed` replaced, and new descriptions of `rows`."""
        evidence = described(self.evidence, rows, descriptions)
        return replace(self, evidence=evidence, amended_placements=applied(self.placements, changed))

    def imported(self, rows: NDArray[np.int64]) -> Incoming:
        """Some rows, ascending, as an import brings them, with all placements."""
        place = np.full(self.evidence.num_rows, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return Incoming(
            self.evidence.take(pa.array(rows)).combine_chunks(), moved(self.placements, place).combine_chunks()
        )

    def in_sources(
        self, projects: Collection[str], users: Collection[str | None], sources: Collection[str]
    ) -> NDArray[np.bool_]:
        """Which rows are in one of these sources of these projects and users; None means shared rows."""
        named = {"owner_project": projects, "owner_user": users, "source_id": sources}
        found = np.ones(self.evidence.num_rows, dtype=bool)
        for name, values in named.items():
            found &= pc.is_in(self.evidence[name], value_set=pa.array([*values], pa.string())).to_numpy()
        return found

    def among_paths(self, paths: Mapping[str, Collection[str]]) -> NDArray[np.bool_]:
        """Which rows are at one of these paths, by source id, without rows of uncommitted files in work trees."""
        found = np.zeros(self.evidence.num_rows, dtype=bool)
        for source, values in paths.items():
            at_path = pc.is_in(self.evidence["path"], value_set=pa.array(list(values), pa.string()))
            found |= pc.and_(pc.equal(self.evidence["source_id"], source), at_path).to_numpy()
        return found & self.evidence["workspace_root"].is_null().to_numpy()

    def segments_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The segment of each row, by position."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def part(self, run: range) -> Part:
        """Adjacent segments to be rewritten with others."""
        segments = self.segments[run.start : run.stop]
        start, end = int(self.starts[run.start]), int(self.starts[run.stop])
        first, last = np.searchsorted(self.placements["row"].to_numpy(), (start, end))
        pack = self.base.packs[segments[0].pack]
        lists = pack.postings(segments[0]._replace(key_end=segments[-1].key_end))
        return Part(
            self.evidence.slice(start, end - start),
            shifted(self.placements.slice(first, last - first), -start),
            _postings(
                lists, self.starts[run.start : run.stop] - start, [one.key_end - one.key_start for one in segments]
            ),
            pack.table(VECTORS).slice(segments[0].row_start, end - start) if segments[0].encoded else None,
            (self.base.manifest.encoder_profile or "") if segments[0].encoded else "",
        )

    def encoded(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows have a vector."""
        return np.array([segment.encoded for segment in self.segments], dtype=bool)[self.segments_of(rows)]

    def hash(self, rows: NDArray[np.int64]) -> MultisetHash:
        """The multiset hash of `rows` (ascending)."""
        hashed = self.evidence.select(["evidence_id", "row_digest"])
        content, placements, at = MultisetHash.of(), self.placements, self.placements["row"].to_numpy()
        profile = self.base.manifest.encoder_profile or ""
        for start in range(0, len(rows), _HASHED_AT_ONCE):
            some = rows[start : start + _HASHED_AT_ONCE]
            first, last = np.searchsorted(at, (some[0], some[-1] + 1))
            place = np.searchsorted(some, at[first:last])
            mine = some[place] == at[first:last]
            theirs = with_rows(placements.slice(first, last - first), place).filter(pa.array(mine)).combine_chunks()
            profiles = np.where(self.encoded(some), profile, "").tolist()
            content += MultisetHash.of(elements(hashed.take(pa.array(some)), theirs, profiles))
        return content


def _postings(lists: SegmentPostings, starts: NDArray[np.int64], keys: Sequence[int]) -> Postings:
    """The postings of adjacent segments, which begin at the rows `starts` and have so many `keys`."""
    span = slice(lists.starts[0], lists.starts[-1])
    counts = np.diff(lists.starts)
    key = np.repeat(np.arange(len(counts)), counts)
    return Postings(lists.keys, lists.hashes, key, lists.rows[span] + np.repeat(starts, keys)[key], lists.freqs[span])


_ROWS_AT_ONCE = 1 << 16


def problems(base: Generation) -> Iterator[str]:
    """Manifests of other generations that do not match the line that names them, and of this one, until something is wrong:
    files that do not match their SHA-256, a row that does not match its id or digest, content with another digest. Reads
    all files.
    """
    for line in stored(base.path, base.chain):
        at = manifest_of(base.path, line)
        if line != base.manifest.line and file_sha256(at) != line.body["manifest"]:
            yield f"Expected SHA-256 {line.body['manifest']}, got another - at generations/{at.name}"
    damaged = [
        f"Expected SHA-256 {entry['sha256']}, got another - at packs/{pack.folder.name}/{name}"
        for pack in base.packs.values()
        for name, entry in {FILES: pack.entry, **pack.files}.items()
        if file_sha256(pack.folder / name) != entry["sha256"]
    ]
    if damaged:
        yield from damaged
        return
    rows = StoredRows.of(base, base.segments())
    if changed := _changed_row(rows):
        yield changed
        return
    content = rows.hash(np.arange(base.rows)) + commit_hash(base.commits)
    if content != base.manifest.content:
        yield f"Expected generation {base.manifest.generation}, got other content - at {base.path}"


def _changed_row(stored: StoredRows) -> str:
    """The first row whose id, digest or text digest does not match its columns, as pack and row; empty if all match. No id
    is named: it would disclose rows to users without access.
    """
    for start in range(0, stored.evidence.num_rows, _ROWS_AT_ONCE):
        rows = stored.evidence.slice(start, _ROWS_AT_ONCE).combine_chunks()
        for column, different in (
            ("text_sha256", _different(rows["text_sha256"], text_sha256(rows["text"].combine_chunks()))),
            ("evidence_id", _different(rows["evidence_id"], evidence_ids(rows))),
            ("row_digest", _different(rows["row_digest"], row_digests(rows))),
        ):
            if different.any():
                at = int(np.argmax(different))
                (segment,) = stored.segments_of(np.array([start + at])).tolist()
                pack, row = stored.segments[segment], start + at - int(stored.starts[segment])
                return (
                    f"Expected the {column} that the row's columns give, got another - at "
                    f"packs/{pack.pack}/evidence.arrow:{pack.row_start + row}"
                )
    return ""


def _different(stored: Any, computed: pa.Array) -> NDArray[np.bool_]:
    return pc.not_equal(stored.combine_chunks().cast(computed.type), computed).fill_null(True).to_numpy(False)
