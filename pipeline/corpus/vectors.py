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

from .packs import Pack
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


def vectors_of(evidence: pa.Table, packs: Iterable[Pack], encoder: Encoder | None) -> pa.Table | None:
    """`text_digest` and `vector` per row: stored vectors of the same text first, then the encoder's.

    Without an encoder the other rows stay null; None if there is no vector at all.
    """
    texts = index_text(evidence, ENCODED_COLUMNS)
    digests = pa.array([hashlib.sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))
    known = [table for pack in packs if (table := pack.vectors) is not None]
    stored = pa.concat_tables(known).filter(pc.field("vector").is_valid()) if known else None
    if stored is not None:
        stored = stored.filter(pc.is_in(stored["text_digest"], value_set=digests)).combine_chunks()
    missing = (
        digests
        if stored is None
        else digests.filter(pc.invert(pc.is_in(digests, value_set=stored["text_digest"].combine_chunks())))
    )
    if encoder is not None and len(missing):
        missing = missing.unique()
        first = pc.index_in(missing, value_set=digests)
        matrix = encoder.encode(texts.take(first).to_pylist())
        fresh = pa.table(
            {
                "text_digest": missing,
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel(), pa.int16()), matrix.shape[1]),
            }
        )
        stored = fresh if stored is None else pa.concat_tables([stored.cast(fresh.schema), fresh]).combine_chunks()
    if stored is None or not stored.num_rows:
        return None
    at = pc.index_in(digests, value_set=stored["text_digest"].combine_chunks())
    return pa.table({"text_digest": digests, "vector": stored["vector"].take(at)})
