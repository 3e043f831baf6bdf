"""Retrievals as OpenTelemetry spans, on request (extra `otel`).

    with Retriever.open("corpus", principal="ana", telemetry=Telemetry.of(provider)) as retriever:
        retriever.retrieve("where is the retry limit set?")

Reads: a `Retrieval` with the times of the nodes that answered it. Gives: `Telemetry`. A
retrieval is a span `retrieval PROJECT` with one child per step of the line, named by the conventions for generative AI
(`gen_ai.*`) and by OpenInference (`openinference.span.kind`, `retrieval.documents.*`); attributes that neither names
are below `scoped_retrieval.*`. A run has no span: its manifest has the seconds of its nodes, and its lineage the events.

Note: spans contain no content unless requested: no question, text, path or name of a person. They never say how many rows
were not shown: the snapshot does, to auditors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..extras import package
from ..line.driver import ENCODING, build_driver
from ..line.planned_driver import Timing
from .retrieval import WRITING

_NAME = "scoped_retrieval"
_OWN = f"{_NAME}."
_BESIDE = {ENCODING: "encoding", WRITING: "writing"}
"""Timed work that belongs to no step of the line, by the name of its span."""
_KINDS = {"task_aware_reranking": "RERANKER", "encoding": "EMBEDDING"}
"""OpenInference's kinds of spans; every other step is a CHAIN."""


@dataclass(frozen=True)
class Telemetry:
    """Where spans are sent, and whether they contain content."""

    tracer: Any
    content: bool = False

    @classmethod
    def of(cls, provider: Any = None, *, content: bool = False) -> Telemetry:
        """Spans by the tracers of a provider, by default the one set in this process, as under
        `opentelemetry-instrument`; without one, they go nowhere. `content` adds questions and texts.

        Raises:
            ModelError: the extra `otel` is not installed.
        """
        from importlib.metadata import version

        trace = package("opentelemetry.trace", "otel")
        return cls(trace.get_tracer(_NAME, version("scoped-retrieval"), tracer_provider=provider), content)

    @contextmanager
    def retrieval(self) -> Iterator[Callable[[Any], None]]:
        """The span of one retrieval; the yielded function takes the `Retrieval`. Of an error, only the type is recorded."""
        from opentelemetry.trace import Status, StatusCode

        start = self.tracer.start_as_current_span
        with start("retrieval", record_exception=False, set_status_on_exception=False) as span:
            try:
                yield lambda found: self._answered(span, found)
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def _answered(self, span: Any, found: Any) -> None:
        if not span.is_recording():
            return
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        rows = (found.tables[name].to_pylist() for name in ("requests", "contracts", "blocks"))
        request, contract, block = ((one or [{}])[0] for one in rows)
        if project := contract.get("project"):
            span.update_name(f"retrieval {project}")
        _set(span, _named(request, contract) | _counted(found, contract, block))
        _set(span, dict(self._documents(found)))
        if self.content:
            _set(span, {"input.value": request.get("question"), "gen_ai.retrieval.query.text": request.get("question"),
                        "output.value": found.block, "user.id": request.get("principal")})  # fmt: skip
        if found.status == "failed":
            span.set_attribute("error.type", "failed")
            span.set_status(Status(StatusCode.ERROR))
        self._steps(set_span_in_context(span), found)

    def _documents(self, found: Any) -> Iterator[tuple[str, Any]]:
        """The items of the block, by OpenInference's flat names: ids and scores; texts if content is requested."""
        scores = dict(
            zip(*(found.tables["ranked"][name].to_pylist() for name in ("evidence_id", "final")), strict=True)
        )
        texts = dict(
            zip(*(found.tables["trimmed"][name].to_pylist() for name in ("label", "visible_text")), strict=True)
        )
        shown = []
        for place, citation in enumerate(found.citations):
            id_, at = citation["evidence_id"], f"retrieval.documents.{place}.document"
            shown.append({"id": id_, "score": scores.get(id_, 0.0)})
            yield f"{at}.id", id_
            yield f"{at}.score", scores.get(id_, 0.0)
            if self.content:
                metadata = {name: citation.get(name) for name in ("label", "source_id", "locator")}
                yield f"{at}.content", texts.get(citation["label"])
                yield f"{at}.metadata", json.dumps(metadata, ensure_ascii=False)
        if self.content:
            yield "gen_ai.retrieval.documents", json.dumps(shown)

    def _steps(self, context: Any, found: Any) -> None:
        """A span per step, from the start of its first node to the end of its last one, ordered by start.

        Steps that feed each other may overlap: `busy_ms` is the time of their nodes alone.
        """
        home, since = _homes(), time.time_ns() - time.perf_counter_ns()
        steps: dict[str, list[Timing]] = {}
        for timing in found.timings:
            steps.setdefault(home.get(timing.node) or timing.node, []).append(timing)
        for step, nodes in sorted(steps.items(), key=lambda one: min(timing.began for timing in one[1])):
            attributes: dict[str, Any] = {
                "openinference.span.kind": _KINDS.get(step, "CHAIN"),
                f"{_OWN}step": step,
                f"{_OWN}nodes": sorted({timing.node for timing in nodes}),
                f"{_OWN}busy_ms": round(sum(timing.ended - timing.began for timing in nodes) / 1e6, 3),
            }
            began = since + min(timing.began for timing in nodes)
            child = self.tracer.start_span(step, context=context, start_time=began)
            _set(child, attributes)
            child.end(since + max(timing.ended for timing in nodes))


def _named(request: Mapping[str, Any], contract: Mapping[str, Any]) -> dict[str, Any]:
    """The request, without its text."""
    return {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.provider.name": _NAME,
        "gen_ai.data_source.id": contract.get("project"),
        "gen_ai.conversation.id": request.get("session_id"),
        "gen_ai.retrieval.top_k": contract.get("max_items"),
        "session.id": request.get("session_id"),
        **{f"{_OWN}{name}": contract.get(name) for name in ("purpose", "mode", "role")},
        f"{_OWN}contract.id": contract.get("contract_id"),
        f"{_OWN}request.id": request.get("request_id"),
    }


def _counted(found: Any, contract: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome that its caller may see: the snapshot, the shown items, tokens and characters."""
    return {
        f"{_OWN}snapshot.id": found.snapshot_id,
        f"{_OWN}block_ref": found.block_ref,
        f"{_OWN}status": found.status,
        f"{_OWN}action": found.action,
        f"{_OWN}conditions": sorted({condition["condition"] for condition in found.conditions}),
        f"{_OWN}count.shown": len(found.citations),
        f"{_OWN}tokens.used": block.get("tokens"),
        f"{_OWN}tokens.limit": contract.get("max_tokens"),
        f"{_OWN}tokens.counter": contract.get("tokenizer"),
        f"{_OWN}chars.used": block.get("chars"),
        f"{_OWN}chars.limit": contract.get("max_chars"),
        f"{_OWN}bound_by": block.get("bound_by"),
        f"{_OWN}requests_together": found.together,
    }


def _set(span: Any, attributes: Mapping[str, Any]) -> None:
    span.set_attributes({name: value for name, value in attributes.items() if value is not None})


@lru_cache(maxsize=1)
def _homes() -> dict[str, str]:
    """The step of each node of the line."""
    homes: dict[str, str] = {
        node.name: node.originating_functions[0].__module__.rpartition(".")[2]
        for node in build_driver().made()
        if node.originating_functions
    }
    return homes | _BESIDE
