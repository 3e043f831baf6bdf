"""Single rows as bytes: a header of fixed width with validity, numbers and lengths, then the variable values.

Reads columns. Gives offsets and one buffer, from which ids and digests of rows are hashed. Two rows have equal bytes
exactly if all columns are equal, independent of chunks, slices and dictionaries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .array_bytes import Bytes, Int, as_bytes, fixed, is_list, items, layout_of, offsets_and_bytes, plain, valid


def row_forms(arrays: Sequence[pa.Array], rows: int) -> tuple[Int, Bytes]:
    """Every row as bytes: offsets int64[rows + 1] into one contiguous buffer."""
    header: list[Bytes] = []
    bodies: list[tuple[Int, Bytes]] = []
    for column in arrays:
        array = plain(column)
        header.append(valid(array).reshape(rows, 1))
        numbers, body = _values(array, rows)
        header.extend(
            values.reshape(rows, -1) if rows else np.zeros((0, 1), np.uint8) for values in map(as_bytes, numbers)
        )
        if body is not None and len(body[1]):
            bodies.append(body)
    matrix = np.hstack(header) if header else np.zeros((rows, 0), np.uint8)
    return _interleaved(np.ascontiguousarray(matrix), bodies)


def _values(array: pa.Array, rows: int) -> tuple[list[np.ndarray], tuple[Int, Bytes] | None]:
    """The numbers of a column, one array per fixed-width part, and its variable part."""
    type_ = array.type
    if pa.types.is_null(type_):
        return [], None
    if pa.types.is_struct(type_):
        offsets, data = row_forms(array.flatten(), rows)
        return [np.diff(offsets)], (offsets, data)
    if is_list(type_):
        ends, child = items(array)
        starts, data = row_forms([child], len(child))
        offsets = starts[ends]
        return [np.diff(ends), np.diff(offsets)], (offsets, data)
    if layout_of(type_) == "variable":
        offsets, data = offsets_and_bytes(array)
        return [np.diff(offsets)], (offsets, data)
    return [fixed(array)], None


def _interleaved(header: Bytes, bodies: Sequence[tuple[Int, Bytes]]) -> tuple[Int, Bytes]:
    """Rows as bytes: the fixed header, then each variable value."""
    rows, width = header.shape
    if not bodies:
        return np.arange(rows + 1, dtype=np.int64) * width, header.reshape(-1)
    parts = [_binary_array(np.arange(rows + 1, dtype=np.int64) * width, header.reshape(-1))]
    parts += [_binary_array(offsets, data) for offsets, data in bodies]
    return offsets_and_bytes(pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary())))


def _binary_array(offsets: Int, data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
