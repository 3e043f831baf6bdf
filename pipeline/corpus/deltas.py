"""Changes to stored rows since their segment was written: their placements and their descriptions.

    packs/<id>/changes.arrow         CHANGES: all current placements of rows whose placements ended, came back or
                                     multiplied
               descriptions.arrow    DESCRIPTIONS: the current columns of rows described again whose postings and vectors
                                     stay, such as those of an edited file with another event time

The manifest names one pack for both; they replace what is stored when a frame is opened. So the cost of an import is
proportional to its changes: a segment of a million rows stays as it is when ten of them change. A segment with many
deltas is rewritten, which folds them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.tables import PLACEMENTS
from .identity import DESCRIBING_COLUMNS, row_keys
from .packs import Pack
from .parts import STORED_EVIDENCE
from .postings import INDEXED_COLUMNS
from .vectors import ENCODED_COLUMNS

CHANGES = PLACEMENTS.schema.insert(0, pa.field("segment_id", pa.string(), False))
"""`segment_id` and PLACEMENTS; `row` counts inside the segment."""
_FIXED = tuple(name for name in DESCRIBING_COLUMNS if name in {*INDEXED_COLUMNS, *ENCODED_COLUMNS})
"""The columns that postings and vectors depend on and that the id of a row does not determine."""
_FREE = (*(name for name in DESCRIBING_COLUMNS if name not in _FIXED), "captured_time", "row_digest")
DESCRIPTIONS = pa.schema(
    [
        pa.field("segment_id", pa.string(), False),
        pa.field("row", pa.int64(), False),
        *(STORED_EVIDENCE.field(name) for name in ("evidence_id", *_FREE)),
    ]
)
"""`row` counts inside the segment; one line per row, by segment, then row."""


@dataclass(frozen=True)
class Deltas:
    """CHANGES and DESCRIPTIONS, each sorted by segment, then row."""

    changes: pa.Table = field(default_factory=CHANGES.empty_table)
    descriptions: pa.Table = field(default_factory=DESCRIPTIONS.empty_table)

    @classmethod
    def of(cls, pack: Pack) -> Deltas:
        """The deltas in a pack."""
        names = ("changes", "descriptions")
        return cls(**{name: pack.table(f"{name}.arrow") for name in names if f"{name}.arrow" in pack})

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The tables that have rows, by the name of their file."""
        both = {"changes.arrow": self.changes, "descriptions.arrow": self.descriptions}
        return {name: table for name, table in both.items() if table.num_rows}

    @property
    def counts(self) -> Counter[str]:
        """The number of deltas by segment id."""
        counts = Counter[str]()
        for table in self.tables.values():
            values = table["segment_id"].combine_chunks().value_counts()
            counts.update(dict(zip(values.field(0).to_pylist(), values.field(1).to_pylist(), strict=True)))
        return counts

    def after(self, gone: Collection[str], now: Deltas) -> Deltas:
        """These without the segments in `gone`; for rows amended in `now`, the new deltas replace the old ones."""
        return Deltas(
            _after(self.changes, gone, now.changes, "recorded_time", "version", "line_start"),
            _after(self.descriptions, gone, now.descriptions),
        )


def _after(before: pa.Table, gone: Collection[str], now: pa.Table, *then: str) -> pa.Table:
    key = ("segment_id", "row")
    lost = pc.is_in(before["segment_id"], value_set=pa.array(sorted(gone), pa.string()))
    stale = pc.is_in(row_keys(before, key), value_set=row_keys(now, key))
    table = pa.concat_tables([before.filter(pc.invert(pc.or_(lost, stale))), now])
    return table.sort_by([(name, "ascending") for name in (*key, *then)]).combine_chunks()


def applied(placements: pa.Table, changes: pa.Table) -> pa.Table:
    """Placements with those of changed rows replaced; both tables share row numbers and sort each row's by time."""
    if not changes.num_rows:
        return placements
    stale = np.isin(placements["row"].to_numpy(), changes["row"].to_numpy())
    together = pa.concat_tables([placements.filter(pa.array(~stale)), changes.select(PLACEMENTS.names())])
    return together.take(pa.array(np.argsort(together["row"].to_numpy(), kind="stable"))).combine_chunks()


def indexed_alike(new: pa.Table, stored: pa.Table, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row of `new` has the same postings and vector as the row of `stored` at `rows`."""
    before = stored.select(_FIXED).take(pa.array(rows))
    return pc.equal(row_keys(new, _FIXED), row_keys(before, _FIXED)).to_numpy(False)


def described(evidence: pa.Table, rows: NDArray[np.int64], descriptions: pa.Table) -> pa.Table:
    """Evidence with these distinct rows described again; unchanged columns stay as they are, zero-copy."""
    if not len(rows):
        return evidence
    place = np.arange(evidence.num_rows)
    place[rows] = evidence.num_rows + np.arange(len(rows))
    among, at = pa.array(rows), pa.array(place)
    for name in _FREE:
        stored, now = evidence[name], descriptions[name]
        if stored.null_count + now.null_count == len(stored) + len(now):
            continue  # true of most columns
        if not stored.take(among).equals(now):
            column = pa.chunked_array([*stored.chunks, *now.chunks], stored.type).combine_chunks().take(at)
            evidence = evidence.set_column(evidence.schema.get_field_index(name), evidence.schema.field(name), column)
    return evidence
