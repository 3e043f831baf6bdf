"""What a score term is worth: the order that the line would have had without it, from the tables of a run.

Reads `score_terms` and `rerank_weights` as a run stores them. Gives `ranked` under other weights. No lane runs again and
no text is read: `ranked` is a function of these two tables alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.tables import RERANK_WEIGHTS
from ...nodes.task_aware_reranking import ranked
from ...nodes.vocabulary import SCORE_TERMS

EACH = "each"
"""In place of a term: every term that weighs anything, one at a time."""


def terms_named(names: Sequence[str], rerank_weights: pa.Table) -> tuple[str, ...]:
    """The score terms that `--without` names, in the order of the vocabulary.

    Raises:
        InputError: a name is of no score term.
    """
    for name in names:
        expect_term(name)
    weighing = {term for term in SCORE_TERMS if (pc.max(rerank_weights[term]).as_py() or 0) > 0}
    return tuple(term for term in SCORE_TERMS if term in names or (EACH in names and term in weighing))


def expect_term(name: str) -> None:
    """Refuse what names no score term."""
    if name not in (*SCORE_TERMS, EACH):
        raise InputError.one_of((*SCORE_TERMS, EACH), name, "--without")


def ranked_without(term: str, score_terms: pa.Table, rerank_weights: pa.Table) -> pa.Table:
    """RANKED with the weight of one score term 0."""
    at = RERANK_WEIGHTS.schema.get_field_index(term)
    nothing = pa.array([0.0] * rerank_weights.num_rows, pa.float64())
    return ranked(score_terms, rerank_weights.set_column(at, RERANK_WEIGHTS.schema.field(at), nothing))
