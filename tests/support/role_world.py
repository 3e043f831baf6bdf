"""A few rows, one neutral overlay, and what an answer in its role comes to."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.policies.roles import overlay_of, roles_of
from scoped_retrieval.pipeline.config.policies.tables import Policies, load_policies
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.evaluation.roles import grant_all
from scoped_retrieval.pipeline.sources.importing import normalize
from stand_in_encoder import WordsByTheirStart

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LOADED = load_policies()
NEUTRAL: dict[str, Any] = {
    "role_id": "reader",
    "version": "1",
    "label": "Reader",
    "mission": "-",
    "anti_goals": [],
    "vocabulary": {"preferred_terms": [], "synonyms": {}, "boost_phrases": [], "suppress_phrases": []},
    "source_policy": {"preferred_sources": [], "forbidden_sources": []},
    "retrieval_policy": {
        "max_selected_chunks": 12,
        "weights": {"lexical": 0.1, "semantic": 0.1, "metadata": 0.4, "rerank": 0.4},
        "stale_penalty": 0.0,
        "role_mismatch_penalty": 0.0,
    },
    "synthesis_policy": {"prioritize": [], "avoid": []},
    "eval_profile": {"golden_set_id": "reader", "distinctiveness_checks": []},
    "bridge_roles": [],
}
ROWS: list[dict[str, Any]] = [
    {"entity": "adr", "source_id": "decision-record:a", "origin_class": "decision-record", "path": "a/adr.md",
     "text": "The queue retries a payment. We chose one component.", "authority": 3, "document_type": "adr"},
    {"entity": "threat", "source_id": "docs:a", "path": "a/threat.md", "domain": "security", "tags": ["risk"],
     "text": "The queue can be replayed by an attacker who has a token."},
    {"entity": "tests", "source_id": "docs:a", "path": "a/tests.md", "applicable_roles": ["tester"],
     "text": "The queue has a test with a fake clock."},
    {"entity": "old", "source_id": "docs:b", "path": "b/old.md", "text": "The queue was a table once.", "days": 900},
    {"entity": "forum", "source_id": "external:forum", "origin_class": "external", "path": "f.md",
     "text": "The queue needs no marketing, says a forum."},
    {"entity": "long-1", "source_id": "docs:c", "path": "c/long.md", "section": "one", "text": "The queue drains slowly."},
    {"entity": "long-2", "source_id": "docs:c", "path": "c/long.md", "section": "two", "text": "The queue fills quickly."},
    {"entity": "login", "source_id": "docs:d", "path": "d/login.md", "text": "Sign-in needs a second factor."},
]  # fmt: skip


@cache
def sample(vectors: bool) -> Corpus:
    """`ROWS` as a corpus."""
    return corpus(vectors=vectors)


def corpus(rows: Sequence[Mapping[str, Any]] = ROWS, *, vectors: bool = False) -> Corpus:
    """The rows in memory, a day old unless they say otherwise, verified and shared."""
    full = [
        {"lifecycle": "verified", "evidence_kind": "doc", "origin_class": "project-doc"}
        | {"recorded_time": NOW - timedelta(days=row.get("days", 1))}
        | {name: value for name, value in row.items() if name != "days"}
        for row in rows
    ]
    names = sorted({name for row in full for name in row})
    table = pa.table({name: [row.get(name) for row in full] for name in names})
    normal, _ = normalize(table, project="shop", principal="ana", now=NOW)
    return Corpus.of_rows(normal, now=NOW, encoder=WordsByTheirStart() if vectors else None)


def changed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with some values by dotted key; a number counts in a list, and None takes the key out."""
    made = copy.deepcopy(dict(base))
    for path, value in changes.items():
        *parents, leaf = path.split(".")
        part: Any = made
        for parent in parents:
            part = part[int(parent)] if isinstance(part, list) else part.setdefault(parent, {})
        if isinstance(part, list):
            part[int(leaf)] = value
        elif value is None:
            part.pop(leaf)
        else:
            part[leaf] = value
    return made


def overlay(changes: Mapping[str, Any] = {}) -> dict[str, Any]:
    """The neutral overlay with some values by dotted key."""
    return changed(NEUTRAL, changes)


def policies(*overlays: Mapping[str, Any]) -> Policies:
    """The bundled purposes with these roles alone."""
    return replace(LOADED, roles=roles_of([overlay_of(one) for one in overlays]), digest="test", any_role=True)


def asked(
    *overlays: Mapping[str, Any],
    question: str = "What of the queue?",
    rows: Sequence[Mapping[str, Any]] = ROWS,
    vectors: bool = False,
    **fields: Any,
) -> Retrieval:
    """One answer in the role of the first overlay."""
    retriever = Retriever.open(
        sample(vectors) if rows is ROWS else corpus(rows, vectors=vectors), principal="ana", grants=grant_all("ana", "shop"),
        policies=policies(*overlays), lanes=("lexical", "semantic", "exact", "expansion"),
        encoder=WordsByTheirStart() if vectors else None, clock=lambda: NOW,
    )  # fmt: skip
    role = overlays[0]["role_id"] if overlays else None
    return retriever.retrieve({"question": question, "project": "shop", "role": role} | fields)


def shown(found: Retrieval, rows: Sequence[Mapping[str, Any]] = ROWS) -> list[str]:
    """The entities shown, in the order of the block."""
    items = found.tables["item_details"].to_pylist()
    return [row["entity"] for row in sorted(items, key=lambda row: row["position"])]
