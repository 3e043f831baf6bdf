"""What of a row is indexed as text: the columns whose terms count, on lines of their own.

The postings of rows, their vectors and the terms of feedback are all made from it, so that they speak of the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import flat

__all__ = ["TEXT_COLUMNS", "index_text"]

TEXT_COLUMNS = ("title", "path", "section", "text")
"""The columns of EVIDENCE that count towards a row's `length`."""


def index_text(evidence: pa.Table | Mapping[str, pa.Array], columns: Sequence[str]) -> pa.Array:
    """The given columns of each row on lines of their own, nulls left out."""
    texts = [flat(evidence[name]).cast(pa.large_string()) for name in columns]
    return pc.binary_join_element_wise(*texts, pa.scalar("\n", pa.large_string()), null_handling="skip")
