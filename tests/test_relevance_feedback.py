"""Relevance feedback: what a request's best rows say of its others, by the statistics of A(r) alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import Stemmer
from recall_world import Row, day, frame, line, passes, products_in_parts_of, rules, vectors
from scoped_retrieval.nodes import relevance_feedback
from scoped_retrieval.nodes.columns.keys import positions
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import posting_recall
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.pair_scores import bm25_reach
from scoped_retrieval.nodes.recall.recall_entries import TermWeights
from scoped_retrieval.nodes.relevance_feedback import feedback_rows, feedback_scores, feedback_terms
from scoped_retrieval.nodes.tables import (
    EVIDENCE,
    FEEDBACK_ROWS,
    FEEDBACK_SCORES,
    FEEDBACK_TERMS,
    LANE_SCORES,
    RERANK_WEIGHTS,
)
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
    """The tables of feedback over the admissible candidates of some requests; each cosine is 0."""
    bm25 = bm25 or Bm25()
    names = ("candidates", "lexical_recall", "recall_tables")
    out = line(world, requests, *names, plan=PLAN, bm25=bm25, vectors=index)
    pool, tables = out["candidates"].filter(pc.invert(out["candidates"]["withheld"])), out["recall_tables"]
    owner = positions(pool["request_id"], tables.contracts["request_id"])
    reach = bm25_reach(TermWeights.concat(out["lexical_recall"].weights), tables, bm25)
    scores = {"bm25": pool["bm25_raw"], "bm25_reach": reach[owner], "cosine": np.zeros(pool.num_rows)}
    lanes = LANE_SCORES.build({name: pool[name] for name in ("request_id", "evidence_id", "pool_rank")} | scores)
    weighed = given.get("weights") or weights(tables.contracts["request_id"])
    chosen = FEEDBACK_ROWS.check(feedback_rows(pool, lanes, weighed, world["row_index"]))
    terms = FEEDBACK_TERMS.check(feedback_terms(chosen, world["evidence"]))
    found = feedback_scores(pool, chosen, terms, lanes, tables, world["postings"], bm25, index)
    return {
        "pool": pool, "lanes": lanes, "rows": chosen, "terms": terms, "scores": FEEDBACK_SCORES.check(found), "tables": tables,
    }  # fmt: skip


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
                *(found["lanes"][name].to_pylist() for name in ("bm25", "bm25_reach")),
                strict=True,
            )
            if name == request["request_id"]
        ]
        wanted = [id_ for score, id_, _ in sorted(pool, key=lambda one: (-round(one[0] * 2**30), one[1]))[:5] if score]
        mine = found["rows"].filter(pc.equal(found["rows"]["request_id"], request["request_id"]))
        assert mine["evidence_id"].to_pylist() == wanted
        assert mine["rank"].to_pylist() == list(range(1, len(wanted) + 1))
        assert all(passes(world, request, row) for row in mine["row"].to_pylist())
    assert len(found["rows"]) == 15  # no row has a word of the last request


def test_the_cosine_is_a_quarter_of_the_order() -> None:
    world = frame([{"text": f"word {n}", "path": None, "evidence_kind": "doc"} for n in range(3)])
    out = line(world, [{"question": "word", "lane_k": 5}], "candidates", "recall_tables")
    pool = out["candidates"].take(pc.sort_indices(out["candidates"]["row"]))
    keys = {name: pool[name] for name in ("request_id", "evidence_id", "pool_rank")}
    lanes = LANE_SCORES.build(
        {**keys, "bm25": [0.5, 0.4, 0.0], "bm25_reach": [1.0] * 3, "cosine": [0.0, 0.36, 0.9]}
    )  # .375, .39, .225
    found = feedback_rows(pool, lanes, weights(pa.array(["r1"])), world["row_index"])
    assert found["row"].to_pylist() == [1, 0, 2]
    assert found["score"].to_pylist() == pytest.approx([0.39, 0.375, 0.225])


def test_a_request_that_weighs_no_feedback_gets_none(world: dict[str, Any]) -> None:
    ids = pa.array([request["request_id"] for request in REQUESTS])
    found = fed(world, weights=weights(ids, 0.0))
    assert found["rows"].num_rows == found["terms"].num_rows == 0
    assert not any(pc.any(pc.not_equal(found["scores"][name], 0)).as_py() for name in ("lexical", "semantic", "rank"))


def _said(*texts: tuple[str, str, float]) -> dict[str, float]:
    """The terms and weights of rows of these kinds, texts and scores."""
    evidence = EVIDENCE.from_rows(
        [
            {
                "evidence_id": f"e{n}", "source_id": "s", "origin_class": "workspace", "evidence_kind": kind, "owner_project": "p",
                "generated": False, "text": text, "text_sha256": "", "length": 1,
            }
            for n, (kind, text, _) in enumerate(texts)
        ]
    )  # fmt: skip
    chosen = FEEDBACK_ROWS.from_rows(
        [
            {"request_id": "r", "evidence_id": f"e{n}", "row": n, "rank": n + 1, "score": score}
            for n, (_, _, score) in enumerate(texts)
        ]
    )
    found = FEEDBACK_TERMS.check(feedback_terms(chosen, evidence))
    return dict(zip(found["term"].to_pylist(), found["weight"].to_pylist(), strict=True))


def test_of_code_logs_and_turns_no_terms_are_taken() -> None:
    others = (
        ("code", "return", 0.9),
        ("test-log", "error", 0.8),
        ("memory", "queue", 0.7),
        ("session-event", "role", 0.7),
    )
    assert set(_said(*others, ("rule", "the token", 0.1))) == {"token"}
    assert _said(("code", "return self", 0.9)) == {}


@pytest.mark.parametrize("loops", [False, True])
def test_the_share_is_bm25_of_the_terms_over_what_they_could_give(
    world: dict[str, Any], loops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against the scores that the lane's own weights give for these terms as a question."""
    if loops:
        pytest.importorskip("numba", reason="needs the extra fast")
        compiled.load()
        monkeypatch.setattr(posting_recall, "CELLS", 1)
    bm25 = Bm25()
    found = fed(world, bm25=bm25)
    for request in REQUESTS[:3]:
        mine = found["terms"].filter(pc.equal(found["terms"]["request_id"], request["request_id"]))
        counts = dict(zip(mine["term"].to_pylist(), mine["weight"].to_pylist(), strict=True))
        score, reach = written_out(world, request, counts, bm25)
        own = np.asarray(pc.equal(found["scores"]["request_id"], request["request_id"]))
        share = found["scores"]["lexical"].to_numpy()[own]
        wanted = [np.clip(score[row] / reach, 0, 1) for row in found["pool"]["row"].to_numpy()[own].tolist()]
        assert share.tolist() == pytest.approx(wanted, abs=1e-8)
        assert share.max() > 0


