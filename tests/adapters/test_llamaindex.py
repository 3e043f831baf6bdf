"""The LlamaIndex retriever, alone and in a query engine with a model that repeats its prompt."""

from __future__ import annotations

from typing import Any

import pytest
from adapted import FIELDS, QUESTION, expect_cited, retriever_fixture  # noqa: F401 - a fixture

pytest.importorskip("llama_index.core", reason="needs the extra llamaindex: `make adapters`")
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from scoped_retrieval.pipeline.adapters.llamaindex import ScopedRetriever


def test_nodes_have_their_citation_and_snapshot(retriever: Any):
    nodes = ScopedRetriever(retriever, FIELDS).retrieve(QUESTION)
    assert [one.node.node_id for one in nodes] == [one.metadata["evidence_id"] for one in nodes]
    expect_cited([(one.text, one.metadata) for one in nodes], retriever)


def test_a_refusal_gives_no_nodes(retriever: Any):
    assert ScopedRetriever(retriever, {"project": "pay"}).retrieve(QUESTION) == []


def test_a_query_engine_answers_from_the_nodes(retriever: Any):
    engine = RetrieverQueryEngine.from_args(ScopedRetriever(retriever, FIELDS), llm=MockLLM())
    answer = engine.query(QUESTION)
    assert "There is no default role." in str(answer) and QUESTION in str(answer)
    assert "label: doc#1" in str(answer) and "sha256" not in str(answer)
    assert {node.metadata["snapshot_id"] for node in answer.source_nodes}
