"""What a score term is worth: the order that the line would have had without it, from the tables of a run.

Reads `score_terms` and `rerank_weights` as a run stores them. Gives `ranked` under other weights. No lane runs again and
no text is read: `ranked` is a function of these two tables alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.score_terms import terms_of_plugins
from ...nodes.task_aware_reranking import ranked
from ...nodes.vocabulary import SCORE_TERMS

EACH = "each"
"""In place of a term: every term that weighs anything, one at a time."""


def terms_named(names: Sequence[str], rerank_weights: pa.Table) -> tuple[str, ...]:
    """The score terms that `--without` names, in the order of the vocabulary.

    Raises:
        InputError: a name is of no score term.
    """
    of_plugins = terms_of_plugins(rerank_weights.column_names)
    expect_terms(names, of_plugins)
    terms = (*SCORE_TERMS, *of_plugins)
    weighing = {term for term in terms if (pc.max(rerank_weights[term]).as_py() or 0) > 0}
    return tuple(term for term in terms if term in names or (EACH in names and term in weighing))


def expect_terms(names: Iterable[str], of_plugins: Iterable[str] = ()) -> None:
    """Refuse what names no score term."""
    known = (*SCORE_TERMS, *of_plugins, EACH)
    for name in names:
        if name not in known:
            raise InputError.one_of(known, name, "--without")


def ranked_without(term: str, score_terms: pa.Table, rerank_weights: pa.Table) -> pa.Table:
    """RANKED with the weight of one score term 0."""
    at = rerank_weights.schema.get_field_index(term)
    nothing = pa.array([0.0] * rerank_weights.num_rows, pa.float64())
    return ranked(score_terms, rerank_weights.set_column(at, rerank_weights.schema.field(at), nothing))
