"""Recall alone: the line's own lexical and semantic lanes over a frame, without planning, walls, hit tables or snapshots.

A `Case` says which rows each query may see and as of when; `lexical` and `dense` give what the lanes find. `make bench`
sets the peers beside them; as a program this module times the cases of design section 10.

Run: `python tests/bench/recall.py [--chunks N] [--queries N] [--corpus DIR]`. Prints queries per second of processor time.
What it does not show: planning, the walls, hit tables, snapshots; real text; more than one process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import synthetic
from scoped_retrieval.nodes.bm25 import Bm25
from scoped_retrieval.nodes.clocks import clocks
from scoped_retrieval.nodes.compiled import PAYS_FROM, kernels
from scoped_retrieval.nodes.compiled_recall import prepare, score
from scoped_retrieval.nodes.frames import VectorIndex
from scoped_retrieval.nodes.lane_recall import Terms, recall_terms
from scoped_retrieval.nodes.query_planning import query_terms
from scoped_retrieval.nodes.recall_scope import RecallTables, Scope
from scoped_retrieval.nodes.recall_selection import Found
from scoped_retrieval.nodes.tables import ADMISSIBLE, ANCHORS, QUERY_VECTORS, REACHABLE, SCOPE_GROUPS, SUB_QUERIES
from scoped_retrieval.nodes.vector_recall import recall_vectors
from scoped_retrieval.pipeline.corpus import Corpus

DAYS = timedelta(days=300)
"""How long the synthetic rows took to be recorded."""
LATE = synthetic.START + 2 * DAYS


@dataclass(frozen=True)
class Case:
    """What the queries of a batch may see: query `i` the frame rows `scopes[of[i]]` (ascending) as of `as_of[i]`."""

    name: str
    scopes: tuple[np.ndarray, ...]
    of: np.ndarray
    as_of: tuple[datetime, ...]


def cases(frame: Any, queries: int) -> Iterator[Case]:
    """Everything at one instant, and 1 %: an owner each, one owner, scattered, ten owners, a thousand instants."""
    size = frame.evidence.num_rows
    starts, ends = (frame.segments[name].to_numpy() for name in ("row_start", "row_end"))
    late, same = (LATE,) * queries, np.zeros(queries, dtype=np.int64)
    one = (np.arange(starts[-1], ends[-1]),)
    rng = np.random.default_rng(5)
    tenths = np.concatenate([np.arange(low, low + (high - low) // 10) for low, high in zip(starts, ends, strict=True)])
    instants = [LATE - DAYS - DAYS * n / 1000 * 0.7 for n in range(1000)]
    yield Case("whole corpus", (np.arange(size),), same, late)
    yield Case("an owner each", tuple(map(np.arange, starts, ends)), np.arange(queries) % len(starts), late)
    yield Case("one owner", one, same, late)
    yield Case("scattered", (np.sort(rng.choice(size, size // 100, replace=False)),), same, late)
    yield Case("ten owners", (tenths[: size // 100],), same, late)
    yield Case("1,000 as_of", one, same, tuple(instants[n] for n in rng.integers(0, 1000, queries)))


def recall_tables(frame: Any, case: Case, texts: Sequence[str], k: int) -> RecallTables:
    """The inputs of the lanes for a batch: one request with one sub-query per text."""
    count = len(texts)
    ids = pa.array([f"r{n:06d}" for n in range(count)])
    never = pa.nulls(count, pa.timestamp("us", "UTC"))
    contracts = pa.table(
        {
            "request_id": ids,
            "as_of": pa.array(case.as_of, pa.timestamp("us", "UTC")),
            "window_start": never,
            "window_end": never,
            "include_deleted": pa.array([False] * count),
            "withheld_k": pa.array([20] * count, pa.int32()),
        }
    )
    rows, lengths = _statistics(frame.row_index, case, clocks(contracts))
    group = np.repeat(np.arange(len(case.scopes)), [len(own) for own in case.scopes])
    none = pa.array([[]] * count, pa.list_(pa.string()))
    return RecallTables(
        contracts=contracts,
        row_groups=SCOPE_GROUPS.build(
            {"request_id": ids, "scope_group": case.of.astype(np.int32), "leader": np.zeros(count, dtype=bool)}
        ),
        reachable=REACHABLE.build(
            {
                "scope_group": group.astype(np.int32),
                "row": np.concatenate(case.scopes),
                "withheld_by": np.zeros(len(group), np.int32),
            }
        ),
        admissible=ADMISSIBLE.build(
            {
                "request_id": ids, "scope_group": case.of.astype(np.int32), "segments": none, "rows": rows,
                "total_length": lengths, "withheld": np.zeros(count, np.int64), "row_digest": [""] * count,
            }
        ),
        segments=frame.segments,
        evidence=frame.evidence,
        row_index=frame.row_index,
        sub_queries=SUB_QUERIES.build(
            {
                "request_id": ids, "sub_query_id": ["q1"] * count, "ordinal": np.ones(count, np.int32),
                "intent": ["find-code"] * count, "query_text": list(texts), "lanes": [["lexical", "semantic"]] * count,
                "sources": none, "kinds": none, "lane_k": np.full(count, k, np.int32),
                "min_authority": np.zeros(count, np.int32), "window_paths": none,
            }
        ),
    )  # fmt: skip


def _statistics(index: Any, case: Case, clock: Any) -> tuple[np.ndarray, np.ndarray]:
    """N and total length of what each query may see, as the first wall counts them."""
    rows, lengths = (np.zeros(len(case.of), dtype=np.int64) for _ in range(2))
    for number, own in enumerate(case.scopes):
        asked = np.flatnonzero(case.of == number)
        _, first, inverse = np.unique(clock.as_of[asked], return_index=True, return_inverse=True)
        open_ = clock.grid(index, asked[first], own)
        rows[asked] = np.count_nonzero(open_, axis=1)[inverse]
        lengths[asked] = (open_ @ index.length[own])[inverse]
    return rows, lengths


def terms_of(tables: RecallTables) -> pa.Table:
    """The index keys that the texts of a batch look up: a tokenizer's work, off the clock for every engine."""
    return query_terms(tables.sub_queries, ANCHORS.empty())


