"""The expansion lane: what the best hits lead to, and what leads nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from recall_world import day, evidence_id, frame, line, names, rules

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


@pytest.mark.parametrize(
    ("window_paths", "expanded"),
    [
        (["logs/"], {"fresh log": "parent", "old note": "conflict"}),
        (["**"], {"fresh log": "parent"}),
        (
            ["docs/"],
            {"fresh log": "parent", "old note": "conflict", "old log": "citation", "undated old log": "superseding"},
        ),
    ],
)
def test_what_a_link_leads_to_stands_inside_the_window_of_the_mode(window_paths, expanded) -> None:
    fresh = {"name": "fresh log", "text": "whole", "path": "logs/new.md", "event_time": day(8)}
    undated = {"name": "undated old log", "text": "newer", "path": "logs/undated.md", "recorded_time": day(2)}
    rows = [
        fresh,
        undated,
        {
            "name": "seed", "text": "session", "path": "logs/a.md", "event_time": day(9), "conflict_set": "c1",
            "links": ["/logs/old.md"], "parent_id": evidence_id(fresh), "superseded_by": evidence_id(undated),
        },
        {"name": "old log", "text": "before", "path": "logs/old.md", "event_time": day(1)},
        {"name": "old note", "text": "claim", "path": "notes/b.md", "conflict_set": "c1", "event_time": day(1)},
    ]  # fmt: skip
    window = {"window_paths": window_paths, "path_window_start": day(5), "citation_chaining": True}
    assert _expanded(rows, **window) == expanded


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


def test_the_rival_of_a_hit_beyond_the_first_ten_comes_in() -> None:
    rows = [
        *({"name": f"hit {n}", "text": "session session", "path": f"{n}.md"} for n in range(15)),
        {"name": "disputed", "text": "session and many other words beside it", "path": "d.md", "conflict_set": "c1"},
        {"name": "rival", "text": "other claim", "path": "r.md", "conflict_set": "c1"},
        {"name": "withheld rival", "text": "third claim", "path": "w.md", "conflict_set": "c1", "withheld_by": 13},
        {"name": "foreign rival", "text": "fourth claim", "path": "f.md", "conflict_set": "c1", "foreign": True},
    ]
    assert _expanded(rows, lane_k=16) == {"rival": "conflict"}


def test_minimal_effort_follows_conflict_sets_and_no_other_link() -> None:
    rows = [
        {"name": "hit", "text": "session", "path": "a.md", "line_start": 1, "conflict_set": "c1", "parent_id": "P1"},
        {"name": "beside", "text": "a claim", "path": "a.md", "line_start": 2},
        {"name": "parent", "text": "above", "path": "p.md", "entity": "P1"},
        {"name": "rival", "text": "other claim", "path": "r.md", "conflict_set": "c1"},
    ]
    assert _expanded(rows) == {"beside": "neighbour", "parent": "parent", "rival": "conflict"}
    assert _expanded(rows, recall_effort="minimal") == {"rival": "conflict"}


def test_the_pool_does_not_split_a_conflict_set() -> None:
    rows = [
        {"name": "disputed", "text": "session", "path": "d.md", "conflict_set": "c1"},
        *({"name": f"hit {n}", "text": "session and other words", "path": f"{n}.md"} for n in range(5)),
        {"name": "rival", "text": "other claim", "path": "r.md", "conflict_set": "c1"},
    ]
    world = frame(rows)
    found = line(world, [{"question": "session", "pool_k": 1}], "candidates", plan=_PLAN)["candidates"]
    assert set(names(world, found)) == {"disputed", "rival"}
