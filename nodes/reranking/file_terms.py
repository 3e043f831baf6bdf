"""The three score terms of a file: its text as a whole, its best passages together, and its definitions.

Reads candidates, their lexical and semantic terms, and the best files of each request. Gives `FileTerms`.

Note: every row of a file has the same terms, so they order files, and the lexical term decides which row of a file
leads. A long file with a few matches everywhere has a good whole and poor passages; one long definition has the
reverse. Vectors of code are those of outlines (of one row each, see the corpus), so definitions are near the question;
only candidates of a file count, so only rows that the request may see. Rows without a vector do not affect how near a
file is, so a file of one outline is as near as that outline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_rows, gathered_columns, order_by, rank_within
from ..columns.numbers import quantise
from ..scope.source_files import FILE_COLUMNS, file_codes, is_source

PASSAGES = 3
"""Best rows of a file that are added up, for passages and for outlines."""

Float = NDArray[np.float64]
Int = NDArray[np.int64]


class FileTerms(NamedTuple):
    """The terms of each candidate, 0 to 1, multiples of 2**-30."""

    file: Float
    passages: Float
    outlines: Float


def file_terms(
    owner: Int,
    rows: Mapping[str, pa.Array],
    lexical: Float,
    semantic: Float,
    best: tuple[Int, Int, Float],
    evidence: pa.Table,
) -> FileTerms:
    """The terms of candidates; 0 for rows that are not source and, except for outlines, of files not among the best.

    Args:
        owner: request number of each candidate.
        rows: its stored columns.
        lexical: its lexical term.
        semantic: its semantic term.
        best: request number, a row and the score of each of the best files.
        evidence: EVIDENCE.
    """
    terms = FileTerms(*(np.zeros(len(owner)) for _ in FileTerms._fields))
    asked, example, score = best
    if not len(owner) or not (len(asked) or semantic.any()):
        return terms
    source = is_source(rows).nonzero()[0]
    if not len(source):
        return terms
    examples = gathered_columns(evidence, FILE_COLUMNS, example)
    code = file_codes({name: pa.concat_arrays([rows[name], examples[name]]) for name in FILE_COLUMNS})
    request = np.concatenate((owner[source], asked))
    _, pair = distinct_rows(request, np.concatenate((code[source], code[len(owner) :])))
    of_pair = np.zeros(int(pair.max()) + 1)
    np.maximum.at(of_pair, pair[len(source) :], score)
    pair = pair[: len(source)]
    terms.file[source] = of_pair[pair]
    together, _ = _of_best(pair, lexical[source])
    terms.passages[source] = np.where(of_pair[pair] > 0, quantise(together / PASSAGES), 0.0)
    together, near = _of_best(pair, semantic[source])
    terms.outlines[source] = quantise(together / np.maximum(near, 1))
    return terms


def _of_best(file: Int, term: Float) -> tuple[Float, Int]:
    """Per row the sum of the terms of the `PASSAGES` best rows of its file, and how many of these are above 0."""
    if not term.any():
        return np.zeros(len(term)), np.zeros(len(term), dtype=np.int64)
    order = order_by(file, -term)
    order = order[(rank_within(file[order]) < PASSAGES) & (term[order] > 0)]
    files = int(file.max()) + 1
    together = np.bincount(file[order], weights=term[order], minlength=files).astype(np.float64)
    return together[file], np.bincount(file[order], minlength=files)[file]
