"""Similarity is not usefulness: eight score terms decide together, exactly and in one order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.tables import KIND_POLICIES, LANE_SCORES, RERANK_WEIGHTS, SCORE_TERMS
from scoped_retrieval.nodes.task_aware_reranking import ranked
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS as SCORE_TERM_NAMES
from selection_line import AS_OF, WEIGHTS, line


def anchor(kind: str, value: str, origin: str = "failing_test", weight: float = 1.0) -> dict[str, Any]:
    return {"request_id": "r1", "kind": kind, "value": value, "origin": origin, "weight": weight}


def order(rows: list[dict[str, Any]], **kind: Any) -> list[str]:
    """Texts in ranked order."""
    made = line(rows, **kind).run("ranked")
    text = {row["evidence_id"]: row["text"] for row in made["evidence"].to_pylist()}
    return [text[row["evidence_id"]] for row in made["ranked"].to_pylist()]


def term(name: str, row: dict[str, Any], **kind: Any) -> float:
    return line([row], **kind).run("score_terms")["score_terms"][name].to_pylist()[0]


def test_a_memory_that_names_no_source_is_believed_less_than_one_that_does() -> None:
    memory = {"text": "x", "evidence_kind": "memory", "origin_class": "memory"}
    with_source, without = (term("authority", memory | {"source_refs": refs}) for refs in (["sessions/s-1"], None))
    assert 0 < without < with_source
    assert term("authority", {"text": "x", "source_refs": None}) == with_source  # a file is its own source


@pytest.mark.parametrize(("document_type", "counts"), [("test", 0.25), ("config", 1.0), (None, 1.0)])
def test_a_document_type_counts_as_the_policy_of_its_kind_says(document_type: str | None, counts: float) -> None:
    of_code = {"purpose": "fix-test", "evidence_kind": "code", "half_life_days": 30.0}
    policies = [
        of_code | {"document_type": "", "actionability": 1.0},
        of_code | {"document_type": "test", "actionability": 0.25},
    ]
    asked = line([{"text": "x", "document_type": document_type}])
    found = asked.run("score_terms", kind_policies=KIND_POLICIES.from_rows(policies))
    assert found["score_terms"]["actionability"].to_pylist() == [counts]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"authority": 3}, 1.0),
        ({"authority": 0}, 0.0),
        ({"authority": None}, 0.0),
        ({"authority": 3, "generated": True}, 0.5),
        ({"authority": 3, "confidence": 0.5}, 0.75),
        ({"authority": 3, "lifecycle": "candidate"}, 0.5),
        ({"authority": 3, "lifecycle": None}, 0.5),
        ({"authority": 3, "lifecycle": "deprecated"}, 0.3),
    ],
)
def test_authority_comes_from_rank_lifecycle_confidence_and_origin(row: dict[str, Any], expected: float) -> None:
    assert term("authority", {"text": "x"} | row) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"recorded_time": AS_OF}, 1.0),
        ({"recorded_time": AS_OF - timedelta(days=90)}, 0.5),
        ({"event_time": AS_OF - timedelta(days=180), "recorded_time": AS_OF}, 0.25),
        ({"event_time": AS_OF + timedelta(days=9)}, 1.0),
        ({"evidence_kind": "rule", "recorded_time": AS_OF - timedelta(days=4000)}, 1.0),
    ],
)
def test_recency_halves_with_the_half_life_of_its_kind_and_reads_as_of(row: dict[str, Any], expected: float) -> None:
    assert term("recency", {"text": "x"} | row) == expected


def test_lexical_is_the_share_of_what_the_terms_could_give() -> None:
    asked = line([{"text": str(score)} for score in (4.0, 2.0, 0.0)])
    scores = [
        one | {"bm25": bm25, "bm25_reach": 8.0}
        for one, bm25 in zip(asked.tables["lane_scores"].to_pylist(), (4.0, 2.0, 0.0), strict=True)
    ]
    terms = asked.run(lane_scores=LANE_SCORES.from_rows(scores))["score_terms"]["lexical"].to_pylist()
    assert terms == [0.5, 0.25, 0.0]
    nothing = LANE_SCORES.from_rows([one | {"bm25_reach": 0.0} for one in scores])
    assert asked.run(lane_scores=nothing)["score_terms"]["lexical"].to_pylist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("row", "hit", "quality"),
    [
        ({"symbols": ["parse_user"]}, anchor("identifier", "parse_user"), 1.0),
        ({"calls": ["parse_user"]}, anchor("identifier", "parse_user"), 0.7),
        ({"text": "see parse_user"}, anchor("identifier", "parse_user"), 0.5),
        ({"path": "pkg/src/app.py"}, anchor("path", "src/app.py"), 1.0),
        ({"path": "src/app.py"}, anchor("path", "/home/ci/repo/src/app.py"), 1.0),
        ({"path": "other_src/app.py"}, anchor("path", "src/app.py"), 0.0),
        ({"text": "File src/app.py, line 3"}, anchor("path", "src/app.py"), 0.8),
        ({"text": "E   KeyError: 'role'"}, anchor("error", "KeyError: 'role'"), 1.0),
        ({"symbols": ["test_default"]}, anchor("test", "tests/test_app.py::TestApp::test_default[a]"), 1.0),
        ({"text": "FAILED test_default"}, anchor("test", "tests/test_app.py::test_default"), 0.9),
        ({"text": "FAILED test_defaults"}, anchor("test", "tests/test_app.py::test_default"), 0.0),
        ({"text": "fixes DEL-12345"}, anchor("id", "DEL-12345"), 1.0),
        ({"entity": "DEL-12345"}, anchor("id", "DEL-12345"), 1.0),
        ({"uri": "https://tickets.example/Del-12345"}, anchor("id", "https://tickets.example/del-12345"), 1.0),
        ({"text": "nothing"}, anchor("id", "DEL-12345"), 0.0),
    ],
)
def test_an_anchor_is_hit_by_definition_path_or_text(row: dict[str, Any], hit: dict[str, Any], quality: float) -> None:
    best = 0.6 * quality
    assert term("anchor", {"text": "x"} | row, anchors=[hit]) == pytest.approx(best + (1 - best) * quality, abs=1e-8)


def test_what_a_named_definition_calls_ranks_above_what_it_does_not_call() -> None:
    named = {"text": "def login(): check()", "symbols": ["Session.login"], "calls": ["check"]}
    callee, other = ({"text": text, "symbols": [text]} for text in ("Auth.check", "Auth.other"))
    anchors = [anchor("identifier", "Session.login", "question", 0.5)]
    made = line([named, callee, other], anchors=anchors).run()
    terms = dict(zip(*(made["score_terms"][c].to_pylist() for c in ("evidence_id", "anchor")), strict=True))
    text = dict(zip(*(made["evidence"][c].to_pylist() for c in ("evidence_id", "text")), strict=True))
    by_text = {text[one]: value for one, value in terms.items()}
    assert by_text["def login(): check()"] > by_text["Auth.check"] > by_text["Auth.other"] == 0
    reasons = dict(zip(*(made["ranked"][c].to_pylist() for c in ("evidence_id", "selected_reason")), strict=True))
    assert {text[one]: why for one, why in reasons.items()}["Auth.check"] == "called by what is named"


def test_one_declared_anchor_outweighs_mentions_found_in_prose() -> None:
    anchors = [anchor("path", "a.py")] + [anchor("identifier", f"name_{n}", "question", 0.25) for n in range(6)]
    declared = {"text": "x", "path": "a.py"}
    mentions = {"text": " ".join(f"name_{n}" for n in range(6))}
    made = line([declared, mentions], anchors=anchors).run()["score_terms"]["anchor"].to_pylist()
    assert made[0] > made[1] > 0


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.text(st.sampled_from("ab \n"), min_size=1, max_size=12),
            "evidence_kind": st.sampled_from(["code", "doc", "rule"]),
            "semantic_raw": st.sampled_from([-0.2, 0.0, 0.3, 0.31, 0.9]),
            "bm25_raw": st.sampled_from([0.0, 0.5, 7.25]),
            "authority": st.sampled_from([None, 0, 1, 2, 3]),
        }
    ),
    max_size=9,
)
WEIGHT = st.fixed_dictionaries({name: st.floats(0, 2, allow_nan=False) for name in SCORE_TERM_NAMES})


@given(ROWS, WEIGHT)
@settings(max_examples=100, deadline=None)
def test_the_order_is_that_of_choosing_greedily_with_a_bonus_for_new_kinds(
    rows: list[dict[str, Any]], weights: dict[str, float]
) -> None:
    made = line(rows, weights=weights).run("ranked")
    result = made["ranked"].to_pylist()
    kind = {row["evidence_id"]: row["evidence_kind"] for row in made["score_terms"].to_pylist()}
    base = {row["evidence_id"]: row["final"] - row["diversity"] for row in result}
    bonus = max((row["diversity"] for row in result), default=0.0)
    chosen: list[str] = []
    while len(chosen) < len(result):
        seen = {kind[item] for item in chosen}
        left = [(-(base[item] + bonus * (kind[item] not in seen)), item) for item in base if item not in chosen]
        chosen.append(min(left)[1])
    assert [row["evidence_id"] for row in result] == chosen
    assert [row["rank"] for row in result] == list(range(1, len(result) + 1))


@pytest.mark.parametrize(
    ("row", "asked", "closer"),
    [
        ({"owner_project": "shared"}, {}, 0.0),
        ({"owner_project": "shop"}, {}, 0.4),
        ({"branch": "main"}, {"branch": "main"}, 0.55),
        ({"branch": "main"}, {"branch": "next"}, 0.4),
        ({"session_id": "s-1"}, {"session_id": "s-1"}, 0.55),
        ({"session_id": "s-1"}, {"session_id": "s-2"}, 0.4),
        ({"test_suite": "unit"}, {"test_suite": "unit"}, 0.55),
        ({"test_suite": "unit"}, {}, 0.4),
        ({"path": "tests/auth/other.ts"}, {}, 0.55),
        ({"path": "tests/other.ts"}, {}, 0.4),
        ({"path": None}, {}, 0.4),
    ],
)
def test_each_part_of_the_scope_that_a_row_shares_brings_it_closer(
    row: dict[str, Any], asked: dict[str, Any], closer: float
) -> None:
    named = [anchor("path", "tests/auth/session.fixture.ts")]
    found = term("scope", {"text": "x"} | row, requests={"r1": asked}, anchors=named)
    assert found == pytest.approx(closer, abs=1e-8)


def test_what_is_closer_inside_the_scope_ranks_first_where_closeness_weighs() -> None:
    shared = {"text": "of this branch", "branch": "main", "semantic_raw": 0.1}
    rows = [{"text": "of another branch", "semantic_raw": 0.5}, shared]
    asked = {"requests": {"r1": {"branch": "main"}}}
    assert order(rows, **asked) == ["of another branch", "of this branch"]
    assert order(rows, weights=WEIGHTS | {"scope": 1.0}, **asked) == ["of this branch", "of another branch"]


PRIORS = st.fixed_dictionaries({
    "authority": st.integers(0, 3), "evidence_kind": st.sampled_from(["code", "rule", "test-log"]),
    "recorded_time": st.integers(0, 400).map(lambda days: AS_OF - timedelta(days=days)),
})  # fmt: skip
MATCHES = st.sampled_from([{}, {"bm25_raw": 0.01}, {"semantic_raw": 0.01}])


@given(st.lists(st.tuples(PRIORS, MATCHES), min_size=2, max_size=6))
def test_a_row_that_matches_nothing_is_never_ahead_of_one_that_does(
    rows: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    heavy = WEIGHTS | {"authority": 9.0, "recency": 9.0, "actionability": 9.0, "scope": 0.0}
    made = [{"text": f"{n} {bool(match)}"} | prior | match for n, (prior, match) in enumerate(rows)]
    found = [text.endswith("True") for text in order(made, weights=heavy)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("name", [name for name in SCORE_TERM_NAMES if name != "diversity"])
def test_changing_one_weight_alone_changes_the_order(name: str) -> None:
    flat = dict.fromkeys(SCORE_TERM_NAMES, 0.5)
    row = {"request_id": "r1", "evidence_kind": "code", "source_signal": "code", "anchor_signal": None}
    ids = ["a", "b"]
    terms = SCORE_TERMS.from_rows(
        [row | dict.fromkeys(flat, 0.4) | {"evidence_id": i, "pool_rank": 1, name: 0.4 + 0.1 * (i == "b")} for i in ids]
    )
    orders = []
    for weight in (0.0, 1.0):
        weights = RERANK_WEIGHTS.from_rows(
            [{"request_id": "r1"} | dict.fromkeys(SCORE_TERM_NAMES, 0.0) | {name: weight}]
        )
        orders.append(ranked(terms, weights)["evidence_id"].to_pylist())
    assert orders == [["a", "b"], ["b", "a"]]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "current workspace file"),
        ({"evidence_kind": "rule"}, "verified project rule"),
        ({"evidence_kind": "decision-record", "authority": 3}, "high authority decision record"),
        ({"evidence_kind": "session-event"}, "recent session observation"),
        ({"evidence_kind": "memory", "lifecycle": "candidate"}, "unverified memory"),
        ({"evidence_kind": "doc", "authority": 0, "semantic_raw": 0.99, "recorded_time": AS_OF - timedelta(days=3000)}, "close in meaning"),
    ],
)  # fmt: skip
def test_the_reason_names_the_strongest_signal(row: dict[str, Any], reason: str) -> None:
    assert line([{"text": "x"} | row]).run()["ranked"]["selected_reason"].to_pylist() == [reason]


def test_a_weight_of_the_request_stands_over_the_purposes() -> None:
    made = line([{"text": "x"}], requests={"r1": {"weights": '{"lexical": 0.7}'}}).run()["rerank_weights"].to_pylist()
    assert {name: made[0][name] for name in WEIGHTS} == WEIGHTS | {"lexical": 0.7}


def test_weights_come_from_the_purpose() -> None:
    made = line([{"text": "x"}]).run()["rerank_weights"].to_pylist()
    assert made == [{"request_id": "r1"} | WEIGHTS]
