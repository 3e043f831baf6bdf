"""Which neighbors of a row are shown with it: those with words of the question that the row lacks.

Reads the texts of adjacent rows of one document, and the query terms of their requests. Gives `AskedWords` and
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
    """The query words of each request, and the texts that may contain them."""

    owner: Int
    row: Int
    texts: pa.ChunkedArray
    match_terms: pa.Table
    requests: pa.ChunkedArray
    """The id of each request, by number."""

    def adds(self, rows: Int, best: Int) -> Bool:
        """Whether each row contains a word of the question that its best row lacks."""
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
        own: the best row of each chain.
        near: the rows near it, including the best.
        adds: whether each row in `near` without `own`, in order, adds something.
    """
    best = np.zeros(int(chain.max(initial=0)) + 1, dtype=np.int64)
    best[chain[own]] = np.flatnonzero(own)
    first, last = best.copy(), best.copy()
    some = np.flatnonzero(near & ~own)
    np.minimum.at(first, chain[some[adds]], some[adds])
    np.maximum.at(last, chain[some[adds]], some[adds])
    return (some >= first[chain[some]]) & (some <= last[chain[some]])
