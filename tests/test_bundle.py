"""RetrievalBundle 1.0: valid as declared, exact in its scores, and silent about what its caller may not know."""

from __future__ import annotations

import json
from typing import Any

import pytest
from role_world import NOW, ROWS, asked, overlay
from scoped_retrieval.pipeline.views.bundle import (
    STATES,
    EvidenceProvenance,
    FallbackDecision,
    RetrievalBundle,
    bundle,
    evidence_provenance,
    fallback_decisions,
    validate_bundle,
)
from scoped_retrieval.pipeline.views.bundle import TABLES_READ as TABLES

FORBIDS = overlay({"source_policy.forbidden_sources": ["external"], "vocabulary.preferred_terms": ["attacker"]})


def audited(found: Any) -> dict[str, Any]:
    return bundle({name: found.tables[name].to_pylist() for name in TABLES}, audit=True)


def test_a_bundle_is_valid_and_survives_json():
    from scoped_retrieval.pipeline.views.printed import to_json

    made = asked(FORBIDS, context_summary="We spoke of queues.").bundle
    assert validate_bundle(made) == {"valid": True, "errors": []}
    assert validate_bundle(json.loads(to_json(made))) == {"valid": True, "errors": []}
    assert set(made) == set(RetrievalBundle.model_fields)
    assert (made["version"], made["role_id"]) == ("1.0", "reader")
    assert made["query"]["packet_context_summary"] == "We spoke of queues."
    assert made["query"]["generated_at"] == NOW.isoformat().replace("+00:00", "Z")
    assert json.loads(json.dumps(made)) == made


def test_items_carry_their_scores_metadata_and_citation():
    found = asked(FORBIDS)
    made = found.bundle
    assert [chunk["citation"]["reference"] for chunk in made["selected"]] == [c["label"] for c in found.citations]
    for chunk in made["selected"]:
        scores = chunk["scores"]
        assert sum(scores[name] for name in ("lexical", "semantic", "metadata", "rerank")) == scores["final"]
        assert chunk["content"] in {row["text"] for row in ROWS}
    top = next(chunk for chunk in made["selected"] if chunk["document_id"] == "a/threat.md")
    assert "vocabulary" in top["overlay_hits"]
    assert (top["metadata"]["domain"], top["metadata"]["tags"]) == ("security", ["risk"])


def test_a_caller_hears_nothing_of_forbidden_rows_and_an_auditor_does():
    found = asked(FORBIDS)
    mine, theirs = found.bundle, audited(found)
    assert (mine["summary"]["forbidden_hits"], theirs["summary"]["forbidden_hits"]) == (0, 1)
    assert "forbidden_source" not in {one["reason"] for one in mine["rejected"]}
    assert {w["code"] for w in theirs["warnings"]} - {w["code"] for w in mine["warnings"]} == {"FORBIDDEN_SOURCE_HIT"}
    assert "forbidden_hit" not in {c["condition"] for c in found.conditions}


def test_a_forbidden_row_changes_no_byte_of_its_callers_bundle():
    without = [row for row in ROWS if row["entity"] != "forum"]
    one, other = (asked(FORBIDS, rows=rows) for rows in (list(ROWS), without))
    assert one.block == other.block
    told = [{name: part for name, part in found.bundle.items() if name != "diagnostics"} for found in (one, other)]
    assert told[0] == told[1]
    assert one.fallback_decisions == other.fallback_decisions


def test_applied_filters_use_the_seven_operators():
    filters = asked(FORBIDS, min_authority=1, branch="main").bundle["query"]["applied_filters"]
    told = {(one["field"], one["op"]) for one in filters}
    assert {("owner_project", "eq"), ("branch", "eq"), ("source_id", "not_in"), ("authority", "gt")} <= told
    assert {op for _, op in told} <= {"eq", "neq", "in", "not_in", "gt", "lt", "contains"}


@pytest.mark.parametrize(
    ("changes", "rows", "state", "action"),
    [
        ({}, [{"entity": "a", "source_id": "docs:a", "text": "The queue."}], "healthy", "continue"),
        ({}, [{"entity": "a", "source_id": "docs:a", "text": "Another thing."}], "no_strong_match", "warn"),
        ({"retrieval_policy.freshness_max_age_days": 1.0},
         [{"entity": "a", "source_id": "docs:a", "text": "The queue.", "days": 9}], "stale_dominant", "warn"),
        ({}, [{"entity": e, "source_id": "docs:a", "text": f"The queue is {e}.", "conflict_set": "q"} for e in ("up", "down")][:1],
         "conflicting", "warn"),
    ],
)  # fmt: skip
def test_each_state_has_its_action(changes: dict[str, Any], rows: list[dict[str, Any]], state: str, action: str):
    found = asked(overlay(changes), rows=rows, vectors=True)
    assert (state, action) in {(one["state"], one["action"]) for one in found.fallback_decisions}
    for one in found.fallback_decisions:
        FallbackDecision.model_validate(one)


def test_states_are_a_set_and_the_worst_action_stands_first():
    rows = [{"condition": c, "action": a, "message": "m"} for c, a in (
        ("forbidden_hit", "continue"), ("over_budget", "degrade"), ("conflicting", "warn"), ("stale_dominant", "warn"))]  # fmt: skip
    assert [one["state"] for one in fallback_decisions(rows)] == ["stale_dominant", "conflicting", "forbidden_hit"]
    assert len(STATES) == 6


def test_provenance_of_each_item_names_its_citation():
    made = asked(overlay()).bundle
    told = evidence_provenance(made)
    assert [one["citation_reference"] for one in told] == [chunk["citation"]["reference"] for chunk in made["selected"]]
    for one in told:
        EvidenceProvenance.model_validate(one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "2.0"}, "Expected '1.0', got '2.0' - at b.json: version"),
        ({"selected": [{}]}, "Expected a value, got nothing - at b.json: selected[0].chunk_id"),
        ({"summary": "some words of evidence"}, "got text of 22 characters - at b.json: summary"),
    ],
)
def test_what_is_wrong_with_a_bundle_is_named_without_quoting_text(change: dict[str, Any], message: str):
    found = validate_bundle(asked(overlay()).bundle | change, "b.json")
    assert not found["valid"]
    assert any(message in error for error in found["errors"]), found["errors"]