def written_out(world: dict[str, Any], request: Row, counts: dict[str, float], bm25: Bm25) -> tuple[np.ndarray, float]:
    """BM25 of every row under the statistics of the rows that pass, by counting words, and its reach."""
    texts = [Counter(row["text"].split()) for row in world["rows"]]
    stems = [Counter({stem_of(word): n for word, n in text.items()}) for text in texts]
    open_ = [at for at in range(len(texts)) if passes(world, request, at)]
    length = np.array(world["evidence"]["length"].to_pylist())
    held = {term: sum(term in stems[at] for at in open_) for term in counts}
    known = [term for term in counts if held[term]]
    rows_, mean = np.array(len(open_)), length[open_].mean()
    score, reach = np.zeros(len(texts)), 0.0
    for term in known:
        idf = counts[term] * bm25.idf(np.array([held[term]]), rows_)[0]
        reach += idf
        frequency = np.array([stem[term] for stem in stems])
        part = idf * bm25.saturation(frequency.astype(np.int32), length, np.array([mean]))
        score += np.where(frequency > 0, part, 0.0)
    return score, reach


def stem_of(word: str) -> str:
    """A word as the index has it."""
    return Stemmer.Stemmer("english").stemWord(word)


def test_alone_is_as_together(world: dict[str, Any]) -> None:
    together = fed(world)
    for request in REQUESTS:
        alone = fed(world, [request])
        for name in ("rows", "terms", "scores"):
            mine = together[name].filter(pc.equal(together[name]["request_id"], request["request_id"]))
            assert mine.to_pylist() == alone[name].to_pylist(), (name, request["request_id"])


def test_rows_outside_the_scope_have_no_part_in_it() -> None:
    """Withheld, foreign and future rows come and go: scores of the others stay."""
    every = rows(150, seed=2)
    inside = [row for row in every if not row["withheld_by"] and not row["foreign"] and row["recorded_time"] <= day(12)]
    requests = [request | {"as_of": day(12)} for request in REQUESTS]
    found = [fed(frame(given), requests) for given in (every, inside)]
    assert 0 < len(inside) < len(every)
    for name, columns in (
        ("rows", ["evidence_id", "rank", "score"]),
        ("terms", ["term", "weight"]),
        ("scores", ["evidence_id", "lexical", "rank"]),
    ):
        one, other = (tables[name].select(["request_id", *columns]).to_pylist() for tables in found)
        assert one == other, name


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
    for row in found["rows"].to_pylist():
        if row["rank"] <= relevance_feedback.NEAREST and vector[row["row"]].any():
            best.setdefault(row["request_id"], []).append(row["row"])
    wanted = [
        np.clip((vector[row] @ vector[best[name]].T).mean() / 2**30, 0.0, 1.0) if name in best else 0.0
        for name, row in zip(*(found["pool"][n].to_pylist() for n in ("request_id", "row")), strict=True)
    ]
    assert found["scores"]["semantic"].to_pylist() == pytest.approx(wanted, abs=2**-30)
    assert max(wanted) > 0
