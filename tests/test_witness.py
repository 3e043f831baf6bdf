"""The witness agrees with a kernel that counts right, and says so when a score is not what the rows give."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from recall_world import asked, day, frame, line
from scoped_retrieval.nodes.recall.bm25 import Bm25
from witness import witness_scores

ROWS = [
    {"name": "a", "text": "session token cache", "evidence_kind": "code"},
    {"name": "b", "text": "session cache cache retry"},
    {"name": "c", "text": "token of another kind", "superseded_at": day(5)},
    {"name": "d", "text": "session session", "project": "billing"},
    {"name": "e", "text": "session retry", "withheld_by": 11},
    {"name": "f", "text": "words of no interest"},
]
REQUESTS = [
    {"request_id": "r1", "question": "session token token", "as_of": day(20)},
    {"request_id": "r2", "question": "session retry", "as_of": day(3), "projects": ("shop", "billing")},
]


def _witness(change: Any = None) -> pa.Table:
    world = frame(ROWS)
    bm25 = Bm25()
    run = asked(world, REQUESTS) | line(world, REQUESTS, "hits", "sub_queries", bm25=bm25)
    if change is not None:
        run["hits"] = change(run["hits"])
    return witness_scores(SimpleNamespace(**world), run, bm25)


def test_the_witness_counts_the_same_scores() -> None:
    table = _witness()
    assert table.num_rows == 5
    assert all(table["agrees"].to_pylist())


def test_the_witness_notices_a_changed_score() -> None:
    table = _witness(
        lambda hits: hits.set_column(hits.column_names.index("score"), "score", pc.add(hits["score"], 1e-6))
    )
    assert not any(table["agrees"].to_pylist())
