"""Relevance feedback: what a request's best rows say of its others, by the statistics of A(r) alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from recall_world import Row, day, frame, line, passes, products_in_parts_of, rules, vectors
from scoped_retrieval.nodes import boundary_filtering
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.feedback import NEAREST, Matched, feedback
from scoped_retrieval.nodes.recall.pair_scores import bm25_reach
from scoped_retrieval.nodes.tables import RERANK_WEIGHTS, VERDICTS
from scoped_retrieval.nodes.vocabulary import FEEDBACK_TERMS as CLASSES

WORDS = ("session", "token", "cache", "retry", "role", "login", "queue", "deadlock", "fixture", "admin")
REQUESTS: list[Row] = [
    {"request_id": "a", "question": "session token", "projects": ("shop", "docs"), "as_of": day(30), "lane_k": 40},
    {"request_id": "b", "question": "session token", "projects": ("shop",), "as_of": day(12), "lane_k": 40},
    {"request_id": "c", "question": "cache absent", "projects": ("shop", "docs"), "as_of": day(30), "lane_k": 40},
    {"request_id": "d", "question": "absent", "projects": ("docs",), "as_of": day(20), "lane_k": 40},
]
PLAN = rules({}, {"kinds": ["doc"]}, {"lanes": ["lexical", "semantic"], "parts": ["question"]})


def rows(count: int = 200, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of two projects, recorded over a month; some withheld, some in no request's scope."""
    rng = np.random.default_rng(seed)
    return [
        {
            "text": " ".join(rng.choice(WORDS, int(rng.integers(1, 12)))),
            "project": "shop" if n % 3 else "docs",
            "path": f"docs/{n}.md",
            "evidence_kind": "code" if n % 7 == 0 else "doc",
            "recorded_time": day(int(rng.integers(1, 28))),
            "withheld_by": 11 if n % 13 == 0 else 0,
            "foreign": n % 11 == 0,
        }
        for n in range(count)
    ]


def weights(requests: pa.Array, value: float = 0.1, **others: float) -> pa.Table:
    """RERANK_WEIGHTS of some requests: the classes of feedback weigh `value`."""
    given = dict.fromkeys(RERANK_WEIGHTS.columns, 0.0) | dict.fromkeys(CLASSES, value) | others
    del given["request_id"]
    return RERANK_WEIGHTS.build(
        {"request_id": requests, **{name: [weight] * len(requests) for name, weight in given.items()}}
    )


def fed(
    world: dict[str, Any], requests: Sequence[Row] = REQUESTS, bm25: Bm25 | None = None, index: Any = None, **given: Any
) -> dict[str, Any]:
    """What feedback says of the admissible candidates of some requests; each cosine is 0, unless `lanes` are given."""
    bm25 = bm25 or Bm25()
    names = ("candidates", "lexical_recall", "recall_tables", "contracts")
    out = line(world, requests, *names, plan=PLAN, bm25=bm25)
    candidates, tables = out["candidates"], out["recall_tables"]
    verdicts = VERDICTS.build(
        {
            **{name: candidates[name] for name in ("request_id", "evidence_id", "pool_rank")},
            "admitted": pc.invert(candidates["withheld"]), "wall_disagreement": [False] * candidates.num_rows,
            "source_access": [True] * candidates.num_rows,
            **dict.fromkeys(("model_visibility", "standing"), [""] * candidates.num_rows),
        }
    )  # fmt: skip
    pool = boundary_filtering.pool(candidates, verdicts, tables.contracts, world["evidence"], world["placements"])
    reach = bm25_reach(out["lexical_recall"].weighed, tables)
    scores = {"bm25": pool["bm25_raw"], "bm25_reach": reach[pool["contract"].to_numpy()]}
    scores |= {"cosine": np.zeros(pool.num_rows)} | given.get("lanes", {})
    matched = Matched(*(np.asarray(scores[name]) for name in ("bm25", "bm25_reach", "cosine")))
    weighed = given.get("weights") or weights(tables.contracts["request_id"])
    found = feedback(
        pool, matched, weighed, world["evidence"], world["row_index"], tables, world["postings"], bm25, index
    )
    said = pa.table({"request_id": pool["request_id"], **found._asdict()})
    return {"pool": pool, "lanes": scores, "scores": said, "tables": tables}


