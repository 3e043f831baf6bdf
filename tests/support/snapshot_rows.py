"""The rows of one small snapshot by table name, written by hand: what renderings are tested with."""

from __future__ import annotations

from datetime import UTC, datetime

WHEN = datetime(2026, 5, 20, 9, tzinfo=UTC)
ROWS = {
    "requests": [{"request_id": "r1", "question": "why does\nthe test fail", "session_id": "s-021", "asked_at": WHEN}],
    "contracts": [
        {"request_id": "r1", "principal": "ana", "project": "shop", "branch": "main", "contract_id": "c0ffee0011223344",
         "purpose": "fix-test", "merge_policy": "authority-first", "output_shape": "context-block", "as_of": WHEN,
         "max_chars": 4800, "max_tokens": 1200, "tokenizer": "approx-bpe/1"},
    ],
    "snapshots": [
        {"request_id": "r1", "snapshot_id": "retr-snap-1", "created_at": WHEN, "status": "ok", "action": "warn",
         "block_ref": "0011223344556677", "recalled": 4},
    ],
    "blocks": [{"request_id": "r1", "chars": 812, "tokens": 203, "bound_by": None}],
    "sub_queries": [
        {"sub_query_id": "q1", "intent": "find-error", "lanes": ["lexical", "symbol"], "lane_k": 20, "min_authority": 0,
         "oldest": None, "kinds": ["test-log"], "sources": []},
    ],
    "filter_ladder": [
        {"gate": "project", "gate_class": "access", "considered": 40, "admitted": 30, "reason_code": "out_of_scope_project"},
        {"gate": "visibility", "gate_class": "visibility", "considered": 30, "admitted": 29, "reason_code": "not_model_visible"},
        {"gate": "recorded", "gate_class": "time", "considered": 29, "admitted": 29, "reason_code": "after_as_of"},
    ],
    "candidates": [
        {"evidence_id": "e1", "lanes": ["lexical", "symbol"], "via": None},
        {"evidence_id": "e2", "lanes": ["expansion"], "via": "neighbour"},
    ],
    "rerank_weights": [{"request_id": "r1", "diversity": 0.25}],
    "ranked": [
        {"evidence_id": "e1", "rank": 1, "final": 0.75, "semantic": 0.0, "lexical": 0.25, "anchor": 0.25, "authority": 0.25,
         "recency": 0.0, "actionability": 0.0, "diversity": 0.0, "scope": 0.0, "selected_reason": "matched failing test name"},
    ],
    "trimmed": [
        {"label": "test-log#1", "evidence_id": "e1", "form": "excerpt", "history": False,
         "conflict_note": True, "visible_text": "FAILED: the role is admin"},
    ],
    "hits": [
        {"evidence_id": "e1", "lane": lane, "rank": rank, "withheld": False, "via": None}
        for lane, rank in (("symbol", 1), ("lexical", 3), ("lexical", 2))
    ],
    "trims": [
        {"evidence_id": "e1", "bound_by": "max_chunk_tokens",
         "kept_start": 0, "kept_end": 120, "size": 300},
    ],
    "citations": [
        {"position": 1, "label": "test-log#1", "evidence_id": "e1", "locator": "logs/auth.log#12", "source_id": "artifact:logs",
         "version": "v1", "authority": "medium", "standing": "untrusted", "resolves": True, "visible_sha256": "ab" * 32},
    ],
    "decisions": [
        {"evidence_id": "e1", "outcome": "selected", "stage": "project", "reason_code": "selected",
         "would_reject_by": None, "redacted": True, "rank": 1, "path": "logs/auth.log", "source_id": "artifact:logs"},
        {"evidence_id": "e2", "outcome": "rejected", "stage": "rank", "reason_code": "low_score",
         "would_reject_by": None, "redacted": False, "rank": 2, "path": "docs/b.md", "source_id": "workspace:shop"},
        {"evidence_id": "e3", "outcome": "selected", "stage": "project", "reason_code": "selected",
         "would_reject_by": None, "redacted": False, "rank": 3, "path": "logs/auth.log", "source_id": "artifact:logs"},
        {"evidence_id": "e4", "outcome": "hidden", "stage": "gate", "reason_code": "not_model_visible",
         "would_reject_by": None, "redacted": False, "rank": None, "path": None, "source_id": "artifact:ci"},
    ],
    "conditions": [{"condition": "lane_off", "subject": "semantic", "action": "warn", "message": "the semantic lane is off"}],
}  # fmt: skip
