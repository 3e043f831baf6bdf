"""The vectors of rows, encoded from their `outlines`; no stored text is encoded twice.

Note: *whether* a row has a vector depends only on imports of that row. An import encodes its own rows and no others,
and without an encoder a row keeps the vector that it had, never one of equal text elsewhere. Otherwise a row that a
reader may not see would affect how the rows are found that the reader sees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import flat
from ..encoders.unit_vectors import Encoder, encoded
from .outlines import encoded_texts
from .packs import Pack

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
    texts, digests = _texts(evidence)
    known = [_stored_vectors(table, digests, pack) for pack in stored if (table := pack.texts_encoded) is not None]
    found = [table["text_digest"].combine_chunks() for table in known]
    missing = digests.filter(pc.invert(pc.is_in(digests, value_set=pa.concat_arrays(found)))) if found else digests
    missing = missing.unique()
    known += _made(missing, texts.take(pc.index_in(missing, value_set=digests)), encoder, on_encoded)
    every = pa.concat_tables(known)
    return _looked_up(digests, digests, every["text_digest"], every)


def vectors_kept(evidence: pa.Table, stored: Iterable[tuple[pa.Table, pa.Table]]) -> pa.Table | None:
    """`text_digest` and `vector` per row: the stored vector of the row if its encoded text is unchanged, else null.

    `stored` are EVIDENCE and vectors of stored rows, row by row. None if there is no vector at all.
    """
    _, digests = _texts(evidence)
    ids, known = [], []
    for rows, vectors in stored:
        at = _alike(vectors, digests)
        ids.append(_itself(rows.take(at), vectors["text_digest"].take(at)))
        known.append(vectors.take(at))
    if not sum(table.num_rows for table in known):
        return None
    return _looked_up(digests, _itself(evidence, digests), pa.chunked_array(ids), pa.concat_tables(known))


def vectors_among(evidence: pa.Table, chosen: NDArray[np.bool_], found: pa.Table) -> pa.Table:
    """`text_digest` and `vector` per row: chosen rows (at least one) get those in `found`, in order, others none."""
    at = pa.array(np.cumsum(chosen) - 1, mask=~chosen)
    return pa.table({"text_digest": _texts(evidence)[1], "vector": found["vector"].combine_chunks().take(at)})


def _texts(evidence: pa.Table) -> tuple[pa.Array, pa.Array]:
    """The text to encode for each row, and its SHA-256."""
    texts = encoded_texts(evidence)
    return texts, pa.array([hashlib.sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))


def _itself(evidence: pa.Table, digests: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Row and encoded text as one value: the id alone does not cover the title, which is encoded, too."""
    parts = (flat(evidence["evidence_id"]).cast(pa.large_binary()), flat(digests).cast(pa.large_binary()))
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _looked_up(digests: pa.Array, wanted: pa.Array, keys: pa.ChunkedArray, among: pa.Table) -> pa.Table:
    """`text_digest` and `vector` per row; `keys` are the keys of the rows of `among`."""
    at = pc.index_in(wanted, value_set=flat(keys))
    return pa.table({"text_digest": digests, "vector": among["vector"].combine_chunks().take(at)})


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


def _stored_vectors(table: pa.Table, digests: pa.Array, pack: Pack) -> pa.Table:
    """The rows of a table of vectors that encode one of these texts; verifies the pack if there are any."""
    found = table.take(_alike(table, digests))
    if found.num_rows:
        pack.expect_whole("vectors.arrow")
    return found


def _alike(table: pa.Table, digests: pa.Array) -> pa.Array:
    wanted = pc.and_(pc.is_in(table["text_digest"], value_set=digests), table["vector"].is_valid())
    return pa.array(np.flatnonzero(wanted.to_numpy()))
