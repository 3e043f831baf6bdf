"""Our recall alone, as the peers are asked: one batch of queries in one scope, the k best rows of each.

The lanes' own functions are called, the ones that the line's nodes call, with what the line's driver gives them. Off the
clock: contracts and the first wall, which are computed once per scope (`Scoped.precompute_seconds`); the plan, which is
replaced by one sub-query per query with the terms or the vector that the peers get, too; and the table of hits with its
ids, because peers return row numbers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scoped_retrieval.nodes import candidate_recall
from scoped_retrieval.nodes.frames import posting_keys
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.recall_scope import RecallTables
from scoped_retrieval.nodes.recall.recall_selection import Found
from scoped_retrieval.nodes.tables import FAILURES, QUERY_TERMS, QUERY_VECTORS, SUB_QUERIES
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line.driver import SCOPED, build_driver

NOW = datetime(2026, 11, 15, tzinfo=UTC)
"""The time of all requests: after the last row was recorded."""


class Scoped:
    """The requests of one scope, gated: what is left per query is recall."""

    def __init__(self, corpus: Path | Corpus, grants: Path, asked: Sequence[Mapping[str, Any]], k: int) -> None:
        """`asked` are request fields, one per query of the largest batch; `k` rows come back per query."""
        compiled.load()  # as a run of many requests does
        retriever = Retriever.open(
            corpus, principal="bench", grants=grants, lanes=("lexical", "semantic"), encoder=None
        )
        line = retriever._session.line
        rows = [{"request_id": f"q{at:06d}", "question": "x", "purpose": "answer-question", **one}
                for at, one in enumerate(asked)]  # fmt: skip
        requests, failures = retriever._session.resolver.resolve(rows, NOW)
        assert not failures.num_rows, failures["error"][0]
        self._k = k
        self._driver = build_driver()
        self._inputs: dict[str, Any] = {
            **line.policies, "requests": requests.combine_chunks(), "failures": FAILURES.empty(), "grants": line.grants,
            "lanes": ("lexical", "semantic"), "bm25": Bm25(), "counters": line.counters, "provenance": line.provenance,
        }  # fmt: skip
        started = time.perf_counter()
        planned = self._driver.execute(list(SCOPED), inputs=self._inputs)
        bounds = planned["contract_bounds"]
        assert not pc.any(planned["contracts"]["denied"]).as_py(), planned["contracts"]["denied_reason"].unique()
        users = pc.unique(pc.list_flatten(bounds["users"])).to_pylist()
        self.frame = line.corpus.frame(pc.unique(bounds["project"]).to_pylist(), users)
        self._inputs |= self.frame.inputs()
        self._planned = planned | self._driver.execute(
            ["reachable", "admissible"], inputs=self._inputs, overrides=planned
        )
        self.precompute_seconds = time.perf_counter() - started
        self._ids = requests["request_id"]

    @property
    def admissible(self) -> list[int]:
        """Rows in scope, per request."""
        return self._planned["admissible"]["rows"].to_pylist()

    def terms_batch(self, queries: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The plan of a batch: query `i` looks up its terms, each as often as the query has it."""
        subs, terms, weights = [], [], []
        for number, query in enumerate(queries):
            for term in sorted(set(query)):
                subs.append(number)
                terms.append(term)
                weights.append(float(query.count(term)))
        table = QUERY_TERMS.build(
            {"sub_query": subs, "field": ["text"] * len(subs), "term": posting_keys("text", terms), "weight": weights}
        )
        return {"sub_queries": self._sub_queries(len(queries), "lexical"), "query_terms": table}

    def lexical(self, batch: Mapping[str, Any]) -> Found:
        """Rows and scores of the lexical lane."""
        return candidate_recall.recall_terms(self._tables(batch), self.frame.postings, Bm25())[0]

    def vectors_batch(self, queries: np.ndarray) -> dict[str, Any]:
        """The plan of a batch: query `i` asks with row `i` of int16[queries, dimensions]."""
        ids = self._ids.slice(0, len(queries))
        table = QUERY_VECTORS.build(
            {"request_id": ids, "sub_query_id": ["q1"] * len(ids), "vector_row": np.arange(len(ids), dtype=np.int32)}
        )
        vectors = replace(self.frame.vectors, queries=queries)
        return {
            "sub_queries": self._sub_queries(len(queries), "semantic"),
            "query_terms": QUERY_TERMS.empty(),
            "query_vectors": table,
            "vectors": vectors,
        }

    def semantic(self, batch: Mapping[str, Any]) -> Found:
        """Rows and scores of the semantic lane."""
        return candidate_recall.recall_vectors(self._tables(batch), batch["query_vectors"], batch["vectors"])

    def ranked(self, found: Found, count: int, everything: Order) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows (as `everything` numbers them) and scores of `count` queries, best first, withheld ones left out."""
        kept = np.flatnonzero(~found.withheld)
        kept = kept[np.lexsort((-found.score[kept], found.sub[kept]))]
        row = everything.of(self.frame.evidence["evidence_id"].take(pa.array(found.row[kept])))
        score = found.score[kept]
        bounds = np.searchsorted(found.sub[kept], np.arange(count + 1))
        return [(row[a:b], score[a:b]) for a, b in pairwise(bounds)]

    def _tables(self, batch: Mapping[str, Any]) -> RecallTables:
        """What every lane reads."""
        gated = (self._planned[name] for name in ("contracts", "reachable", "admissible"))
        frame = self.frame
        return RecallTables(
            *gated, frame.segments, frame.evidence, frame.row_index, batch["sub_queries"], batch["query_terms"]
        )

    def _sub_queries(self, count: int, lane: str) -> pa.Table:
        return SUB_QUERIES.build(
            {
                "request_id": self._ids.slice(0, count),
                "sub_query_id": ["q1"] * count,
                "ordinal": np.ones(count, dtype=np.int32),
                "intent": ["find-code"] * count,
                "query_text": [""] * count,
                "expansion": [None] * count,
                "lanes": [[lane]] * count,
                "sources": [[]] * count,
                "kinds": [[]] * count,
                "lane_k": np.full(count, self._k, dtype=np.int32),
                "min_authority": np.zeros(count, dtype=np.int32),
                "oldest": [None] * count,
                "window_paths": [[]] * count,
                "window_start": [None] * count,
            }
        )


class Order:
    """The rows of a whole corpus by number, as the peers are given them, and their columns."""

    def __init__(self, corpus: Path) -> None:
        self.frame = Corpus.open(corpus).frame()
        self.evidence = self.frame.evidence

    def of(self, ids: pa.ChunkedArray) -> np.ndarray:
        """The number of each row, by its id."""
        return self._ids.get_indexer(ids.to_pandas())

    @cached_property
    def _ids(self) -> Any:
        import pandas as pd

        return pd.Index(self.evidence["evidence_id"].to_pandas())

    @cached_property
    def recorded(self) -> np.ndarray:
        """When each row was recorded, in microseconds."""
        return self.frame.placements["recorded_time"].cast(pa.int64()).to_numpy()

    @cached_property
    def matrix(self) -> np.ndarray:
        """The vectors as float32[rows, dimensions]."""
        assert self.frame.vectors is not None
        return np.concatenate([np.asarray(part) for part in self.frame.vectors.parts]).astype(np.float32) / 2**15