def lexical(frame: Any, tables: RecallTables, terms: pa.Table) -> Found:
    """The `k` best rows per query by BM25 under the statistics of its own scope."""
    return recall_terms(tables, terms, frame.postings, "lexical", Bm25())


def prepared(frame: Any, tables: RecallTables, terms: pa.Table) -> list[tuple[Scope, list[Any]]]:
    """What `lexical` works out once per scope, with compiled loops: the share of its time that stands in its own column."""
    loops = kernels(PAYS_FROM)
    if loops is None:
        raise SystemExit("Expected numba, got none - install scoped-retrieval[fast]")
    looked_up = Terms.of(tables, terms, ("text",))
    return [
        (scope, list(prepare(loops.postings, scope, frame.postings, looked_up.entries(scope), Bm25())))
        for scope in tables.scopes("lexical")
    ]


def scored(work: Sequence[tuple[Scope, list[Any]]]) -> Found:
    """What `lexical` finds, from what `prepared` gave."""
    loops = kernels(PAYS_FROM)
    assert loops is not None
    return Found.concat(
        [found for scope, parts in work for part in parts for found in score(loops.postings, scope, part)]
    )


def dense(tables: RecallTables, vectors: VectorIndex) -> Found:
    """The `k` best rows per query by cosine; query `i` has the vector `vectors.queries[i]`."""
    asked = tables.sub_queries.select(["request_id", "sub_query_id"])
    rows = np.arange(asked.num_rows, dtype=np.int32)
    names = {name: asked[name] for name in asked.column_names}
    return recall_vectors(tables, QUERY_VECTORS.build({**names, "vector_row": rows}), vectors)


def unit_vectors(rows: int, dimensions: int = 384, seed: int = 3) -> np.ndarray:
    """Random unit vectors in multiples of 2**-15, int16[rows, dimensions], around a few hundred centers as texts are."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(11).normal(size=(300, dimensions)).astype(np.float32)
    values = centers[rng.integers(0, len(centers), rows)] + rng.normal(size=(rows, dimensions)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return np.rint(values * 2**15).astype(np.int16)


def vector_index(frame: Any, queries: int, dimensions: int = 384) -> VectorIndex:
    """Vectors for every row of a frame and for some queries."""
    starts, ends = (frame.segments[name].to_numpy() for name in ("row_start", "row_end"))
    whole = unit_vectors(frame.evidence.num_rows, dimensions)
    parts = tuple(whole[low:high] for low, high in zip(starts, ends, strict=True))
    return VectorIndex("synthetic", parts, starts, unit_vectors(queries, dimensions, seed=4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--owners", type=int, default=100)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--corpus", type=Path, default=None, help="a corpus made by ten_thousand.build")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = options.corpus or Path(temporary) / "corpus"
        if not path.exists():
            from ten_thousand import build

            build(synthetic.corpus_rows(options.chunks, options.owners), path)
        frame = Corpus.open(path).frame()
        asked = synthetic.requests(frame.evidence.select(["owner_project", "section"]), options.queries)
        texts = [str(row["question"]) for row in asked]
        vectors = vector_index(frame, len(texts))
        for case in cases(frame, len(texts)):
            tables = recall_tables(frame, case, texts, options.k)
            terms = terms_of(tables)
            ready = prepared(frame, tables, terms)
            for lane, work in (
                ("prepared", lambda tables=tables, terms=terms: prepared(frame, tables, terms)),
                ("scored", lambda ready=ready: scored(ready)),
                ("lexical", lambda tables=tables, terms=terms: lexical(frame, tables, terms)),
                ("dense", lambda tables=tables: dense(tables, vectors)),
            ):
                print(f"{case.name:>14} {lane:8}", *timed(work, len(texts), options.rounds), flush=True)


def timed(work: Any, queries: int, rounds: int) -> tuple[str, str]:
    """Best queries per second of processor time and of the clock; the first round warms up."""
    best = [float("inf")] * 2
    work()
    for _ in range(rounds):
        spent, passed = time.process_time(), time.perf_counter()
        work()
        best = [min(best[0], time.process_time() - spent), min(best[1], time.perf_counter() - passed)]
    return f"{queries / best[0]:10,.0f} queries/s of processor time", f"{queries / best[1]:10,.0f} of the clock"


if __name__ == "__main__":
    main()
