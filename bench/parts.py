"""The parts of the bench by name: each measures some rows of the table, in a process of its own.

A part imports what it needs when it runs, so that a peer that is not installed costs only the parts that name it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from bench_records import Row
from options import Options


@dataclass(frozen=True)
class Part:
    """`function` of `module` gives rows one by one; `minutes` is what it may take at 100,000 chunks."""

    name: str
    module: str
    function: str
    what: str
    minutes: float = 20.0
    by_default: bool = True

    def rows(self, options: Options) -> Iterator[Row]:
        """Measure."""
        return getattr(importlib.import_module(self.module), self.function)(options)


PARTS = {
    one.name: one
    for one in (
        Part("lexical", "lexical_part", "lexical_rows", "lexical recall against bm25s, tantivy and rank-bm25"),
        Part("growth", "growth_part", "growth_rows", "a fixed scope while the rest of the corpus grows"),
        Part("dense", "dense_part", "dense_rows", "dense recall against faiss and LanceDB"),
        Part("pipelines", "pipelines_part", "pipeline_rows", "the whole line against hybrid pipelines"),
        Part("batch", "batch_part", "batch_rows", "10,000 requests in one run, writing, bytes, the graph's share"),
        Part("interactive", "interactive_part", "interactive_rows", "single requests and cold starts"),
        Part(
            "indexing",
            "indexing_part",
            "indexing_rows",
            "indexing against bm25s and tantivy, a second import, an append",
        ),
        Part("embedding", "embedding_part", "embedding_rows", "embedding against sentence-transformers"),
        Part("quality", "quality_part", "quality_rows", "retrieval quality of words, on judged collections"),
        Part("answers", "answers_part", "answer_rows", "the same answer from every engine"),
        Part("scaling", "scaling_part", "scaling_rows", "curves: scope share, batch size, workers"),
        Part(
            "quality-semantic",
            "quality_part",
            "semantic_rows",
            "retrieval quality of all lanes: encodes 20,000 documents",
            90.0,
            by_default=False,
        ),
    )
}
