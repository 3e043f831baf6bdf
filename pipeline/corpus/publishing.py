"""How one generation becomes the next: the difference, the rows that are written, the manifest.

Stored rows are written again only where they are described anew, lack a vector that can be made now, stand in too many
small segments or have too many changes. Everything else keeps its pack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.errors import StoreError
from ...nodes.recall_scope import slabs
from .changes import CHANGES, applied
from .commits import FILE, commit_hash
from .difference import Difference, difference
from .generation import Generation
from .incoming import Incoming, sorted_placements
from .packs import Pack, write_alone, write_pack
from .parts import Part, moved, with_rows
from .pieces import Pieces
from .stored import Stored
from .vectors import Encoder, vectors_among, vectors_kept, vectors_of

BLOCK = 1 << 17
"""Rows analyzed and written at once: it bounds memory and the size of a pack."""
FAN_IN = 16
"""As many segments of one owner and size class become one."""
CHANGES_KEPT = 4096
"""Changed placements of a segment that are read apart; with more than this and a quarter of its rows it is rewritten."""

_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PublishReport:
    """What a publication did, in rows of evidence and placements; `described_anew` counts rows whose columns changed."""

    generation: str
    new_rows: int = 0
    described_anew: int = 0
    unchanged_rows: int = 0
    new_placements: int = 0
    closed_placements: int = 0
    segments_written: int = 0
    erased_rows: int = 0
    """Imported rows that were erased before and stayed out."""


def published(
    base: Generation,
    new: Incoming,
    complete_sources: Collection[str],
    projects: Collection[str],
    now: datetime,
    encoder: Encoder | None,
    redactor: str | None,
    commits: Mapping[str, pa.Table],
    pieces: Pieces | None,
    standing: Mapping[str, Collection[str]],
) -> tuple[PublishReport, Generation]:
    """The generation after an import, and what changed; `base` itself if the import says nothing new.

    `commits` are the commit tables that changed, by project; `standing` the paths of complete sources that were not read.
    """
    profile = base.manifest.encoder_profile
    if encoder is not None and profile not in (None, encoder.profile):
        hint = "index into a new corpus: vectors of two encoders cannot be compared."
        raise StoreError(f"Expected encoder {profile}, got {encoder.profile} - at {base.path}", hint=hint)
    owners = set(zip(*(new.evidence[name].to_pylist() for name in ("owner_project", "owner_user")), strict=True))
    old = Stored.of(
        base,
        [
            segment
            for segment in base.manifest.segments
            if (segment.owner_project, segment.owner_user) in owners
            or (complete_sources and segment.owner_project in projects)
        ],
    )
    mine = frozenset(at for at, one in enumerate(old.segments) if (one.owner_project, one.owner_user) in owners)
    complete = old.in_sources(projects, complete_sources) & ~old.among_paths(standing)
    diff = difference(new, old.evidence, old.placements, complete, now)
    dropped = diff.known[diff.described_anew]
    again = old.crowded(FAN_IN) | _heavy(old, diff.changed) | set(old.segments_of(dropped).tolist())
    told = _told(old, diff) if encoder is not None else _NO_ROWS
    again |= set(old.segments_of(told).tolist())
    fresh = _fresh(new, diff, applied(old.placements, diff.changed))
    next_ = Next(base, old, again, dropped, diff.changed, mine, encoder, redactor, told, commits, pieces)
    after = next_.write(fresh, now, added=_added(new, diff))
    touched = np.setdiff1d(diff.changed["row"].to_numpy(), dropped)
    report = PublishReport(
        generation=after.manifest.generation,
        new_rows=int(np.count_nonzero(diff.known < 0)),
        described_anew=len(dropped),
        unchanged_rows=int(np.count_nonzero((diff.known >= 0) & ~np.isin(diff.known, [*touched, *dropped]))),
        new_placements=_added(new, diff),
        closed_placements=diff.placements_closed,
        segments_written=_written(base, after),
    )
    return report, after


def merged(base: Generation, now: datetime) -> tuple[PublishReport, Generation]:
    """The same content in fewer segments: every owner's smaller ones as one, changes folded in, half-empty packs left."""
    segments = base.manifest.segments
    live = Counter()
    for segment in segments:
        live[segment.pack] += segment.size
    sparse = {pack for pack, rows in live.items() if 2 * rows < base.packs[pack].evidence.num_rows}
    small = Counter((s.owner, s.encoded) for s in segments if 4 * s.size < BLOCK)
    changed = set(base.changes["segment_id"].unique().to_pylist())
    chosen = [
        s
        for s in segments
        if s.pack in sparse or s.segment_id in changed or (4 * s.size < BLOCK and small[s.owner, s.encoded] > 1)
    ]
    old = Stored.of(base, chosen)
    nothing = CHANGES.empty_table()
    none = Incoming(old.evidence.slice(0, 0), old.placements.slice(0, 0))
    next_ = Next(base, old, set(range(len(chosen))), _NO_ROWS, nothing.drop(["segment_id"]), set(), None)
    after = next_.write(none, now, added=0)
    return PublishReport(after.manifest.generation, segments_written=_written(base, after)), after


