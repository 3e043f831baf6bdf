"""BM25 of any small world equals a plain loop over its admissible rows to the last bit: by arrays, by the compiled loop, and
from merged lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_world import day, frame, line, passes, rules
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import posting_recall, recall_scope
from scoped_retrieval.nodes.text.text_analysis import terms_in, tokens_of

WORDS = ("session", "token", "cache", "create_user", "retry", "login")


@pytest.fixture(params=["arrays", "compiled", "merged"], scope="module", autouse=True)
def _ways(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "compiled":
        pytest.importorskip("numba", reason="needs the extra fast")
    loaded = compiled.load() if request.param == "compiled" else None
    with pytest.MonkeyPatch.context() as chosen:
        chosen.setattr(posting_recall, "kernels", lambda visits: loaded)
        if request.param == "merged":
            chosen.setattr(recall_scope, "MERGED_AFTER", 0)
        yield


@st.composite
def _row(draw: st.DrawFn) -> dict[str, Any]:
    recorded = draw(st.integers(1, 28))
    ended = draw(st.one_of(st.none(), st.integers(recorded + 1, 30)))
    return {
        "text": " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=8))),
        "project": draw(st.sampled_from(["shop", "billing", "docs"])),
        "path": draw(st.sampled_from([None, "src/a.py", "src/b.py"])),
        "section": str(draw(st.integers(0, 10**6))),
        "line_start": draw(st.one_of(st.none(), st.integers(1, 50))),
        "symbols": draw(st.lists(st.sampled_from(["create_user", "retry"]), max_size=2)),
        "calls": draw(st.lists(st.sampled_from(["create_user", "load"]), max_size=2)),
        "evidence_kind": draw(st.sampled_from(["code", "doc"])),
        "authority": draw(st.sampled_from([None, 0, 1, 3])),
        "conflict_set": draw(st.sampled_from([None, None, "c1"])),
        "event_time": draw(st.one_of(st.none(), st.integers(1, 28).map(day))),
        "recorded_time": day(recorded),
        "superseded_at": None if ended is None else day(ended),
        "withheld_by": draw(st.sampled_from([0, 0, 0, 11, 13])),
        "foreign": draw(st.sampled_from([False, False, False, True])),
    }


ROWS = st.lists(_row(), min_size=1, max_size=14, unique_by=lambda row: row["section"])
ASKED = st.lists(
    st.fixed_dictionaries(
        {
            "question": st.lists(st.sampled_from((*WORDS, "`create_user`", "unknown")), max_size=8).map(" ".join),
            "projects": st.sampled_from([("shop",), ("shop", "docs"), ("billing",)]),
            "as_of": st.integers(2, 29).map(day),
            "lane_k": st.integers(1, 4),
            "pool_k": st.integers(1, 6),
            "withheld_k": st.integers(0, 2),
            "merge_policy": st.sampled_from(["interleave-by-relevance", "authority-first", "evidence-balanced"]),
        }
    ),
    min_size=1,
    max_size=5,
)


def _numbered(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"request_id": f"r{n}", **request} for n, request in enumerate(requests)]


@settings(max_examples=20, deadline=None)
@given(ROWS, ASKED)
def test_lexical_scores_equal_a_plain_reference_to_the_last_bit(rows: list, asked: list) -> None:
    world, requests = frame(rows), _numbered(asked)
    out = line(world, [r | {"lane_k": 99} for r in requests], "lexical_hits", plan=rules({}))["lexical_hits"]
    found = {(h["request_id"], h["row"]): h["score"] for h in out.to_pylist() if not h["withheld"]}
    assert found == {key: score for request in requests for key, score in _reference(world, request).items()}


def _reference(world: dict[str, Any], request: dict[str, Any], k1: float = 1.2, b: float = 0.75) -> dict:
    """BM25 (lucene) of the admissible rows, row by row, each contribution rounded to 2**-30 and added up as integers."""
    own = [at for at in range(len(world["rows"])) if passes(world, request, at)]
    terms = {at: Counter(terms_in(world["rows"][at]["text"], "code/2")) for at in own}
    mean = sum(sum(counts.values()) for counts in terms.values()) / max(len(own), 1)
    scores: dict[tuple[str, int], int] = {}
    for term, weight in Counter(tokens_of(request["question"])).items():
        holding = [at for at in own if terms[at][term]]
        idf = weight * np.log(1 + (len(own) - len(holding) + 0.5) / (len(holding) + 0.5))
        for at in holding:
            tf, length = terms[at][term], sum(terms[at].values())
            part = idf * (tf / (tf + k1 * ((1.0 - b) + b * (length / mean))))
            key = (request["request_id"], at)
            scores[key] = scores.get(key, 0) + round(part * 2**30)
    return {key: score * 2.0**-30 for key, score in scores.items()}
