"""The nearest rows, by every way there is, against the plain product: same rows, same order, to the last unit."""

from __future__ import annotations

import numpy as np
import pytest
from scoped_retrieval.nodes.frames import RowIndex, VectorIndex
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import vector_recall

WAYS = ("exact", "compiled")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One way to find the best rows, over blocks of 64 rows and few pairs at once, and products in blocks of 2 by 5."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="needs the extra fast")
    loaded = compiled.kernels(compiled.PAYS_FROM) if request.param == "compiled" else None
    monkeypatch.setattr(vector_recall, "kernels", lambda visits: loaded)
    monkeypatch.setattr(vector_recall, "ROWS_AT_ONCE", 64)
    monkeypatch.setattr(vector_recall, "CELLS", 1000)
    monkeypatch.setattr(vector_recall, "QUERIES_AT_ONCE", 2)
    monkeypatch.setattr(vector_recall, "ALONE", 2 * 5 * 384)
    return request.param


def _unit(values: np.ndarray) -> np.ndarray:
    return np.rint(values / np.linalg.norm(values, axis=1, keepdims=True) * 2**15).astype(np.int16)


def _random(rng: np.random.Generator, rows: int) -> np.ndarray:
    return _unit(rng.normal(size=(rows, 384)))


PERIODIC = _unit(np.tile(np.random.default_rng(2).normal(size=(1, 48)), 8))
"""A query that says the same eight times over."""


def _shuffled(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Eighths of one vector in any order: `PERIODIC` has equal products with them, which float32 rounds each its own way.

    A component that weighs little differs by a few, so that the order is not that of the ids alone.
    """
    near = PERIODIC.astype(np.float64) + np.random.default_rng(1).normal(size=(1, 384)) * 1500
    eighths = np.argsort(rng.random((rows, 8)), axis=1)
    found = _unit(near).reshape(8, 48)[eighths].reshape(rows, 384)
    found[:, np.argmin(np.abs(PERIODIC[0]))] += rng.integers(-3, 4, rows).astype(np.int16)
    return found


def _near_ties(rng: np.random.Generator, rows: int) -> np.ndarray:
    """One vector with a component or two changed by one: float32 cannot tell their products apart."""
    base = np.repeat(_random(np.random.default_rng(1), 1), rows, axis=0)
    base[np.arange(rows), rng.integers(0, 384, rows)] += rng.integers(-1, 2, rows).astype(np.int16)
    base[np.arange(rows), rng.integers(0, 384, rows)] += rng.integers(-1, 2, rows).astype(np.int16)
    return base


def _away(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Mostly opposite to every query, a few at right angles, zeros among them."""
    found = -np.abs(_random(rng, rows))
    found[::7] = 0
    found[1::50] *= -1
    return found


def _index(rng: np.random.Generator, rows: int) -> RowIndex:
    none = np.zeros(rows, dtype=np.int64)
    return RowIndex(rng.permutation(rows), none, none, none, none, np.arange(rows + 1), none, none, none)


def _plain(index: RowIndex, rows: np.ndarray, query: np.ndarray, k: int, allowed: np.ndarray) -> list[tuple[int, int]]:
    """(row, product) of the best `k`, by Python's own whole numbers and sort."""
    product = rows.astype(np.int64) @ query.astype(np.int64)
    cells = [(int(p), int(index.id_rank[row]), row) for row, p in enumerate(product) if p > 0 and allowed[row]]
    return [(row, p) for p, _, row in sorted(cells, key=lambda cell: (-cell[0], cell[1]))[:k]]


@pytest.mark.parametrize("make", [_near_ties, _shuffled, _away])
@pytest.mark.parametrize(("rows", "k"), [(63, 100), (1500, 100)])
@pytest.mark.parametrize("masked", [False, True])
def test_the_nearest_rows_are_those_of_the_plain_product(way: str, make, rows: int, k: int, masked: bool) -> None:
    rng = np.random.default_rng([rows, k])
    matrix, index = make(rng, rows), _index(rng, rows)
    queries = np.concatenate([_near_ties(rng, 3), _random(rng, 3), np.abs(_random(rng, 1)), PERIODIC])
    masks = rng.random((3, rows)) < [[0.9], [0.5], [0.0]]
    of, mask, many = rng.integers(0, len(queries), 12), rng.integers(0, 3, 12), rng.integers(1, k + 1, 12)
    cut = rows // 3
    vectors = VectorIndex("test", (matrix[:cut], matrix[cut:]), np.array([0, cut]), queries)
    asked = vector_recall._Asked(
        queries, of, np.minimum(many, rows), np.arange(rows), masks if masked else None, mask
    )  # fmt: skip
    sub, row, product = vector_recall._best(index, vectors, asked)
    for number in range(12):
        allowed = masks[mask[number]] if masked else np.ones(rows, dtype=bool)
        own = sub == number
        wanted = _plain(index, matrix, queries[of[number]], int(many[number]), allowed)
        assert list(zip(row[own].tolist(), product[own].tolist(), strict=True)) == wanted


@pytest.mark.parametrize("dimensions", [1, 7, 384])
def test_any_number_of_dimensions_and_of_equal_queries(way: str, dimensions: int) -> None:
    """100 rows, 30 sub-queries of three vectors: more than a tile takes, and fewer."""
    rng = np.random.default_rng(5)
    matrix, index = _unit(rng.normal(size=(100, dimensions))) // 2, _index(rng, 100)
    queries = _unit(rng.normal(size=(3, dimensions))) // 2
    of, every = np.arange(30) % 3, np.ones(100, dtype=bool)
    vectors = VectorIndex("test", (matrix,), np.array([0]), queries)
    asked = vector_recall._Asked(queries, of, np.full(30, 10), np.arange(100), None, np.zeros(30, np.int64))
    sub, row, product = vector_recall._best(index, vectors, asked)
    for number in range(30):
        own = sub == number
        wanted = _plain(index, matrix, queries[of[number]], 10, every)
        assert list(zip(row[own].tolist(), product[own].tolist(), strict=True)) == wanted
