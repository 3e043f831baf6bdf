"""The Haystack component, alone and in a pipeline with a model that repeats given words."""

from __future__ import annotations

from typing import Any

import pytest
from adapted import FIELDS, QUESTION, expect_cited, retriever_fixture  # noqa: F401 - a fixture

pytest.importorskip("haystack", reason="needs the extra haystack: `make adapters`")
from haystack import Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage
from scoped_retrieval.pipeline.adapters.haystack import ScopedRetriever


@component
class Echo:
    """A model that answers with its prompt."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(messages[-1].text)]}


def test_documents_have_their_citation_and_snapshot(retriever: Any):
    found = ScopedRetriever(retriever, FIELDS).run(query=QUESTION)
    expect_cited([(one.content, one.meta) for one in found["documents"]], retriever)
    assert found["status"] == "ok" and found["snapshot_id"] == found["documents"][0].meta["snapshot_id"]


def test_a_refusal_gives_no_documents(retriever: Any):
    found = ScopedRetriever(retriever, {"project": "pay"}).run(query=QUESTION)
    assert (found["documents"], found["block"], found["status"]) == ([], "", "denied")


def test_a_pipeline_answers_from_the_block(retriever: Any):
    pipeline = Pipeline()
    pipeline.add_component("retriever", ScopedRetriever(retriever, FIELDS))
    template = [ChatMessage.from_user("{{ block }}\n\n{{ question }}")]
    pipeline.add_component("prompt", ChatPromptBuilder(template=template, required_variables=["block", "question"]))
    pipeline.add_component("model", Echo())
    pipeline.connect("retriever.block", "prompt.block")
    pipeline.connect("prompt.prompt", "model.messages")
    given = {"retriever": {"query": QUESTION}, "prompt": {"question": QUESTION}}
    answer = pipeline.run(given, include_outputs_from={"retriever"})
    assert "There is no default role." in answer["model"]["replies"][0].text
    assert answer["retriever"]["documents"]
