"""The logical form of rows: the bytes that `digests` hashes below a heading, and their bounds for ranges of rows.

Reads columns of equal length. Gives one part with all fixed-width data, row by row (validity of nullable columns,
numbers by bit pattern, lengths), then the values of variable length column by column, then the items of lists in the
same form. The position of a row's numbers depends on the types alone: the `RowLayout` of a declared table is computed
once. For few rows, all text columns are read together, and the items of all lists of a type: an interactive request has
hundreds of columns of few rows, and pays per call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from .array_bytes import (
    Int,
    Layout,
    as_bytes,
    fixed,
    items,
    layout_of,
    number_form,
    offsets_and_bytes,
    plain_type,
    raw_offsets,
    valid,
)
from .keys import FEW_ROWS

LONG = 64
"""Bytes of the longest value that enters unchanged; a longer one has length `LONG` + 1 and enters by its SHA-256.
Reasons and lists of gates are longer and repeat: each distinct one is hashed once."""

_BYTE, _COUNT = np.dtype(np.uint8), np.dtype("<u4")

Part = tuple[list[int], memoryview]
"""The bounds of the bytes of each range of rows, and the bytes."""


class ColumnLayout(NamedTuple):
    """A column: its memory layout, and the names of the record fields for its validity and its number."""

    kind: Layout
    validity: str
    """Empty where there are no nulls."""
    number: str
    """Field of the value itself, the length of a text or the number of items in a list."""
    inner: RowLayout | None
    """The layout of the items of a list, or of the columns of a struct, which are in the same record."""


class RowLayout(NamedTuple):
    """The record of adjacent numbers, without gaps, and the columns they belong to."""

    record: np.dtype[np.void]
    fields: tuple[ColumnLayout, ...]


def row_layout(columns: Iterable[tuple[pa.DataType, bool]]) -> RowLayout:
    """The layout of columns, given the type and nullability of each.

    Raises:
        SchemaError: a type has no canonical form.
    """
    numbers: list[np.dtype[np.generic]] = []
    fields = _fields(columns, numbers)
    return RowLayout(np.dtype([(f"c{place}", number) for place, number in enumerate(numbers)]), fields)


def _fields(
    columns: Iterable[tuple[pa.DataType, bool]], numbers: list[np.dtype[np.generic]]
) -> tuple[ColumnLayout, ...]:
    def named(number: np.dtype[np.generic]) -> str:
        numbers.append(number)
        return f"c{len(numbers) - 1}"

    fields = []
    for type_, nullable in columns:
        kind, inner = layout_of(type_), None
        validity = named(_BYTE) if nullable else ""
        number = ""
        if kind == "struct":
            inner = RowLayout(np.dtype([]), _fields([(child.type, True) for child in type_], numbers))
        elif kind == "list":
            number, inner = named(_COUNT), _layout_of_items(type_)
        elif kind != "null":
            number = named(_BYTE if kind == "variable" else number_form(type_))
        fields.append(ColumnLayout(kind, validity, number, inner))
    return tuple(fields)


@lru_cache(maxsize=256)
def _layout_of_items(type_: pa.DataType) -> RowLayout:
    return row_layout([(plain_type(type_.value_type), True)])


def parts_of(arrays: Sequence[pa.Array], layout: RowLayout, places: Sequence[Int]) -> list[list[Part]]:
    """The form of columns of equal length, part by part, for each list of bounds between ranges of rows.

    Args:
        arrays: the columns; without nulls where their layout has no validity.
        layout: the layout of their types.
        places: bounds, ascending; the last list ends with the last row.
    """
    rows = int(places[-1][-1])
    matrix = np.zeros(rows, layout.record)  # columns that are null everywhere stay zero
    texts: list[tuple[str, pa.Array]] = []
    lists: list[tuple[pa.Array, Int, RowLayout]] = []
    pending = [*zip(arrays, layout.fields, strict=True)][::-1]
    while pending:
        array, (kind, validity, number, inner) = pending.pop()
        missing = array.null_count
        if missing == rows:
            continue
        if validity:
            matrix[validity] = valid(array) if missing else 1
        if kind == "fixed":
            matrix[number] = fixed(array)
        elif kind == "variable":
            texts.append((number, array))
        elif inner is not None and kind == "list":
            ends, child = items(array)
            matrix[number] = ends[1:] - ends[:-1]
            if len(child):
                lists.append((child, ends, inner))
        elif inner is not None:
            pending.extend([*zip(array.flatten(), inner.fields, strict=True)][::-1])
    parts: list[list[Part]] = [[] for _ in places]
    for some in [texts] if rows <= FEW_ROWS else [[one] for one in texts]:
        _add_texts(parts, some, matrix, places)
    data = as_bytes(matrix).data if matrix.itemsize else memoryview(b"")
    for own, bounds, others in zip(parts, places, _of_items(lists, places), strict=True):
        own.insert(0, ((bounds * matrix.itemsize).tolist(), data))
        own.extend(others)
    return parts


def _add_texts(
    parts: Sequence[list[Part]], texts: Sequence[tuple[str, pa.Array]], matrix: np.ndarray, places: Sequence[Int]
) -> None:
    """Add the values of columns of strings or bytes to the parts, and their lengths to the matrix."""
    if not texts:
        return
    found = [raw_offsets(array) for _, array in texts]
    offsets = np.concatenate([ends for ends, _ in found], dtype=np.int64).reshape(len(texts), -1)
    lengths, data = offsets[:, 1:] - offsets[:, :-1], [values for _, values in found]
    if lengths.max() > LONG:
        for place in (lengths.max(axis=1) > LONG).nonzero()[0].tolist():
            offsets[place], data[place] = _shortened(texts[place][1], lengths[place])
        lengths = np.minimum(lengths, LONG + 1)
    for (number, _), length in zip(texts, lengths, strict=True):
        matrix[number] = length
    for own, bounds in zip(parts, places, strict=True):
        own.extend(zip(offsets.take(bounds, axis=1).tolist(), data, strict=True))


def _shortened(array: pa.Array, length: Int) -> tuple[Int, memoryview]:
    """Offsets and bytes of strings or bytes, with long values replaced by their SHA-256."""
    long = length > LONG
    every = bool(long.all())
    encoded = (array if every else array.filter(pa.array(long))).dictionary_encode()
    values = encoded.dictionary.cast(pa.large_binary()).to_pylist()
    digests = np.frombuffer(b"".join([hashlib.sha256(value).digest() for value in values]), np.uint8).reshape(-1, 32)
    result = digests[encoded.indices.to_numpy()].reshape(-1)
    lengths = np.where(long, 32, length)
    if not every:
        _, data = offsets_and_bytes(array)
        hashed, whole = long.repeat(lengths), result
        result = np.empty(len(hashed), np.uint8)
        result[hashed] = whole
        result[~hashed] = data[~long.repeat(length)]
    return np.append(0, lengths.cumsum()), result.data


def _of_items(lists: Sequence[tuple[pa.Array, Int, RowLayout]], places: Sequence[Int]) -> list[list[Part]]:
    """The form of the items of lists, column by column, for each list of bounds between ranges of rows."""
    groups: dict[object, list[int]] = {}
    for number, (child, _, _) in enumerate(lists):
        groups.setdefault(child.type if len(child) <= FEW_ROWS else number, []).append(number)
    parts: list[list[list[Part]]] = [[] for _ in lists]
    for group in groups.values():
        children, ends, layouts = zip(*(lists[number] for number in group), strict=True)
        starts = [*accumulate(map(len, children), initial=0)]
        bounds = [own[some] + start for own, start in zip(ends, starts, strict=False) for some in places]
        child = pa.concat_arrays(children) if len(group) > 1 else children[0]
        found = parts_of([child], layouts[0], bounds)
        for place, number in enumerate(group):
            parts[number] = found[place * len(places) : (place + 1) * len(places)]
    return [[part for column in parts for part in column[place]] for place in range(len(places))]
