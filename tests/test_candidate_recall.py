"""Recall, lane by lane: what returns, what is counted, what is only recorded, and how hits merge."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from recall_world import LANES, NOW, day, evidence_id, frame, line, names, rules, vectors
from scoped_retrieval.nodes.bm25 import Bm25
from scoped_retrieval.nodes.tables import QUERY_VECTORS


def _lexical(world: dict[str, Any], question: str, **request: Any) -> list[tuple[str, float]]:
    out = line(world, [{"question": question, **request}], "lexical_hits")["lexical_hits"]
    return list(zip(names(world, out), out["score"].to_pylist(), strict=True))


# --- lexical ---------------------------------------------------------------------------------------------------------


def test_only_rows_that_hold_a_term_return() -> None:
    world = frame([{"name": "a", "text": "session token"}, {"name": "b", "text": "unrelated words"}])
    assert [name for name, _ in _lexical(world, "session")] == ["a"]


def test_a_question_without_terms_returns_nothing() -> None:
    world = frame([{"name": "a", "text": "session token"}])
    assert _lexical(world, "?!") == []
    assert _lexical(world, "") == []


def test_a_question_is_no_query_syntax() -> None:
    world = frame([{"name": "a", "text": "what about c++ and a-b"}])
    assert [name for name, _ in _lexical(world, "c++ (x) AND a-b OR \"what's this?* t:a")] == ["a"]


def test_a_script_without_spaces_is_found() -> None:
    world = frame([{"name": "zh", "text": "数据库连接失败"}, {"name": "en", "text": "database"}])
    assert [name for name, _ in _lexical(world, "为什么数据库失败")] == ["zh"]


def test_statistics_do_not_depend_on_foreign_or_withheld_rows() -> None:
    own = [
        {"name": "a", "text": "session token cache"},
        {"name": "b", "text": "session cache cache"},
        {"name": "c", "text": "token of another kind"},
    ]
    planted = [
        {"name": "other project", "text": "session session token", "project": "billing"},
        {"name": "another user's", "text": "session token", "foreign": True},
        {"name": "not yet recorded", "text": "session token", "recorded_time": day(30)},
        {"name": "superseded", "text": "session token cache", "superseded_at": day(5)},
        {"name": "runtime-only", "text": "session session session", "withheld_by": 11},
    ]
    alone, among = frame(own), frame(own + planted)
    plain = _lexical(alone, "session token cache", as_of=day(20))
    crowded = _lexical(among, "session token cache", as_of=day(20))
    assert [hit for hit in crowded if hit[0] in "abc"] == plain
    assert [name for name, _ in crowded[:3]] == ["a", "b", "c"]


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


def test_a_score_never_grows_beyond_what_adds_up_exactly() -> None:
    rows = [{"name": "loud", "text": "session token " * 5000}, {"name": "a", "text": "session"}, {"text": "other"}]
    out = line(frame(rows), [{"question": "session token"}], "lexical_hits", bm25=Bm25("bm25l", k1=1e9))
    scores = dict(zip(out["lexical_hits"]["row"].to_pylist(), out["lexical_hits"]["score"].to_pylist(), strict=True))
    assert scores[0] == 2.0**22, "each of two terms adds its half at most"
    assert 0 < scores[1] < 3


@pytest.mark.parametrize("lane", ["lexical_hits", "recent_hits", "symbol_hits"])
def test_ids_that_begin_alike_are_ordered_by_their_ends(lane: str) -> None:
    alike = "0123456789ab" + "0" * 13
    rows = [
        {"name": end, "evidence_id": alike + end, "text": "session", "symbols": ["session_of"]}
        for end in ("3", "1", "4", "2")
    ]
    plan = rules({"lanes": ["lexical", "recent", "symbol"]})
    for order in (rows, rows[::-1]):
        world = frame(order)
        out = line(world, [{"question": "`session_of` session", "lane_k": 3}], lane, "candidates", plan=plan)
        assert names(world, out[lane]) == ["1", "2", "3"]
        assert names(world, out["candidates"]) == ["1", "2", "3"]


def test_the_best_of_many_rows_are_the_best_of_all() -> None:
    random = np.random.default_rng(0)
    rows = [
        {
            "name": str(n),
            "text": " ".join(random.choice(["session", "token", "cache", "other"], size=random.integers(1, 30))),
        }
        | {"path": f"{n}.py"}
        for n in range(3000)
    ]
    world = frame(rows)
    everything = _lexical(world, "session token", lane_k=10_000)
    assert _lexical(world, "session token", lane_k=7) == everything[:7]
    scores = [score for _, score in everything]
    assert scores == sorted(scores, reverse=True)


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


def test_at_most_withheld_k_rows_are_recorded_and_none_takes_a_place() -> None:
    rows = [{"name": f"w{n}", "text": "session", "path": f"{n}.py", "withheld_by": 11} for n in range(9)]
    world = frame([*rows, *({"name": f"s{n}", "text": "session", "path": f"s{n}.py"} for n in range(5))])
    out = line(world, [{"question": "session", "withheld_k": 2, "pool_k": 4, "lane_k": 5}])
    assert len(names(world, out["hits"], withheld=False)) == 5
    assert len(names(world, out["candidates"], withheld=False)) == 4
    assert len(names(world, out["candidates"], withheld=True)) == 2
    assert out["candidates"]["pool_rank"].to_pylist() == [1, 2, 3, 4, 5, 6]


def test_nothing_admissible_still_records_what_is_withheld() -> None:
    world = frame([{"name": "a", "text": "session", "recorded_time": day(20)}])
    out = line(world, [{"question": "session", "as_of": day(10)}], plan=rules({"lanes": list(LANES)}))
    assert names(world, out["candidates"], withheld=True) == ["a"]
    assert names(world, out["candidates"], withheld=False) == []


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


def test_the_semantic_lane_gives_exact_cosines_of_admissible_rows() -> None:
    random = np.random.default_rng(1)
    rows = [{"name": str(n), "path": f"{n}.py", "withheld_by": 11 * (n % 5 == 0)} for n in range(40)]
    world = frame(rows)
    index = vectors(world, random.normal(size=(40, 16)), random.normal(size=(2, 16)))
    query = QUERY_VECTORS.from_rows([{"request_id": "r1", "sub_query_id": "q1", "vector_row": 1}])
    plan = rules({"lanes": ["semantic"], "lane_k": 6})
    out = line(world, [{"question": "x"}], "semantic_hits", plan=plan, vectors=index, query_vectors=query)
    found = out["semantic_hits"]
    whole = np.concatenate(index.parts).astype(object)
    expected = {n: int(whole[n] @ index.queries[1].astype(object)) * 2.0**-30 for n in range(40) if n % 5}
    best = sorted(expected, key=lambda n: -expected[n])[:6]
    assert names(world, found) == [str(n) for n in best]
    assert found["score"].to_pylist() == [expected[n] for n in best]


def test_without_an_encoder_the_semantic_lane_is_empty() -> None:
    world = frame([{"name": "a", "text": "session"}])
    assert _lane(world, "semantic", question="session") == []


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_that_is_off_gives_nothing(lane: str) -> None:
    world = frame([{"name": "a", "text": "session", "symbols": ["create_user"], "entity": "DEL-1", "path": "a.py"}])
    left = tuple(name for name in LANES if name != lane)
    question = "session create_user DEL-1"
    out = line(world, [{"question": question}], "hits", plan=rules({"lanes": list(LANES)}), lanes=left)["hits"]
    assert lane not in out["lane"].to_pylist()


# --- expansion -------------------------------------------------------------------------------------------------------

_PLAN = rules({"lanes": ["lexical", "expansion"]})


def _expanded(rows: list[dict[str, Any]], **request: Any) -> dict[str, str]:
    world = frame(rows)
    out = line(world, [{"question": "session", **request}], "expansion_hits", plan=_PLAN)["expansion_hits"]
    return dict(zip(names(world, out), out["via"].to_pylist(), strict=True))


def test_neighbours_stand_beside_the_hit_in_the_document_as_it_was() -> None:
    lines = [
        {"name": f"line {n}", "text": "session" if n == 3 else f"word{n}", "path": "a.py", "line_start": n * 10}
        for n in range(1, 6)
    ]
    replaced = {"name": "old line 4", "text": "before", "path": "a.py", "line_start": 40, "superseded_at": day(9)}
    lines[3]["recorded_time"] = day(9)
    elsewhere = {"name": "elsewhere", "text": "word", "path": "b.py", "line_start": 31}
    rows = [*lines, replaced, elsewhere]
    assert _expanded(rows) == {"line 2": "neighbour", "line 4": "neighbour"}
    assert _expanded(rows, as_of=day(5)) == {"line 2": "neighbour", "old line 4": "neighbour"}


def test_a_partner_in_a_conflict_and_a_parent_come_in_unless_a_gate_stops_them() -> None:
    parent = {"name": "parent", "text": "whole", "path": "p.md"}
    rows = [
        parent,
        {"name": "seed", "text": "session", "path": "a.md", "conflict_set": "c1", "parent_id": evidence_id(parent)},
        {"name": "partner", "text": "other claim", "path": "b.md", "conflict_set": "c1"},
        {"name": "blocked partner", "text": "third claim", "path": "c.md", "conflict_set": "c1", "withheld_by": 13},
        {"name": "foreign partner", "text": "fourth claim", "path": "d.md", "conflict_set": "c1", "foreign": True},
        {"name": "other project", "text": "fifth", "path": "e.md", "conflict_set": "c1", "project": "billing"},
    ]
    assert _expanded(rows) == {"partner": "conflict", "parent": "parent"}


def test_children_come_in_with_their_parent_as_far_as_chunks_expand() -> None:
    rows = [
        {"name": "seed", "text": "session", "path": "a.md", "entity": "DEC-1"},
        {"name": "child", "text": "part", "path": "b.md", "parent_id": "DEC-1"},
        {"name": "withheld child", "text": "part two", "path": "c.md", "parent_id": "DEC-1", "withheld_by": 13},
    ]
    assert _expanded(rows) == {"child": "child"}
    assert _expanded(rows, chunk_expansion=False) == {}


def test_cited_documents_come_in_where_citations_are_chained_and_pass_every_gate() -> None:
    links = ["../decisions/scope.md#why", "https://example.org/x"]
    rows = [
        {"name": "seed", "text": "session, see ADR-030 and ADR-031", "path": "a.md", "links": links},
        {"name": "linked", "text": "scope", "path": "decisions/scope.md"},
        {"name": "named", "text": "freeze", "path": "decisions/freeze.md", "entity": "ADR-030"},
        {"name": "withheld", "text": "other", "path": "decisions/other.md", "entity": "ADR-031", "withheld_by": 13},
        {"name": "foreign", "text": "third", "path": "x.md", "entity": "ADR-031", "foreign": True},
    ]
    assert _expanded(rows, citation_chaining=True) == {"linked": "citation", "named": "citation"}
    assert _expanded(rows) == {}


def test_named_records_come_in_with_exact_look_ups_alone() -> None:
    record = {"origin_class": "structured-sot", "evidence_kind": "structured-fact"}
    rows = [
        {"name": "seed", "text": "session of DEL-1", "path": "engagements/eng-001/brief.md"},
        {"name": "by id", "text": "one", "path": "sot/d.csv", "entity": "DEL-1", **record},
        {"name": "by folder", "text": "two", "path": "sot/e.csv", "entity": "ENG-001", **record},
        {"name": "no record", "text": "three", "path": "x.md", "entity": "DEL-1"},
        {"name": "foreign", "text": "four", "path": "sot/f.csv", "entity": "DEL-1", "foreign": True, **record},
    ]
    assert _expanded(rows, exact_lookups=True) == {"by id": "record", "by folder": "record"}
    assert _expanded(rows) == {}


def test_what_replaces_a_hit_is_found_by_its_entity() -> None:
    rows = [
        {"name": "seed", "text": "session", "path": "a.md", "superseded_by": "DEC-2"},
        {"name": "newer", "text": "later decision", "path": "b.md", "entity": "DEC-2"},
    ]
    assert _expanded(rows) == {"newer": "superseding"}


def test_a_withheld_hit_is_not_expanded() -> None:
    rows = [
        {"name": "seed", "text": "session", "path": "a.md", "conflict_set": "c1", "withheld_by": 11},
        {"name": "partner", "text": "other claim", "path": "b.md", "conflict_set": "c1"},
    ]
    assert _expanded(rows) == {}


def test_a_neighbour_is_the_next_admissible_row_by_line_and_then_by_id() -> None:
    path = {"path": "a.log", "recorded_time": day(1)}
    rows = [
        {"name": f"n{n}", "text": "session" if n == 4 else f"w{n}", "line_start": (9 - n) // 2, **path}
        for n in range(9)
    ]
    rows[6]["withheld_by"] = 11
    rows[2]["recorded_time"] = day(20)
    ids = {row["name"]: evidence_id({"source_id": None, **row}) for row in rows}
    for as_of, gone in ((day(10), {"n2", "n6"}), (NOW, {"n6"})):
        order = sorted((row["line_start"], ids[row["name"]], row["name"]) for row in rows if row["name"] not in gone)
        names_in_order = [name for _, _, name in order]
        at = names_in_order.index("n4")
        assert set(_expanded(rows, as_of=as_of)) == {names_in_order[at - 1], names_in_order[at + 1]}


def _peak(world: dict[str, Any], node: str, plan: Any, requests: int) -> int:
    """The most bytes of NumPy arrays that lived at once while a node ran for some requests with one clock."""
    asked = [{"request_id": f"r{n:02d}", "question": "session", "lane_k": 3} for n in range(requests)]
    tracemalloc.start()
    try:
        line(world, asked, node, plan=plan)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("node", "lanes"), [("expansion_hits", ["lexical", "expansion"]), ("recent_hits", ["recent"])])
def test_requests_of_one_clock_share_the_look_at_a_document(node: str, lanes: list[str]) -> None:
    rows = [{"text": "session" if n < 20 else f"w{n % 7}", "path": "a.log", "line_start": n} for n in range(2000)]
    world, plan = frame(rows), rules({"lanes": lanes})
    _peak(world, node, plan, 1)
    assert _peak(world, node, plan, 30) < 2 * _peak(world, node, plan, 1)


# --- merging ---------------------------------------------------------------------------------------------------------

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


def test_fusion_adds_a_share_for_every_sub_query_and_lane() -> None:
    world = frame([{"name": "a", "text": "create_user", "symbols": ["create_user"], "path": "a.py"}])
    plan = rules({"lanes": ["lexical", "symbol"]}, {"lanes": ["lexical"], "intent": "find-rule"})
    out = line(world, [{"question": "create_user"}], plan=plan)["candidates"].to_pylist()[0]
    assert out["merge_score"] == 3 * round(2**30 / 61) / 2**30
    assert out["lanes"] == ["lexical", "symbol"]
    assert out["intents"] == ["find-code", "find-rule"]
    assert out["bm25_raw"] > 0
    assert out["symbol_raw"] > 0
    assert out["semantic_raw"] == 0
    assert out["via"] is None


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


def test_no_requests_and_no_rows_give_empty_tables() -> None:
    for table in line(frame([{"name": "a", "text": "session"}]), []).values():
        assert table.num_rows == 0
    denied = {"question": "session", "denied": True}
    for table in line(frame([{"name": "a", "text": "session"}]), [denied]).values():
        assert table.num_rows == 0
