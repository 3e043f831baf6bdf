"""Budget: the limit is hard, parts have shares, and every share, phase and trim order alone changes an input (S3.34 to S3.38)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from context_session import Session, item, memory, modes, policy, projected, snapshot
from scoped_retrieval.nodes import context_sources
from scoped_retrieval.nodes.turns.words import PARTS, PHASE_POLICIES, REQUIRED_PARTS, Phase

from scoped_retrieval import ContextPolicy

ELASTIC = [part for part in PARTS.values if part not in REQUIRED_PARTS]


def crowded() -> dict[str, Any]:
    """A session in which every part has more than a small budget holds."""
    session = Session()
    session.add("user.constraint", turn=0, text="Do not change the public API.")
    for number in range(14):
        session.add(
            "user.message",
            turn=number,
            text=f"message {number} of the user, who has much to say about the tests and the parser",
        )
    session.failing("src/a.ts:3 expected 1 received 2\n" + "noise of the log " * 40, turn=15)
    items = [
        item(f"code#{n}", f"src/m{n}.ts", f"export const m{n} = {n}; " * 12, evidence_id=f"ev-{n}") for n in range(8)
    ]
    memories = [memory(f"m{n}", f"Fact number {n} about how this project is built and tested.") for n in range(4)]
    return {
        "session": session,
        "snapshots": [snapshot(*items)],
        "memories": memories,
        "turn": {"snapshotIds": ["snap-1"], "phase": "editing"},
    }


def test_a_failed_turn_says_which_parts_are_too_long_and_by_how_much():
    given = {"session": Session("Fix it."), "rules": ["Never publish a package. " * 40]}
    enough = projected(**given)
    needed = {part: enough.part_tokens[part] for part in REQUIRED_PARTS}
    seen = projected(**given, budget={"maxTokens": 100, "reservedOutputTokens": 40})
    assert seen.status == "over_budget" and seen.text() == ""
    assert {part: count for part, count in seen.part_tokens.items() if count and part != "frame"} == needed
    assert sum(seen.part_tokens.values()) == seen.estimated_tokens == seen.ledger()["estimatedTokens"]
    room = {"maxTokens": seen.estimated_tokens + 40, "reservedOutputTokens": 40}
    assert projected(**given, budget=room).status == "ok", "the count is exact: with as much room it fits"


@pytest.mark.parametrize("part", REQUIRED_PARTS)
def test_a_limit_of_a_required_part_cuts_nothing_that_is_required(part: str):
    rules = [
        "Be careful.",
        {"path": "AGENTS.md", "text": "## A\nThis folder holds the parser.\n## B\nNever edit dist."},
    ]
    free, capped = (
        projected(**crowded(), rules=rules, budget={"maxTokens": 20_000, "reserved": reserved})
        for reserved in ({}, {part: 1})
    )
    before, after = modes(free), modes(capped)
    changed = {id_ for id_ in before if before[id_] != after[id_]}
    assert (part == "rules") == bool(changed)
    rules_of_file = {id_ for id_ in changed if id_.startswith("rule:")}
    assert {after[id_] for id_ in rules_of_file} <= {"reference"}


@pytest.mark.parametrize("part", ELASTIC)
def test_a_share_of_one_part_alone_changes_an_input(part: str, monkeypatch: pytest.MonkeyPatch):
    made = policy()
    before = _inputs_of_limits(made)
    _replaced(monkeypatch, lambda phase: {"shares": {**phase.shares, part: 0.0}})
    assert before != _inputs_of_limits(made)


def _replaced(monkeypatch: pytest.MonkeyPatch, fields: Callable[[Phase], dict[str, Any]]) -> None:
    """Every phase with other fields."""
    others = {name: phase._replace(**fields(phase)) for name, phase in PHASE_POLICIES.items()}
    monkeypatch.setattr(context_sources, "PHASE_POLICIES", others)


def _inputs_of_limits(made: ContextPolicy) -> list[str]:
    """The digests of the inputs of one turn under many limits."""
    given = _given(20_000)
    budgets = [{"maxTokens": limit, "reservedOutputTokens": 0} for limit in range(300, 1100, 40)]
    turn = given.pop("turn")
    turns = [{**turn, "inputId": str(number), "budget": budget} for number, budget in enumerate(budgets)]
    seen = made.project_turns(turns=turns, **given)
    return [seen[number].input_sha256 for number in range(len(turns))]


def _given(limit: int) -> dict[str, Any]:
    world = crowded()
    return {"events": world["session"].events, "snapshots": world["snapshots"], "memories": world["memories"], "turn": world["turn"],
            "budget": {"maxTokens": limit, "reservedOutputTokens": 0}}  # fmt: skip


def test_the_share_of_rules_decides_when_they_are_cut(monkeypatch: pytest.MonkeyPatch):
    rules = [{"path": "AGENTS.md", "text": "## A\nThis folder holds the parser.\n## B\nNever edit dist.\n" * 24}]
    made = policy(rules=rules)
    given = {"events": Session().events, "budget": {"maxTokens": 9000, "reservedOutputTokens": 0}}
    whole = made.project(**given)
    _replaced(monkeypatch, lambda _: {"rules": 0.01})
    cut = made.project(**given)
    assert (
        "holds the parser" in whole.text() and "holds the parser" not in cut.text() and "Never edit dist." in cut.text()
    )


@pytest.mark.parametrize("field", ["memory_items", "memory_confidence", "capabilities"])
def test_every_other_field_of_a_phase_alone_changes_an_input(field: str, monkeypatch: pytest.MonkeyPatch):
    made = policy()
    before = made.project(**_given(20_000)).input_sha256
    other = {"memory_confidence": 1.0, "capabilities": ["read"]}.get(field, 0)
    _replaced(monkeypatch, lambda _: {field: other})
    assert made.project(**_given(20_000)).input_sha256 != before


def test_what_has_no_room_stays_as_a_reference_where_there_is_room_for_one():
    found = 0
    for limit in range(1100, 1900, 50):
        seen = projected(**crowded(), budget={"maxTokens": limit, "reservedOutputTokens": 0})
        referred = [row for row in seen.decisions if row["reason_code"] == "reference_for_budget"]
        assert all(row["action"] == "reference" and row["original_ref"] in seen.text() for row in referred)
        found += len(referred)
    assert found


def test_a_tool_schema_larger_than_the_budget_is_left_out_and_told():
    tools = [
        {"name": "huge", "capability": "read", "description": "x " * 5000},
        {"name": "read_file", "capability": "read"},
    ]
    seen = projected(tools=tools, budget={"maxTokens": 2000, "reservedOutputTokens": 0})
    assert seen.model_input["tools"] == ["read_file"]
    row = seen.decision("tool:huge")
    assert (row["action"], row["reason_code"], row["decided_by"]) == ("exclude", "budget_tokens", "budget")
    assert seen.conditions == ["tool_schema_too_large"]
