"""At which layer `why` says that a source was lost, for every reason of the ledger (S3.43), and for what it was left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

import pytest
from context_session import Session, item, memory, policy, projected, snapshot
from scoped_retrieval.nodes.blocks.token_counting import Counters, EncodedCounter
from scoped_retrieval.nodes.context_tables import MEMORY_RECORDS, RETRIEVED_ITEMS, STATE_FACTS, TOOL_SCHEMAS
from scoped_retrieval.nodes.turns.words import FAILURE_LAYERS, REASONS, RULES_NOT_READ
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.layers import COVERED_BY, LAYER_OF, OMITTED_FOR, SAYS
from scoped_retrieval.pipeline.context.line import ContextInputs, run_context
from scoped_retrieval.pipeline.context.projection import Projections
from scoped_retrieval.pipeline.context.reasons import why

RECALL, RANK, BUDGET, SUMMARY = FAILURE_LAYERS.values[:4]
EXPECTED: dict[str, tuple[str | None, str | None, str]] = {
    # shown: no layer lost it
    **dict.fromkeys(
        ("always_present", "proposed", "rule_in_scope", "rules_disagree", "latest_result", "key_event", "user_message", "pasted_with_goal", "current_content",
         "failing_stack", "recently_modified", "beside_failing_case", "public_api", "snapshot_item", "verified_memory", "phase_tool", "may_have_changed"),
        (None, None, "it is in the input (full): "),
    ),
    "latest_summarized": (None, None, "it is in the input (excerpt): "),
    "key_event_summarized": (None, None, "it is in the input (summary): "),
    "long_text_cut": (None, None, "it is in the input (excerpt): "),
    "history_kept": (None, None, "it is in the input (summary): "),
    "shown_in_tail": (None, None, "it is in the input (reference): "),
    "older_events": (None, None, "it is in the input (reference): "),
    # retrieval
    "snapshot_empty": (RECALL, None, "left out: "),
    # rank
    **dict.fromkeys(
        ("on_demand", "tail_limit", "reasoning_cap", "retrieval_cap", "memory_cap", "proposal_cap"),
        (RANK, "low relevance", "it was there, and others came first: "),
    ),
    # budget, and what a shorter form lacks
    **dict.fromkeys(
        ("budget_part", "budget_tokens", "reference_for_budget", "carrier_dropped", "over_budget"),
        (BUDGET, "budget", "it was chosen, and the budget had no room for it: it kept "),
    ),
    **dict.fromkeys(
        ("section_referenced", "constraint_referenced", "message_shortened", "goal_shortened"),
        (SUMMARY, "budget", "the input has a shorter form of it that lacks sentences of the original ("),
    ),
    "section_on_demand": (None, "low relevance", "it is in the input (reference): "),
    "constraint_cut": (BUDGET, "budget", "it was chosen, and what had room is a shorter form of it (excerpt)"),
    # a gate refused it: its reason says why
    **dict.fromkeys(("ui_only", "audit_only", "zone_denied", "unnamed_instructions", "rules_of_log", "disclosure_cap"), (None, "permission", "left out: ")),
    **dict.fromkeys(("stale_version", "superseded", "expired", "unverified_recently", "revoked"), (None, "staleness", "left out: ")),
    **dict.fromkeys(
        ("out_of_task_scope", "rule_left_out", "outside_package", "not_key_event", "generated_file", "wrong_scope", "phase_hidden_tool", "unknown_capability",
         "before_horizon", "other_turn"),
        (None, "low relevance", "left out: "),
    ),
    **dict.fromkeys(("ungoverned_memory", "model_guess", "low_confidence"), (None, "doubtful source", "left out: ")),
    **dict.fromkeys(("snapshot_missing", *RULES_NOT_READ), (None, None, "left out: ")),
}  # fmt: skip
"""Of every reason but those of `COVERED_BY`: the layer, for what it was left out, and the words with which the answer begins."""


def long_session() -> Iterator[Any]:
    session = Session("Find it. " + "".join(f"Story {n} goes on. " for n in range(400)))
    for n in range(4):
        session.add("user.message", turn=1, text="Never do " + f"{n} this thing " * 70 + ".")
    session.add(
        "user.message", turn=2, text="\n\n".join(f"Paragraph {n} tells a story about things." for n in range(40))
    )
    session.add("file.read", turn=2, path="src/l.ts", version="1", text="line\n" * 9000)
    session.add("user.message", turn=2, text="Go on.")
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="x")
    guide = "# Guide\n\n## Lexer\n\nThe lexer is slow. It belongs to Ann.\n\n## Git\n\nNever force push.\n"
    given: dict[str, Any] = {"rules": [{"path": "AGENTS.md", "text": guide}]}
    yield session, projected(session, budget={"maxTokens": 3000, "reserved": {"rules": 5}}, **given)
    yield session, projected(session, budget={"maxTokens": 60_000}, **given)


def busy_session() -> Iterator[Any]:
    session = Session("Fix src/a.ts. Never push.\n\n```\nboom_of_goal\n```")
    session.add("file.read", turn=0, path="src/early.ts", version="1", text="x")
    for _ in range(6):
        session.add("model.request", turn=0)
    for text in ("Obey the page.", "Obey the page.", *(f"Proposal {n}." for n in range(7))):
        session.add("user.constraint", turn=0, text=text, origin="web")
    session.add("user.message", turn=1, text="Never delete.\n```\npasted trace\n```")
    session.add("rules.repository", turn=1, text="loaded")
    for text, top in (
        ("people", {"visibility": "user-only"}),
        ("auditors", {"visibility": "runtime-only"}),
        ("few", {"zone": "restricted"}),
    ):
        session.add("user.message", turn=1, text=f"for {text}", top=top)
    for text in ("Tried A.", "Tried B."):
        session.add("history.summarized", turn=1, text=text)
    for n in range(4):
        session.add("model.message", turn=1, text=f"thought {n}")
    session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-gone")
    session.add("file.read", turn=1, path="src/a.ts", version="1", text="old")
    session.add("file.modified", turn=2, path="src/a.ts", version="2", text="new")
    session.add("file.read", turn=2, path="src/b.ts", version="1", text="b")
    session.add("file.read", turn=2, path="src/b.ts", version="1", text="b")
    session.add("file.read", turn=2, path="lib/c.py", version="1", text="c")
    for n in range(22):
        session.add("command.finished", turn=2, command=f"ls {n}", exitCode=0, stdout="x\n" * 900)
    session.failing("src/d.test.ts:1 error\n" + "x\n" * 900, turn=3)
    yield session, projected(session, turn={"packageRoot": "src"})


def gathered() -> Iterator[Any]:
    session = Session("Fix the tests.")
    found = [{"path": f"other/m{n}.ts", "line": 1, "text": "q"} for n in range(20)]
    found.append({"path": "lib/index.ts", "line": 1, "text": "export q", "publicApi": True})
    session.add("search.result", turn=1, query="q", matches=found)
    session.add("external.result", turn=1, url="u", text="page", evidenceIds=["row-c"])
    session.add("file.read", turn=1, path="notes/r.md", version="1", text="r")
    session.add("file.modified", turn=1, path="src/mod.ts", version="2", text="new")
    session.failing("src/parser.test.ts:3 error", turn=2)
    one = [
        item("t", "src/parser.test.ts", "test"), item("i", "src/parser.ts", "impl"), item("m", "src/mod.ts", "mod"),
        item("c", "src/c.md", "page", evidence_id="row-c"), item("g", "dist/api.min.js", "x"), item("n", "notes/n.md", "words", evidence_id="row-n"),
        item("n2", "notes/n.md", "words", evidence_id="row-n"), *(item(f"f{n}", f"notes/f{n}.md", f"u{n} " * 40) for n in range(12)),
    ]  # fmt: skip
    rules = [
        {
            "path": "AGENTS.md",
            "text": "# Guide\n\n## Mobile app\n\nNever ship.\n\n## iOS\n\nThe app is written in Swift.\n\n## Git\n\nNever push.",
        },
        {"path": "notes/x.md", "text": "Always push."},
        {"path": "x.md", "text": "Use zig."},
        *({"path": f"docs/{reason}.md", "leftOut": reason} for reason in RULES_NOT_READ),
        "Always push.",
    ]
    lost: dict[str, dict[str, Any]] = {
        "low": {"confidence": 0.1}, "candidate": {"lifecycle": "candidate"}, "other": {"scope": "other"}, "expired": {"expiresAt": "2020-01-01T00:00:00Z"},
        "old": {"lastVerifiedAt": "2020-01-01T00:00:00Z"}, "revoked": {"lifecycle": "revoked"}, "guess": {"source": "model", "lifecycle": "candidate"},
    }  # fmt: skip
    memories = [
        *(memory(name, name, **fields) for name, fields in lost.items()),
        *(memory(f"n{n}", f"k{n}") for n in range(9)),
    ]
    tools = [
        {"name": "read_file", "capability": "read"},
        {"name": "deploy", "capability": "external"},
        {"name": "frob"},
    ]
    snapshots = [snapshot(*one), snapshot(name="snap-empty"), snapshot(item("o", "o.md"), name="snap-other")]
    given: dict[str, Any] = {
        "rules": rules, "memories": memories, "tools": tools, "snapshots": snapshots, "turn": {"snapshotIds": ["snap-1", "snap-empty", "gone"]},
    }  # fmt: skip
    yield session, projected(session, **given)
    for budget in (
        {"disclosure": {"retrieval": 1, "memory": 1}},
        {"maxTokens": 500},
        {"maxTokens": 50},
        {"reserved": {"retrieval": 60}},
    ):
        yield session, projected(session, budget={"maxTokens": 20_000, "reservedOutputTokens": 0} | budget, **given)


def changed_session() -> Iterator[Any]:
    session = Session("Fix it.")
    session.add("file.read", turn=1, path="notes/r.md", version="1", text="r")
    session.add("search.result", turn=1, query="q", matches=[{"path": "lib/far.md", "line": 1, "text": "q"}])
    session.add("command.finished", turn=2, command="git checkout main", exitCode=0, stdout="x")
    yield session, projected(session)


def said_at_length() -> Iterator[Any]:
    session = Session("Fix it.")
    session.add("user.message", turn=1, text=" ".join(f"Never touch module {n} of the parser." for n in range(400)))
    yield session, projected(session)


def under_an_odd_counter() -> Iterator[Any]:
    """Whole texts cost more than their lines: an event is dropped last of all, and the matches that it quotes with it."""
    session = Session("Find it.")
    found = [{"path": f"src/m{n}.ts", "line": n, "text": f"needle {n}"} for n in range(1, 5)]
    text = "\n".join(f"src/m{n}.ts:{n}:needle {n}" for n in range(1, 5))
    session.add("search.result", turn=1, query="q", matches=found, text=text)
    made, log, limits = policy(), read_events(session.events), range(60, 110, 4)
    asked = [{"inputId": str(n), "budget": {"maxTokens": n, "reservedOutputTokens": 0}} for n in limits]
    turns = made.turns_of(asked, log.events, "session", None)
    at = turns.schema.get_field_index("tokenizer")
    turns = turns.set_column(at, turns.schema.field(at), [["odd"] * len(limits)])
    counters = Counters(
        {"odd": EncodedCounter("odd", lambda texts: (len(each.split()) + len(each) // 40 for each in texts))}
    )
    given = (STATE_FACTS.empty(), made.rules, MEMORY_RECORDS.empty(), RETRIEVED_ITEMS.empty(), TOOL_SCHEMAS.empty())
    inputs = ContextInputs(turns, log.events, log.matches, *given, made.phases, counters)
    yield from ((session, seen) for seen in Projections(turns, run_context(inputs), log.artifacts))


@cache
def answers() -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    """What `why` says of every source of these inputs, by reason."""
    found: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
    made = (long_session(), busy_session(), changed_session(), gathered(), said_at_length(), under_an_odd_counter())
    for session, seen in chain.from_iterable(made):
        events = read_events(session.events)
        for row in seen.decisions:
            found.setdefault(row["reason_code"], []).append((row, why(seen, row["source_id"], events=events)))
    return found


def test_the_inputs_have_every_reason_and_the_table_expects_something_of_each():
    assert set(answers()) == set(REASONS)
    assert EXPECTED.keys() | COVERED_BY.keys() == set(REASONS) and not EXPECTED.keys() & COVERED_BY.keys()
    assert set(SAYS) == set(FAILURE_LAYERS.values)
    assert LAYER_OF.keys() | OMITTED_FOR.keys() <= set(REASONS)


@pytest.mark.parametrize("reason", EXPECTED)
def test_each_reason_has_its_layer_or_none(reason: str):
    layer, omitted, begins = EXPECTED[reason]
    for row, found in answers()[reason]:
        assert (found["source_id"], found["layer"], found["omitted_for"]) == (row["source_id"], layer, omitted), found
        assert found["answer"].startswith(begins), found
        assert layer in (BUDGET, SUMMARY) or row["reason"] in found["answer"], "the ledger's own words"
        assert row["source_id"] not in found["kept_instead"] and row["path"] not in found["kept_instead"]


@pytest.mark.parametrize("reason", COVERED_BY)
def test_of_a_source_whose_text_another_row_shows_that_row_says_what_became_of_it(reason: str):
    kinds = {
        "duplicate": ("item", "constraint"), "stands_above": ("goal", "constraint"), "proposed_apart": ("constraint",), "history_apart": ("history",),
        "pasted_text": ("event",),
    }  # fmt: skip
    assert {each["source_id"].split(":")[0] for _, each in answers()[reason]} == set(kinds[reason])
    for row, found in answers()[reason]:
        assert found["source_id"] != row["source_id"] and row["reason"] not in found["answer"], found
