"""Changes to stored rows since their segment was written: their placements and their descriptions.

    packs/<id>/changes.arrow         CHANGES, where there are any
               descriptions.arrow    DESCRIPTIONS, where there are any; one pack for both, which the manifest names

So the cost of an import is proportional to its changes: a segment of a million rows stays as it is when ten of them
change. A segment with many deltas is rewritten, which folds them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from .descriptions import CHANGES, DESCRIPTIONS
from .identity import row_keys
from .packs import Pack

__all__ = ["CHANGES_FILE", "DESCRIPTIONS_FILE", "Deltas"]

CHANGES_FILE = "changes.arrow"
DESCRIPTIONS_FILE = "descriptions.arrow"


@dataclass(frozen=True)
class Deltas:
    """CHANGES and DESCRIPTIONS, each sorted by segment, then row."""

    changes: pa.Table = field(default_factory=CHANGES.empty_table)
    descriptions: pa.Table = field(default_factory=DESCRIPTIONS.empty_table)

    @classmethod
    def of(cls, pack: Pack) -> Deltas:
        """The deltas in a pack."""
        none = cls()
        return cls(
            pack.table(CHANGES_FILE) if CHANGES_FILE in pack else none.changes,
            pack.table(DESCRIPTIONS_FILE) if DESCRIPTIONS_FILE in pack else none.descriptions,
        )

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The tables that have rows, by the name of their file."""
        both = {CHANGES_FILE: self.changes, DESCRIPTIONS_FILE: self.descriptions}
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
