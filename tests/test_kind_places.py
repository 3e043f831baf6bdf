"""Variety is a rule of packing: the best item of a kind has a place at the end of what is shown, and ranking is not touched."""

from __future__ import annotations

from typing import Any

import pytest
from scoped_retrieval.nodes.evidence_packing import KEPT_SHARE
from selection_line import WEIGHTS, line

PLAIN = dict.fromkeys(WEIGHTS, 0.0) | {"semantic": 1.0}
"""Weights of a world in which the cosine is the score."""


def shown(*items: tuple[str, str, float], **contract: Any) -> list[str]:
    """The texts of a block that has room for about three items, in their order, by text, kind and score."""
    rows = [
        {"text": text + " word" * 100, "evidence_kind": kind, "semantic_raw": score, "length": 50}
        for text, kind, score in items
    ]
    made = line(rows, requests={"r1": {"max_tokens": 450} | contract}, weights=PLAIN).run("trimmed")
    return [text.split()[0] for text in made["trimmed"]["visible_text"].to_pylist()]


CODE = [("one", "code", 0.9), ("two", "code", 0.88), ("three", "code", 0.86), ("four", "code", 0.84)]


def test_the_best_item_of_a_near_kind_takes_the_last_place_and_no_other() -> None:
    assert shown(*CODE) == ["one", "two", "three"]
    assert shown(*CODE, ("rule", "rule", 0.7)) == ["one", "two", "rule"]


def test_a_kind_that_is_far_behind_has_no_place() -> None:
    assert shown(*CODE, ("rule", "rule", 0.5)) == ["one", "two", "three"]


@pytest.mark.parametrize("score", [0.5, 0.1])
def test_a_required_kind_has_a_place_from_any_rank(score: float) -> None:
    assert shown(*CODE, ("rule", "rule", score), required_evidence=["project-rule"]) == ["one", "two", "rule"]


def test_what_is_required_comes_before_what_is_near() -> None:
    items = [*CODE, ("doc", "doc", 0.8), ("rule", "rule", 0.7)]
    assert shown(*items) == ["one", "two", "doc"]
    assert shown(*items, required_evidence=["project-rule"]) == ["one", "two", "rule"]


def test_history_does_not_stand_for_its_kind() -> None:
    rows = [
        {"text": f"{name} " + "word " * 100, "evidence_kind": kind, "semantic_raw": score, "length": 50, "lifecycle": state}
        for name, kind, score, state in [
            *((name, kind, score, "verified") for name, kind, score in CODE), ("old", "rule", 0.8, "deprecated"),
        ]
    ]  # fmt: skip
    made = line(rows, requests={"r1": {"max_tokens": 450}}, weights=PLAIN).run("trimmed")
    assert "old" not in " ".join(made["trimmed"]["visible_text"].to_pylist())


def test_a_small_share_of_the_budget_is_kept() -> None:
    kinds = ("rule", "doc", "memory", "test-log", "decision-record")
    others = [(kind, kind, 0.8 - 0.001 * place) for place, kind in enumerate(kinds)]
    found = shown(*[(f"c{n}", "code", 0.9 - 0.001 * n) for n in range(9)], *others, max_tokens=1100)
    assert 1 <= sum(text in kinds for text in found) <= len(found) // KEPT_SHARE + 1
    assert found[0] == "c0"
