"""Roles: every field of an overlay has an effect alone, and a role's words are found and add to a query."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from role_world import NEUTRAL, asked, overlay, shown
from scoped_retrieval.nodes.text.role_words import EXPANSION_WEIGHT, content_words, drifting, saying, spoken
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
    assert order.index("long-1") == len(order) - 1


@pytest.mark.parametrize("limit", range(1, 140, 20))
def test_footnotes_count_against_the_budget(limit: int) -> None:
    found = asked(overlay({"synthesis_policy.citation_style": "footnote"}), budget={"max_tokens": limit})
    assert found.tables["blocks"]["tokens"][0].as_py() <= limit
    labels = [citation["label"] for citation in found.citations]
    assert all(f"[{label}]: " in found.block for label in labels)


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("Tokens expire.", "token", True),
        ("betoken", "token", False),
        ("Trust-boundary checks", "trust boundary", True),
        ("支払いの再試行", "再試行", True),
        (None, "token", False),
    ],
)
def test_a_phrase_is_found_at_the_start_of_words(text: str | None, phrase: str, found: bool):
    assert saying(spoken(pa.array([text], pa.large_string())), phrase).tolist() == [found]


def test_a_text_drifts_that_says_half_of_an_anti_goal():
    texts = spoken(pa.array(["marketing of new features", "features", "nothing"], pa.large_string()))
    assert content_words("The marketing of our features") == ("marketing", "features")
    assert drifting(texts, "The marketing of our features").tolist() == [True, True, False]
    assert drifting(texts, "of the").tolist() == [False, False, False]


def expansions(question: str, **vocabulary: object) -> list[str | None]:
    made = overlay({f"vocabulary.{name}": value for name, value in vocabulary.items()})
    return asked(made, question=question).tables["sub_queries"]["expansion"].to_pylist()


def test_synonyms_are_added_where_their_word_was_asked_with():
    synonyms = {"login": ["sign-in", "session"]}
    assert set(expansions("is login safe?", synonyms=synonyms)) == {"sign-in session"}
    assert set(expansions("is the queue safe?", synonyms=synonyms)) == {None}


def test_an_added_word_scores_a_quarter_of_one_that_was_asked_with():
    rows = [
        {"entity": "a", "source_id": "docs:a", "text": "alpha"},
        {"entity": "b", "source_id": "docs:a", "text": "beta"},
    ]
    made = overlay({"vocabulary.preferred_terms": ["beta"]})
    hits = asked(made, question="alpha", rows=rows).tables["hits"]
    scores = {
        round(score, 6)
        for lane, score in zip(*(hits[n].to_pylist() for n in ("lane", "score")), strict=True)
        if lane == "lexical"
    }
    assert min(scores) == pytest.approx(EXPANSION_WEIGHT * max(scores), abs=1e-5)


def test_a_question_that_only_the_words_of_the_role_match_has_no_strong_match():
    """S4.9: they rank, and they are no answer to what was asked."""
    rows = [{"entity": "a", "source_id": "docs:a", "text": "Every token has a threat model.", "authority": 3}]
    made = overlay({"vocabulary.preferred_terms": ["threat", "token"], "vocabulary.synonyms": {"dangers": ["threat"]}})

    def weak(question: str) -> bool:
        found = asked(made, question=question, rows=rows)
        assert len(found.citations) == 1
        return "no_strong_match" in {condition["condition"] for condition in found.conditions}

    assert weak("which restaurant is open on Sunday?")
    assert not weak("what has every model?")
    assert not weak("which models are there?")
    assert weak("what dangers?")  # a synonym is found, and the word itself is not
