"""The vectors of rows: of title, section and text, one below the other; nothing is encoded twice, not
even after an interruption.

The path is left out: it says where a text stands, and its lexical and symbol keys say that better than a vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .pieces import PIECE, Pieces
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


def vectors_of(
    evidence: pa.Table, stored: Iterable[pa.Table], encoder: Encoder | None, pieces: Pieces | None = None
) -> pa.Table | None:
    """`text_digest` and `vector` per row: those of the same text in `stored` first, then in `pieces`, then the encoder's.

    Without an encoder the other rows stay null; None if there is no vector at all. What the encoder makes goes to `pieces`.
    """
    texts = index_text(evidence, ENCODED_COLUMNS)
    digests = pa.array([hashlib.sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))
    known = [_known(table, digests) for table in stored]
    if encoder is not None:
        known += [_known(table, digests) for table in (pieces.tables() if pieces else ())]
        found = [table["text_digest"].combine_chunks() for table in known]
        missing = digests.filter(pc.invert(pc.is_in(digests, value_set=pa.concat_arrays(found)))) if found else digests
        missing = missing.unique()
        known += _made(missing, texts.take(pc.index_in(missing, value_set=digests)), encoder, pieces)
    if not sum(table.num_rows for table in known):
        return None
    every = pa.concat_tables(known).combine_chunks()
    at = pc.index_in(digests, value_set=every["text_digest"].combine_chunks())
    return pa.table({"text_digest": digests, "vector": every["vector"].combine_chunks().take(at)})


def _made(digests: pa.Array, texts: pa.Array, encoder: Encoder, pieces: Pieces | None) -> Iterator[pa.Table]:
    """The vectors of these texts, made piece by piece."""
    total = len(texts)
    if pieces and total:
        pieces.told(0, total)
    for start in range(0, total, PIECE):
        matrix = encoder.encode(texts.slice(start, PIECE).to_pylist())
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel(), pa.int16()), matrix.shape[1])
        table = pa.table({"text_digest": digests.slice(start, PIECE), "vector": vectors})
        if pieces:
            if total > PIECE:
                pieces.keep(table)
            pieces.told(min(start + PIECE, total), total)
        yield table


def _known(table: pa.Table, digests: pa.Array) -> pa.Table:
    """The rows of a table of vectors that encode one of these texts."""
    wanted = pc.and_(pc.is_in(table["text_digest"], value_set=digests), table["vector"].is_valid())
    return table.take(pa.array(np.flatnonzero(wanted.to_numpy())))
