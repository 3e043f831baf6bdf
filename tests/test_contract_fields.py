"""Every column of a contract has an effect: whatever changes it alone changes evidence, order, block bytes or the action.

The columns are read from CONTRACTS, so that a new one without a case fails here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from policy_world import NOW, ROWS, answer, asked
from scoped_retrieval.nodes.tables import CONTRACTS
from selection_line import line

Parts = Mapping[str, Mapping[str, Any]]
ACT_AS = {"principals.ana.act_as": ["bob"]}
BOTH = {"principals.ana.projects": ["shop", "billing"]}


def ask(**fields: Any) -> Parts:
    return {"request": fields}


def mode(given: Mapping[str, Any] = {}, **fields: Any) -> Parts:
    return {"mode": {name.replace("__", "."): value for name, value in given.items()}, "request": {"mode": "planning"} | fields}  # fmt: skip


NEAR = {"weights.scope": 5.0}
CASES: dict[str, tuple[Parts, Parts]] = {
    "denied": ({}, {"grants": {"principals.ana.projects": []}}),
    "principal": ({"grants": ACT_AS}, {"grants": ACT_AS, "request": {"principal": "bob"}}),
    "project": ({"grants": BOTH}, {"grants": BOTH, "request": {"project": "billing"}}),
    "namespace": ({}, ask(namespace="other")),
    "workspace_root": ({}, ask(workspace_root="/home/ana/shop")),
    "branch": ({}, ask(branch="other")),
    "test_suite": ({}, ask(test_suite="other")),
    "session_id": ({"purpose": NEAR}, {"purpose": NEAR, "request": {"session_id": "s1"}}),
    "purpose": ({}, ask(purpose="fix-test")),
    "mode": ({}, mode({"retrieval_params__k_out": 2})),
    "allowed_sources": ({}, ask(allowed_sources=["memory"])),
    "denied_sources": ({}, ask(denied_sources=["memory"])),
    "allowed_paths": ({}, ask(allowed_paths=["docs/"])),
    "denied_paths": ({}, ask(denied_paths=["docs/"])),
    "as_of": ({}, ask(as_of=(NOW - timedelta(days=3)).isoformat())),
    "window_start": ({}, ask(include_after=(NOW - timedelta(days=3)).isoformat())),
    "window_end": ({}, ask(exclude_after=(NOW - timedelta(days=3)).isoformat())),
    "allow_stale_memory": ({}, ask(allow_stale_memory=True)),
    "accepted_authority": ({}, ask(accepted_authority=["project-doc"])),
    "min_authority": ({}, ask(min_authority=2)),
    "require_snapshot": ({}, ask(require_snapshot=True)),
    "required_evidence": (
        ask(denied_sources=["decision-record"]),
        ask(denied_sources=["decision-record"], required_evidence=["decision-record"]),
    ),
    "recall_effort": ({}, ask(recall_effort="none")),
    "role": ({}, ask(role="architect")),
    "max_tokens": ({}, ask(max_tokens=200)),
    "weights": ({}, ask(weights={"lexical": 50})),
}
"""Columns that a request sets, and no file of policies or grants; of the others, two that a request overrides."""
OF_POLICIES = {
    "groups", "search_paths", "excluded_paths", "excluded_levels", "excluded_zones", "include_states", "max_unverified_items",
    "lane_k", "pool_k", "max_items", "max_items_per_source", "max_chars", "max_chunk_tokens", "merge_policy", "output_shape",
    "instruction_sources", "mask", "graph_floor", "graph_iterations", "mode_lanes", "path_window_start", "window_paths", "chunk_expansion",
    "exact_lookups", "citation_chaining", "include_deleted", "newest_first",
}  # fmt: skip
"""Columns that a file of policies or grants sets: `test_policy_fields` changes each of its keys."""
OF_ROLES = {"role_sources", "forbidden_sources", "source_diversity", "citation_style"}
"""Columns that an overlay sets: `test_roles` changes each of its fields."""
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


def test_a_required_citation_leaves_out_what_has_none() -> None:
    """Imports give every row a version to cite; a row without one comes from a corpus that something else wrote."""
    nowhere = {"text": "x\n", "version": None, "line_start": None, "byte_start": None}
    shown = [line([nowhere], requests={"r1": {"require_citation": wanted}}).block() for wanted in (True, False)]
    assert ["|x" in block for block in shown] == [False, True]


def test_every_column_of_a_contract_is_tried() -> None:
    tried = {*CASES, *OF_ROLES, "require_citation", *OF_POLICIES}
    assert set(CONTRACTS.columns) == tried | NO_EFFECT.keys()
    assert not tried & NO_EFFECT.keys()
    assert len(ROWS) > 30
