"""Every column of a contract has an effect: whatever changes it alone changes evidence, order, block bytes or the action.

The columns are read from CONTRACTS, so that a new one without a case fails here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import role_world
from policy_world import MODE, NOW, ROWS, answer, asked
from scoped_retrieval.nodes.score_terms import named
from scoped_retrieval.nodes.tables import CONTRACTS
from scoped_retrieval.nodes.vocabulary import TURN_TERMS
from selection_line import line

Parts = Mapping[str, Mapping[str, Any]]
ACT_AS = {"principals.ana.act_as": ["bob"]}
BOTH = {"principals.ana.projects": ["shop", "billing"]}
LAST_DAYS = {"last": "3d", "paths": ["/sessions/"]}


NO_WORDS = dict.fromkeys(
    ("lexical", "anchor", "actionability", "file", "passages", "outlines", "file_name", "definition"), 0
) | {"authority": 1}


def ask(**fields: Any) -> Parts:
    return {"request": fields}


def mode(given: Mapping[str, Any] = {}, **fields: Any) -> Parts:
    return {"mode": {name.replace("__", "."): value for name, value in given.items()}, "request": {"mode": "planning"} | fields}  # fmt: skip


def purpose(key: str, value: Any, **fields: Any) -> Parts:
    return {"purpose": {key: value}, "request": fields}


ONLY_LONG = {"allowed_paths": ["docs/long.md"]}
ONLY_GUIDE = {"allowed_paths": ["docs/guide.md"], "max_tokens": 600}
ONLY_DELIVERY = {"allowed_paths": ["docs/del*", "sot/"]}
ONLY_ADR = {"allowed_paths": ["adr/", "docs/linked.md"]}
NAMED = {
    "question": "What of the queue in DEL-1, `drain_queue`?",
    "branch": "main",
    "test_suite": "unit",
    "session_id": "s1",
}
NEAR = {"weights.scope": 5.0}
CASES: dict[str, tuple[Parts, Parts]] = {
    "denied": ({}, {"grants": {"principals.ana.projects": []}}),
    "principal": ({"grants": ACT_AS}, {"grants": ACT_AS, "request": {"principal": "bob"}}),
    "groups": ({}, {"grants": {"principals.ana.groups": ["dev"]}}),
    "project": ({"grants": BOTH}, {"grants": BOTH, "request": {"project": "billing"}}),
    "namespace": ({}, ask(namespace="other")),
    "workspace_root": ({}, ask(workspace_root="/home/ana/shop")),
    "branch": ({}, ask(branch="other")),
    "test_suite": ({}, ask(test_suite="other")),
    "session_id": ({"purpose": NEAR}, {"purpose": NEAR, "request": {"session_id": "s1"}}),
    "purpose": ({}, ask(purpose="fix-test")),
    "mode": ({}, mode({"retrieval_params__k_out": 2})),
    "search_paths": (mode(), mode({"search_paths": ["/docs/"]})),
    "excluded_paths": (mode(), mode({"exclude": [{"what": "w", "paths": ["/docs/"]}]})),
    "excluded_levels": (mode(), mode({"exclude": [{"what": "w", "levels": ["venture"]}]})),
    "excluded_zones": (mode(), mode({"exclude": [{"what": "w", "zones": ["internal"]}]})),
    "allowed_sources": ({}, ask(allowed_sources=["memory"])),
    "denied_sources": ({}, ask(denied_sources=["memory"])),
    "allowed_paths": ({}, ask(allowed_paths=["docs/"])),
    "denied_paths": ({}, ask(denied_paths=["docs/"])),
    "as_of": ({}, ask(as_of=(NOW - timedelta(days=3)).isoformat())),
    "window_start": ({}, ask(include_after=(NOW - timedelta(days=3)).isoformat())),
    "window_end": ({}, ask(exclude_after=(NOW - timedelta(days=3)).isoformat())),
    "allow_stale_memory": ({}, ask(allow_stale_memory=True)),
    "include_states": ({}, purpose("include_states", ["verified"])),
    "accepted_authority": ({}, ask(accepted_authority=["project-doc"])),
    "min_authority": ({}, ask(min_authority=2)),
    "require_snapshot": ({}, ask(require_snapshot=True)),
    "max_unverified_items": ({}, ask(max_unverified_items=4)),
    "lane_k": ({}, ask(lane_k=1)),
    "pool_k": ({}, ask(pool_k=3)),
    "max_items": ({}, ask(max_items=3)),
    "max_items_per_source": ({}, ask(max_items_per_source=1)),
    "max_tokens": ({}, ask(max_tokens=200)),
    "max_chars": ({}, ask(max_chars=700)),
    "max_chunk_tokens": ({}, ask(max_chunk_tokens=4)),
    "merge_policy": (ask(pool_k=4), ask(pool_k=4, merge_policy="authority-first")),
    "output_shape": ({}, ask(output_shape="citation-pack")),
    "detail": (ask(**ONLY_GUIDE), ask(detail="outline", **ONLY_GUIDE)),
    "instruction_sources": ({}, purpose("instruction_sources", [])),
    "mask": ({}, purpose("mask", ["email"])),
    "required_evidence": (
        ask(denied_sources=["decision-record"]),
        ask(denied_sources=["decision-record"], required_evidence=["decision-record"]),
    ),
    "recall_effort": ({}, ask(recall_effort="none")),
    "mode_lanes": (mode(), mode({"strategies": [*MODE["strategies"], "Temporal search"]})),
    "path_window_start": (
        mode({"retrieval_params__time_window": LAST_DAYS | {"last": "9d"}}),
        mode({"retrieval_params__time_window": LAST_DAYS}),
    ),
    "window_paths": (
        mode({"retrieval_params__time_window": LAST_DAYS | {"paths": ["/none/"]}}),
        mode({"retrieval_params__time_window": LAST_DAYS}),
    ),
    "chunk_expansion": (mode(**ONLY_LONG), mode({"retrieval_params__chunk_expansion": True}, **ONLY_LONG)),
    "exact_lookups": (mode(**ONLY_DELIVERY), mode({"retrieval_params__exact_lookups": True}, **ONLY_DELIVERY)),
    "citation_chaining": (
        mode(**ONLY_ADR),
        mode({"strategies": [*MODE["strategies"], "Citation chaining"]}, **ONLY_ADR),
    ),
    "include_deleted": (mode(), mode({"retrieval_params__include_deleted": True})),
    "newest_first": (mode(), mode({"strategies": [*MODE["strategies"], "Temporal search"]})),
    "role": ({}, ask(role="architect")),
    **{f"weight_{term}": (ask(**NAMED), ask(**NAMED, weights={term: 50})) for term in named("plain", "feedback")},
    **{
        f"weight_{term}": (
            ask(question="retry payments", weights={"actionability": 0}),
            ask(question="retry payments", weights={"actionability": 0, term: 50}),
        )
        for term in ("file", "passages")
    },
    **{
        f"weight_{term}": (
            ask(question=NAMED["question"], weights=NO_WORDS),
            ask(question=NAMED["question"], weights=NO_WORDS | {term: 50}),
        )
        for term in ("file_name", "definition")
    },
    "weight_outlines": (
        ask(question="the source is drained by payments", weights={"actionability": 0, "outlines": 0}),
        ask(question="the source is drained by payments", weights={"actionability": 0, "outlines": 50}),
    ),
}
OF_ROLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "role_sources": ({}, {"source_policy.allowed_sources": ["docs:*"]}),
    "forbidden_sources": ({}, {"source_policy.forbidden_sources": ["external"]}),
    "source_diversity": (
        {"vocabulary.boost_phrases": ["drains", "fills"]},
        {"vocabulary.boost_phrases": ["drains", "fills"], "retrieval_policy.require_source_diversity": True},
    ),
    "citation_style": ({}, {"synthesis_policy.citation_style": "footnote"}),
}
NO_EFFECT = {
    "request_id": "names the row",
    "contract_id": "is the digest of the others",
    "denied_reason": "says why it is denied",
    "asked_by": "who asked for another; the rights are those of `principal`",
    "asked_at": "the clock of the door: `expires` of a grant is judged by it, see test_policy_fields",
    "withheld_k": "how much of what was withheld is kept for auditors; no caller may learn of it",
    "tokenizer": "the unit of `max_tokens`: see test_token_counting",
}
"""Columns that no answer depends on alone, and why."""


@pytest.mark.parametrize("column", CASES)
def test_a_column_changed_alone_changes_the_answer(column: str) -> None:
    one, other = (asked(parts) for parts in CASES[column])
    values = [found.tables["contracts"][column].to_pylist() for found in (one, other)]
    assert values[0] != values[1]
    assert answer(one) != answer(other)


@pytest.mark.parametrize("column", OF_ROLES)
def test_a_column_that_a_role_gives_changes_the_answer(column: str) -> None:
    one, other = (role_world.asked(role_world.overlay(changes), vectors=True) for changes in OF_ROLES[column])
    assert one.tables["contracts"][column].to_pylist() != other.tables["contracts"][column].to_pylist()
    assert answer(one) != answer(other)


def test_a_required_citation_leaves_out_what_has_none() -> None:
    """Imports give every row a version to cite; a row without one comes from a corpus that something else wrote."""
    nowhere = {"text": "x\n", "version": None, "line_start": None, "byte_start": None}
    shown = [line([nowhere], requests={"r1": {"require_citation": wanted}}).block() for wanted in (True, False)]
    assert ["|x" in block for block in shown] == [False, True]


def test_every_column_of_a_contract_is_tried() -> None:
    elsewhere = {
        "weight_cross_encoder",
        *(f"weight_{term}" for term in TURN_TERMS),
    }  # test_cross_encoder, test_turn_scores
    tried = {*CASES, *OF_ROLES, "require_citation", *elsewhere}
    assert set(CONTRACTS.columns) == tried | NO_EFFECT.keys()
    assert not tried & NO_EFFECT.keys()
    assert len(ROWS) > 30
