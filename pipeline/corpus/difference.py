"""What an import changes about what is stored: rows that are new, rows described again, placements that ended or came back.

The place of a row is its version, lines and bytes. An open placement whose place is open already is left unchanged, with
the time it was first recorded. A closed one is found by place and time, and may end an open one. In a source that was
read completely, an open placement that the import does not mention ends `now`: superseded if its path still exists with
other text, deleted if not. Text that comes back gets another placement, never one that began before it had ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.frames import OPEN_END, micros
from .identity import row_keys
from .incoming import PLACE, Incoming, is_open, sorted_placements
from .parts import with_rows

_PATH = ("owner_project", "owner_user", "source_id", "path")


@dataclass(frozen=True)
class Difference:
    """How the stored rows of some owners change.

    `known[i]` is the stored row of incoming row `i`, -1 if it is new; `described_anew` are incoming rows. `changed` holds
    all placements of every stored row whose placements change, as they are afterwards.
    """

    known: NDArray[np.int64]
    described_anew: NDArray[np.int64]
    changed: pa.Table
    placements_added: int
    placements_closed: int


def difference(
    new: Incoming, evidence: pa.Table, placements: pa.Table, complete: NDArray[np.bool_], now: datetime
) -> Difference:
    """Compare an import with the stored rows of the same owners.

    Args:
        new: the import.
        evidence: stored EVIDENCE with `row_digest`.
        placements: their PLACEMENTS as they are now.
        complete: bool per stored row: its source was read completely.
        now: when rows end that the import no longer has.
    """
    known = _stored_rows(new.evidence, evidence)
    if not complete.any() and np.all(known < 0):
        return Difference(known, np.empty(0, dtype=np.int64), placements.slice(0, 0), 0, 0)
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
    return Difference(
        known=known,
        described_anew=anew,
        changed=sorted_placements(pa.concat_tables([after, added])),
        placements_added=added.num_rows,
        placements_closed=int(np.count_nonzero(modified & is_open(old))),
    )


def _matched(came: pa.Table, old: pa.Table, now: datetime) -> tuple[dict[str, NDArray[np.int64]], pa.Table, NDArray]:
    """The ends of the old placements afterwards, the placements to add, and which old ones the import mentions."""
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

    # Text that was in this place before and ended: it is back since `now`, unless the row gives a later time.
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
