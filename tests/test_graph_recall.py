"""The graph lane: what a walk inside the boundary reaches, by which edge, and what leads nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from recall_world import NOW, day, frame, line, names, rules

_PLAN = rules({"lanes": ["lexical", "graph"]})
SEED = {"name": "seed", "text": "session", "path": "docs/a.md", "links": ["b.md"]}


def _walked(rows: list[dict[str, Any]], **request: Any) -> dict[str, tuple[str, float]]:
    """What the lane reached: kind of edge and confidence by name."""
    world = frame(rows)
    out = line(world, [{"question": "session", **request}], "graph_hits", plan=_PLAN)["graph_hits"]
    said = [via.split(" ") for via in out["via"].to_pylist()]
    return {name: (kind, float(share)) for name, (kind, share, _) in zip(names(world, out), said, strict=True)}


def doc(name: str, links: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "text": f"word{name}", "path": f"docs/{name}.md", "links": links or [], **more}


def test_a_walk_goes_from_link_to_link_and_ends_after_some_steps() -> None:
    chain = [doc("b", ["c.md"]), doc("c", ["d.md"]), doc("d", ["e.md"]), doc("e")]
    assert _walked([SEED, *chain]) == dict.fromkeys(("b", "c", "d"), ("citation", 0.9))
    assert _walked([SEED, *chain], graph_iterations=2) == dict.fromkeys(("b", "c"), ("citation", 0.9))


def test_each_request_of_a_batch_walks_by_its_own_floor_and_steps() -> None:
    seed = {"name": "seed", "text": "session", "path": "src/a.py", "evidence_kind": "code", "calls": ["open_it"]}
    one = {"text": "word", "evidence_kind": "code", "symbols": ["open_it"], "calls": ["next_one"]}
    two = [{**one, "name": f"n{n}", "path": f"src/n{n}.py"} for n in range(2)]
    later = {"name": "later", "text": "word", "path": "src/l.py", "evidence_kind": "code", "symbols": ["next_one"]}
    world = frame([seed, *two, later])
    requests = [{"request_id": "r0", "question": "session", "graph_floor": 0.5}, {"request_id": "r1", "question": "session"},
                {"request_id": "r2", "question": "session", "graph_iterations": 1}]  # fmt: skip
    out = line(world, requests, "graph_hits", plan=_PLAN)["graph_hits"]
    reached = sorted(zip(out["request_id"].to_pylist(), names(world, out), strict=True))
    assert reached == [("r1", "later"), ("r1", "n0"), ("r1", "n1"), ("r2", "n0"), ("r2", "n1")]


def test_a_row_that_many_paths_reach_comes_first() -> None:
    seeds = [{**SEED, "name": f"seed {n}", "path": f"docs/s{n}.md", "links": ["b.md", f"only{n}.md"]} for n in range(3)]
    rows = [*seeds, doc("b"), *(doc(f"only{n}") for n in range(3))]
    assert next(iter(_walked(rows))) == "b"


def test_calls_lead_to_definitions_and_many_of_a_name_share_the_confidence() -> None:
    seed = {"name": "seed", "text": "session", "path": "src/a.py", "evidence_kind": "code", "calls": ["open_it"]}
    one = {"name": "one", "text": "word", "path": "src/b.py", "evidence_kind": "code", "symbols": ["open_it"]}
    assert _walked([seed, one]) == {"one": ("call", 0.8)}
    two = [{**one, "name": f"n{n}", "path": f"src/n{n}.py"} for n in range(2)]
    assert _walked([seed, *two]) == {"n0": ("call", 0.4), "n1": ("call", 0.4)}
    many = [{**one, "name": f"n{n}", "path": f"src/n{n}.py"} for n in range(5)]
    assert _walked([seed, *many]) == {}  # below the floor


def test_imports_lead_to_the_first_row_of_a_file() -> None:
    text = "import os\nfrom .store import Store\n# session"
    seed = {"name": "python", "text": text, "path": "app/a.py", "evidence_kind": "code"}
    script = {
        "name": "script",
        "text": 'import { x } from "./roles";\n// session',
        "path": "web/a.ts",
        "evidence_kind": "code",
    }
    store = [
        {"name": f"store {n}", "text": f"word{n}", "path": "app/store.py", "line_start": n, "evidence_kind": "code"}
        for n in (9, 1)
    ]
    roles = {"name": "roles", "text": "word", "path": "web/roles.ts", "evidence_kind": "code"}
    assert _walked([seed, script, *store, roles]) == {"store 1": ("import", 0.8), "roles": ("import", 0.8)}


@pytest.mark.parametrize(
    "beside", [{"withheld_by": 13}, {"foreign": True}, {"project": "billing"}, {"recorded_time": NOW}]
)
def test_what_a_gate_stops_shares_no_confidence_of_a_call(beside: dict[str, Any]) -> None:
    seed = {"name": "seed", "text": "session", "path": "src/a.py", "evidence_kind": "code", "calls": ["open_it"]}
    one = {"name": "one", "text": "word", "path": "src/b.py", "evidence_kind": "code", "symbols": ["open_it"]}
    hidden = [{**one, "name": f"h{n}", "path": f"y/{n}.py", "recorded_time": day(1), **beside} for n in range(9)]
    seen = [{**row, "recorded_time": day(1)} for row in (seed, one)]
    assert _walked([*seen, *hidden], as_of=day(10)) == {"one": ("call", 0.8)}
