"""The canonical form of rows, and SHA-256 over it: the identity of tables, records and rows of evidence.

The form of some rows is their number, then the values of all their columns, those of one type together, by its name. A
column of lists gives their lengths and the items; one of structs, which are present, and their fields. Values are validity,
then numbers by bit pattern, or lengths and bytes. Equal rows have equal forms however they are chunked, sliced or encoded,
whatever bytes are under nulls, and in whatever batch; null differs from empty, 1 from "1". A digest also covers names and
types. Free text enters by its SHA-256, so that a record can be verified after a text was erased.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Table
from .keys import TEXTS, filled, flat, is_list, listed, offsets_and_bytes, present
from .ragged import expand_ranges, starts_of

FORM = "scoped-retrieval/logical-form/6"
"""Version of the canonical form; every digest starts with it."""

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()

MANY = 1 << 20
"""Values of one type from which their bytes may need offsets of 64 bits."""

Int: TypeAlias = NDArray[np.int64]
_Leaves: TypeAlias = dict[str, list[tuple[pa.Array | Int, Int]]]
"""The columns of each type, each with the bounds of each range of rows in its values."""
_SHAPE = "shape"
"""The shape of columns: of lists the number of items, of structs 0; -1 where there is none."""
_LARGE = {pa.string().id: pa.large_string(), pa.binary().id: pa.large_binary()}


# --- texts


def text_sha256(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """SHA-256 of each text as UTF-8, 64 hex digits; null where the text is null."""
    return hashed([flat(texts)])[0][0]


def hashed(columns: Sequence[pa.Array]) -> tuple[list[pa.Array], Mapping[str, str]]:
    """Columns of texts, or of lists of them, by their SHA-256; and the SHA-256 of each text."""
    values = [innermost(column) for column in columns]
    given = [*chain.from_iterable(array.to_pylist() for array in values)]
    texts = sorted({*given} - {None})
    known = dict(zip(texts, [one.hexdigest() for one in map(hashlib.sha256, map(str.encode, texts))], strict=True))
    hashes, ends = pa.array([*map(known.get, given)], pa.string()), [0, *accumulate(map(len, values))]
    own = [hashes.slice(start, end - start) for start, end in pairwise(ends)]
    whole = zip(columns, values, own, strict=True)
    return [new if inner is column else relisted(column, new) for column, inner, new in whole], known


def stored_form(table: pa.Table, declared: Table) -> pa.Table:
    """The table as a run stores it: free-text columns contain SHA-256 hex digits, type string, in place of texts."""
    for place, column in enumerate(declared.columns.values()):
        if column.free_text:
            table = table.set_column(place, declared.stored_schema.field(place), text_sha256(table[place]))
    return table


def innermost(array: pa.Array) -> pa.Array:
    """The values in lists, however deep, in order; those of any other array."""
    return innermost(listed(array)[1]) if is_list(array.type) else array


def relisted(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Other values in the lists of `innermost`."""
    if not is_list(lists.type):
        return values
    counts, inner = listed(lists)
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(pa.array(starts_of(counts), pa.int32()), relisted(inner, values), mask=mask)


# --- digests


def table_digest(table: pa.Table) -> str:
    """SHA-256 of the rows of a table, 64 hex digits.

    Raises:
        SchemaError: a column has a type without a canonical form.
    """
    columns = dict(zip(table.column_names, map(flat, table.columns), strict=True))
    return digests(columns, np.array([0, table.num_rows]))[0].hex()


def named_digest(values: Mapping[str, str]) -> str:
    """SHA-256 over names and values, in order of names: for settings and provenance."""
    return table_digest(pa.table({"name": sorted(values), "value": [values[name] for name in sorted(values)]}))


def digests(
    columns: Mapping[str, pa.Array], bounds: Int, prefix: str = "", without: frozenset[str] = frozenset()
) -> list[bytes]:
    """SHA-256 of each range of rows, 32 bytes: range `n` has the rows `bounds[n]:bounds[n + 1]`, and every row is in one.

    Columns, and fields of structs in them, are left out whose path is in `without`, such as `row` and `items.row`.
    """
    heading, form = _form_of(tuple(columns), tuple([column.type for column in columns.values()]), without)
    start = hashlib.sha256(f"{FORM}\n{prefix}\n{len(heading)}\n{heading}".encode())
    found = []
    for one in _forms(form, [*columns.values()], bounds):
        own = start.copy()
        own.update(one)
        found.append(own.digest())
    return found


def forms(columns: Sequence[pa.Array], bounds: Int) -> list[bytes]:
    """The canonical form of each range of rows, see `digests`."""
    return _forms(_form_of(("",) * len(columns), tuple(column.type for column in columns))[1], columns, bounds)