def _written(base: Generation, after: Generation) -> int:
    return sum(segment.pack not in base.packs for segment in after.manifest.segments)


def _fresh(new: Incoming, diff: Difference, after: pa.Table) -> Incoming:
    """The rows to write: new ones as imported, those described anew with all the placements of the stored row."""
    stored = np.isin(np.arange(new.evidence.num_rows), diff.described_anew)
    rows = np.flatnonzero((diff.known < 0) | stored)
    if len(rows) == len(stored) and not stored.any():
        return new  # the first import of much: a copy would double it
    place = np.full(new.evidence.num_rows, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    imported = moved(new.placements, np.where(stored, -1, place))
    if len(diff.described_anew):
        back = np.full(int(after["row"].to_numpy().max(initial=-1)) + 1, -1, dtype=np.int64)
        back[diff.known[diff.described_anew]] = place[diff.described_anew]
        imported = pa.concat_tables([imported, moved(after, back)])
    imported = imported.filter(pa.array(imported["row"].to_numpy() >= 0))
    return Incoming(new.evidence.take(pa.array(rows)).combine_chunks(), sorted_placements(imported))


def _added(new: Incoming, diff: Difference) -> int:
    return diff.placements_added + int(np.count_nonzero(diff.known[new.placements["row"].to_numpy()] < 0))


def _told(old: Stored, diff: Difference) -> NDArray[np.int64]:
    """The stored rows without a vector that the import brings again as they are."""
    rows = np.setdiff1d(diff.known[diff.known >= 0], diff.known[diff.described_anew])
    encoded = np.array([segment.encoded for segment in old.segments], dtype=bool)
    return rows[~encoded[old.segments_of(rows)]] if len(rows) else rows


def _heavy(old: Stored, changed: pa.Table) -> set[int]:
    counts = np.bincount(old.segments_of(changed["row"].to_numpy()), minlength=len(old.segments))
    before = Counter(old.base.changes["segment_id"].to_pylist())
    return {
        at
        for at, segment in enumerate(old.segments)
        if counts[at] + before[segment.segment_id] > max(CHANGES_KEPT, segment.size // 4)
    }


@dataclass(frozen=True)
class Next:
    """The generation after `base`: `again` are segments of `old` to write again, without the rows `dropped`.

    `mine` are the segments of the owners that the import names, `told` the stored rows that it encodes: see `vectors`.
    """

    base: Generation
    old: Stored
    again: set[int]
    dropped: NDArray[np.int64]
    changed: pa.Table
    mine: Set[int]
    encoder: Encoder | None
    redactor: str | None = None
    told: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    commits: Mapping[str, pa.Table] = field(default_factory=dict)
    """The commit tables that are other ones than in `base`, by project."""
    pieces: Pieces | None = None

    def write(self, fresh: Incoming, now: datetime, added: int) -> Generation:
        """Write packs, manifest and pointer; `base` if there is nothing to write."""
        base, manifest = self.base, self.base.manifest
        if not (fresh.evidence.num_rows or self.again or self.changed.num_rows or self.commits):
            return base
        after = applied(self.old.placements, self.changed)
        rewritten = self.old.rows_of(self.again)
        elsewhere = np.setdiff1d(self.changed["row"].to_numpy(), rewritten)
        content = manifest.content - self.old.hash(np.union1d(rewritten, elsewhere), self.old.placements)
        content += self.old.hash(elsewhere, after)

        gone = {self.old.segments[at].segment_id for at in self.again}
        segments = [segment for segment in manifest.segments if segment.segment_id not in gone]
        files, packs, folder = dict(manifest.packs), dict(base.packs), base.path / "packs"
        for part in self._parts(fresh, after):
            written = write_pack(folder, part)
            content += written.content
            segments += written.segments
            files[written.pack] = written.files
            packs[written.pack] = Pack(folder / written.pack, written.files)
        changes, changes_pack = self._changes(gone, elsewhere, after), manifest.changes
        if not changes.equals(base.changes):
            changes_pack = None
            if changes.num_rows:
                changes_pack, files[changes_pack] = write_alone(folder, "changes.arrow", changes)
                packs[changes_pack] = Pack(folder / changes_pack, files[changes_pack])
        commits = dict(manifest.commits)
        for project, table in self.commits.items():
            content += commit_hash(table) - commit_hash(base.commits(project))
            commits.pop(project, None)
            if table.num_rows:
                pack, files_of_pack = write_alone(folder, FILE, table)
                commits[project], files[pack] = pack, files_of_pack
                packs[pack] = Pack(folder / pack, files_of_pack)
        used = {segment.pack for segment in segments} | {changes_pack} | {*commits.values()}
        manifest = replace(
            manifest,
            sequence=manifest.sequence + 1,
            created=now.isoformat(),
            encoder_profile=manifest.encoder_profile or (self.encoder.profile if self.encoder else None),
            content=content,
            placements=manifest.placements + added,
            segments=sorted(segments, key=lambda segment: segment.owner),
            packs={name: entry for name, entry in files.items() if name in used},
            changes=changes_pack,
            commits=commits,
            redactors=sorted({*manifest.redactors, *([self.redactor] if self.redactor else [])}),
        )
        manifest.write(base.path)
        return Generation(base.path, manifest, {name: pack for name, pack in packs.items() if name in used})

    def _parts(self, fresh: Incoming, after: pa.Table) -> Iterator[Part]:
        """New rows and rows written again, sorted, in blocks."""
        waiting, rows = [], 0
        for part in self._units(fresh, after):
            if waiting and rows + part.evidence.num_rows > BLOCK:
                yield Part.joined(waiting).sorted()
                waiting, rows = [], 0
            waiting.append(part)
            rows += part.evidence.num_rows
        if rows:
            yield Part.joined(waiting).sorted()

    def _units(self, fresh: Incoming, after: pa.Table) -> Iterator[Part]:
        profile = self.base.manifest.encoder_profile or (self.encoder.profile if self.encoder else "")
        for start in range(0, fresh.evidence.num_rows, BLOCK):
            evidence = fresh.evidence.slice(start, BLOCK)
            first, last = np.searchsorted(fresh.placements["row"].to_numpy(), (start, start + BLOCK))
            times = fresh.placements.slice(first, last - first)
            times = with_rows(times, times["row"].to_numpy() - start)
            yield Part.of_new(evidence, times, self._vectors(evidence), profile)
        keep = np.ones(self.old.evidence.num_rows, dtype=bool)
        keep[self.dropped] = False
        told_in = self.old.segments_of(self.told)
        segments = np.array(sorted(self.again), dtype=np.int64)
        counts = np.bincount(told_in, minlength=len(self.old.segments))[segments]
        for low, high in slabs(counts, BLOCK) if len(segments) else ():
            told = self.told[np.isin(told_in, segments[low:high])]
            made = None
            if self.encoder is not None and len(told):
                made = self._encoded(self.old.evidence.take(pa.array(told)), self.encoder)
            for at in segments[low:high].tolist():
                start, end = int(self.old.starts[at]), int(self.old.starts[at + 1])
                part = self.old.part(at, after)
                first, last = np.searchsorted(told, (start, end))
                if made is not None and first < last:
                    chosen = np.isin(np.arange(start, end), told)
                    vectors = vectors_among(part.evidence, chosen, made.slice(first, last - first))
                    part = replace(part, vectors=vectors, profile=profile)
                yield part if keep[start:end].all() else part.kept(keep[start:end])

    def _vectors(self, evidence: pa.Table) -> pa.Table | None:
        """The vectors of new rows: all of them with an encoder, those described anew keep theirs without."""
        if self.encoder is not None:
            return self._encoded(evidence, self.encoder)
        none = self.old.placements.slice(0, 0)
        parts = (self.old.part(at, none) for at in sorted(self.mine) if self.old.segments[at].encoded)
        return vectors_kept(evidence, ((part.evidence, part.vectors) for part in parts if part.vectors is not None))

    def _encoded(self, evidence: pa.Table, encoder: Encoder) -> pa.Table:
        return vectors_of(evidence, self._stored_vectors, encoder, self.pieces)

    @cached_property
    def _stored_vectors(self) -> list[pa.Table]:
        """All vectors of the corpus: a text has the same one everywhere, so that nothing shows where it was found."""
        return [table for pack in self.base.packs.values() if (table := pack.vectors) is not None]

    def _changes(self, gone: set[str], elsewhere: NDArray[np.int64], after: pa.Table) -> pa.Table:
        """CHANGES of the segments that stay."""
        old, before = self.old, self.base.changes
        ids = pa.array([segment.segment_id for segment in old.segments], pa.string())
        at = pc.index_in(before["segment_id"], value_set=ids).fill_null(-1).to_numpy()
        row = np.where(at >= 0, old.starts[at] + before["row"].to_numpy(), -1)
        lost = pc.is_in(before["segment_id"], value_set=pa.array(sorted(gone), pa.string())).to_numpy()
        stale = lost | np.isin(row, elsewhere)
        now = after.filter(pa.array(np.isin(after["row"].to_numpy(), elsewhere)))
        segment = old.segments_of(now["row"].to_numpy())
        now = with_rows(now, now["row"].to_numpy() - old.starts[segment])
        now = now.add_column(0, CHANGES.field("segment_id"), ids.take(pa.array(segment)))
        changes = pa.concat_tables([before.filter(pa.array(~stale)), now])
        order = [(name, "ascending") for name in ("segment_id", "row", "recorded_time", "version", "line_start")]
        return changes.take(pc.sort_indices(changes, sort_keys=order)).combine_chunks()
