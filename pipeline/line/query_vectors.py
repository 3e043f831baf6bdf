"""Query vectors: texts of queries encoded in the driving process, with a bounded cache.

Gives: `QueryVectors`, one per retriever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import pair_positions
from ..encoders.unit_vectors import Encoder, encoded

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

    def of(self, texts: Iterable[str]) -> tuple[dict[str, NDArray[np.int16]], dict[str, Exception]]:
        """The vectors of texts, and the errors of those that get none."""
        wanted = dict.fromkeys(texts)
        failed = self._encode([text for text in wanted if text not in self.cached])
        found = {text: self.cached.pop(text) for text in wanted if text not in failed}
        self.cached.update(found)  # the most recently used are last
        for text in list(self.cached)[: max(0, len(self.cached) - max(VECTORS_KEPT, len(wanted)))]:
            del self.cached[text]
        return found, failed

    def _encode(self, new: Sequence[str]) -> dict[str, Exception]:
        """Cache the vectors of texts; returns the errors. An encoder that is silent for any text has one error for all,
        the same in a batch as alone; else each text is encoded by itself.
        """
        assert self.encoder is not None
        try:
            self.cached.update(zip(new, encoded(self.encoder, list(new), queries=True) if new else (), strict=True))
        except Exception as error:  # an encoder may raise anything
            try:
                self.encoder.encode([_PROBE])
            except Exception as silence:  # as above
                return dict.fromkeys(new, silence)
            if len(new) == 1:
                return {new[0]: error}
            return {text: error for one in new for text, error in self._encode([one]).items()}
        return {}

    def used(self, tables: Mapping[str, pa.Table]) -> dict[str, NDArray[np.int16]]:
        """The vectors that the line used for the requests of these tables, by text."""
        taken = tables["query_vectors"]
        if not taken.num_rows:
            return {}
        sub_queries = tables["sub_queries"]
        used = pair_positions(*((t["request_id"], t["sub_query_id"]) for t in (sub_queries, taken))) >= 0
        texts = pc.unique(sub_queries["query_text"].filter(pa.array(used))).to_pylist()
        return self.of(texts)[0]
