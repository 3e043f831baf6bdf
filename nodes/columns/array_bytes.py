"""The values of Arrow columns as bytes that do not depend on their layout.

Reads arrays of any chunking, slice or dictionary. Gives validity, fixed-width values by bit pattern, and offsets and
bytes of variable values. `digests` builds the forms of tables from them, `row_forms` those of single rows; code that
scans the bytes of many texts at once uses `offsets_and_bytes`, whose arrays are read-only.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import SchemaError
from .keys import flat, listed, present
from .ragged import starts_of

Bytes = NDArray[np.uint8]
Int = NDArray[np.int64]
Layout = Literal["struct", "list", "variable", "null", "fixed"]

_NOTHING = np.empty(0, np.uint8)
_NUMBERS = {
    type_.id: np.dtype(form)
    for form, types in {
        "u1": [pa.uint8(), pa.bool_()], "<u2": [pa.uint16()], "<u4": [pa.uint32()], "<u8": [pa.uint64()],
        "i1": [pa.int8()], "<i2": [pa.int16()], "<i4": [pa.int32()],
        "<i8": [pa.int64(), pa.timestamp("us"), pa.duration("us"), pa.date64()],
        "<f2": [pa.float16()], "<f4": [pa.float32()], "<f8": [pa.float64()],
    }.items()
    for type_ in types
}  # fmt: skip
"""The memory format of numbers and times, by type id."""
WIDTHS = {type_: form.itemsize for type_, form in _NUMBERS.items()}
"""Bytes of a number or time in the logical form, by type id."""

OFFSETS = {
    pa.string().id: np.dtype(np.int32),
    pa.binary().id: np.dtype(np.int32),
    pa.large_string().id: np.dtype(np.int64),
    pa.large_binary().id: np.dtype(np.int64),
}
"""The offset format of strings and binary values, by type id."""

_FIXED_SIZE = pa.list_(pa.null(), 1).id
_LISTS = {pa.list_(pa.null()).id, pa.large_list(pa.null()).id, _FIXED_SIZE}
_DICTIONARY, _STRUCT, _BOOLEAN, _NULL = (
    type_.id for type_ in (pa.dictionary(pa.int8(), pa.null()), pa.struct([]), pa.bool_(), pa.null())
)
_LAYOUTS: dict[int, Layout] = {_STRUCT: "struct", _NULL: "null"}
_LAYOUTS |= {**dict.fromkeys(OFFSETS, "variable"), **dict.fromkeys(_LISTS, "list")}
"""The memory layout of values, by type id; all other types have a fixed width."""


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without a dictionary."""
    array = flat(array)
    return array.cast(array.type.value_type) if array.type.id == _DICTIONARY else array


def columns_of(table: pa.Table) -> list[pa.Array]:
    """The columns of a table in order, each as one array."""
    batches = table.to_batches()
    return batches[0].columns if len(batches) == 1 else [flat(column) for column in table.columns]


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
    """Whether it is a list type: list, large list or fixed-size list."""
    return type_.id in _LISTS


def layout_of(type_: pa.DataType) -> Layout:
    """The memory layout of a type: strings and binary values are variable, numbers and times fixed."""
    return _LAYOUTS.get(type_.id, "fixed")


def number_form(type_: pa.DataType) -> np.dtype[np.generic]:
    """The NumPy type of fixed-width values.

    Raises:
        SchemaError: the type has no canonical form.
    """
    form = _NUMBERS.get(type_.id)
    if form is None:
        raise SchemaError(f"Expected a type with a canonical form, got {type_} - at digest")
    return form


def valid(array: pa.Array) -> Bytes:
    """uint8 per row: 1 where there is a value."""
    return present(array).view(np.uint8)


def as_bytes(values: NDArray[np.generic]) -> Bytes:
    """The raw bytes of numbers, in order."""
    return np.ascontiguousarray(values).view(np.uint8)


def items(array: pa.Array) -> tuple[Int, pa.Array]:
    """The bounds of the items of each list (empty for null), and all items in one array."""
    counts, found = listed(array)
    ends = starts_of(counts)
    if len(found) >= 1 << 32:
        raise SchemaError("Expected less than 2**32 items in the lists of a column, got more - at digest")
    return ends, plain(found)


def fixed(array: pa.Array) -> NDArray[np.generic]:
    """Values of a fixed-width column with zeros under nulls: numbers by bit pattern, times as integers."""
    if array.type.id == _BOOLEAN:
        return np.asarray(filled(array, False)).astype(np.uint8)
    form = number_form(array.type)
    rows, missing = len(array), array.null_count
    if missing == rows:
        return np.zeros(rows, form)
    values = np.frombuffer(array.buffers()[1], form, rows, array.offset * form.itemsize)
    return np.where(present(array), values, form.type(0)) if missing else values


def offsets_and_bytes(array: pa.Array) -> tuple[Int, Bytes]:
    """Offsets and bytes of a string or binary column, read from its buffers; nulls have no bytes."""
    rows = len(array)
    if array.null_count == rows:
        return np.zeros(rows + 1, np.int64), _NOTHING
    raw, data = raw_offsets(array)
    offsets = raw.astype(np.int64)
    start, end = int(offsets[0]), int(offsets[-1])
    if start:
        offsets -= start
    return offsets, np.frombuffer(data, np.uint8, end - start, start) if end > start else _NOTHING


def raw_offsets(array: pa.Array) -> tuple[NDArray[np.integer], memoryview]:
    """Offsets of a string or binary column and the bytes they refer to, possibly more than those of a slice; nulls have
    no bytes.
    """
    width = OFFSETS[array.type.id]
    if array.null_count:
        array = filled(array, "")
    _, offsets, data = array.buffers()
    return np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize), memoryview(data or b"")


def filled(array: pa.Array, value: object) -> pa.Array:
    """The array with `value` in place of nulls."""
    return pc.fill_null(array, pa.scalar(value, array.type)) if array.null_count else array
