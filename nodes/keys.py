"""Finding rows of one table in another by key, in an order that no join has a say in.

`Table.join` loses row order on chunked tables; these look-ups give positions, and the caller takes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def flat(column: Column) -> pa.Array:
    """The column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def pair_keys(request_ids: Column, evidence_ids: Column) -> pa.Array:
    """One text per (request, evidence) pair. Evidence ids hold no newline, so pairs stay distinct."""
    pieces = (flat(evidence_ids).cast(pa.large_string()), flat(request_ids).cast(pa.large_string()))
    return pc.binary_join_element_wise(*pieces, pa.scalar("\n", pa.large_string()))


def positions(wanted: Column, among: Column) -> NDArray[np.int64]:
    """Position of each wanted value in `among` (its first), -1 where it does not occur."""
    found = pc.index_in(flat(wanted), value_set=flat(among))
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def take_or(column: Column, index: NDArray[np.int64], default: object = None) -> pa.Array:
    """The values at `index`; `default` (or null) where the index is -1 and where the value is null."""
    array = flat(column).take(pa.array(np.where(index < 0, 0, index), mask=index < 0))
    return array if default is None else pc.fill_null(array, pa.scalar(default, array.type))


def flags_at(column: Column, index: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A boolean column at `index`; false where the index is -1 or the value null."""
    return np.asarray(take_or(column, index, False)).astype(bool)


def objects(column: Column) -> NDArray[np.object_]:
    """A string column as Python objects, None where null: for element-wise choices."""
    return np.asarray(flat(column).to_numpy(zero_copy_only=False), dtype=object)
