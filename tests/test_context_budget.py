"""Budget: the limit is hard, parts have shares, and every share, phase and trim order alone changes an input (S3.34 to S3.38)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from context_session import Session, item, memory, modes, policy, projected, reasons, snapshot
from scoped_retrieval.nodes.blocks.token_counting import Counters, EncodedCounter
from scoped_retrieval.nodes.context_tables import PHASE_POLICIES
from scoped_retrieval.nodes.turns.words import PARTS, REQUIRED_PARTS
from scoped_retrieval.pipeline.context import ContextPolicy
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.line import ContextInputs, run_context
from scoped_retrieval.pipeline.context.phases import load_phases

ALWAYS = ("system_rules", "user_goal", "active_constraint", "state_summary")
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


def shown(limit: int, **given: Any) -> dict[str, str]:
    budget = {"maxTokens": limit, "reservedOutputTokens": 0, **given.pop("budget", {})}
    return modes(projected(**(crowded() | given), budget=budget))


def test_eight_parts_are_counted_and_nothing_else():
    seen = projected(**crowded())
    assert set(seen.part_tokens) == {*PARTS.values, "frame"}
    assert sum(seen.part_tokens.values()) == seen.estimated_tokens
    assert seen.model_input["upper_bound"] and seen.model_input["tokenizer"] == "approx-bpe/1"


@pytest.mark.parametrize("limit", [0, 1, 20, 60, 100, 130, 150, 200, 300, 400, 600, 800, 1200, 2000])
def test_no_input_is_over_its_limit(limit: int):
    seen = projected(**crowded(), budget={"maxTokens": limit, "reservedOutputTokens": 0})
    if seen.status == "ok":
        assert seen.estimated_tokens <= limit
        kinds = {row["source_kind"] for row in seen.decisions if row["mode"] != "none"}
        assert {"system_rules", "user_goal", "state_summary", "active_constraint"} <= kinds
    else:
        assert (seen.text(), seen.tool_schemas, seen.conditions) == ("", [], ["over_budget"])
        assert seen.estimated_tokens > limit
        assert set(reasons(seen).values()) >= {"over_budget"}
        assert all(row["mode"] == "none" for row in seen.decisions)


def test_no_limit_from_zero_up_is_passed_by_a_token():
    world = crowded()
    turns = [
        {"inputId": str(limit), "snapshotIds": ["snap-1"], "budget": {"maxTokens": limit, "reservedOutputTokens": 0}}
        for limit in range(1500)
    ]
    made = policy().project_turns(
        turns=turns, events=world["session"].events, snapshots=world["snapshots"], memories=world["memories"]
    )
    tokens, status = (made.tables["model_inputs"][name].to_pylist() for name in ("tokens", "status"))
    first = status.index("ok")
    assert set(status[:first]) == {"over_budget"} and set(status[first:]) == {"ok"}
    assert [limit for limit, used in enumerate(tokens) if used > limit and limit >= first] == []
    assert tokens[: first + 1] == [first] * (first + 1), "the least limit is what the required parts take"
    rows = made.tables["context_decisions"].to_pylist()
    absent = {row["input_id"] for row in rows if row["mode"] == "none" and row["source_kind"] in ALWAYS}
    assert absent == {str(limit) for limit in range(first)}, "in every other input all of it stands"


def test_a_failed_turn_says_which_parts_are_too_long_and_by_how_much():
    given = {"session": Session("Fix it."), "rules": ["Never publish a package. " * 40]}
    enough = projected(**given)
    needed = {part: enough.part_tokens[part] for part in REQUIRED_PARTS}
    seen = projected(**given, budget={"maxTokens": 100, "reservedOutputTokens": 40})
    assert seen.status == "over_budget" and seen.text() == ""
    assert {part: count for part, count in seen.part_tokens.items() if count and part != "frame"} == needed
    assert sum(seen.part_tokens.values()) == seen.estimated_tokens == seen.ledger()["estimatedTokens"]
    parts = ", ".join(f"{part} {count}" for part, count in seen.part_tokens.items() if count)
    assert seen.warnings[0]["message"] == (
        "nothing is shown, because rules, goal, state and constraints alone do not fit: "
        f"{seen.estimated_tokens} tokens ({parts}), {seen.estimated_tokens - 60} more than the limit of 60 "
        "(a window of 100 less 40 for the answer)"
    )
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
    assert (part == "rules") == bool(changed) and "Never edit dist." in capped.text()
    assert all(after[id_] == "reference" and id_.startswith("rule:AGENTS.md") for id_ in changed)


def test_the_reserved_output_is_kept_free():
    free = projected(**crowded(), budget={"maxTokens": 900, "reservedOutputTokens": 0})
    kept = projected(**crowded(), budget={"maxTokens": 900, "reservedOutputTokens": 300})
    assert free.estimated_tokens > 600 >= kept.estimated_tokens
    assert kept.model_input["input_limit"] == 600


@pytest.mark.parametrize("part", ELASTIC)
def test_a_limit_of_one_part_alone_changes_the_input(part: str):
    free, limited = shown(20_000), shown(20_000, budget={"reserved": {part: 10}})
    kinds = {
        "latest_observation": "event:e16",
        "recent_tail": "event:e15",
        "retrieval": "item:snap-1:code#0",
        "memory": "memory:m0",
        "tools": "tool:read_file",
    }
    assert free[kinds[part]] != "none" and limited[kinds[part]] in ("none", "reference")
    others = [id_ for name, id_ in kinds.items() if name != part]
    assert [free[id_] for id_ in others] == [limited[id_] for id_ in others]


@pytest.mark.parametrize("part", ELASTIC)
def test_a_share_of_one_part_alone_changes_an_input(part: str):
    phases, _ = load_phases()
    rows = phases.to_pylist()
    for row in rows:
        row[part] = 0.0
    made = policy()
    before = _inputs_of_limits(made)
    made.phases = PHASE_POLICIES.from_rows(rows)
    assert before != _inputs_of_limits(made)


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


def test_the_share_of_rules_decides_when_they_are_cut():
    rules = [{"path": "AGENTS.md", "text": "## A\nThis folder holds the parser.\n## B\nNever edit dist.\n" * 8}]
    phases, _ = load_phases()
    made = policy(rules=rules)
    given = {"events": Session().events, "budget": {"maxTokens": 1000, "reservedOutputTokens": 0}}
    whole = made.project(**given)
    made.phases = PHASE_POLICIES.from_rows([{**row, "rules": 0.01} for row in phases.to_pylist()])
    cut = made.project(**given)
    assert (
        "holds the parser" in whole.text() and "holds the parser" not in cut.text() and "Never edit dist." in cut.text()
    )


@pytest.mark.parametrize(
    "field", ["full_characters", "retrieval_items", "memory_items", "memory_confidence", "memory_days", "capabilities"]
)
def test_every_other_field_of_a_phase_alone_changes_an_input(field: str):
    phases, _ = load_phases()
    made = policy()
    before = made.project(**_given(20_000)).input_sha256
    other = {"memory_confidence": 1.0, "capabilities": ["read"]}.get(field, 0)
    made.phases = PHASE_POLICIES.from_rows([{**row, field: other} for row in phases.to_pylist()])
    assert made.project(**_given(20_000)).input_sha256 != before


def test_each_phase_gives_another_input():
    world = crowded()
    session = world["session"]
    texts = {}
    for phase in ("diagnosing", "planning", "editing", "verifying", "summarizing", "blocked"):
        seen = projected(session, snapshots=world["snapshots"], memories=world["memories"], turn={"snapshotIds": ["snap-1"], "phase": phase},
                         budget={"maxTokens": 900, "reservedOutputTokens": 0})  # fmt: skip
        texts[phase] = seen.text().replace(f"phase: {phase}", "")
    assert len(set(texts.values())) == 6


@pytest.mark.parametrize("phase", ["diagnosing", "planning", "verifying", "summarizing", "blocked"])
def test_the_shares_of_a_phase_alone_change_an_input(phase: str):
    """All phases are as `editing` but for their shares; the same turn is made in both phases at many limits."""
    table, _ = load_phases()
    rows = {row["phase"]: row for row in table.to_pylist()}
    shares = [part for part in PARTS.values if part in rows["editing"]]
    made = policy()
    made.phases = PHASE_POLICIES.from_rows(
        [rows["editing"] | {"phase": name} | {share: row[share] for share in shares} for name, row in rows.items()]
    )
    world, cut = crowded(), []
    for name in ("editing", phase):
        turns = [
            {
                "inputId": str(limit),
                "snapshotIds": ["snap-1"],
                "phase": name,
                "budget": {"maxTokens": limit, "reservedOutputTokens": 0},
            }
            for limit in range(300, 1500, 30)
        ]
        found = made.project_turns(
            turns=turns, events=world["session"].events, snapshots=world["snapshots"], memories=world["memories"]
        )
        cut.append(found.tables["context_decisions"].select(["input_id", "source_id", "mode"]).to_pylist())
    assert cut[0] != cut[1]


def test_the_order_of_trimming_alone_changes_an_input():
    orders = {}
    for name in ("default", "s003"):
        seen = projected(**crowded(), budget={"maxTokens": 760, "reservedOutputTokens": 0, "trimOrder": name})
        orders[name] = seen.part_tokens
    assert orders["s003"]["recent_tail"] < orders["default"]["recent_tail"], (
        "the order of the document cuts the old tail first"
    )
    order = ["tools", "references", "memory", "retrieval", "recent_tail", "latest_observation"]
    mine = projected(**crowded(), budget={"maxTokens": 760, "reservedOutputTokens": 0, "trimOrder": order})
    assert mine.part_tokens["tools"] < orders["default"]["tools"]


def test_trimming_takes_old_events_before_new_ones():
    seen = projected(**crowded(), budget={"maxTokens": 600, "reservedOutputTokens": 0})
    kept = [
        int(row["source_id"].removeprefix("event:e"))
        for row in seen.decisions
        if row["source_kind"] == "recent_tail" and row["mode"] == "full"
    ]
    cut = [
        int(row["source_id"].removeprefix("event:e"))
        for row in seen.decisions
        if row["reason_code"] in ("budget_part", "budget_tokens") and row["source_kind"] == "recent_tail"
    ]
    assert kept and cut and min(kept) > max(cut)


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
    assert [row["message"] for row in seen.warnings] == [
        "a tool of this phase is not shown: its schema has no room: huge"
    ]


def test_logs_that_crowd_out_the_rules_are_told():
    session = Session("Fix it.")
    session.failing("line of a log\n" * 150, stdout_ref=None)
    seen = projected(session, rules=["Be careful."], tools=[], turn={"phase": "verifying"})
    assert "logs_crowd_out_rules" in seen.conditions
    assert "logs_crowd_out_rules" not in projected(Session(), rules=["Be careful."]).conditions
    session = Session("Fix it.")
    session.add("user.message", turn=1, text="This is how the module came about. " * 60)
    seen = projected(session, rules=["Be careful."], tools=[])
    assert "logs_crowd_out_rules" not in seen.conditions, "words of the user are no log"


def test_the_tail_has_six_to_ten_events_and_eight_unless_told():
    session = Session()
    for number in range(20):
        session.add("user.message", turn=number, text=f"message {number}")
    for limit, count in ((None, 8), (6, 6), (10, 10)):
        budget = {"maxTokens": 9000} | ({"tailLimit": limit} if limit else {})
        told = reasons(projected(session, budget=budget))
        assert sum(code == "user_message" for code in told.values()) == count
    assert told["event:e1"] == "tail_limit"


def test_users_and_permissions_come_first_in_the_tail_and_the_model_last():
    session = Session()
    session.add("user.message", turn=1, text="yes, only the parser")
    session.add("permission.denied", turn=1, text="denied: apply_patch", requestId="r")
    for number in range(12):
        session.add("model.message", turn=2 + number, text=f"I think that {number}")
        session.add("command.finished", turn=2 + number, command=f"ls {number}", exitCode=0, stdout="x")
    session.add("user.message", turn=20, text="go on")
    told = reasons(projected(session, budget={"maxTokens": 9000, "tailLimit": 10}))
    assert (
        sum(told[f"event:e{n}"] == "reasoning_cap" for n in range(len(session.events)) if f"event:e{n}" in told) == 10
    ), "two of its twelve are kept"
    session.events = session.events[:13]
    told = reasons(projected(session, budget={"maxTokens": 9000, "tailLimit": 6}))
    assert told["event:e1"] == "user_message" and told["event:e2"].startswith("key_event")


COUNTERS = {
    "a third more for whole texts than for their lines": lambda text: len(text.split()) + len(text) // 40,
    "letters of a nonce cost more than what they are counted as": lambda text: len(re.sub(r"a+|\W+", "", text)) // 3,
    "letters of a nonce cost less than what they are counted as": lambda text: len(text) // 6 + 9 * text.count("aaa"),
}


@pytest.mark.parametrize("cost", COUNTERS.values(), ids=COUNTERS)
def test_a_counter_that_does_not_add_up_is_obeyed_all_the_same(cost: Callable[[str], int]):
    """The sum of the lines is no bound under it, nor is a count with other letters than those of the nonce."""
    counter = EncodedCounter("odd", lambda texts: map(cost, texts))
    made, log, limits = policy(), read_events(crowded()["session"].events), range(8, 540, 4)
    asked = [{"inputId": str(n), "budget": {"maxTokens": n, "reservedOutputTokens": 0}} for n in limits]
    turns = made.turns_of(asked, log.events, "session", None)
    at = turns.schema.get_field_index("tokenizer")
    turns = turns.set_column(at, turns.schema.field(at), [["odd"] * len(limits)])
    found = run_context(_inputs(made, turns, log, Counters({"odd": counter})))
    there: dict[str, set[str]] = {}
    for each in found["context_decisions"].to_pylist():
        there.setdefault(each["input_id"], set()).update([each["source_kind"]] if each["mode"] != "none" else [])
    for limit, row in zip(limits, found["model_inputs"].to_pylist(), strict=True):
        said = sum(map(cost, [row["system_text"], row["user_text"]]))
        assert said <= limit and not row["upper_bound"]
        assert (row["tokens"] <= limit) == (row["status"] == "ok")
        shown = there[row["input_id"]]
        assert set(ALWAYS) <= shown if row["status"] == "ok" else (shown == set() and row["system_text"] == "")
    assert set(found["model_inputs"]["status"].to_pylist()) == {"ok", "over_budget"}


def _inputs(made: Any, turns: Any, log: Any, counters: Counters) -> ContextInputs:
    from scoped_retrieval.nodes.context_tables import MEMORY_RECORDS, RETRIEVED_ITEMS, STATE_FACTS, TOOL_SCHEMAS

    return ContextInputs(turns, log.events, log.matches, STATE_FACTS.empty(), made.rules, MEMORY_RECORDS.empty(), RETRIEVED_ITEMS.empty(),
                         TOOL_SCHEMAS.empty(), made.phases, counters)  # fmt: skip
