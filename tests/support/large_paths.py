"""The code paths of large corpora and large batches, forced on small worlds: no result depends on the path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.blocks import byte_runs, passages
from scoped_retrieval.nodes.columns import digests, keys, ragged
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import (
    compiled_recall,
    expansion_recall,
    group_scores,
    lane_recall,
    recall_scope,
    recall_selection,
    scope_postings,
    score_bounds,
    vector_recall,
)
from scoped_retrieval.nodes.text import plain_keys, same_texts, text_analysis
from scoped_retrieval.nodes.walls import clocks, time_gates

BOUNDS: dict[str, tuple[int, tuple[ModuleType, ...]]] = {
    "A_HANDFUL": (0, (keys,)),
    "ALONE": (1, (compiled, vector_recall)),
    "AT_ONCE": (8, (ragged,)),
    "BYTES_AT_ONCE": (64, (byte_runs, passages, same_texts)),
    "CELLS": (64, (recall_scope, lane_recall, group_scores, vector_recall)),
    "FEW_STRINGS": (1, (ragged,)),
    "FLAGS": (64, (vector_recall,)),
    "LEAST": (0, (scope_postings,)),
    "LONG": (0, (score_bounds,)),
    "MANY": (0, (digests,)),
    "PAIRS": (64, (recall_scope, clocks, expansion_recall, time_gates)),
    "POSTINGS": (256, (compiled_recall,)),
    "QUERIES_AT_ONCE": (2, (vector_recall,)),
    "ROWS_AT_ONCE": (8, (vector_recall,)),
    "SORTED": (0, (recall_selection,)),
    "SLOTS": (0, (score_bounds,)),
    "TOGETHER": (2, (vector_recall,)),
    "_BINS": (2, (recall_selection,)),
}
"""The threshold of each of these paths, its value for small worlds, and the modules that read it."""

INDEXING = ((plain_keys, "_suffixes"),)
ANSWERING = ((text_analysis, "_plain_terms"),)
FROM_ARRAYS = ((vector_recall, "_best_exact"),)
COMPILED = (
    (compiled, "ThreadPoolExecutor"), (compiled_recall, "score"), (scope_postings, "drawn_together"),
    (vector_recall, "_best_compiled"),
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
        for module, name in (*INDEXING, *ANSWERING, *FROM_ARRAYS, *COMPILED):
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
