"""The text of a row that is indexed: the columns whose terms count, each on its own lines.

Postings, vectors and feedback terms are all computed from it, so that they cover the same words.
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
    """The given columns of each row, each on its own lines, nulls left out."""
    texts = [flat(evidence[name]).cast(pa.large_string()) for name in columns]
    return pc.binary_join_element_wise(*texts, pa.scalar("\n", pa.large_string()), null_handling="skip")
