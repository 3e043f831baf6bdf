"""Spans of retrievals: names of both conventions, one child per step, no content and no withheld count unasked."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from audited_runs import ASKED, PEOPLE, SAYS
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.asking.opening import open_retriever
from scoped_retrieval.pipeline.asking.telemetry import Telemetry
from scoped_retrieval.pipeline.config.settings import load_settings

pytest.importorskip("opentelemetry.sdk", reason="needs the extra `otel`")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode


@pytest.fixture(name="spans")
def spans_fixture():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return SimpleNamespace(exporter=exporter, provider=provider, tracer=provider.get_tracer("test"))


def asked(world, spans, who: str = "ana", fields: dict[str, Any] | None = None, **telemetry: Any):
    """The answer, the span of the retrieval and those of its steps."""
    traced = Telemetry.of(spans.provider, **telemetry)
    with world.story.open(principal=who, runs=world.folder / "traced", telemetry=traced) as retriever:
        found = retriever.retrieve({**ASKED, **(fields or {})})
    finished = spans.exporter.get_finished_spans()
    root = next(span for span in finished if span.name.startswith("retrieval"))
    return found, root, [s for s in finished if s.parent and s.parent.span_id == root.context.span_id]


def test_a_retrieval_is_a_span_by_the_names_of_both_conventions(world, spans):
    found, root, _ = asked(world, spans, fields={"session_id": "s-1"})
    said = dict(root.attributes)
    assert root.name == "retrieval shop"
    assert root.status.status_code is StatusCode.UNSET
    expected = {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.provider.name": "scoped_retrieval",
        "gen_ai.data_source.id": "shop",
        "gen_ai.conversation.id": "s-1",
        "session.id": "s-1",
        "scoped_retrieval.snapshot.id": found.snapshot_id,
        "scoped_retrieval.status": "ok",
        "scoped_retrieval.count.shown": len(found.citations),
        "scoped_retrieval.tokens.used": found.tables["blocks"]["tokens"][0].as_py(),
        "scoped_retrieval.requests_together": 1,
    }
    assert {name: said.get(name) for name in expected} == expected
    scores = dict(zip(*(found.tables["ranked"][n].to_pylist() for n in ("evidence_id", "final")), strict=True))
    for place, citation in enumerate(found.citations):
        assert said[f"retrieval.documents.{place}.document.id"] == citation["evidence_id"]
        assert said[f"retrieval.documents.{place}.document.score"] == scores[citation["evidence_id"]]


def test_no_content_leaves_unless_it_is_asked_for(world, spans):
    found, *_ = asked(world, spans)
    told = "".join(span.to_json() for span in spans.exporter.get_finished_spans())
    secrets = [SAYS, ASKED["question"], "src/retry.py", "docs/retry.md", '"ana"']
    assert [text for text in secrets if text in told] == []
    spans.exporter.clear()
    found, root, _ = asked(world, spans, content=True)
    said = dict(root.attributes)
    assert said["input.value"] == said["gen_ai.retrieval.query.text"] == ASKED["question"]
    assert said["output.value"] == found.block
    assert said["user.id"] == "ana"
    shown = json.loads(said["gen_ai.retrieval.documents"])
    assert [one["id"] for one in shown] == [citation["evidence_id"] for citation in found.citations]
    assert said["retrieval.documents.0.document.content"] in found.block
    assert json.loads(said["retrieval.documents.0.document.metadata"])["label"] == found.citations[0]["label"]


def test_no_span_says_what_was_not_shown(world, spans):
    assert PEOPLE["ana"]["audit"]
    asked(world, spans, content=True)
    told = {name for span in spans.exporter.get_finished_spans() for name in span.attributes}
    assert {name for name in told if ".rows." in name or ".count." in name} == {"scoped_retrieval.count.shown"}


def test_an_error_leaves_its_type_and_no_message(world, spans):
    with (
        world.story.open(telemetry=Telemetry.of(spans.provider)) as retriever,
        pytest.raises(InputError),
    ):
        retriever.retrieve(SAYS, purpose="mischief")
    (span,) = spans.exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "InputError"
    assert (span.events, span.status.description) == ((), None)
    assert "mischief" not in span.to_json() and SAYS not in span.to_json()


def test_spans_change_no_answer(world, spans):
    with world.story.open(runs=world.folder / "traced") as retriever:
        plain = retriever.retrieve(ASKED)
    traced, *_ = asked(world, spans, content=True)
    assert traced.block == plain.block
    digests = [one.tables["snapshots"]["snapshot_digest"].to_pylist() for one in (plain, traced)]
    assert digests[0] == digests[1]


def test_the_setting_sends_spans_to_the_provider_of_the_process(world, spans, tmp_path):
    trace.set_tracer_provider(spans.provider)
    places = {"corpus": world.folder / "corpus", "grants": world.folder / "grants.yaml", "runs": tmp_path / "runs"}
    given = places | {"principal": "bob", "telemetry": "spans"}
    settings = load_settings(given, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
    with open_retriever(settings) as retriever:
        retriever.retrieve(ASKED)
    assert "retrieval shop" in [span.name for span in spans.exporter.get_finished_spans()]
    assert SAYS not in "".join(span.to_json() for span in spans.exporter.get_finished_spans())
