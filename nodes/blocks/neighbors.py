"""Which neighbors of a row are shown with it: those with words of the question that the row lacks.

Reads the texts of adjacent rows of one document, and what their requests ask for. Gives `AskedWords` and
`reaches`, for packing. A neighbor that adds nothing is shown only if it is between the row and one that does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import gathered
from .passages import NO_TERMS, RequestTerms, adds_terms, matched_terms

__all__ = ["AskedWords", "reaches"]

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class AskedWords:
    """The words that each request asks for, and the texts that may say them."""

    owner: Int
    row: Int
    texts: pa.ChunkedArray
    match_terms: pa.Table
    requests: pa.ChunkedArray
    """The id of each request, by number."""

    def adds(self, rows: Int, best: Int) -> Bool:
        """Whether each row says a word of the question that the best row beside it does not say."""
        terms = RequestTerms.of(self.match_terms, self.requests) if len(rows) else NO_TERMS
        if not len(terms.keys):
            return np.zeros(len(rows), dtype=bool)
        both, at = np.unique(np.concatenate([rows, best]), return_inverse=True)
        texts = gathered(self.texts, self.row[both]).cast(pa.large_string())
        text, term = matched_terms(texts, self.owner[both], terms)
        return adds_terms(text, term, at[: len(rows)], at[len(rows) :])


def reaches(chain: Int, own: Bool, near: Bool, adds: Bool) -> Bool:
    """Of the rows near their best, `near` without `own`, those that add something or are between it and one that does.

    Args:
        chain: number of the chain of neighbors of each row; its rows are adjacent.
        own: which rows are the best of their chain.
        near: which rows are near it, the best among them.
        adds: of the rows in `near` without `own`, in their order, which add something.
    """
    best = np.zeros(int(chain.max(initial=0)) + 1, dtype=np.int64)
    best[chain[own]] = np.flatnonzero(own)
    first, last = best.copy(), best.copy()
    some = np.flatnonzero(near & ~own)
    np.minimum.at(first, chain[some[adds]], some[adds])
    np.maximum.at(last, chain[some[adds]], some[adds])
    return (some >= first[chain[some]]) & (some <= last[chain[some]])
