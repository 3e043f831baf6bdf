"""The file lane: whole files of source code, by what their admissible rows say together."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import log, sqrt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_world import day, frame, line, names, passes, rules
from scoped_retrieval.nodes.text.text_analysis import analyze, query_tokens

PLAN = rules({"lanes": ["lexical", "file"], "kinds": ["code"]})
FILE_ONLY = rules({"lanes": ["file"]})


def row(name: str, path: str | None, text: str, **columns: Any) -> dict[str, Any]:
    return {"name": name, "path": path, "text": text, "section": name} | columns


def found(rows: list[dict[str, Any]], question: str, plan: Any = PLAN, **request: Any) -> list[str]:
    world = frame(rows)
    hits = line(world, [{"question": question, **request}], plan=plan)["hits"]
    return names(world, hits, lane="file", withheld=False)


def test_a_file_that_says_all_of_it_in_parts_beats_one_that_says_one_word_often() -> None:
    rows = [
        row("login", "src/session.py", "login"),
        row("token", "src/session.py", "token"),
        row("cache", "src/cache.py", "token token"),
        row("other", "src/other.py", "retry"),
    ]
    assert found(rows, "login token")[:2] == ["login", "token"] or found(rows, "login token")[:2] == ["token", "login"]
    assert set(found(rows, "login token")) == {"login", "token", "cache"}


def test_three_chunks_of_a_file_return_those_that_match_best() -> None:
    rows = [row(f"said {n}", "src/a.py", "token " * n + "retry " * (9 - n)) for n in range(6)]
    assert sorted(found([*rows, row("b", "src/b.py", "retry")], "token")) == ["said 3", "said 4", "said 5"]


@pytest.mark.parametrize(
    "columns", [{"document_type": "test"}, {"document_type": "config"}, {"generated": True}, {"path": None}, {"evidence_kind": "doc"}]
)  # fmt: skip
def test_what_is_no_source_never_returns(columns: dict[str, Any]) -> None:
    assert found([row("a", "src/a.py", "token"), row("b", "src/b.py", "token") | columns], "token") == ["a"]


def test_a_test_counts_in_how_rare_a_word_is() -> None:
    rows = [row("a", "src/a.py", "token"), row("b", "src/b.py", "login")]
    tests = [row(f"t{n}", f"tests/t{n}.py", "token", document_type="test") for n in range(5)]
    assert found(rows, "token login")[0] in ("a", "b")
    assert found([*rows, *tests], "token login") == ["b", "a"]


WORDS = ("session", "token", "cache", "create_user", "retry")


@st.composite
def _row(draw: st.DrawFn) -> dict[str, Any]:
    recorded = draw(st.integers(1, 28))
    return {
        "text": " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=8))),
        "path": draw(st.sampled_from([None, "src/a.py", "src/b.py", "src/c.py"])),
        "section": str(draw(st.integers(0, 10**6))),
        "evidence_kind": draw(st.sampled_from(["code", "code", "doc"])),
        "document_type": draw(st.sampled_from([None, None, "test"])),
        "recorded_time": day(recorded),
        "superseded_at": draw(st.one_of(st.none(), st.integers(recorded + 1, 30).map(day))),
        "withheld_by": draw(st.sampled_from([0, 0, 0, 11])),
        "foreign": draw(st.sampled_from([False, False, False, True])),
    }


ROWS = st.lists(_row(), min_size=1, max_size=14, unique_by=lambda one: one["section"])
QUESTION = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(ROWS, QUESTION, st.integers(2, 29).map(day))
def test_scores_equal_a_plain_reference(rows: list[dict[str, Any]], question: str, as_of: Any) -> None:
    """BM25 with k1 4 and b 0.6 over files, a file being the rows that pass; a term weighs the root of its count."""
    world = frame(rows)
    request = {"question": question, "as_of": as_of, "projects": ("shop",), "lane_k": 10}
    out = line(world, [request], plan=FILE_ONLY)["hits"].to_pylist()
    files: dict[Any, Counter[str]] = defaultdict(Counter)
    for at, one in enumerate(world["rows"]):
        if passes(world, request, at) and one["evidence_kind"] == "code" and one["path"]:
            files[one["path"], one["document_type"]].update(analyze(pa.array([one["text"]]), "code/1").to_pylist()[0])
    asked = Counter(query_tokens(pa.array([question])).to_pylist()[0])
    held = {term: sum(term in words for words in files.values()) for term in asked}
    idf = {t: log(1 + (len(files) - n + 0.5) / (n + 0.5)) * sqrt(asked[t]) for t, n in held.items() if n}
    mean = sum(w.total() for w in files.values()) / max(len(files), 1)
    expected = {}
    for (path, kind), words in files.items():
        half = 4 * (0.4 + 0.6 * (words.total() / mean if mean else 1))
        score = sum(weight * words[t] / (words[t] + half) for t, weight in idf.items())
        if score and kind is None:
            expected[path] = score / sum(idf.values())
    scored = {world["rows"][hit["row"]]["path"]: hit["score"] for hit in out if hit["lane"] == "file"}
    assert scored == pytest.approx(expected, abs=1e-6)
