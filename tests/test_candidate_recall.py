"""Recall, lane by lane: what returns, what is counted, what is only recorded."""

from __future__ import annotations

from typing import Any

import pytest
from recall_world import NOW, day, evidence_id, frame, line, names, rules


def _lexical(world: dict[str, Any], question: str, **request: Any) -> list[tuple[str, float]]:
    out = line(world, [{"question": question, **request}], "lexical_hits")["lexical_hits"]
    return list(zip(names(world, out), out["score"].to_pylist(), strict=True))


# --- lexical ---------------------------------------------------------------------------------------------------------


def test_only_rows_that_hold_a_term_return() -> None:
    world = frame([{"name": "a", "text": "session token"}, {"name": "b", "text": "unrelated words"}])
    assert [name for name, _ in _lexical(world, "session")] == ["a"]


def test_filters_choose_what_returns_and_not_what_is_counted() -> None:
    world = frame(
        [
            {"name": "code", "text": "session token"},
            {"name": "doc", "text": "session", "evidence_kind": "doc", "origin_class": "project-doc"},
            {"name": "trusted", "text": "session rule", "authority": 3},
            {"name": "old", "text": "session token", "event_time": day(2)},
        ]
    )
    every = dict(_lexical(world, "session token"))
    for rule, left in (
        ({"kinds": ["doc"]}, {"doc"}),
        ({"sources": ["project-doc"]}, {"doc"}),
        ({"sources": ["workspace:*"]}, {"code", "trusted", "doc", "old"}),
        ({"min_authority": 2}, {"trusted"}),
        ({"max_age_days": 20.0}, set()),
        ({"max_age_days": 31.0}, {"code", "doc", "trusted", "old"}),
    ):
        out = line(world, [{"question": "session token"}], "lexical_hits", plan=rules(rule))["lexical_hits"]
        found = dict(zip(names(world, out), out["score"].to_pylist(), strict=True))
        assert found == {name: every[name] for name in left}, rule


def test_age_is_that_of_the_event_else_of_the_record() -> None:
    world = frame(
        [
            {"name": "new record of an old event", "text": "session", "event_time": day(1), "recorded_time": day(30)},
            {"name": "new record", "text": "session", "recorded_time": day(30)},
            {"name": "old record", "text": "session", "recorded_time": day(2)},
        ]
    )
    out = line(world, [{"question": "session"}], "lexical_hits", plan=rules({"max_age_days": 5.0}))["lexical_hits"]
    assert names(world, out) == ["new record"]


def test_ties_are_ordered_by_evidence_id_and_cut_there() -> None:
    rows = [{"name": f"r{n}", "text": "session", "path": f"src/{n}.py"} for n in range(9)]
    world = frame(rows)
    ids = sorted((evidence_id({"source_id": None, **row}), row["name"]) for row in rows)
    out = line(world, [{"question": "session", "lane_k": 4}], "lexical_hits")["lexical_hits"]
    assert names(world, out) == [name for _, name in ids[:4]]
    assert out["rank"].to_pylist() == [1, 2, 3, 4]


# --- withheld --------------------------------------------------------------------------------------------------------


def test_withheld_rows_rank_after_all_others_whatever_their_score() -> None:
    world = frame(
        [
            {"name": "weak", "text": "session " + "word " * 30},
            {"name": "strong but blocked", "text": "session session", "withheld_by": 13},
            {"name": "strong but from the future", "text": "session session", "path": "b.py", "recorded_time": day(30)},
        ]
    )
    out = line(world, [{"question": "session", "as_of": day(10)}])
    assert names(world, out["hits"])[0] == "weak"
    assert out["hits"]["withheld"].to_pylist() == [False, True, True]
    assert names(world, out["candidates"])[0] == "weak"
    assert out["candidates"]["withheld"].to_pylist() == [False, True, True]


def test_of_a_document_only_the_newest_withheld_row_is_recorded() -> None:
    versions = [
        {
            "name": f"v{n}",
            "text": f"session token v{n}",
            "path": "a.py",
            "recorded_time": day(n),
            "superseded_at": day(n + 1),
        }
        for n in range(1, 6)
    ]
    world = frame([*versions, {"name": "other", "text": "session", "path": "b.py", "superseded_at": day(3)}])
    out = line(world, [{"question": "session token"}], "hits")["hits"]
    assert set(names(world, out, withheld=True)) == {"v5", "other"}


# --- symbol, exact, recent, semantic ---------------------------------------------------------------------------------


def _lane(world: dict[str, Any], lane: str, **request: Any) -> list[str]:
    plan = rules({"lanes": [lane], "parts": ["question", "stack"]})
    out = line(world, [request], f"{lane}_hits", plan=plan)[f"{lane}_hits"]
    return names(world, out)


def test_a_definition_goes_before_a_reference() -> None:
    world = frame(
        [
            {"name": "caller", "calls": ["parse_user"], "path": "b.py"},
            {"name": "definition", "symbols": ["parse_user"], "path": "a.py"},
            {"name": "neither", "symbols": ["load"], "path": "c.py"},
        ]
    )
    assert _lane(world, "symbol", question="why does `parse_user` fail?") == ["definition", "caller"]


