"""How an import makes the next generation: the difference, and which stored rows are amended or rewritten; how stored rows
get vectors, and which packs are merged.

Stored rows are rewritten only if their postings change, their packs are too small and numerous, or their segments have
too many deltas. All other rows stay in their packs.

The place of a row is its version, lines and bytes. An imported open placement whose place is already open changes
nothing: the stored one keeps its first recorded time. A closed one is matched by place and time, and may end an open
one. In a source that was read completely, an open placement that the import does not mention ends `now`: superseded if
its path still exists with other text, deleted if not. Text that comes back gets another placement, never one that began
before it had ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.frames import OPEN_END, micros
from ..encoders.unit_vectors import Encoder
from .deltas import applied, indexed_alike
from .generation import Generation
from .identity import row_keys
from .incoming import PLACE, Incoming, is_open, sorted_placements
from .next_generation import SEGMENT_ROWS, Next, Revision
from .packs import PackSegment, in_use
from .parts import moved, with_rows
from .stored import StoredRows

FAN_IN = 16
"""This many small packs of one size class are merged."""
DELTAS_KEPT = 4096
"""A segment with more deltas than this and than a quarter of its rows is rewritten."""

ENCODED_ROWS = 16_384
"""Rows of a batch: some minutes of one core."""


@dataclass(frozen=True)
class PublishReport:
    """Rows of evidence and placements affected by a publication; `described_anew` counts rows whose columns changed."""

    generation: str
    new_rows: int = 0
    described_anew: int = 0
    unchanged_rows: int = 0
    new_placements: int = 0
    closed_placements: int = 0
    erased_rows: int = 0
    """Imported rows that were erased before and stayed out."""


@dataclass(frozen=True)
class Import:
    """The input of a publication.

    `new` are its rows. `complete_sources` of `projects` were read completely, except the paths in `standing`, by
    source, which were published before; of the sources in `partly`, only these paths. `commits` are those of all projects, if
    they change; `users` are those whose rows of complete sources may end, None for shared rows.
    """

    new: Incoming
    now: datetime
    complete_sources: Collection[str] = ()
    projects: Collection[str] = ()
    users: Collection[str | None] = ()
    partly: Mapping[str, Collection[str]] = field(default_factory=dict)
    standing: Mapping[str, Collection[str]] = field(default_factory=dict)
    commits: pa.Table | None = None
    redactor: str | None = None


def published(base: Generation, import_: Import) -> tuple[PublishReport, Generation]:
    """A report of the changes, and the generation after an import: `base` itself if there is nothing to write."""
    new = import_.new
    crowded = _small_packs(base)
    old = StoredRows.of(base, _concerned(base, import_, crowded))
    again = pc.is_in(old.evidence["evidence_id"], value_set=new.evidence["evidence_id"].combine_chunks()).to_numpy()
    old = old.with_segments(again | _complete(old, import_), crowded)
    diff = difference(new, old.evidence, old.placements, _complete(old, import_), import_.now)
    revision = _revision(old, new, diff, crowded)
    of_new_rows = int(np.count_nonzero(diff.known[new.placements["row"].to_numpy()] < 0))
    next_ = Next(base, old, revision, redactor=import_.redactor, commits=import_.commits)
    after = next_.write(_fresh(new, old, diff, revision), import_.now)
    other = [*diff.changed["row"].to_numpy(), *diff.known[diff.described_anew]]
    report = PublishReport(
        generation=after.manifest.generation,
        new_rows=int(np.count_nonzero(diff.known < 0)),
        described_anew=len(diff.described_anew),
        unchanged_rows=int(np.count_nonzero((diff.known >= 0) & ~np.isin(diff.known, other))),
        new_placements=diff.placements_added + of_new_rows,
        closed_placements=diff.placements_closed,
    )
    return report, after


def unencoded(base: Generation, ids: pa.Array) -> tuple[StoredRows, NDArray[np.int64]]:
    """The rows of segments without vectors, and which of them have one of these ids, rows with an open placement first."""
    old = StoredRows.of(base, [segment for segment in base.segments() if not segment.encoded])
    rows = np.flatnonzero(pc.is_in(old.evidence["evidence_id"], value_set=ids).to_numpy())
    current = np.zeros(old.evidence.num_rows, dtype=bool)
    current[old.placements["row"].to_numpy()[is_open(old.placements)]] = True
    return old, rows[np.argsort(~current[rows], kind="stable")]


def next_encoded(
    base: Generation, ids: pa.Array, encoder: Encoder, now: datetime, told: Callable[[int, int], None]
) -> tuple[int, Generation]:
    """How many rows still have no vector, and the generation after the next batch.

    `told` is called with the number of texts encoded in this batch, and with that of the rows left.
    """
    old, rows = unencoded(base, ids)
    if not len(rows):
        return 0, base
    batch = np.sort(rows[:ENCODED_ROWS])
    revision = Revision(set(old.segments_of(batch).tolist()), dropped=batch)
    next_ = Next(base, old, revision, encoder, on_encoded=lambda done, _: told(done, len(rows)))
    after = next_.write(old.imported(batch), now)
    return len(rows) - len(batch), after


def _small_packs(base: Generation) -> set[str]:
    """The small packs of every size class (powers of `FAN_IN`) that has so many of them. Small are packs that use fewer
    than a quarter of the rows of a full one.
    """
    classes = defaultdict[int, set[str]](set)
    for pack, size in base.live.items():
        if size < SEGMENT_ROWS // 4:
            classes[int(np.log(size) / np.log(FAN_IN))].add(pack)
    return {pack for packs in classes.values() if len(packs) >= FAN_IN for pack in packs}


def _concerned(base: Generation, import_: Import, packs: Collection[str]) -> list[PackSegment]:
    """The segments whose rows the import may affect, and those of some packs."""
    owners = set(zip(*(import_.new.evidence[n].to_pylist() for n in ("owner_project", "owner_user")), strict=True))
    if import_.complete_sources or import_.partly:
        owners.update(product(import_.projects, import_.users))
    found = base.segments(*map(set, zip(*owners, strict=True))) if owners else ()
    of_owners = [one for one in found if one.pack not in packs and (one.owner_project, one.owner_user) in owners]
    return [*of_owners, *in_use([base.packs[name] for name in packs], base.manifest.gone)]


def _complete(old: StoredRows, import_: Import) -> NDArray[np.bool_]:
    """Which stored rows have ended unless the import has them."""
    whole, part = (
        old.in_sources(import_.projects, import_.users, sources)
        for sources in (import_.complete_sources, import_.partly)
    )
    return (whole & ~old.among_paths(import_.standing)) | (part & old.among_paths(import_.partly))


def _revision(old: StoredRows, new: Incoming, diff: ImportDifference, packs: Collection[str]) -> Revision:
    """The changes to the stored rows: amended where possible, else rewritten."""
    anew = diff.known[diff.described_anew]
    descriptions = new.evidence.take(pa.array(diff.described_anew))
    stays = indexed_alike(descriptions, old.evidence, anew) if len(anew) else np.empty(0, dtype=bool)
    again = {at for at, segment in enumerate(old.segments) if segment.pack in packs}
    again |= _heavy(old, diff.changed["row"].to_numpy(), anew[stays])
    again.update(old.segments_of(anew[~stays]).tolist())
    kept = descriptions.filter(pa.array(stays))
    return Revision(again, anew[~stays], diff.changed, anew[stays], kept)


def _heavy(old: StoredRows, *amended: NDArray[np.int64]) -> set[int]:
    """The segments, by position, with too many deltas, `amended` rows included."""
    counts = np.bincount(old.segments_of(np.concatenate(amended)), minlength=len(old.segments))
    before = old.base.deltas.counts
    return {
        at
        for at, segment in enumerate(old.segments)
        if counts[at] + before[segment.segment_id] > max(DELTAS_KEPT, segment.size // 4)
    }


def _fresh(new: Incoming, old: StoredRows, diff: ImportDifference, revision: Revision) -> Incoming:
    """The rows to write: new ones as imported, dropped ones with all placements of the stored row."""
    stored = np.isin(diff.known, revision.dropped)
    rows = np.flatnonzero((diff.known < 0) | stored)
    if len(rows) == len(stored) and not stored.any():
        return new  # a large first import: a copy would double its memory
    place = np.full(new.evidence.num_rows, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    imported = moved(new.placements, np.where(stored, -1, place))
    if len(revision.dropped):
        back = np.full(old.evidence.num_rows, -1, dtype=np.int64)
        back[diff.known[stored]] = place[stored]
        known = (table.filter(pa.array(back[table["row"].to_numpy()] >= 0)) for table in (old.placements, diff.changed))
        imported = pa.concat_tables([imported, moved(applied(*known), back)])
    return Incoming(new.evidence.take(pa.array(rows)).combine_chunks(), sorted_placements(imported))


_PATH = ("owner_project", "owner_user", "source_id", "workspace_root", "path")


@dataclass(frozen=True)
class ImportDifference:
    """The changes to the stored rows of some owners.

    `known[i]` is the stored row of incoming row `i`, -1 if it is new; `described_anew` are incoming rows. `changed` holds
    all new placements of every stored row whose placements change.
    """

    known: NDArray[np.int64]
    described_anew: NDArray[np.int64]
    changed: pa.Table
    placements_added: int
    placements_closed: int


def difference(
    new: Incoming, evidence: pa.Table, placements: pa.Table, complete: NDArray[np.bool_], now: datetime
) -> ImportDifference:
    """Compare an import with the stored rows of the same owners.

    Args:
        new: the import.
        evidence: stored `STORED_EVIDENCE`.
        placements: their current PLACEMENTS.
        complete: bool per stored row: its source was read completely.
        now: the end time of rows that the import no longer has.
    """
    known = _stored_rows(new.evidence, evidence)
    if not complete.any() and np.all(known < 0):
        return ImportDifference(known, np.empty(0, dtype=np.int64), placements.slice(0, 0), 0, 0)
    at = np.flatnonzero(known >= 0)
    stored_digests = evidence["row_digest"].take(pa.array(known[at]))
    anew = at[pc.not_equal(new.evidence["row_digest"].take(pa.array(at)), stored_digests).to_numpy()]

    relevant = complete.copy()
    relevant[known[at]] = True
    old = placements.filter(pa.array(relevant[placements["row"].to_numpy()]))
    rows = known[new.placements["row"].to_numpy()]
    came = with_rows(new.placements, rows).filter(pa.array(rows >= 0))

    ends, added, seen = _matched(came, old, now)
    gone = is_open(old) & ~seen & complete[old["row"].to_numpy()]
    still = pc.is_in(row_keys(evidence.select(_PATH).take(old["row"]), _PATH), value_set=_open_paths(new))
    ended = np.maximum(_micros(now), micros(old["recorded_time"], 0))
    for name, chosen in (("superseded_at", still.to_numpy(False)), ("deleted_at", ~still.to_numpy(False))):
        ends[name] = np.where(gone & chosen, ended, ends[name])

    after = old
    for name, values in ends.items():
        column = pa.array(values, mask=values == OPEN_END).cast(old.schema.field(name).type)
        after = after.set_column(after.schema.get_field_index(name), old.schema.field(name), column)
    modified = np.zeros(old.num_rows, dtype=bool)
    for name in ends:
        modified |= ends[name] != micros(old[name], OPEN_END)
    touched = np.union1d(old["row"].to_numpy()[modified], added["row"].to_numpy())
    after = after.filter(pa.array(np.isin(after["row"].to_numpy(), touched)))
    return ImportDifference(
        known=known,
        described_anew=anew,
        changed=sorted_placements(pa.concat_tables([after, added])),
        placements_added=added.num_rows,
        placements_closed=int(np.count_nonzero(modified & is_open(old))),
    )


def _matched(
    came: pa.Table, old: pa.Table, now: datetime
) -> tuple[dict[str, NDArray[np.int64]], pa.Table, NDArray[np.bool_]]:
    """The new ends of the old placements, the placements to add, and which old ones the import mentions."""
    ends = {name: micros(old[name], OPEN_END).copy() for name in ("superseded_at", "deleted_at")}
    came_open, old_open = is_open(came), is_open(old)
    place, old_place = row_keys(came, PLACE), row_keys(old, PLACE)
    seen = np.zeros(old.num_rows, dtype=bool)

    standing = _first(place, old_place, old_open)
    timed = _first(row_keys(came, (*PLACE, "recorded_time")), row_keys(old, (*PLACE, "recorded_time")))
    match = np.where(came_open, standing, timed)
    seen[match[match >= 0]] = True
    closing = ~came_open & (match >= 0)
    for name, values in ends.items():
        values[match[closing]] = micros(came[name], OPEN_END)[closing]

    # Text that was in this place before and ended is back since `now`, unless the row has a later time.
    old_end = np.minimum(ends["superseded_at"], ends["deleted_at"])
    latest = np.argsort(-old_end, kind="stable")
    before = _first(place, old_place.take(pa.array(latest)), ~old_open[latest])
    began = micros(came["recorded_time"], 0)
    back = came_open & (before >= 0)
    back[back] &= began[back] < old_end[latest][before[back]]
    began = np.where(back, np.maximum(_micros(now), old_end[latest][before]) if len(latest) else began, began)
    field = came.schema.field("recorded_time")
    came = came.set_column(came.schema.get_field_index(field.name), field, pa.array(began).cast(field.type))
    return ends, came.filter(pa.array(match < 0)), seen


def _stored_rows(new: pa.Table, stored: pa.Table) -> NDArray[np.int64]:
    known = np.full(new.num_rows, -1, dtype=np.int64)
    found = pc.index_in(stored["evidence_id"], value_set=new["evidence_id"].combine_chunks())
    rows = np.flatnonzero(found.is_valid().to_numpy())
    known[found.drop_null().to_numpy()] = rows
    return known


def _open_paths(new: Incoming) -> pa.Array:
    rows = np.unique(new.placements["row"].to_numpy()[is_open(new.placements)])
    return row_keys(new.evidence, _PATH).take(pa.array(rows))


def _first(wanted: pa.Array, among: pa.Array, where: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """The first position of each wanted key among those allowed, -1 if there is none."""
    positions = np.arange(len(among)) if where is None else np.flatnonzero(where)
    found = pc.index_in(wanted, value_set=among.take(pa.array(positions)))
    index = found.fill_null(-1).to_numpy()
    return np.where(index >= 0, positions[index] if len(positions) else -1, -1)


def _micros(moment: datetime) -> int:
    return pa.scalar(moment, pa.timestamp("us", tz="UTC")).value
