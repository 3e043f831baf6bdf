"""Every field of an overlay has an effect: changing it alone changes evidence, order, block bytes or the action."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from role_world import NEUTRAL, asked, overlay, shown
from scoped_retrieval.pipeline.config.policies.roles import RoleOverlay

W = "retrieval_policy.weights"


def prefers(pattern: str = "docs:b", reason: str = "it is kept there", **more: float) -> dict[str, Any]:
    return {"pattern": pattern, "reason": reason, **more}


PREFERRED = {"source_policy.preferred_sources": [prefers(boost=1.0)]}
FIELDS: list[tuple[str, Any, dict[str, Any]]] = [
    ("label", "Other", {"vocabulary.preferred_terms": ["queue"], "vocabulary.boost_phrases": ["the queue"], "mission": "queue"}),
    ("mission", "attacker token replayed", {}),
    ("anti_goals", ["fake clock"], {}),
    ("vocabulary.preferred_terms", ["attacker"], {}),
    ("vocabulary.synonyms", {"queue": ["factor"]}, {}),
    ("vocabulary.boost_phrases", ["fake clock"], {}),
    ("vocabulary.suppress_phrases", ["one component"], {}),
    ("source_policy.preferred_sources", [prefers(boost=1.0)], {}),
    ("source_policy.allowed_sources", ["docs:*"], {}),
    ("source_policy.forbidden_sources", ["external"], {}),
    ("source_policy.trust_tier_boosts", {"authoritative": -1.0}, {}),
    ("source_policy.document_type_boosts", {"adr": -1.0}, {}),
    ("source_policy.domain_boosts", {"security": 1.0}, {}),
    ("retrieval_policy.max_selected_chunks", 2, {}),
    (W, {"lexical": 0.7, "semantic": 0.1, "metadata": 0.1, "rerank": 0.1}, PREFERRED),
    (W, {"lexical": 0.1, "semantic": 0.7, "metadata": 0.1, "rerank": 0.1}, PREFERRED),
    (W, {"lexical": 0.1, "semantic": 0.1, "metadata": 0.1, "rerank": 0.7}, PREFERRED),
    ("retrieval_policy.require_source_diversity", True, {"vocabulary.boost_phrases": ["drains", "fills"]}),
    ("retrieval_policy.max_chunks_per_source", 1, {}),
    ("retrieval_policy.freshness_max_age_days", 0.5, {}),
    ("retrieval_policy.stale_penalty", 1.0, {"retrieval_policy.freshness_max_age_days": 800.0, **PREFERRED}),
    ("retrieval_policy.role_mismatch_penalty", 1.0, {"vocabulary.boost_phrases": ["fake clock"]}),
    ("synthesis_policy.prioritize", ["risk"], {}),
    ("synthesis_policy.avoid", ["adr"], {}),
    ("synthesis_policy.required_evidence_kinds", ["test-log"], {}),
    ("synthesis_policy.citation_style", "footnote", {}),
    ("synthesis_policy.citation_style", "bundle_only", {}),
    ("bridge_roles", ["tester"], {"retrieval_policy.role_mismatch_penalty": 1.0, "vocabulary.boost_phrases": ["fake clock"]}),
]  # fmt: skip


def answer(changes: dict[str, Any]) -> tuple[Any, ...]:
    """What a caller has of it: the rows and their order, the bytes of two shapes, the action."""
    return answered(json.dumps(changes))


@cache
def answered(changes: str) -> tuple[Any, ...]:
    made = overlay(json.loads(changes))
    found, cited = asked(made, vectors=True), asked(made, vectors=True, output_shape="citation-pack")
    return shown(found), found.block, cited.block, found.action


@pytest.mark.parametrize(("field", "value", "given"), FIELDS, ids=[f"{f}={str(v)[:24]}" for f, v, _ in FIELDS])
def test_a_field_changed_alone_changes_the_answer(field: str, value: Any, given: dict[str, Any]) -> None:
    assert answer(given) != answer({**given, field: value})


def test_every_field_of_an_overlay_is_tried_above_or_elsewhere() -> None:
    elsewhere = {"role_id", "version", "eval_profile.golden_set_id", "eval_profile.distinctiveness_checks"}
    parts = {name: getattr(field.annotation, "model_fields", None) for name, field in RoleOverlay.model_fields.items()}
    leaves = {f"{name}.{inner}" if inner else name for name, inners in parts.items() for inner in inners or [""]}
    assert len(leaves) > len(NEUTRAL)
    assert leaves - elsewhere <= {field for field, _, _ in FIELDS}


@pytest.mark.parametrize(("part", "value"), [("boost", 0.2), ("reason", "other words"), ("pattern", "docs:c")])
def test_every_part_of_a_preferred_source_counts(part: str, value: Any) -> None:
    key = "source_policy.preferred_sources"
    one = answer({key: [prefers(boost=0.8)]})
    assert one != answer({key: [{**prefers(boost=0.8), part: value}]})


def test_a_role_sees_no_row_that_its_requests_would_not_see_without_it() -> None:
    widest = overlay(
        {"source_policy.allowed_sources": ["*"], "vocabulary.preferred_terms": ["secret"], "bridge_roles": ["x"]}
    )
    rows = [{"entity": "open", "source_id": "docs:a", "text": "The queue is open."},
            {"entity": "shut", "source_id": "docs:a", "text": "The queue is secret.", "principals": []}]  # fmt: skip
    assert shown(asked(widest, rows=rows)) == ["open"]


def test_sources_take_turns_where_diversity_is_required() -> None:
    changes = {"vocabulary.boost_phrases": ["drains", "fills"], "retrieval_policy.require_source_diversity": True}
    order = shown(asked(overlay(changes)))
    assert order.index("long-2") == len(order) - 1


@pytest.mark.parametrize("limit", range(1, 140, 20))
def test_footnotes_count_against_the_budget(limit: int) -> None:
    found = asked(overlay({"synthesis_policy.citation_style": "footnote"}), budget={"max_tokens": limit})
    assert found.tables["blocks"]["tokens"][0].as_py() <= limit
    labels = [citation["label"] for citation in found.citations]
    assert all(f"[{label}]: " in found.block for label in labels)
