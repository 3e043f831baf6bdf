"""A sample in which every policy field has something to decide, and what an answer under changed policies comes to."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from role_world import NOW, changed
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.sources.importing import normalize
from stand_in_encoder import WordsByTheirStart

POLICIES = Path(__file__).parents[2] / "data" / "policies"
PURPOSE: dict[str, Any] = yaml.safe_load((POLICIES / "purposes" / "answer-question.yaml").read_text())
PURPOSE["weights"] |= {"recency": 0.15, "actionability": 0.15}
PURPOSE["budget"] |= {"max_tokens": 4_000, "max_items": 40, "max_items_per_source": 20}
MODE: dict[str, Any] = {
    "mode": "planning",
    "search_paths": ["**/*"],
    "retrieval_params": {"k_in": 50, "k_out": 40},
    "strategies": ["BM25 for terms"],
}
GRANTS: dict[str, Any] = {
    "principals": {"ana": {"projects": [{"project": "shop"}]}, "bob": {"projects": ["shop"], "zones": "restricted"}},
}
LONG = ["The queue drains slowly.\n", "Of the rest nothing is said here.\n", "Nobody looks at this part.\n"]

TALKS = {"s2": ["What is a backlog for?", "It holds payments."], "s3": ["The weather is fine.", "A backlog may wait."]}
"""Turns of two sessions: a question about a backlog with its answer, and a mention."""


def _row(kind: str, path: str, text: str, *, days: float = 1, **columns: Any) -> dict[str, Any]:
    origin = {"code": "workspace", "doc": "project-doc", "rule": "project-doc", "test-log": "artifact",
              "structured-fact": "structured-sot"}.get(kind, kind)  # fmt: skip
    at = {"line_start": 1, "line_end": 1 + text.count("\n"), "byte_start": 0, "byte_end": len(text.encode())}
    row = {"source_id": f"{origin}:a", "origin_class": origin, "evidence_kind": kind, "path": path, "text": text}
    return row | {"lifecycle": "verified", "recorded_time": NOW - timedelta(days=days), "owner_user": ""} | at | columns


ROWS = [
    _row("doc", "docs/queue.md", "The queue retries payments; ask ana@example.org or read /home/ana/queue.txt."),
    _row("doc", "docs/old.md", "The queue retried payments in another way.", days=900, branch="main"),
    _row("doc", "docs/spread.md", "A queue, a queue: the queue is where a queue of queues is a queue.", authority=0),
    _row("doc", "docs/asked.md", "Billing of the queue.", tags=["q"], test_suite="unit", session_id="s1"),
    *(_row("doc", "docs/long.md", text, line_start=n + 1, line_end=n + 1, section=f"part {n}", version="v1",
           byte_start=sum(map(len, LONG[:n])), byte_end=sum(map(len, LONG[: n + 1]))) for n, text in enumerate(LONG)),
    *(_row("doc", "docs/many.md", f"{word} queue among others.", section=word, line_start=n, line_end=n, byte_start=n, byte_end=n + 30)
      for n, word in ((1, "One"), (50, "Another"))),
    _row("doc", "docs/guide.md", "A guide to the queue.\n" + "This line of the guide adds little to what was said.\n" * 9),
    _row("rule", "AGENTS.md", "The queue must be empty before a release.", authority=2),
    _row("code", "src/queue.py", "def drain_queue():\n    retry()\n", symbols=["drain_queue"]),
    _row("code", "tests/test_queue.py", "def test_queue():\n    drain_queue()\n", document_type="test", symbols=["test_queue"],
         calls=["drain_queue"]),
    *(_row("memory", f"memory/{n}", f"The queue was slow in month {n}.", lifecycle="candidate", entity=f"m-{n}")
      for n in range(4)),
    _row("memory", "memory/kept", "The queue holds a thousand payments.", entity="m-kept"),
    _row("memory", "memory/gone", "The queue was a table.", lifecycle="deprecated", entity="m-gone"),
    _row("memory", "memory/bob", "The queue annoys bob.", owner_user="bob", entity="m-bob"),
    _row("test-log", "logs/run.log", "FAIL the queue drained too late", days=40),
    _row("session-event", "sessions/1", "Somebody asked why the queue is full.", days=5, session_id="s1"),
    *(_row("session-event", f"sessions/{session}/{n}", text, days=5 - n / 1_000, session_id=session)
      for session, said in TALKS.items() for n, text in enumerate(said)),
    _row("decision-record", "adr/queue.md", "We decided for one queue. See docs/linked.md.", authority=3, days=700,
         links=["docs/linked.md"]),
    _row("doc", "docs/linked.md", "An appendix that is only reached from elsewhere.", links=["docs/behind.md"]),
    _row("doc", "docs/behind.md", "Zinc."),
    _row("structured-fact", "sot/deliveries.csv", "fee: $5\n", entity="DEL-1", authority=3),
    _row("doc", "docs/delivery.md", "The queue of DEL-1 has a fee of $6."),
    _row("doc", "docs/dev.md", "The queue for those of the group.", principals=["dev"]),
    _row("doc", "docs/private.md", "The queue in private.", zone="private"),
    _row("doc", "docs/ended.md", "The queue as it was, deleted since.", days=20, deleted_at=NOW - timedelta(days=10)),
    _row("doc", "ventures/acme/plan.md", "The queue of the venture.", level="venture"),
    _row("doc", "docs/tree.md", "The queue as the work tree has it.", workspace_root="/home/ana/shop"),
    _row("doc", "src/tool/note.md", "The queue of another namespace.", namespace="tool"),
    _row("doc", "platform/queue.md", "The queue of the platform.", owner_project="platform", source_id="project-doc:p"),
    _row("doc", "platform/open.md", "The queue of all.", owner_project="platform", zone="public", namespace="open",
         source_id="project-doc:p"),
    _row("memory", "platform/bob", "The queue is bob's.", owner_project="platform", zone="public", owner_user="bob"),
    _row("doc", "billing/queue.md", "The queue of billing.", owner_project="billing"),
]  # fmt: skip


@cache
def sample() -> Corpus:
    """`ROWS` as a corpus with vectors."""
    names = sorted({name for row in ROWS for name in row})
    table = pa.table({name: [row.get(name) for row in ROWS] for name in names})
    normal, _ = normalize(table, project="shop", principal="ana", now=NOW)
    return Corpus.of_rows(normal, now=NOW, encoder=WordsByTheirStart())


def asked(parts: Mapping[str, Mapping[str, Any]]) -> Retrieval:
    """One answer under changes to `purpose`, `mode` and `grants` (dotted keys), with more `request` fields."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, file, base in (("purposes", "answer-question", PURPOSE), ("modes", "planning", MODE)):
            (folder / kind).mkdir()
            made = changed(base, parts.get(kind.rstrip("s"), {}))
            (folder / kind / f"{file}.yaml").write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")
        grants = folder / "grants.yaml"
        grants.write_text(yaml.safe_dump(changed(GRANTS, parts.get("grants", {}))), encoding="utf-8")
        with Retriever.open(
            sample(), principal="ana", grants=load_grants(grants), policies=load_policies(folder),
            encoder=WordsByTheirStart(), clock=lambda: NOW,
        ) as retriever:  # fmt: skip
            request = {"question": "What of the queue?", "project": "shop", **parts.get("request", {})}
            return retriever.retrieve(request)


def answer(found: Retrieval) -> tuple[Any, ...]:
    """What a caller has of it: the rows in their order, the bytes, the action."""
    items = found.tables["trimmed"]
    return items["evidence_id"].to_pylist(), found.block, found.action
