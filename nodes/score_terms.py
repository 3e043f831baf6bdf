"""The score terms of a row, each declared once with its columns, its part of a role's weights and its docs.

`TERMS` is the only list; the tables of scores, weights and policies derive their columns from it.
`task_aware_reranking.score_terms` computes the values. A plugin term is a `ScoreTerm` with its own `value` and weight,
see `docs/how-to/extend.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

Family = Literal["plain", "turn", "role", "cross_encoder", "file", "feedback"]
Group = Literal["lexical", "semantic", "metadata", "rerank"]


@dataclass(frozen=True)
class ScoreTerm:
    """One term of the score.

    Its contribution to `final` is weight times value, a multiple of 2**-30.
    """

    name: str
    doc: str
    """Describes the value."""
    family: Family = "plain"
    group: Group = "rerank"
    """The one of the four scores of document 004 that it counts towards."""
    share: tuple[float, str] | None = None
    """Its part of one of a role's four weights (S4.16); the parts of a weight add up to it."""
    under_roles: bool = True
    """For a term without a share: whether the purpose's weight also applies under a role; else it is 0 there."""
    contribution: str = "contribution"
    weighed: str = ""
    """Describes the weight in a purpose, where the default text is not enough."""
    reason: str = ""
    """The selection reason in words, where its contributions are the largest; a plugin term's name by default."""
    signal: str = ""
    """Instead of `reason`: the column of SCORE_TERMS that has the reason of each row."""
    weight: float = 0.0
    """For a plugin term: its weight in every request, unless a weight file sets another."""
    columns: tuple[str, ...] = ()
    """For a plugin term: the columns of EVIDENCE that `value` reads."""
    value: Callable[[Any, Any], Any] | None = None
    """For a plugin term: computes the value of every candidate, 0 to 1, from stored rows and request fields."""

    @property
    def weight_doc(self) -> str:
        """The description of the weight in a purpose."""
        return self.weighed or f"weight of the {self.name} term"


_MEANING, _WORDS = "close in meaning", "matched the words"
_NO_CODE = "0 for rows that are no source code"
_OF_FILE = "contribution; the same for every row of a file"
_NO_FEEDBACK = "0 = it is not computed"
_MATCHING = "0 for a row that matches nothing where others do"