def test_a_qualified_name_prefers_its_own_definition() -> None:
    world = frame(
        [
            {"name": "other class", "symbols": ["Cache.resolve", "resolve"], "path": "a.py"},
            {"name": "asked", "symbols": ["Session.resolve", "resolve"], "path": "b.py"},
        ]
    )
    assert _lane(world, "symbol", question="see Session.resolve") == ["asked", "other class"]


def test_a_path_of_another_machine_finds_the_file_it_ends_with() -> None:
    world = frame(
        [
            {"name": "same name", "path": "lib/session.ts"},
            {"name": "asked", "path": "src/auth/session.ts"},
            {"name": "other", "path": "src/auth/token.ts"},
        ]
    )
    trace = "TypeError: x\n    at create (/home/ana/shop/src/auth/session.ts:10:5)"
    assert _lane(world, "symbol", stack_trace=trace) == ["asked", "same name"]


def test_a_call_chain_is_followed_one_hop_inside_the_scope() -> None:
    rows = [
        {"name": "definition", "symbols": ["create"], "calls": ["load_token"], "path": "a.py"},
        {"name": "callee", "symbols": ["load_token"], "path": "b.py"},
        {"name": "second hop", "symbols": ["read_disk"], "path": "c.py"},
    ]
    rows[1]["calls"] = ["read_disk"]
    world = frame(rows)
    out = line(world, [{"question": "see `create`"}], "symbol_hits", plan=rules({"lanes": ["symbol"]}))["symbol_hits"]
    assert names(world, out) == ["definition", "callee"]
    assert out["via"].to_pylist() == [None, "call"]


def test_a_withheld_definition_leads_nowhere() -> None:
    world = frame(
        [
            {"name": "blocked", "symbols": ["create"], "calls": ["load_token"], "path": "a.py", "withheld_by": 13},
            {"name": "callee", "symbols": ["load_token"], "path": "b.py"},
        ]
    )
    out = line(world, [{"question": "see `create`"}], "symbol_hits", plan=rules({"lanes": ["symbol"]}))["symbol_hits"]
    assert names(world, out, withheld=False) == []
    assert names(world, out, withheld=True) == ["blocked"]


def test_a_withheld_row_that_only_a_call_leads_to_is_not_recorded() -> None:
    """The request itself asked nothing of it."""
    world = frame(
        [
            {"name": "definition", "symbols": ["create"], "calls": ["load_token"], "path": "a.py"},
            {"name": "callee", "symbols": ["load_token"], "path": "b.py", "withheld_by": 13},
        ]
    )
    out = line(world, [{"question": "see `create`"}], "symbol_hits", plan=rules({"lanes": ["symbol"]}))["symbol_hits"]
    assert (names(world, out, withheld=False), names(world, out, withheld=True)) == (["definition"], [])


def test_an_id_is_found_exactly() -> None:
    world = frame([{"name": "asked", "entity": "DEL-12345"}, {"name": "longer", "entity": "DEL-123456"}])
    assert _lane(world, "exact", question="what does DEL-12345 say?") == ["asked"]


def test_the_recent_lane_gives_the_newest_of_the_rules_kinds() -> None:
    rows = [
        {"name": f"log{n}", "evidence_kind": "test-log", "path": f"{n}.log", "event_time": day(n)} for n in (3, 9, 5)
    ]
    rows.append({"name": "tomorrow", "evidence_kind": "test-log", "path": "t.log", "recorded_time": day(20)})
    rows.append({"name": "code", "event_time": day(10)})
    world = frame(rows)
    plan = rules({"lanes": ["recent"], "kinds": ["test-log"], "lane_k": 2})
    out = line(world, [{"question": "x", "as_of": day(15)}], "recent_hits", plan=plan)["recent_hits"]
    assert names(world, out) == ["log9", "log5"]
    assert out["score"].to_pylist() == [1.0, 0.5]


_MIXED = [
    {"name": "code 1", "text": "session session session", "path": "a.py"},
    {"name": "code 2", "text": "session session word", "path": "b.py"},
    {"name": "rule", "text": "session word word word", "path": "r.md", "evidence_kind": "rule", "authority": 3},
]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("interleave-by-relevance", ["code 1", "code 2", "rule"]),
        ("authority-first", ["rule", "code 1", "code 2"]),
        ("evidence-balanced", ["code 1", "rule", "code 2"]),
    ],
)
def test_the_merge_policy_decides_the_order(policy: str, order: list[str]) -> None:
    world = frame(_MIXED)
    out = line(world, [{"question": "session", "merge_policy": policy}])["candidates"]
    assert names(world, out) == order


def test_the_placement_is_the_one_that_stood_at_as_of() -> None:
    rows = [
        {
            "name": "a",
            "text": "session",
            "placements": [
                {"recorded_time": day(1), "superseded_at": day(5)},
                {"recorded_time": day(10), "superseded_at": day(15)},
            ],
        }
    ]
    world = frame(rows)
    for as_of, placement, withheld in ((day(2), 0, False), (day(7), 0, True), (day(12), 1, False), (NOW, 1, True)):
        out = line(world, [{"question": "session", "as_of": as_of}])["candidates"].to_pylist()[0]
        assert (out["placement"], out["withheld"]) == (placement, withheld)
