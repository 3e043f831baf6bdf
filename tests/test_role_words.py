"""A role's words: where a phrase is found, what speaks of an anti-goal, and what a query gains."""

from __future__ import annotations

import pyarrow as pa
import pytest
from role_world import asked, overlay
from scoped_retrieval.nodes.text.role_words import EXPANSION_WEIGHT, content_words, drifting, saying, spoken


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
