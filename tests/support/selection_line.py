"""The line from bounded candidates to blocks on small visible tables, for the tests of ranking, packing and rendering."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from scoped_retrieval.nodes import (
    boundary_filtering,
    budget_trimming,
    citation_binding,
    context_projection,
    evidence_packing,
    fact_verification,
    task_aware_reranking,
)
from scoped_retrieval.nodes.blocks.token_counting import Counters
from scoped_retrieval.nodes.plugins import NO_PLUGINS
from scoped_retrieval.nodes.recall.file_recall import FileRecall
from scoped_retrieval.nodes.recall.lane_recall import NO_LEXICAL
from scoped_retrieval.nodes.score_terms import TERMS
from scoped_retrieval.nodes.tables import LANE_HITS, TABLES
from scoped_retrieval.pipeline.config.policies.roles import NO_ROLES, Roles
from scoped_retrieval.pipeline.encoders.cross_encoder import PairScores

AS_OF = datetime(2025, 6, 1, tzinfo=UTC)
WEIGHTS = {term.name: 0.0 for term in TERMS} | {
    "semantic": 0.2, "lexical": 0.1, "anchor": 0.1, "authority": 0.2,
    "recency": 0.15, "actionability": 0.15, "diversity": 0.1,
}  # fmt: skip
KINDS = {
    "code": (1.0, 90.0), "test-log": (1.0, 14.0), "rule": (0.7, float("inf")), "decision-record": (0.7, float("inf")),
    "memory": (0.6, 180.0), "session-event": (0.5, 30.0), "doc": (0.3, 365.0), "tool-output": (0.5, 14.0),
    "structured-fact": (0.6, float("inf")),
}  # fmt: skip

CONTRACT: dict[str, Any] = {
    "contract_id": "c" * 16, "denied": False, "principal": "ana", "groups": [], "project": "shop", "purpose": "fix-test",
    "denied_sources": [], "denied_paths": [], "as_of": AS_OF, "asked_at": AS_OF, "allow_stale_memory": False, "include_states": ["verified"],
    "min_authority": 0, "require_citation": True, "require_snapshot": False, "max_unverified_items": 2, "lane_k": 50,
    "pool_k": 60, "max_items": 12, "max_items_per_source": 3, "max_tokens": 1200, "max_chars": 12_000,
    "max_chunk_tokens": 400, "tokenizer": "approx-bpe/1", "withheld_k": 20, "graph_floor": 0.2, "graph_iterations": 3, "merge_policy": "interleave-by-relevance",
    "output_shape": "context-block", "instruction_sources": [], "required_evidence": [], "recall_effort": "full",
    "excluded_paths": [], "excluded_levels": [], "excluded_zones": [], "mode_lanes": [], "window_paths": [],
    "chunk_expansion": True, "exact_lookups": False, "citation_chaining": False, "include_deleted": False,
    "newest_first": False,
    "forbidden_sources": [], "source_diversity": False, "citation_style": "inline",
}  # fmt: skip
ROW: dict[str, Any] = {
    "source_id": "workspace:shop", "origin_class": "workspace", "evidence_kind": "code", "owner_project": "shop",
    "authority": 1, "lifecycle": "verified", "generated": False, "length": 10, "zone": "internal",
    "declared_visibility": "model-visible", "declared_safety": "safe", "declared_standing": "evidence",
}  # fmt: skip


def evidence_id(text: str) -> str:
    """A stand-in for the corpus's ids: 26 characters of base32hex's alphabet."""
    return hashlib.sha256(text.encode()).hexdigest()[:26]


@dataclass
class Line:
    """Inputs of the selecting half of the line, and every table it made."""

    tables: dict[str, pa.Table]
    counters: Counters
    files: FileRecall
    words: Mapping[tuple[str, str], float]

    @property
    def beside(self) -> dict[str, Any]:
        """The inputs that are no tables."""
        return {
            "counters": self.counters, "plugins": NO_PLUGINS, "file_recall": self.files, "cross_encoder": PairScores(None),
            "lexical_recall": NO_LEXICAL._replace(words=self.words),
        }  # fmt: skip

    def run(self, until: str = "blocks", **overrides: pa.Table) -> dict[str, pa.Table]:
        """Every table up to `until`, each checked against its declaration."""
        known: dict[str, Any] = {**self.tables, **overrides, **self.beside}
        for node in (
            boundary_filtering.pool, task_aware_reranking.rerank_weights, task_aware_reranking.score_terms,
            task_aware_reranking.ranked,
            evidence_packing.packs, fact_verification.structured_facts, fact_verification.fact_checks,
            budget_trimming.items, budget_trimming.trims, budget_trimming.trimmed,
            citation_binding.citations, citation_binding.item_details, context_projection.blocks,
        ):  # fmt: skip
            if node.__name__ not in overrides:
                names = [name for name in node.__annotations__ if name != "return"]
                made = node(**{name: known[name] for name in names})
                known[node.__name__] = TABLES[node.__name__].check(made) if node.__name__ in TABLES else made
            if node.__name__ == until:
                break
        return {name: table for name, table in known.items() if isinstance(table, pa.Table)}

    def block(self, **overrides: pa.Table) -> str:
        """The text of the only request's block."""
        return self.run(**overrides)["blocks"]["text"].to_pylist()[0]


