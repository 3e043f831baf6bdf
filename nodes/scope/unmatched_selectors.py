"""Source selectors of requests that pick no source of A(r) (S0.21): often they are misspelled.

Gives `source_names`, the sources of some rows as SCOPE_TIMES has them, and `unmatched`, the selectors that pick none of those.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import distinct_rows, flat
from .selectors import SourcePairs, selected_pairs, source_pairs

_BETWEEN = "\0"
"""Between selectors: none has it."""


def source_names(pairs: SourcePairs, rows: NDArray[np.int64]) -> list[str]:
    """Class and id of the sources of some of the rows that `pairs` is of, sorted."""
    used = pa.array(np.unique(pairs.codes[rows]))
    return sorted(
        f"{c}\t{s}"
        for c, s in zip(*(a.take(used).to_pylist() for a in (pairs.origin_class, pairs.source_id)), strict=True)
    )


def unmatched(selectors: pa.ChunkedArray, sources: pa.ChunkedArray, moment: NDArray[np.int64]) -> pa.Array:
    """Of each request, the selectors that pick none of the sources of its A(r); a denied request has none."""
    lists = flat(selectors)
    asked = np.flatnonzero((moment >= 0) & np.asarray(lists.is_valid()))
    spelled = pc.binary_join(lists.take(pa.array(asked)), _BETWEEN).dictionary_encode()
    first, alike = distinct_rows(moment[asked], np.asarray(spelled.indices).astype(np.int64))
    found: list[list[str]] = [[]]
    for at in asked[first].tolist():
        stored = [pair.partition("\t") for pair in sources[int(moment[at])].as_py()]
        pairs = source_pairs(*(pa.array([pair[part] for pair in stored], pa.string()) for part in (0, 2)))
        found.append([one for one in lists[at].as_py() if not selected_pairs([one], pairs).any()])
    place = np.zeros(len(moment), dtype=np.int64)
    place[asked] = alike + 1
    return pa.array(found, pa.list_(pa.string())).take(pa.array(place))
