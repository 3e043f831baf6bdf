"""The promises about answers on the ways that only large corpora and large batches take otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import PROFILE
from promises import check_non_interference, check_one_answer
from scoped_retrieval.nodes.blocks import byte_runs
from scoped_retrieval.nodes.columns import digests, ragged
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import (
    expansion_recall,
    pair_scores,
    posting_recall,
    recall_scope,
    recall_selection,
    turns,
    vector_recall,
)
from worlds import Row, World, foreign_rows, worlds

BOUNDS: dict[str, tuple[int, tuple[ModuleType, ...]]] = {
    "ALONE": (1, (compiled, vector_recall)),
    "AT_ONCE": (8, (ragged,)),
    "BYTES_AT_ONCE": (64, (byte_runs,)),
    "CELLS": (64, (pair_scores, posting_recall, vector_recall)),
    "FLAGS": (64, (vector_recall,)),
    "MANY": (0, (digests,)),
    "MERGED_AFTER": (0, (recall_scope,)),
    "PAIRS": (64, (expansion_recall, recall_scope, turns)),
    "QUERIES_AT_ONCE": (2, (vector_recall,)),
    "ROWS_AT_ONCE": (8, (vector_recall,)),
    "SORTED": (0, (recall_selection,)),
    "TOGETHER": (2, (vector_recall,)),
}
"""The threshold of each of these paths, its value for small worlds, and the modules that read it."""

FROM_ARRAYS = ((vector_recall, "_best_exact"),)
COMPILED = (
    (compiled, "ThreadPoolExecutor"), (vector_recall, "_best_compiled"),
)  # fmt: skip
"""What these ways call, and no other: with compiled loops, or without."""


@contextmanager
def large_paths(*, loops: bool, reached: Counter[str]) -> Iterator[None]:
    """Works small worlds out as large ones, by compiled loops in threads or by arrays; counts what is `reached`."""
    cpus = pa.cpu_count()
    with pytest.MonkeyPatch.context() as patch:
        for name, (value, modules) in BOUNDS.items():
            for module in modules:
                patch.setattr(module, name, value)
        for module, name in (*FROM_ARRAYS, *COMPILED):
            patch.setattr(module, name, _counted(getattr(module, name), name, reached))
        compiled.load.cache_clear()
        pa.set_cpu_count(max(2, cpus))
        try:
            assert not loops or compiled.load() is not None
            yield
        finally:
            pa.set_cpu_count(cpus)
            compiled.load.cache_clear()


def _counted(function: Any, name: str, reached: Counter[str]) -> Any:
    @wraps(function)
    def counted(*arguments: Any, **named: Any) -> Any:
        reached[name] += 1
        return function(*arguments, **named)

    return counted


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
    assert not not_reached(reached, COMPILED if loops else FROM_ARRAYS)


@pytest.mark.parametrize("loops", WAYS)
def test_rows_outside_the_scope_change_nothing_on_the_ways_of_large_corpora(loops: bool) -> None:
    reached = Counter[str]()

    @settings(AT_SCALE)
    @given(WITH_VECTORS, st.lists(foreign_rows(), min_size=1, max_size=8))
    def holds(world: World, planted: list[Row]) -> None:
        with large_paths(loops=loops, reached=reached):
            check_non_interference(world, planted)

    holds()
    assert not not_reached(reached, COMPILED if loops else FROM_ARRAYS)
