"""LanceDB hybrid, a Haystack and a LlamaIndex pipeline: words and given vectors, a filter on the owner, reciprocal ranks.

None has a batch call for a filter per query: they answer query by query, as many at a time as there are cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from bench_world import World
from dense_peers import lance_table
from lexical_peers import K1, B, Bm25s
from scoped_retrieval.pipeline.cores import cores


@dataclass(frozen=True)
class Question:
    """What a pipeline is asked: terms with spaces between them, a unit vector, and whose rows count."""

    text: str
    vector: np.ndarray
    owner: str

    @cached_property
    def floats(self) -> list[float]:
        """The vector as Python floats."""
        return self.vector.tolist()


@dataclass(frozen=True)
class Hybrid:
    """A pipeline: `answer` gives the row numbers for one question, best first."""

    name: str
    settings: str
    answer: Callable[[Question], Sequence[int]]

    def run(self, batch: Sequence[Question]) -> list[Sequence[int]]:
        """All answers, as many at a time as there are cores."""
        with ThreadPoolExecutor(cores()) as pool:
            return list(pool.map(self.answer, batch))


def lance_hybrid(world: World, folder: Path, *, lane_k: int, k: int) -> Hybrid:
    """LanceDB: full text and exact vectors under a prefilter, fused by its RRF reranker."""
    from lancedb.rerankers import RRFReranker

    table = lance_table(world, folder, texts=list(world.tokens.texts()))
    table.create_fts_index(
        "body", base_tokenizer="whitespace", lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False
    )
    reranker = RRFReranker()

    def answer(question: Question) -> Sequence[int]:
        asked = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="body")
        asked = asked.vector(question.vector).text(question.text).distance_type("dot")
        asked = asked.where(f"owner = '{question.owner}'", prefilter=True).rerank(reranker).limit(lane_k)
        return asked.select(["row"]).to_arrow()["row"].to_pylist()[:k]

    words = (
        f"full text over the same terms, no vector index (exact), prefilter, bitmap index, {lane_k} rows, RRFReranker"
    )
    return Hybrid("LanceDB hybrid", words, answer)


def haystack_pipeline(world: World, *, lane_k: int, k: int) -> Hybrid:
    """Haystack: in-memory BM25 and embedding retrievers with filters, joined by reciprocal rank."""
    from haystack import Document, Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(
        bm25_tokenization_regex=r"\S+", bm25_algorithm="BM25Okapi", bm25_parameters={"k1": K1, "b": B},
        embedding_similarity_function="dot_product", return_embedding=False,
    )  # fmt: skip
    owners = world.order.evidence["owner_project"].to_pylist()
    vectors = world.order.matrix
    store.write_documents(
        [
            Document(id=str(row), content=text, meta={"owner": owner}, embedding=vectors[row].tolist())
            for row, (text, owner) in enumerate(zip(world.tokens.texts(), owners, strict=True))
        ]
    )
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=lane_k))
    pipeline.add_component("meaning", InMemoryEmbeddingRetriever(store, top_k=lane_k))
    pipeline.add_component("join", DocumentJoiner("reciprocal_rank_fusion", top_k=k))
    pipeline.connect("words", "join")
    pipeline.connect("meaning", "join")

    def answer(question: Question) -> Sequence[int]:
        mine = {"field": "meta.owner", "operator": "==", "value": question.owner}
        asked = {
            "words": {"query": question.text, "filters": mine},
            "meaning": {"query_embedding": question.floats, "filters": mine},
        }
        return [int(one.id) for one in pipeline.run(asked)["join"]["documents"]]

    words = (
        f"InMemoryDocumentStore, BM25Okapi k1 1.2 b 0.75 over the same terms, dot product, {lane_k} rows per retriever"
    )
    return Hybrid("Haystack", f"{words}, filter on the owner, DocumentJoiner by reciprocal rank", answer)


def llama_index_pipeline(world: World, *, lane_k: int, k: int) -> Hybrid:
    """LlamaIndex: its vector store with a metadata filter and bm25s under a mask, fused by reciprocal rank."""
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore, VectorStoreQuery

    owners = np.asarray(world.order.evidence["owner_project"].to_pandas())
    vectors = world.order.matrix
    nodes = [
        TextNode(id_=str(row), text="", metadata={"owner": owner}, embedding=vectors[row].tolist())
        for row, owner in enumerate(owners.tolist())
    ]
    store = SimpleVectorStore()
    store.add(nodes)
    bm25s = Bm25s(world.tokens, lane_k)
    masks = {owner: (owners == owner).astype(np.float32) for owner in set(owners.tolist())}

    class Meaning(BaseRetriever):
        def __init__(self, owner: str) -> None:
            super().__init__()
            self._filters = MetadataFilters(filters=[MetadataFilter(key="owner", value=owner)])

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            asked = VectorStoreQuery(query_bundle.embedding, similarity_top_k=lane_k, filters=self._filters)
            found = store.query(asked)
            pairs = zip(found.ids or [], found.similarities or [], strict=True)
            return [NodeWithScore(node=nodes[int(row)], score=score) for row, score in pairs]

    class Words(BaseRetriever):
        def __init__(self, owner: str) -> None:
            super().__init__()
            self._mask = masks[owner]

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            found = bm25s.run(bm25s.batch([query_bundle.query_str.split()]), self._mask, threads=1)
            ((rows, scores),) = bm25s.ranked(found)
            pairs = zip(rows.tolist(), scores.tolist(), strict=True)
            return [NodeWithScore(node=nodes[row], score=score) for row, score in pairs]

    def fused(owner: str) -> QueryFusionRetriever:
        return QueryFusionRetriever(
            [Words(owner), Meaning(owner)], llm=MockLLM(), mode="reciprocal_rerank", similarity_top_k=k, num_queries=1,
            use_async=False,
        )  # fmt: skip

    retrievers = {owner: fused(owner) for owner in masks}

    def answer(question: Question) -> Sequence[int]:
        found = retrievers[question.owner].retrieve(QueryBundle(question.text, embedding=question.floats))
        return [int(one.node.node_id) for one in found]

    words = f"SimpleVectorStore with MetadataFilters, bm25s with a mask per owner as a retriever, {lane_k} rows each"
    return Hybrid("LlamaIndex", f"{words}, QueryFusionRetriever by reciprocal rank, no generated queries", answer)
