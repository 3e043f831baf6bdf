"""Planning: what a request names, which sub-queries follow from it, and which keys they look up."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from recall_world import LANES, day, frame, line, rules
from scoped_retrieval.nodes.tables import SESSION_TEXTS
from scoped_retrieval.nodes.text.anchor_patterns import (
    anchors_in,
)

WORLD = frame([{"name": "a", "text": "session"}])


def _found(text: str) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for found in anchors_in(pa.array([text])):
        values.setdefault(found.kind, set()).add(found.value)
    return values


def _plan(*plan: dict[str, Any], **request: Any) -> list[dict[str, Any]]:
    return line(WORLD, [request], "sub_queries", plan=rules(*plan))["sub_queries"].to_pylist()


# --- anchors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("why does `load` fail", "identifier", {"load"}),
        ("MAX_RETRIES of app.config.load, __init__", "identifier", {"MAX_RETRIES", "app.config.load", "__init__"}),
        ("see src/auth/session.ts:12 and ./lib/a.py, or README.md.", "path", {"src/auth/session.ts", "lib/a.py", "README.md"}),
        ("tests/test_x.py::TestA::test_b[1-2] failed", "test", {"tests/test_x.py::TestA::test_b[1-2]", "test_b"}),
        ("ValueError: bad thing\nnext", "error", {"ValueError: bad thing"}),
        ("DEL-12345, mem_ab-1, 01ARZ3NDEKTSV4RRFFQ69G5FAV", "id", {"DEL-12345", "mem_ab-1", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
    ],
)  # fmt: skip
def test_anchors_are_found_in_prose(text: str, kind: str, values: set[str]) -> None:
    assert _found(text)[kind] == values


@pytest.mark.parametrize(
    ("trace", "path", "name"),
    [
        ('  File "src/app.py", line 10, in main\n    x()', "src/app.py", "main"),
        ("    at async Session.create (src/auth/session.ts:10:5)", "src/auth/session.ts", "Session.create"),
        ("  at com.shop.User.get(User.java:10)", "User.java", "com.shop.User.get"),
        ("main.(*Server).Run(0x1)\n\t/go/src/main.go:12 +0x1", "/go/src/main.go", "Run"),
    ],
)
def test_stack_frames_give_their_file_and_function(trace: str, path: str, name: str) -> None:
    found = _found(trace)
    assert path in found["path"]
    assert name in found["identifier"]


@pytest.mark.parametrize("text", ["", "no anchors here", "e.g. this and/or that", "https://example.com/a/b.html"])
def test_prose_and_addresses_are_no_anchors(text: str) -> None:
    assert _found(text) == {}


def test_a_text_cannot_forge_a_match_with_control_characters() -> None:
    assert _found("plain \x1eword\x1f text") == {}


def test_a_declared_anchor_weighs_more_than_one_found_in_prose() -> None:
    request = {"question": "why does parse_user fail in `load_all`?", "anchor_symbols": ["parse_user"]}
    out = line(WORLD, [request], "anchors")["anchors"].to_pylist()
    assert [(a["value"], a["origin"], a["weight"]) for a in out] == [
        ("load_all", "question", 0.5),
        ("parse_user", "anchor_symbols", 1.0),
    ]


def test_every_declared_field_is_an_anchor_even_if_no_pattern_matches() -> None:
    request = {"failing_test": "rejects guests", "error_text": "boom\nmore", "current_files": ["./Makefile"]}
    out = line(WORLD, [request], "anchors")["anchors"].to_pylist()
    assert [(a["kind"], a["value"]) for a in out] == [
        ("error", "boom"),
        ("path", "Makefile"),
        ("test", "rejects guests"),
    ]


# --- what the session observed ---------------------------------------------------------------------------------------

OBSERVED = [
    {"request_id": "r1", "rank": 1, "text": "src/fourth.py printed ValueError: bad"},
    {"request_id": "r1", "rank": 2, "text": "ran `second` and `named`"},
]


def _observed(part: str, **request: Any) -> dict[str, list[dict[str, Any]]]:
    events = SESSION_TEXTS.from_rows(OBSERVED)
    made = line(WORLD, [request], "sub_queries", "anchors", plan=rules({"parts": [part]}), session_texts=events)
    return {name: made[name].to_pylist() for name in ("sub_queries", "anchors")}


def test_what_a_session_observed_is_searched_for_where_a_rule_says_so() -> None:
    made = _observed("session", question="why does `named` fail?")
    assert [row["query_text"] for row in made["sub_queries"]] == ["ValueError: bad ValueError second src/fourth.py"]
    weights = {row["value"]: (row["origin"], row["weight"]) for row in made["anchors"]}
    assert weights["second"] == ("session_events", 0.25)
    assert weights["named"] == ("question", 0.5)  # the more trusted origin stays


@pytest.mark.parametrize("part", ["symbols", "files", "error", "stack"])
def test_what_a_session_observed_stands_in_no_part_but_its_own(part: str) -> None:
    assert _observed(part, question="why?")["sub_queries"] == []


def test_required_evidence_plans_its_rule_without_anchors() -> None:
    plan = ({"parts": ["error"], "requires": ["test-log"]}, {"parts": ["stack"], "requires": ["verified-memory"]})
    assert _plan(*plan, question="why?") == []
    planned = _plan(*plan, question="why?", required_evidence=["test-log"])
    assert [(q["sub_query_id"], q["query_text"]) for q in planned] == [("q1", "")]


def test_the_query_text_is_made_of_the_parts_the_rule_names() -> None:
    request = {
        "question": "why does createUser fail?",
        "context_summary": "we spoke of roles",
        "failing_test": "auth.test.ts",
        "error_text": "expected 401",
        "stack_trace": "at build (src/auth/role.ts:3:1)",
        "current_files": ["src/a.ts"],
        "anchor_symbols": ["Role"],
        "state": '{"step": "bisecting"}',
    }
    texts = {part: _plan({"parts": [part]}, **request)[0]["query_text"] for part in (
        "question", "context", "failing_test", "error", "stack", "files", "symbols", "state"
    )}  # fmt: skip
    assert texts == {
        "question": "why does createUser fail?",
        "context": "we spoke of roles",
        "failing_test": "auth.test.ts",
        "error": "expected 401",
        "stack": "build src/auth/role.ts",
        "files": "auth.test.ts src/a.ts",
        "symbols": "Role",  # the question names createUser
        "state": "bisecting",
    }
    both = _plan({"parts": ["failing_test", "question"]}, **request)[0]["query_text"]
    assert both == "why does createUser fail?\nauth.test.ts"


def test_one_goal_gives_several_queries_with_their_own_sources_and_limits() -> None:
    plan = (
        {"intent": "find-error", "kinds": ["test-log"], "max_age_days": 2.0, "lane_k": 3},
        {"intent": "find-rule", "sources": ["team-standard"], "min_authority": 2},
    )
    first, second = _plan(*plan, question="why?", as_of=day(10), lane_k=7)
    assert (first["kinds"], first["lane_k"], first["oldest"], first["min_authority"]) == (["test-log"], 3, day(8), 0)
    assert (second["sources"], second["lane_k"], second["oldest"], second["min_authority"]) == (
        ["team-standard"],
        7,
        None,
        2,
    )


def test_a_request_can_only_narrow_lane_k() -> None:
    assert _plan({"lane_k": 30}, question="why?", lane_k=5)[0]["lane_k"] == 5
    assert _plan({"lane_k": 3}, question="why?", lane_k=5)[0]["lane_k"] == 3


@pytest.mark.parametrize(
    ("effort", "lanes"),
    [
        ("none", []),
        ("minimal", [["lexical", "exact", "expansion"]]),
        ("full", [["lexical", "exact", "recent", "expansion"], ["recent"]]),
        (
            "graph",
            [
                ["lexical", "exact", "recent", "expansion", "symbol", "graph"],
                ["recent", "symbol", "expansion", "graph"],
            ],
        ),
    ],
)
def test_recall_effort_decides_the_lanes(effort: str, lanes: list[list[str]]) -> None:
    plan = ({"lanes": ["lexical", "exact", "recent", "expansion"]}, {"lanes": ["recent"]})
    assert [q["lanes"] for q in _plan(*plan, question="why?", recall_effort=effort)] == lanes


def test_a_denied_request_and_an_unplanned_purpose_have_no_plan() -> None:
    assert _plan({}, question="why?", denied=True) == []
    assert _plan({}, question="why?", purpose="review-risk") == []


# --- terms -----------------------------------------------------------------------------------------------------------


def test_a_term_weighs_its_count_and_an_anchor_its_trust() -> None:
    request = {"question": "token token Session.load src/a.py DEL-1", "anchor_symbols": ["cache_all"]}
    out = line(WORLD, [request], "query_terms", plan=rules({"lanes": list(LANES)}))["query_terms"].to_pylist()
    weights = {(t["field"], t["term"]): t["weight"] for t in out}
    assert weights["text", "t:token"] == 2.0
    assert weights["definition", "d:cache_all"] == weights["reference", "r:cache_all"] == 1.0
    assert (weights["definition", "d:Session.load"], weights["definition", "d:load"]) == (0.5, 0.25)
    assert (weights["path", "p:src/a.py"], weights["path", "p:a.py"], weights["path", "p:a"]) == (0.25, 0.25, 0.125)
    assert weights["id", "i:del-1"] == 0.5
    assert [(t["field"], t["term"]) for t in out] == sorted(weights)


def test_an_id_in_small_letters_is_looked_up_and_no_anchor() -> None:
    """S1.20: the source document writes its ids in small letters."""
    request = {"question": "what does del-12345 depend on?"}
    out = line(WORLD, [request], "anchors", "query_terms", plan=rules({"lanes": ["exact"]}))
    assert [(q["term"], q["weight"]) for q in out["query_terms"].to_pylist()] == [("i:del-12345", 0.5)]
    assert out["anchors"].num_rows == 0


def test_a_long_question_keeps_every_term() -> None:
    words = [f"w{n:04d}" for n in range(2000)]
    out = line(WORLD, [{"question": " ".join(words)}], "query_terms")["query_terms"]
    assert {f"t:{word}" for word in words} <= set(out["term"].to_pylist())
