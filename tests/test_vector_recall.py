"""The nearest rows, by every way there is, against the plain product: same rows, same order, to the last unit."""

from __future__ import annotations

import numpy as np
import pytest
from recall_world import day, frame, line, passes, rules, vectors
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import vector_recall
from scoped_retrieval.nodes.recall.vector_recall import AskedVectors
from scoped_retrieval.nodes.tables import QUERY_VECTORS

ROWS = [
    {"path": f"{n}.py", "recorded_time": day(1 + n % 20), "withheld_by": 11 * (n % 5 == 0)} for n in range(200)
]  # fmt: skip
ASKED = {"question": "x", "projects": ("shop",)}
REQUESTS = [ASKED | {"request_id": f"r{n:02}", "as_of": day(9 + n), "lane_k": 1 + 9 * n} for n in range(12)]


@pytest.fixture(params=["arrays", "compiled"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One way to find the best rows, over blocks of 64 rows and few pairs at once, and products in blocks of 2 by 5."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="needs the extra fast")
    loaded = compiled.kernels(compiled.PAYS_FROM) if request.param == "compiled" else None
    monkeypatch.setattr(vector_recall, "kernels", lambda visits: loaded)
    for name, value in {"ROWS_AT_ONCE": 64, "CELLS": 1000, "QUERIES_AT_ONCE": 2, "ALONE": 2 * 5 * 384}.items():
        monkeypatch.setattr(vector_recall, name, value)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dimensions", [1, 7, 384])
def test_the_nearest_rows_are_those_of_the_plain_product(dimensions: int, tied: bool) -> None:
    rng, world = np.random.default_rng(dimensions), frame(ROWS)
    values = rng.normal(size=(len(ROWS), dimensions))
    if tied:  # of one vector, with some components changed by a few units of the last place
        values = values[:1] / np.linalg.norm(values[0]) + rng.integers(-2, 3, values.shape) * 2.0**-15
    index = vectors(world, values, np.concatenate([values[:1], rng.normal(size=(2, dimensions))]))
    named = [
        {"request_id": each["request_id"], "sub_query_id": "q1", "vector_row": n % 3} for n, each in enumerate(REQUESTS)
    ]
    asked = AskedVectors(index, QUERY_VECTORS.from_rows(named), {})
    plan = rules({"lanes": ["semantic"], "lane_k": 100})
    hits = line(world, REQUESTS, "semantic_hits", plan=plan, query_vectors=asked)["semantic_hits"].to_pylist()
    rows, rank = np.concatenate(index.parts).astype(np.int64), world["row_index"].id_rank
    for n, request in enumerate(REQUESTS):
        products = (rows @ index.queries[n % 3].astype(np.int64)).tolist()
        near = [row for row, product in enumerate(products) if product > 0 and passes(world, request, row)]
        best = sorted(near, key=lambda row: (-products[row], rank[row]))[: request["lane_k"]]
        found = [(hit["row"], hit["score"]) for hit in hits if hit["request_id"] == request["request_id"]]
        assert found == [(row, products[row] * 2.0**-30) for row in best]
