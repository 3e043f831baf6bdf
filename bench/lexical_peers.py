"""bm25s, tantivy and rank-bm25 as contestants: the same terms, the same k, both cores, their batch call.

Filters are built off the clock. bm25s: a weight mask per scope. tantivy: a term, set or range clause that costs no score.
rank-bm25 has no filter and no batch: it answers one query after another over all rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from agreement import Ranked
from bench_world import Scope, Tokens, World
from rounds import Contestant
from scoped_retrieval.pipeline.cores import cores

K1, B = 1.2, 0.75
Queries = Sequence[Sequence[str]]


class Bm25s:
    """bm25s with numba: scores of every term and row are precomputed when it is indexed."""

    settings = (
        "lucene, k1 1.2, b 0.75, float32, backend numba, index and retrieve over token ids, n_threads = cores; "
        "scope: weight_mask"
    )

    def __init__(self, tokens: Tokens, k: int) -> None:
        import bm25s

        self.k = min(k, len(tokens.starts) - 1)
        self._ids = {term: number for number, term in enumerate(tokens.vocabulary)}
        self._model = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
        self._model.index((tokens.lists(), self._ids), show_progress=False)

    def batch(self, queries: Queries) -> list[list[int]]:
        """Queries as token ids."""
        return [[self._ids[term] for term in query if term in self._ids] for query in queries]

    def run(self, batch: list[list[int]], mask: np.ndarray | None = None, threads: int | None = None) -> Any:
        """Rows and scores, [queries, k] each; with one thread it may be called from several."""
        threads = threads or cores()
        return self._model.retrieve(batch, k=self.k, n_threads=threads, show_progress=False, weight_mask=mask)

    def ranked(self, found: Any) -> Ranked:
        """As everybody's."""
        return [(rows[scores > 0], scores[scores > 0]) for rows, scores in zip(*found, strict=True)]

    def contestant(self, queries: Queries, scope: Scope, world: World) -> Contestant:
        """Over the whole corpus, or with a mask: one per scope, or one per query where each has its own `as_of`."""
        if scope.name == "whole":
            return self.masked(queries, None)
        rows = scope.rows(world.order)
        if scope.instants == 1:
            return self.masked(queries, rows.astype(np.float32))
        times = [_micros(at) for at in scope.times(len(queries))]
        recorded = world.order.recorded

        def batch(which: range) -> list[tuple[list[list[int]], np.ndarray]]:
            masks = [(rows & (recorded <= times[at])).astype(np.float32) for at in which]
            return list(zip([self.batch([queries[at]]) for at in which], masks, strict=True))

        def run(batch: list[tuple[list[list[int]], np.ndarray]]) -> list[Any]:
            with ThreadPoolExecutor(cores()) as pool:  # a mask is for a whole call, so every query is a call
                return list(pool.map(lambda one: self.run(*one, threads=1), batch))

        return Contestant("bm25s", batch, run, f"{self.settings}, a call per query in threads = cores", most=200)

    def masked(self, queries: Queries, mask: np.ndarray | None) -> Contestant:
        """With one mask for all queries; None = the whole corpus."""
        return Contestant(
            "bm25s",
            lambda which: self.batch([queries[at] for at in which]),
            lambda batch: self.run(batch, mask),
            self.settings,
        )