def best_rows(found: dict[str, Any], request: str) -> list[int]:
    """The frame rows that a request takes feedback from, best first."""
    ranks = zip(
        found["scores"]["request_id"].to_pylist(), found["scores"]["feedback_rank"].to_pylist(), found["pool"]["row"].to_pylist(),
        strict=True,
    )  # fmt: skip
    chosen = sorted((rank, row) for name, rank, row in ranks if name == request and rank)
    assert [rank for rank, _ in chosen] == list(range(1, len(chosen) + 1))
    return [row for _, row in chosen]


@pytest.fixture(name="world", scope="module")
def world_fixture() -> dict[str, Any]:
    return frame(rows())


def test_the_rows_are_the_best_five_admissible_ones_by_words_then_by_id(world: dict[str, Any]) -> None:
    found = fed(world)
    for request in REQUESTS:
        pool = [
            (bm25 / reach if reach else 0.0, id_, row)
            for name, id_, row, bm25, reach in zip(
                *(found["pool"][name].to_pylist() for name in ("request_id", "evidence_id", "row")),
                *(np.asarray(found["lanes"][name]).tolist() for name in ("bm25", "bm25_reach")),
                strict=True,
            )
            if name == request["request_id"]
        ]
        wanted = [id_ for score, id_, _ in sorted(pool, key=lambda one: (-round(one[0] * 2**30), one[1]))[:5] if score]
        mine = best_rows(found, request["request_id"])
        assert world["evidence"]["evidence_id"].take(pa.array(mine, pa.int64())).to_pylist() == wanted
        assert all(passes(world, request, row) for row in mine)
    assert sum(len(best_rows(found, request["request_id"])) for request in REQUESTS) == 15  # none for the last one


def test_the_cosine_is_a_quarter_of_the_order() -> None:
    world = frame([{"text": f"word {n}", "path": None, "evidence_kind": "doc"} for n in range(3)])
    asked = [{"request_id": "r1", "question": "word", "lane_k": 5}]
    place = np.argsort(fed(world, asked)["pool"]["row"].to_numpy())
    lanes = {"bm25": np.array([0.5, 0.4, 0.0]), "bm25_reach": np.ones(3), "cosine": np.array([0.0, 0.36, 0.9])}
    of_pool = {name: values[np.argsort(place)] for name, values in lanes.items()}
    assert best_rows(fed(world, asked, lanes=of_pool), "r1") == [1, 0, 2]  # .375, .39, .225


def test_a_request_that_weighs_no_feedback_gets_none(world: dict[str, Any]) -> None:
    ids = pa.array([request["request_id"] for request in REQUESTS])
    found = fed(world, weights=weights(ids, 0.0))
    assert not any(pc.any(pc.not_equal(found["scores"][name], 0)).as_py() for name in (*CLASSES, "feedback_rank"))


def test_of_code_logs_and_turns_no_terms_are_taken() -> None:
    def shares(kind: str) -> list[float]:
        rows_ = [
            {"text": "token queue", "path": None, "evidence_kind": kind},
            {"text": "token", "path": None, "evidence_kind": kind},
        ]
        world = frame([*rows_, {"text": "other", "path": None, "evidence_kind": "doc"}])
        return fed(world, [{"request_id": "r1", "question": "token", "lane_k": 5}])["scores"][
            "lexical_feedback"
        ].to_pylist()

    assert any(shares("rule"))
    assert not any(any(shares(kind)) for kind in ("code", "test-log", "memory", "session-event"))


@pytest.mark.parametrize("cells", [8, 1 << 21, None])
def test_the_semantic_feedback_is_the_mean_cosine_with_the_best_three(
    cells: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    products_in_parts_of(cells, monkeypatch)
    world = frame(rows(60, seed=3))
    rng = np.random.default_rng(1)
    index = vectors(world, rng.normal(size=(60, 6)), rng.normal(size=(1, 6)))
    index = type(index)(index.profile, (index.parts[0], None), index.row_starts, index.queries)  # one project has none
    found = fed(world, index=index)
    vector = np.concatenate([index.parts[0], np.zeros((60 - len(index.parts[0]), 6), np.int16)]).astype(np.int64)
    best: dict[str, list[int]] = {}
    for request in REQUESTS:
        nearest = best_rows(found, request["request_id"])[:NEAREST]
        if encoded := [row for row in nearest if vector[row].any()]:
            best[request["request_id"]] = encoded
    wanted = [
        np.clip((vector[row] @ vector[best[name]].T).mean() / 2**30, 0.0, 1.0) if name in best else 0.0
        for name, row in zip(*(found["pool"][n].to_pylist() for n in ("request_id", "row")), strict=True)
    ]
    assert found["scores"]["semantic_feedback"].to_pylist() == pytest.approx(wanted, abs=2**-30)
    assert max(wanted) > 0
