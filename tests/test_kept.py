"""Values kept for arrays and tables: found again by numbers or by identity, and given up when they must go."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
from scoped_retrieval.nodes.columns.kept import Kept, OfTable


def _arrays(*numbers: int) -> tuple[np.ndarray, ...]:
    return (np.array(numbers), np.array([len(numbers)]))


def test_equal_numbers_find_the_value_and_others_do_not() -> None:
    kept: Kept[str] = Kept(10)
    kept.put(_arrays(1, 2), "a", 1)
    assert kept.get(_arrays(1, 2)) == "a"
    assert kept.get(_arrays(1, 3)) is None
    assert kept.get(_arrays(1, 2, 3)) is None


def test_the_longest_unused_goes_first() -> None:
    kept: Kept[str] = Kept(10)
    kept.put(_arrays(1), "a", 4)
    kept.put(_arrays(2), "b", 4)
    assert kept.get(_arrays(1)) == "a"
    kept.put(_arrays(3), "c", 4)
    assert [kept.get(_arrays(n)) for n in (1, 2, 3)] == ["a", None, "c"]


def test_a_value_larger_than_the_room_is_not_kept() -> None:
    kept: Kept[str] = Kept(10)
    kept.put(_arrays(1), "a", 10)
    kept.put(_arrays(2), "b", 11)
    assert [kept.get(_arrays(n)) for n in (1, 2)] == ["a", None]


def test_what_is_put_twice_is_held_once() -> None:
    kept: Kept[str] = Kept(10)
    for value in ("a", "b"):
        kept.put(_arrays(1), value, 6)
    assert (len(kept), kept.get(_arrays(1))) == (1, "b")


def test_those_that_share_a_room_find_their_own_alone_and_the_longest_unused_of_all_goes_first() -> None:
    one: Kept[str] = Kept(10)
    other = one.apart()
    for kept, value in ((one, "a"), (other, "b")):
        kept.put(_arrays(1), value, 4)
    assert (one.get(_arrays(1)), other.get(_arrays(1)), len(one), len(other)) == ("a", "b", 1, 1)
    assert one.get(_arrays(1)) == "a"
    other.put(_arrays(2), "c", 4)
    assert [(kept.get(_arrays(1)), kept.get(_arrays(2))) for kept in (one, other)] == [("a", None), (None, "c")]


def test_what_one_gives_up_makes_room_for_those_that_share_it() -> None:
    one: Kept[str] = Kept(10)
    other = one.apart()
    one.put(_arrays(1), "a", 6)
    other.put(_arrays(1), "b", 4)
    one.clear()
    other.put(_arrays(2), "c", 6)
    assert (len(one), other.get(_arrays(1)), other.get(_arrays(2))) == (0, "b", "c")


def test_a_copy_in_another_process_starts_empty() -> None:
    kept: Kept[str] = Kept(10)
    kept.put(_arrays(1), "a", 1)
    copy = pickle.loads(pickle.dumps(kept))
    assert len(copy) == 0
    copy.put(_arrays(1), "b", 11)
    assert len(copy) == 0


def test_a_function_of_a_table_is_called_once_for_each_table() -> None:
    called: list[int] = []
    rows = OfTable[int](lambda table: called.append(table.num_rows) or table.num_rows)
    one, two = pa.table({"a": [1]}), pa.table({"a": [1, 2]})
    assert [rows(one), rows(two), rows(one), rows(two)] == [1, 2, 1, 2]
    assert called == [1, 2]


def test_a_table_that_is_out_of_use_leaves_nothing_behind() -> None:
    rows = OfTable[int](lambda table: table.num_rows)
    table = pa.table({"a": [1]})
    rows(table)
    assert len(rows) == 1
    del table
    assert len(rows) == 0
