"""What stands in Arrow columns, as bytes that say the values and nothing of their layout.

Reads arrays of any chunk, slice or dictionary. Gives validity, fixed-width values by bit pattern, and offsets and bytes of
variable values. `digests` builds the forms of tables from them, `row_forms` those of single rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .errors import SchemaError
from .keys import flat

Bytes = NDArray[np.uint8]
Int = NDArray[np.int64]

_ZERO = np.zeros(1, np.int64)


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without a dictionary."""
    array = flat(array)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def type_name(type_: pa.DataType) -> str:
    """The logical type: large and dictionary forms read as the plain one."""
    if pa.types.is_dictionary(type_):
        return type_name(type_.value_type)
    if pa.types.is_large_string(type_):
        return "string"
    if pa.types.is_large_binary(type_):
        return "binary"
    if is_list(type_):
        return f"list<{type_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{f.name}: {type_name(f.type)}' for f in type_)}>"
    return str(type_)


def is_list(type_: pa.DataType) -> bool:
    """Lists of any size."""
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


@lru_cache(maxsize=256)
def layout_of(type_: pa.DataType) -> Literal["struct", "list", "variable", "null", "fixed"]:
    """How values of a type lie in memory: strings and binary values are variable, numbers and times fixed."""
    if pa.types.is_struct(type_):
        return "struct"
    if is_list(type_):
        return "list"
    if any(
        test(type_)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    ):
        return "variable"
    return "null" if pa.types.is_null(type_) else "fixed"


def valid(array: pa.Array) -> Bytes:
    """uint8 per row: 1 where there is a value."""
    return np.asarray(array.is_valid(), dtype=np.uint8) if array.null_count else np.ones(len(array), np.uint8)


def lengths(counts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Lengths as four bytes each."""
    if counts.max(initial=0) >= 1 << 32:
        raise SchemaError("Expected values of less than 4 GiB, got a longer one - at digest")
    return counts.astype("<u4")


def as_bytes(values: NDArray[np.generic]) -> Bytes:
    """Numbers as the bytes they are, one after the other."""
    return np.ascontiguousarray(values).view(np.uint8)


def items(array: pa.Array) -> tuple[Int, pa.Array]:
    """How many items each list has, 0 for null, and all items in one array."""
    counts = np.asarray(filled(pc.list_value_length(array), 0)).astype(np.int64)
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.large_list(array.type.value_type))
    return counts, flat(pc.list_flatten(array))


def fixed(array: pa.Array) -> NDArray[np.generic]:
    """Values of a fixed-width column with zeros under nulls: numbers by bit pattern, times as integers."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        return np.asarray(filled(array, False)).astype(np.uint8)
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or pa.types.is_date64(type_):
        array = array.cast(pa.int64())
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise SchemaError(f"Expected a type with a canonical form, got {type_} - at digest")
    values = np.asarray(filled(array, 0))
    return values.astype(values.dtype.newbyteorder("<"), copy=False)


def binary(array: pa.Array) -> tuple[Int, Bytes]:
    """Offsets and bytes of a string or binary column, read from its buffers; nothing hides under nulls."""
    type_ = array.type
    array = filled(array, b"" if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else "")
    if not len(array):
        return _ZERO, np.empty(0, np.uint8)
    _, offset_buffer, data = array.buffers()
    width = np.int64 if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_) else np.int32
    offsets = np.frombuffer(offset_buffer, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    buffer = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return offsets - offsets[0], buffer[int(offsets[0]) : int(offsets[-1])]


def filled(array: pa.Array, value: object) -> pa.Array:
    """The array with `value` for nulls."""
    return pc.fill_null(array, pa.scalar(value, array.type)) if array.null_count else array