class Tantivy:
    """tantivy, one segment; queries are built off the clock and searched by as many threads as there are cores."""

    settings = (
        "whitespace tokenizer over the same terms, frequencies without positions, one segment, queries built off the "
        "clock, count off, threads = cores; scope: constant-score clauses on raw owner, source and a fast date"
    )

    def __init__(self, world: World, k: int, folder: Path) -> None:
        import tantivy

        self._tantivy = tantivy
        self.k = k
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("body", tokenizer_name="same_terms", index_option="freq")
        for name in ("owner", "source"):
            schema.add_text_field(name, tokenizer_name="raw", index_option="basic")
        schema.add_integer_field("recorded", indexed=True, fast=True)
        self._schema = schema.build()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        index = tantivy.Index(self._schema, path=str(folder))
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        index.register_tokenizer("same_terms", analyzer)
        writer = index.writer(2_000_000_000, num_threads=1)  # one thread: rows keep their numbers
        evidence = world.order.evidence
        columns = (evidence[name].to_pylist() for name in ("owner_project", "source_id"))
        rows = zip(world.tokens.texts(), *columns, world.order.recorded.tolist(), strict=True)
        for body, owner, source, recorded in rows:
            writer.add_document(tantivy.Document(body=body, owner=owner, source=source, recorded=recorded))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()
        assert self._searcher.num_segments == 1, "Expected one segment"

    def batch(self, queries: Queries, filters: Sequence[Any]) -> list[Any]:
        """Query objects, each with its filter."""
        t = self._tantivy
        term = t.Query.term_query
        bodies = [
            t.Query.boolean_query(
                [(t.Occur.Should, term(self._schema, "body", one, index_option="freq")) for one in query]
            )
            for query in queries
        ]
        return [
            body if filter_ is None else t.Query.boolean_query([(t.Occur.Must, body), (t.Occur.Must, filter_)])
            for body, filter_ in zip(bodies, filters, strict=True)
        ]

    def run(self, batch: list[Any]) -> list[list[Any]]:
        """(score, address) per query."""
        return list(self._pool.map(lambda query: self._searcher.search(query, self.k, count=False).hits, batch))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(cores())

    def ranked(self, found: list[list[Any]]) -> Ranked:
        """As everybody's."""
        return [(np.array([a.doc for _, a in hits]), np.array([score for score, _ in hits])) for hits in found]

    def filter(self, scope: Scope, at: datetime | None) -> Any:
        """The scope as a query that adds nothing to scores; None = everything."""
        t = self._tantivy
        parts = []
        if scope.owners is not None:
            parts.append(t.Query.term_set_query(self._schema, "owner", list(scope.owners)))
        if scope.source is not None:
            parts.append(t.Query.term_query(self._schema, "source", scope.source, index_option="basic"))
        if at is not None:
            kind = t.FieldType.Integer
            parts.append(t.Query.range_query(self._schema, "recorded", kind, upper_bound=_micros(at)))
        if not parts:
            return None
        return t.Query.const_score_query(t.Query.boolean_query([(t.Occur.Must, part) for part in parts]), 0.0)

    def contestant(self, queries: Queries, scope: Scope) -> Contestant:
        """Over a scope."""
        times = scope.times(len(queries)) if scope.instants > 1 else [None] * len(queries)
        shared = self.filter(scope, None)

        def batch(which: range) -> list[Any]:
            filters = [shared if times[at] is None else self.filter(scope, times[at]) for at in which]
            return self.batch([queries[at] for at in which], filters)

        return Contestant("tantivy", batch, self.run, self.settings)


class RankBm25:
    """rank-bm25: its Okapi class over the same terms."""

    settings = "BM25Okapi, k1 1.2, b 0.75, get_scores and argpartition, one query after another; it has no filter"

    def __init__(self, tokens: Tokens, k: int) -> None:
        from rank_bm25 import BM25Okapi

        self.k = k
        self._ids = {term: number for number, term in enumerate(tokens.vocabulary)}
        self._model = BM25Okapi(tokens.lists(), k1=K1, b=B)

    def run(self, batch: list[list[int]]) -> list[np.ndarray]:
        """The k best rows of each query."""
        return [np.argpartition(-self._model.get_scores(query), self.k)[: self.k] for query in batch]

    def contestant(self, queries: Queries) -> Contestant:
        """Over the whole corpus."""

        def batch(which: range) -> list[list[int]]:
            return [[self._ids[term] for term in queries[at] if term in self._ids] for at in which]

        return Contestant("rank-bm25", batch, self.run, self.settings, most=4)


def _micros(at: datetime) -> int:
    return int(at.astimezone(UTC).timestamp() * 1_000_000)
