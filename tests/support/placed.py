"""Import rows with one row per placement, as tests read them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.corpus.incoming import PLACEMENT_LIST


def flat(tables: Iterable[pa.Table]) -> pa.Table:
    """The rows of these tables, by path, then by when their placements ended."""
    rows = pa.concat_tables([IMPORT_ROWS.empty(), *map(_flat, tables)], promote_options="default")
    ended = pc.coalesce(rows["superseded_at"], rows["deleted_at"])
    order = rows.append_column("ended", ended).append_column("at", pa.array(range(rows.num_rows)))
    keys = [(name, "ascending") for name in ("path", "ended", "recorded_time", "line_start", "at")]
    return rows.take(pc.sort_indices(order, sort_keys=keys))


def _flat(table: pa.Table) -> pa.Table:
    if PLACEMENT_LIST not in table.column_names:
        return table
    lists, table = table[PLACEMENT_LIST].combine_chunks(), table.drop_columns([PLACEMENT_LIST])
    rows, each = table.take(pc.list_parent_indices(lists)), lists.flatten()
    for name in (field.name for field in each.type):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), each.field(name))
    return rows
