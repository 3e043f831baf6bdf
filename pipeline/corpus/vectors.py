"""The vectors of rows, encoded from their `outlines`; no stored text is encoded twice.

Note: *whether* a row has a vector depends only on imports of that row. An import encodes its own rows and no others, and
without an encoder a row never gets the vector of equal text elsewhere. Otherwise a row that a reader may not see would
affect how the rows are found that the reader sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ..encoders.unit_vectors import Encoder, encoded
from .outlines import encoded_texts
from .packs import VECTORS, Pack

OnEncoded = Callable[[int, int], None]
"""Called with the number of encoded texts and their total, before the first text and after each `TEXTS_AT_ONCE`."""
TEXTS_AT_ONCE = 128
"""Less than half a minute on one core."""


def vectors_of(
    evidence: pa.Table, stored: Iterable[Pack], encoder: Encoder, on_encoded: OnEncoded = lambda done, total: None
) -> pa.Table:
    """`text_digest` and `vector` per row: those of the same text in `stored`, else newly encoded.

    Raises:
        StoreError: a pack with such a vector is damaged.
    """
    texts = encoded_texts(evidence)
    digests = pa.array([hashlib.sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))
    known = [_stored_vectors(pack, digests) for pack in stored if VECTORS in pack]
    found = [table["text_digest"].combine_chunks() for table in known]
    missing = digests.filter(pc.invert(pc.is_in(digests, value_set=pa.concat_arrays(found)))) if found else digests
    missing = missing.unique()
    known += _made(missing, texts.take(pc.index_in(missing, value_set=digests)), encoder, on_encoded)
    every = pa.concat_tables(known)
    at = pc.index_in(digests, value_set=flat(every["text_digest"]))
    return pa.table({"text_digest": digests, "vector": every["vector"].combine_chunks().take(at)})


def _made(digests: pa.Array, texts: pa.Array, encoder: Encoder, on_encoded: OnEncoded) -> Iterator[pa.Table]:
    """Encode these texts."""
    total = len(texts)
    if total:
        on_encoded(0, total)
    for start in range(0, total, TEXTS_AT_ONCE):
        matrix = encoded(encoder, texts.slice(start, TEXTS_AT_ONCE).to_pylist(), (start, total))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel(), pa.int16()), matrix.shape[1])
        on_encoded(min(start + TEXTS_AT_ONCE, total), total)
        yield pa.table({"text_digest": digests.slice(start, TEXTS_AT_ONCE), "vector": vectors})


def _stored_vectors(pack: Pack, digests: pa.Array) -> pa.Table:
    """The rows of a pack's vectors that encode one of these texts; verifies the file if there are any."""
    table = pack.table(VECTORS)
    wanted = pc.is_in(table["text_digest"], value_set=digests)
    found = table.take(pa.array(np.flatnonzero(wanted.to_numpy())))
    if found.num_rows:
        pack.expect_whole(VECTORS)
    return found
