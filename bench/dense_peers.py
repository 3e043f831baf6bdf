"""faiss and LanceDB as contestants over given vectors: the same float32 rows, inner product, exact, both cores, batches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from agreement import Ranked
from bench_world import Scope, World
from scoped_retrieval.pipeline.cores import cores

LANCE_ROWS = 1 << 15
"""Rows per batch when a table is written."""


class Faiss:
    """IndexFlatIP: exact; a scope is a selector of ids, a range where its rows are neighbors."""

    name = "faiss"
    settings = "IndexFlatIP, one search call per batch, OpenMP threads = cores; scope: IDSelectorRange or -Bitmap"

    def __init__(self, world: World, k: int) -> None:
        import faiss

        faiss.omp_set_num_threads(cores())
        self._faiss = faiss
        self.k = k
        self._index = faiss.IndexFlatIP(world.order.matrix.shape[1])
        self._index.add(world.order.matrix)

    def selector(self, scope: Scope, world: World) -> Any:
        """Search parameters for a scope; None = everything."""
        rows = np.flatnonzero(scope.rows(world.order))
        if len(rows) == world.order.evidence.num_rows:
            return None
        if rows[-1] - rows[0] + 1 == len(rows):
            chosen = self._faiss.IDSelectorRange(int(rows[0]), int(rows[-1]) + 1)
        else:
            chosen = self._faiss.IDSelectorBitmap(np.packbits(scope.rows(world.order), bitorder="little"))
        return self._faiss.SearchParameters(sel=chosen)

    def run(self, queries: np.ndarray, selected: Any) -> Any:
        """Scores and rows, [queries, k] each."""
        return self._index.search(queries, self.k, params=selected)

    def ranked(self, found: Any) -> Ranked:
        """As in every system."""
        return [(rows[rows >= 0], scores[rows >= 0]) for scores, rows in zip(*found, strict=True)]


class LanceVectors:
    """LanceDB without a vector index: exact; a scope is a prefilter over columns with a bitmap index."""

    name = "LanceDB"
    settings = "no vector index (exact), dot, one search call per batch; scope: prefilter, bitmap index on the columns"

    def __init__(self, world: World, k: int, folder: Path) -> None:
        self.k = k
        self._table = lance_table(world, folder)

    def run(self, queries: np.ndarray, where: str | None) -> pa.Table:
        """Row, distance and query of each hit."""
        asked = self._table.search(list(queries), vector_column_name="vector").distance_type("dot").limit(self.k)
        if where:
            asked = asked.where(where, prefilter=True)
        return asked.select(["row", "_distance"]).to_arrow()

    def ranked(self, found: pa.Table, queries: int) -> Ranked:
        """As in every system; LanceDB's distance is 1 - the product."""
        query = found["query_index"].to_numpy() if "query_index" in found.column_names else np.zeros(len(found), int)
        row, score = found["row"].to_numpy(), 1 - found["_distance"].to_numpy()
        chosen = (np.flatnonzero(query == number) for number in range(queries))
        ordered = (at[np.argsort(-score[at], kind="stable")] for at in chosen)
        return [(row[at], score[at]) for at in ordered]


def where_of(scope: Scope) -> str | None:
    """A scope as an SQL condition over `owner` and `source`."""
    if scope.owners is not None:
        return f"owner IN ({', '.join(repr(owner) for owner in scope.owners)})"
    return f"source = '{scope.source}'" if scope.source else None


def lance_table(world: World, folder: Path, *, texts: list[str] | None = None) -> Any:
    """The rows as a LanceDB table with bitmap indexes on owner and source, and the text column where it is given."""
    import lancedb

    shutil.rmtree(folder, ignore_errors=True)
    order = world.order
    columns: dict[str, Any] = {
        "row": pa.array(np.arange(order.evidence.num_rows)),
        "owner": order.evidence["owner_project"].cast(pa.string()),
        "source": order.evidence["source_id"].cast(pa.string()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(order.matrix.ravel()), order.matrix.shape[1]),
    }
    if texts is not None:
        columns["body"] = pa.array(texts)
    batches = pa.table(columns).to_batches(LANCE_ROWS)
    table = lancedb.connect(str(folder)).create_table("rows", pa.Table.from_batches(batches))
    for name in ("owner", "source"):
        table.create_scalar_index(name, index_type="BITMAP")
    return table