class _Form(NamedTuple):
    """What to read of some columns: those of plain values by their type, and those with lists or structs, with what is in them."""

    plain: dict[str, list[int]]
    lists: list[tuple[int, _Form]]
    structs: list[tuple[int, _Form]]


@lru_cache(maxsize=1024)
def _form_of(
    names: tuple[str, ...], types: tuple[pa.DataType, ...], without: frozenset[str] = frozenset(), below: str = ""
) -> tuple[str, _Form]:
    """Names and types in words, and what to read."""
    form, lines = _Form({}, [], []), []
    for place, (name, type_) in enumerate(zip(names, types, strict=True)):
        path = below + name
        if path in without:
            continue
        if is_list(type_):
            said, inner = _form_of(("",), (type_.value_type,), without, path)
            form.lists.append((place, inner))
            lines.append(f"{name}:[{said}]")
        elif pa.types.is_struct(type_):
            fields = [*type_]
            said, inner = _form_of(tuple(f.name for f in fields), tuple(f.type for f in fields), without, f"{path}.")
            form.structs.append((place, inner))
            lines.append(f"{name}:{{{said}}}")
        else:
            lines.append(f"{name}:{type_}")
            if not pa.types.is_null(type_):
                form.plain.setdefault(str(type_), []).append(place)
    return "\n".join(lines), form


def _forms(form: _Form, columns: Sequence[pa.Array], bounds: Int) -> list[bytes]:
    leaves: _Leaves = defaultdict(list)
    _add_leaves(leaves, form, columns, bounds)
    parts = [(np.arange(0, 8 * len(bounds), 8), memoryview(np.diff(bounds).astype("<i8").tobytes()))]
    for _, found in sorted(leaves.items()):
        values, ends = _together(found)
        parts.append((ends, memoryview(present(values).tobytes() if values.null_count else b"\1" * len(values))))
        if values.type.id in TEXTS:
            offsets, data = offsets_and_bytes(values)
            parts.append((ends * 4, memoryview(np.diff(offsets).astype("<u4").tobytes())))
            parts.append((offsets[ends], data.data))
        else:
            numbers = _numbers(values)
            parts.append((ends * numbers.itemsize, memoryview(numbers.tobytes())))
    cuts = [(ends.tolist(), data) for ends, data in parts]
    return [b"".join([data[ends[n] : ends[n + 1]] for ends, data in cuts]) for n in range(len(bounds) - 1)]


def _add_leaves(leaves: _Leaves, form: _Form, columns: Sequence[pa.Array], bounds: Int) -> None:
    """Add the values of some columns, those in their lists and structs included."""
    for word, places in form.plain.items():
        leaves[word] += [(columns[place], bounds) for place in places]
    for place, inner in form.lists:
        counts, values = listed(columns[place])
        starts = starts_of(counts)
        leaves[_SHAPE] += [(_shape(columns[place], counts), bounds)]
        if starts[-1]:
            _add_leaves(leaves, inner, [values], starts[bounds])
    for place, inner in form.structs:
        leaves[_SHAPE] += [(_shape(columns[place], np.zeros(bounds[-1], np.int64)), bounds)]
        _add_leaves(leaves, inner, columns[place].flatten(), bounds)


def _shape(array: pa.Array, counts: Int) -> Int:
    return np.where(present(array), counts, -1) if array.null_count else counts


def _together(found: Sequence[tuple[pa.Array | Int, Int]]) -> tuple[pa.Array, Int]:
    """The values of some columns of one type, those of each range of rows side by side, and the bounds of each range."""
    arrays, of_each = zip(*found, strict=True)
    ends = np.array(of_each)
    starts = starts_of(ends[:, -1])
    if isinstance(arrays[0], np.ndarray):
        every = pa.array(np.concatenate(arrays))
    elif starts[-1] > MANY and (large := _LARGE.get(arrays[0].type.id)):
        every = pa.concat_arrays([array.cast(large) for array in arrays])
    else:
        every = pa.concat_arrays(arrays)
    if ends.shape[1] > 2:  # one range is already in order
        low = (ends[:, :-1] + starts[:-1, None]).T.ravel()
        every = every.take(pa.array(expand_ranges(low, np.diff(ends).T.ravel())))
    return every, ends.sum(axis=0)


def _numbers(array: pa.Array) -> NDArray[np.generic]:
    """Numbers and times by bit pattern, 0 where there is none."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        array = array.cast(pa.uint8())
    elif pa.types.is_temporal(type_):
        array = array.view(pa.int64() if type_.bit_width == 64 else pa.int32())
    elif not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        raise SchemaError(f"Expected a type with a canonical form, got {type_} - at digest")
    return filled(array, 0).to_numpy(zero_copy_only=False)
