"""Looking rows up by key and position, however a table is chunked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.columns import keys
from scoped_retrieval.nodes.columns.keys import (
    first_of_runs,
    first_that_holds,
    flat,
    gathered,
    gathered_columns,
    last_of_runs,
    pair_codes,
    pair_positions,
    places_of,
    positions,
    rank_within,
)


@pytest.fixture(scope="module", params=[(0, 0), (keys.FEW_ROWS, 0), (keys.FEW_ROWS, keys.A_HANDFUL)], autouse=True)
def few(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is done for many rows and what is done for few give the same."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("FEW_ROWS", "A_HANDFUL"), request.param, strict=True):
            patch.setattr(keys, name, value)
        yield


TYPES = (pa.string(), pa.large_string())
NAMES = st.lists(st.sampled_from(["a", "b", "", None, "ab"]), max_size=5)


@given(st.lists(st.integers(-9, 99) | st.just(2**40), max_size=9), st.sets(st.integers(0, 80) | st.just(2**40)))
def test_numbers_are_found_among_ascending_ones(values: list[int], among: set[int]):
    ascending = sorted(among)
    found = places_of(np.array(values, np.int64), np.array(ascending, np.int64))
    assert found.tolist() == [ascending.index(value) if value in among else -1 for value in values]


def test_many_numbers_are_found_among_dense_ones():
    values, ascending = np.arange(-50, 3_000), np.arange(0, 2_000, 2)
    wanted = np.where((values >= 0) & (values < 2_000) & (values % 2 == 0), values // 2, -1)
    assert places_of(values, ascending).tolist() == wanted.tolist()


@given(NAMES, NAMES, st.sampled_from(TYPES))
def test_texts_are_found_at_their_first_place_nulls_too(wanted: list, among: list, type_: pa.DataType):
    places = positions(pa.array(wanted, type_), pa.array(among, type_))
    assert places.tolist() == [among.index(one) if one in among else -1 for one in wanted]


NUMBERS = st.lists(st.sampled_from([-(1 << 63), -3, 0, 1, 2, 40, 1 << 62, None]), max_size=9)


@given(NUMBERS, NUMBERS)
def test_numbers_are_found_at_their_first_place_however_far_apart(wanted: list[int | None], among: list[int | None]):
    places = positions(pa.array(wanted, pa.int64()), pa.array(among, pa.int64()))
    assert places.tolist() == [among.index(one) if one in among else -1 for one in wanted]


words = st.lists(st.sampled_from(["a", "b", "c"]) | st.none(), min_size=1, max_size=9)


def chunked(values: list[str | None], size: int) -> pa.ChunkedArray:
    parts = [pa.array(values[n : n + size], pa.string()) for n in range(0, len(values), size)]
    return pa.chunked_array(parts, pa.string())


@given(values=words, size=st.integers(1, 4), data=st.data())
def test_values_are_gathered_alike_from_any_chunks(values: list[str | None], size: int, data: st.DataObject):
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=12))
    found = gathered(chunked(values, size), np.array(rows, dtype=np.int64))
    assert found.to_pylist() == [values[row] for row in rows]
    assert gathered(chunked(values, size), pa.array([None, 0], pa.int64())).to_pylist() == [None, values[0]]


@given(values=words, size=st.integers(1, 4), data=st.data())
def test_columns_are_gathered_together_as_one_by_one(values: list[str | None], size: int, data: st.DataObject):
    rows = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=12)), dtype=np.int64)
    table = pa.table(
        {"whole": pa.array(values, pa.string()), "cut": chunked(values, size), "again": chunked(values, size)}
    )
    found = gathered_columns(table, table.column_names, rows)
    assert {name: column.to_pylist() for name, column in found.items()} == {
        name: [values[row] for row in rows] for name in ("whole", "cut", "again")
    }


@given(wanted=words, among=words, size=st.integers(1, 4))
def test_a_position_is_that_of_the_first_equal_value(wanted: list[str | None], among: list[str | None], size: int):
    expected = [among.index(value) if value in among else -1 for value in wanted]
    for values in (wanted, [value for value in wanted for _ in range(5)]):
        found = positions(chunked(values, size), chunked(among, size)).tolist()
        assert found == [place for place in expected for _ in range(len(values) // len(wanted))]


pairs = st.lists(st.tuples(st.sampled_from(["r1", "r2"]), st.sampled_from(["a", "b", "r1"])), max_size=9)


@given(left=pairs, right=pairs, size=st.integers(1, 4))
def test_pairs_have_equal_numbers_exactly_where_both_are_equal(
    left: list[tuple[str, str]], right: list[tuple[str, str]], size: int
):
    columns = [tuple(chunked([p[n] for p in side], size) for n in (0, 1)) for side in (left, right)]
    numbers = [codes.to_pylist() for codes in pair_codes(*columns)]  # type: ignore[arg-type]  # two columns each
    for one, number in zip(left, numbers[0], strict=True):
        assert [number == other for other in numbers[1]] == [one == pair for pair in right]
    assert pair_positions(*columns).tolist() == [right.index(p) if p in right else -1 for p in left]  # type: ignore[arg-type]  # same


def test_a_null_half_makes_no_pair():
    (codes,) = pair_codes((pa.array(["r", None, "r"]), pa.array(["a", "b", None])))
    assert codes.is_null().to_pylist() == [False, True, True]


def test_ranks_start_anew_in_every_run():
    assert rank_within(np.array([4, 4, 7, 7, 7, 1])).tolist() == [0, 1, 0, 1, 2, 0]
    assert rank_within(np.array([], dtype=np.int64)).tolist() == []


def test_a_run_ends_where_the_next_begins():
    numbers, letters = np.array([4, 4, 7, 7]), np.array(list("aaab"))
    assert first_of_runs(numbers, letters).tolist() == [0, 2, 3]
    assert last_of_runs(numbers, letters).tolist() == [1, 2, 3]
    assert last_of_runs(numbers[:0]).tolist() == []


def test_the_first_rule_that_holds_gives_the_word():
    rules = ((np.array([False, True, False]), "one"), (np.array([True, True, False]), "two"))
    assert first_that_holds(rules, "none", 3).to_pylist() == ["two", "one", "none"]


def test_a_column_is_one_array_without_a_copy_where_it_was_one():
    array = pa.array(["a"])
    assert flat(pa.chunked_array([array])).equals(array)
    assert flat(pa.chunked_array([], pa.string())).to_pylist() == []
