"""The LangChain retriever, alone and in a chain with a model that repeats given words."""

from __future__ import annotations

from typing import Any

import pytest
from adapted import FIELDS, QUESTION, expect_cited, retriever_fixture  # noqa: F401 - a fixture

pytest.importorskip("langchain_core", reason="needs the extra langchain: `make adapters`")
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from scoped_retrieval.pipeline.adapters.langchain import ScopedRetriever


def test_documents_have_their_citation_and_snapshot(retriever: Any):
    documents = ScopedRetriever(retriever=retriever, fields=FIELDS).invoke(QUESTION)
    assert [one.id for one in documents] == [one.metadata["evidence_id"] for one in documents]
    expect_cited([(one.page_content, one.metadata) for one in documents], retriever)


def test_a_refusal_gives_no_documents(retriever: Any):
    assert ScopedRetriever(retriever=retriever, fields={"project": "pay"}).invoke(QUESTION) == []


def test_a_chain_answers_from_the_documents(retriever: Any):
    prompts: list[str] = []

    def joined(documents: list[Any]) -> str:
        return "\n".join(f"[{one.metadata['label']}] {one.page_content}" for one in documents)

    def seen(prompt: Any) -> Any:
        prompts.append(prompt.to_string())
        return prompt

    chain = (
        {"context": ScopedRetriever(retriever=retriever, fields=FIELDS) | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_messages([("user", "{context}\n\n{question}")])
        | RunnableLambda(seen)
        | FakeListChatModel(responses=["There is none [doc#1]."])
        | StrOutputParser()
    )
    assert chain.invoke(QUESTION) == "There is none [doc#1]."
    assert "There is no default role." in prompts[0] and QUESTION in prompts[0]
