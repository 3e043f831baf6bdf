"""A retriever as its tests open it, what they ask, and what a run says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scoped_retrieval.nodes.lanes import LANE_NAMES
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
LEXICAL = tuple(lane for lane in LANE_NAMES if lane != "semantic")


def opened(corpus: Corpus, **how: Any) -> Retriever:
    """A retriever of `ana` at noon, with all lanes but the semantic one."""
    return Retriever.open(corpus, **{"principal": "ana", "lanes": LEXICAL, "clock": lambda: NOON} | how)


def batch(count: int) -> list[dict[str, Any]]:
    """Requests of all purposes, at different times, with different budgets."""
    purposes = ("fix-test", "explain-code", "review-risk", "answer-question")
    return [
        {
            "request_id": f"r{n:03d}",
            "project": "shop",
            "purpose": purposes[n % 4],
            "question": f"what does role_{n} return by default?",
            "as_of": f"2025-05-{20 + n % 10}T00:00:00Z",
            "budget": {"max_tokens": 300 + 50 * n},
        }
        for n in range(count)
    ]


def digests(store: Runs, run_id: str) -> dict[str, str]:
    """The snapshot digest of each request of a run."""
    snapshots = store.open(run_id).snapshots
    return dict(zip(snapshots["request_id"].to_pylist(), snapshots["snapshot_digest"].to_pylist(), strict=True))