TERMS = (
    ScoreTerm(
        "semantic",
        "cosine, clipped at 0; of source code no less than its `outlines` term",
        group="semantic",
        share=(1.0, "semantic"),
        reason=_MEANING,
        contribution="contribution: weight times term, a multiple of 2**-30",
    ),
    ScoreTerm(
        "lexical",
        "BM25 as a share of the most that the request's terms could give",
        group="lexical",
        share=(0.5, "lexical"),
        reason=_WORDS,
    ),
    ScoreTerm(
        "lexical_feedback",
        "BM25 of the feedback terms as a share of the most that they could give; 0 = no feedback",
        "feedback",
        "lexical",
        under_roles=False,
        reason=_WORDS,
        weighed=f"weight of the lexical feedback; {_NO_FEEDBACK}",
    ),
    ScoreTerm(
        "semantic_feedback",
        "mean cosine with the best feedback rows, clipped at 0; 0 = no feedback",
        "feedback",
        "semantic",
        under_roles=False,
        reason=_MEANING,
        weighed=f"weight of the semantic feedback; {_NO_FEEDBACK}",
    ),
    ScoreTerm(
        "anchor",
        "0 without a hit; else 0.6 of the strongest anchor hit, and the share of all anchors on top",
        group="lexical",
        share=(0.5, "lexical"),
        signal="anchor_signal",
    ),
    ScoreTerm(
        "authority",
        f"authority rank, lifecycle and confidence; {_MATCHING}",
        group="metadata",
        share=(0.25, "metadata"),
        signal="source_signal",
    ),
    ScoreTerm(
        "recency",
        f"2 ** (-age at as_of / half-life of its kind); {_MATCHING}",
        group="metadata",
        share=(0.25, "metadata"),
        signal="source_signal",
    ),
    ScoreTerm(
        "actionability",
        f"how far its kind supports the purpose's next action; {_MATCHING}",
        share=(0.25, "rerank"),
        signal="source_signal",
    ),
    ScoreTerm(
        "diversity",
        "1 for the best row of a kind, else 0",
        under_roles=False,
        contribution="contribution: for a kind not chosen before it (greedy)",
    ),
    ScoreTerm(
        "scope",
        "closeness inside the scope: project, branch, session, test suite, directory",
        group="metadata",
        under_roles=False,
        signal="source_signal",
    ),
    ScoreTerm(
        "turn_context",
        "what the turns beside it add to its share of BM25, or take from it; 0 of other rows",
        "turn",
        "lexical",
        contribution="contribution; negative where the turns beside it say less of the words",
    ),
    ScoreTerm("turn_answer", "the share of BM25 of a question in the turn before it", "turn", "lexical"),
    ScoreTerm(
        "turn_session", "BM25 of its session as a share of the most that the terms could give one", "turn", "lexical"
    ),
    ScoreTerm(
        "vocabulary",
        "how far it speaks the role's words, -1 to 1; 0 without a role",
        "role",
        share=(0.75, "rerank"),
        signal="role_signal",
        contribution="contribution; negative where the row speaks of what the role avoids",
    ),
    ScoreTerm(
        "metadata",
        "the role's boosts less its penalties, -1 to 1; 0 without a role",
        "role",
        "metadata",
        share=(0.5, "metadata"),
        signal="role_signal",
        contribution="contribution; negative where penalties outweigh boosts",
    ),
    ScoreTerm(
        "cross_encoder",
        "the cross-encoder's score of question and text; 0 outside its pool, and where it is off",
        "cross_encoder",
        reason="reads as an answer",
        contribution="contribution; 0 where no cross-encoder is set",
        weighed="weight of the cross-encoder term, under a role as well; without a cross-encoder the term is 0",
    ),
    ScoreTerm(
        "file",
        f"how well its file answers as a whole; {_NO_CODE}",
        "file",
        "lexical",
        reason=_WORDS,
        contribution=_OF_FILE,
        weighed="weight of the file term, under a role as well; of rows that are no source code the term is 0",
    ),
    ScoreTerm(
        "passages",
        f"how well the three best candidates of its file answer; {_NO_CODE}",
        "file",
        "lexical",
        reason=_WORDS,
        contribution=_OF_FILE,
        weighed="weight of the passages term, under a role as well; 0 where the file term is",
    ),
    ScoreTerm(
        "outlines",
        f"how near the three nearest candidates of its file are, in the mean; {_NO_CODE}",
        "file",
        "semantic",
        reason=_MEANING,
        contribution=_OF_FILE,
        weighed="weight of the outlines term, under a role as well; without vectors the term is 0",
    ),
    ScoreTerm(
        "title",
        "how well the question and the name of its file cover each other; of a document also the headings, and half as much",
        "file",
        "lexical",
        reason="named in the question",
        weighed="weight of the title term, under a role as well",
    ),
    ScoreTerm(
        "definition",
        "how clearly the question names a symbol that it defines, in source code, quotes its text, or names the test that it is",
        "file",
        "lexical",
        reason="has what is asked for by name",
        weighed="weight of the definition term, under a role as well",
    ),
)
"""Every score term, in column order."""

SCORED = tuple(term for term in TERMS if term.name != "diversity")
"""The terms of a row by itself; diversity depends on the rows chosen before."""


def named(*families: Family) -> tuple[str, ...]:
    """The names of the terms in some families."""
    return tuple(term.name for term in TERMS if term.family in families)


def terms_of_plugins(columns: Iterable[str]) -> tuple[str, ...]:
    """The plugin terms among the columns of a table of scores: their names contain a dot."""
    return tuple(name for name in columns if "." in name)
