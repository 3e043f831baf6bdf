"""Query vectors: texts of queries encoded in the driving process, with a bounded cache.

Gives: `QueryVectors`, one per retriever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import pair_positions
from ..encoders.unit_vectors import Encoder, encoded

__all__ = ["VECTORS_KEPT", "QueryVectors"]

VECTORS_KEPT = 1 << 15
"""The number of query vectors cached by a retriever: 24 MiB at 384 dimensions, enough for many shards."""
_PROBE = "a"
"""The text that tests an encoder after it failed on the texts of a shard."""


@dataclass
class QueryVectors:
    """Vectors of query texts, encoded in the driving process; the last `VECTORS_KEPT` of them stay cached.

    An evicted text is encoded again, to the same vector: vectors do not depend on other texts.
    """

    encoder: Encoder | None
    cached: dict[str, NDArray[np.int16]] = field(default_factory=dict)

    def of(self, texts: list[str]) -> NDArray[np.int16]:
        """One row per text; afterwards `cached` contains all of them."""
        assert self.encoder is not None
        wanted = dict.fromkeys(texts)
        new = [text for text in wanted if text not in self.cached]
        if new:
            self.cached.update(zip(new, encoded(self.encoder, new, queries=True), strict=True))
        for text in wanted:
            self.cached[text] = self.cached.pop(text)  # the most recently used are last
        for text in list(self.cached)[: max(0, len(self.cached) - max(VECTORS_KEPT, len(wanted)))]:
            del self.cached[text]
        return np.stack([self.cached[text] for text in texts])

    def silent(self) -> Exception | None:
        """The encoder's error if it returns no vector for any text: such an error is not about a particular text."""
        assert self.encoder is not None
        try:
            self.encoder.encode([_PROBE])
        except Exception as error:  # an encoder may raise anything
            return error
        return None

    def used(self, tables: Mapping[str, pa.Table]) -> dict[str, NDArray[np.int16]]:
        """The vectors that the line used for the requests of these tables, by text."""
        taken = tables["query_vectors"]
        if not taken.num_rows:
            return {}
        sub_queries = tables["sub_queries"]
        used = pair_positions(*((t["request_id"], t["sub_query_id"]) for t in (sub_queries, taken))) >= 0
        texts = pc.unique(sub_queries["query_text"].filter(pa.array(used))).to_pylist()
        return dict(zip(texts, self.of(texts), strict=True))
