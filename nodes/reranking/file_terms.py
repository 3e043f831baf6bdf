"""The two score classes of a file: what it says as a whole, and what its best passages say together.

Reads candidates, their lexical terms, and the best files of each request. Gives `FileTerms`.

The one thing to know: every row of a file has the same terms, so files come in the order of both, and the lexical term
says which of its rows leads. A long file that says a little everywhere has a good whole and poor passages; one long
definition has the reverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_rows, gathered_columns, rank_within
from ..columns.numbers import quantise
from ..columns.orders import order_by
from ..scope.source_files import FILE_COLUMNS, SOURCE_COLUMNS, file_codes, is_source

PASSAGES = 3
"""Best rows of a file that are added up."""

Float = NDArray[np.float64]
Int = NDArray[np.int64]


class FileTerms(NamedTuple):
    """Both terms of each candidate, 0 to 1, multiples of 2**-30."""

    file: Float
    passages: Float


def file_terms(owner: Int, row: Int, lexical: Float, best: tuple[Int, Int, Float], evidence: pa.Table) -> FileTerms:
    """The terms of candidates; 0 for rows that are no source, and of files that are not among the best.

    Args:
        owner: request number of each candidate.
        row: its row in `evidence`.
        lexical: its lexical term.
        best: request number, a row and the score of each of the best files.
        evidence: EVIDENCE.
    """
    asked, example, score = best
    terms = FileTerms(np.zeros(len(row)), np.zeros(len(row)))
    if not len(asked) or not len(row):
        return terms
    names = dict.fromkeys((*FILE_COLUMNS, *SOURCE_COLUMNS))
    rows = gathered_columns(evidence, names, np.concatenate((row, example)))
    source = is_source({name: rows[name][: len(row)] for name in SOURCE_COLUMNS}).nonzero()[0]
    code = file_codes(rows)
    _, pair = distinct_rows(np.concatenate((owner[source], asked)), np.concatenate((code[source], code[len(row) :])))
    of_pair = np.zeros(int(pair.max()) + 1)
    np.maximum.at(of_pair, pair[len(source) :], score)
    pair = pair[: len(source)]
    known = of_pair[pair] > 0
    source, pair = source[known], pair[known]
    terms.file[source] = of_pair[pair]
    order = order_by(pair, -lexical[source])
    order = order[rank_within(pair[order]) < PASSAGES]
    total = np.bincount(pair[order], weights=lexical[source[order]], minlength=len(of_pair))
    terms.passages[source] = quantise(total / PASSAGES)[pair]
    return terms
