"""The vectors of rows: of title, section and text, one below the other; nothing is encoded twice.

The path is left out: it says where a text stands, and its lexical and symbol keys say that better than a vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .postings import index_text

ENCODED_COLUMNS = ("title", "section", "text")


class Encoder(Protocol):
    """What a corpus needs of an encoder; a text's vector must not depend on the texts beside it."""

    @property
    def profile(self) -> str:
        """Name, weights digest and length buckets: vectors of two profiles never meet."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """int16[texts, dimensions]: unit vectors in multiples of 2**-15."""
        ...


def vectors_of(evidence: pa.Table, stored: Iterable[pa.Table], encoder: Encoder | None) -> pa.Table | None:
    """`text_digest` and `vector` per row: those of the same text in `stored` first, then the encoder's.

    Without an encoder the other rows stay null; None if there is no vector at all.
    """
    texts = index_text(evidence, ENCODED_COLUMNS)
    digests = pa.array([hashlib.sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))
    known = [_known(table, digests) for table in stored]
    if encoder is not None:
        found = [table["text_digest"].combine_chunks() for table in known]
        missing = digests.filter(pc.invert(pc.is_in(digests, value_set=pa.concat_arrays(found)))) if found else digests
        if len(missing := missing.unique()):
            matrix = encoder.encode(texts.take(pc.index_in(missing, value_set=digests)).to_pylist())
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel(), pa.int16()), matrix.shape[1])
            known.append(pa.table({"text_digest": missing, "vector": vectors}))
    if not sum(table.num_rows for table in known):
        return None
    every = pa.concat_tables(known).combine_chunks()
    at = pc.index_in(digests, value_set=every["text_digest"].combine_chunks())
    return pa.table({"text_digest": digests, "vector": every["vector"].combine_chunks().take(at)})


def _known(table: pa.Table, digests: pa.Array) -> pa.Table:
    """The rows of a table of vectors that encode one of these texts."""
    wanted = pc.and_(pc.is_in(table["text_digest"], value_set=digests), table["vector"].is_valid())
    return table.take(pa.array(np.flatnonzero(wanted.to_numpy())))