def line(
    rows: Sequence[Mapping[str, Any]],
    *,
    requests: Mapping[str, Mapping[str, Any]] | None = None,
    anchors: Sequence[Mapping[str, Any]] = (),
    pool: Mapping[str, Sequence[int]] | None = None,
    counters: Counters | None = None,
    weights: Mapping[str, float] = WEIGHTS,
    roles: Roles = NO_ROLES,
    words: Mapping[tuple[str, str], float] | None = None,
    asks: str = "",
    files: Sequence[tuple[int, int, float]] = (),
) -> Line:
    """A line over `rows`, dicts of EVIDENCE, PLACEMENTS and CANDIDATES columns; only `text` is required.

    `requests` maps request id to contract fields, `pool` to the positions of its candidates (default: all rows). `asks` are
    words that every request asks for, beside `words`, which have their weights by request and term. `files` are the best files: request, a row, share of BM25.
    """
    requests = dict(sorted((requests or {"r1": {}}).items()))
    evidence, placements = [], []
    for number, given in enumerate(rows):
        row = ROW | dict(given)
        row.setdefault("evidence_id", evidence_id(f"{number}:{row['text']}"))
        row.setdefault("path", f"src/file_{number}.py")
        row["text_sha256"] = hashlib.sha256(row["text"].encode()).hexdigest()
        size, lines = len(row["text"].encode()), row["text"].count("\n") + (not row["text"].endswith("\n"))
        start = row.get("line_start", 1)
        place = {
            "row": number, "evidence_id": row["evidence_id"], "version": row.get("version", "v1"), "line_start": start,
            "line_end": None if start is None else start + max(lines, 1) - 1, "byte_start": row.get("byte_start", 0),
            "recorded_time": row.get("recorded_time", AS_OF),
        }  # fmt: skip
        place["byte_end"] = None if place["byte_start"] is None else place["byte_start"] + size
        evidence.append(row)
        placements.append(place)
    candidates, verdicts = [], []
    for request in requests:
        for rank, at in enumerate((pool or {}).get(request, range(len(rows))), start=1):
            row = evidence[at]
            key = {"request_id": request, "evidence_id": row["evidence_id"], "pool_rank": rank}
            candidates.append(
                {
                    **key, "row": at, "placement": at,
                    "merge_score": 1 / (60 + rank), "lanes": row.get("lanes", ["lexical"]), "intents": [],
                    "bm25_raw": row.get("bm25_raw", 0.0), "semantic_raw": row.get("semantic_raw", 0.0), "symbol_raw": 0.0,
                    "withheld": False,
                }
            )  # fmt: skip
            verdicts.append(
                {
                    **key, "admitted": True, "source_access": True, "model_visibility": "model-visible",
                    "standing": row.get("standing", "evidence"), "wall_disagreement": False,
                }
            )  # fmt: skip
    policy = {name: CONTRACT[name] for name in TABLES["purpose_policies"].columns if name in CONTRACT}
    purposes = [
        {"purpose": "fix-test", "version": "0" * 16, **policy, **{f"weight_{k}": weights.get(k, 0.0) for k in WEIGHTS}}
    ]
    words = {**(words or {}), **{(request, term): 1.0 for request in requests for term in sorted({*asks.split()})}}
    tables = {
        "contracts": _of("contracts", [CONTRACT | {"request_id": r} | dict(fields) for r, fields in requests.items()]),
        "requests": pa.table(
            {"request_id": list(requests), "question": pa.array([""] * len(requests), pa.large_string())}
        ),
        "candidates": _of("candidates", candidates),
        "lane_scores": _of("lane_scores", [one | _feedback(rows[one["row"]]) for one in _lane_scores(candidates)]),
        "verdicts": _of("verdicts", verdicts),
        "anchors": _of("anchors", anchors),
        "evidence": _of("evidence", evidence),
        "placements": _of("placements", placements),
        "purpose_policies": _of("purpose_policies", purposes),
        "role_policies": roles.policies,
        "role_rules": roles.rules,
        "kind_policies": _of(
            "kind_policies",
            [
                {
                    "purpose": "fix-test",
                    "evidence_kind": kind,
                    "document_type": "",
                    "actionability": a,
                    "half_life_days": days,
                }
                for kind, (a, days) in KINDS.items()
            ],
        ),
    }
    request, row, share = (np.array(part) for part in zip(*files, strict=True)) if files else (np.empty(0, int),) * 3
    return Line(tables, counters or Counters(), FileRecall(LANE_HITS.empty(), request, row, share), words)


def _lane_scores(candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each candidate as its lanes found it, none a turn; the best of a request reaches half of what its terms could give."""
    turns = dict.fromkeys(("context", "answer", "session", "session_reach"), 0.0)
    best: dict[str, float] = {}
    for one in candidates:
        best[one["request_id"]] = max(one["bm25_raw"], best.get(one["request_id"], one["bm25_raw"]))
    return [
        {
            **one,
            **turns,
            "bm25": one["bm25_raw"],
            "bm25_reach": 2 * best[one["request_id"]],
            "cosine": one["semantic_raw"],
        }
        for one in candidates
    ]


def _feedback(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of itself, else that no row gave feedback."""
    nothing = {"feedback_rank": 0, "lexical_feedback": 0.0, "semantic_feedback": 0.0}
    return {name: row.get(name, value) for name, value in nothing.items()}


def _of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    columns = TABLES[name].columns
    return TABLES[name].from_rows([{key: value for key, value in row.items() if key in columns} for row in rows])
