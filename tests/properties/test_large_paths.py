"""The promises about answers on the ways that only large corpora and large batches take otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from large_paths import ANSWERING, COMPILED, FROM_ARRAYS, INDEXING, large_paths
from profiles import PROFILE
from promises import check_non_interference, check_one_answer
from worlds import Row, World, foreign_rows, worlds

AT_SCALE = settings(PROFILE, max_examples=max(2, PROFILE.max_examples // 6))
WITH_VECTORS = worlds().map(lambda world: replace(world, encoded=(True, False), encoder=True))
"""So that every way is reached by few worlds."""
WAYS = [
    pytest.param(False, id="arrays"),
    pytest.param(True, id="loops", marks=pytest.mark.skipif(not find_spec("numba"), reason="needs the extra fast")),
]


def not_reached(reached: Counter[str], *ways: tuple[tuple[object, str], ...]) -> list[str]:
    """What was never called of some ways."""
    return [name for way in ways for _, name in way if not reached[name]]


@pytest.mark.parametrize("loops", WAYS)
def test_a_request_has_one_answer_whichever_way_it_is_worked_out(loops: bool) -> None:
    reached = Counter[str]()

    @settings(AT_SCALE)
    @given(WITH_VECTORS, st.integers(1, 25), st.randoms(use_true_random=False), st.sampled_from([1, 2, 4]))
    def holds(world: World, batch: int, order: object, threads: int) -> None:
        way = partial(large_paths, loops=loops, reached=reached)
        check_one_answer(world, batch=batch, order=order, threads=threads, batches=3, way=way)

    holds()
    assert not not_reached(reached, ANSWERING, COMPILED if loops else FROM_ARRAYS)


@pytest.mark.parametrize("loops", WAYS)
def test_rows_outside_the_scope_change_nothing_on_the_ways_of_large_corpora(loops: bool) -> None:
    reached = Counter[str]()

    @settings(AT_SCALE)
    @given(WITH_VECTORS, st.lists(foreign_rows(), min_size=1, max_size=8))
    def holds(world: World, planted: list[Row]) -> None:
        with large_paths(loops=loops, reached=reached):
            check_non_interference(world, planted)

    holds()
    assert not not_reached(reached, INDEXING, ANSWERING, COMPILED if loops else FROM_ARRAYS)
