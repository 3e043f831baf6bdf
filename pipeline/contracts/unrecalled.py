"""Why a row that passes every gate is no candidate: what the plan asked for, what it shares with it, where it was cut.

Reads: a snapshot's plan, anchors and hits, and the row in the corpus. Gives: stage, reason and advice. No text is quoted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.frames import posting_keys
from ...nodes.scope.selectors import glob_mask, selected

__all__ = ["not_recalled"]


def not_recalled(run: Any, snapshot_id: str, frame: Any, row: int) -> dict[str, Any]:
    """Stage, reason and advice for an admissible row without a decision."""
    contract = run.table("contracts", snapshot_id=snapshot_id).to_pylist()[0]
    plan = run.table("sub_queries", texts=True, snapshot_id=snapshot_id)
    hits = run.table("hits", snapshot_id=snapshot_id)
    stored = frame.evidence.slice(row, 1).to_pylist()[0]
    if (own := hits.filter(pc.equal(hits["evidence_id"], stored["evidence_id"]))).num_rows:
        best = own.sort_by("rank").to_pylist()[0]
        text = f"lane {best['lane']} found it at rank {best['rank']} of {best['sub_query_id']}, and merging cut it"
        return _answer("merge", "pool_k", text, [f"a pool_k above {contract['pool_k']}"])
    if not plan.num_rows:
        text = "the plan asks nothing: no purpose rule had anything to ask with"
        return _answer("plan", None, text, ["a question, an anchor, or a recall_effort above none"])
    asking = plan.filter(pa.array([_returns(sub, stored) for sub in plan.to_pylist()]))
    if not asking.num_rows:
        kind, authority = stored["evidence_kind"], stored["authority"] or 0
        text = f"no sub-query returns {kind} of this source, age and authority {authority}"
        return _answer(
            "plan", "plan", text, [f"a purpose whose plan looks for {kind}, or required_evidence of its kind"]
        )
    shared = _shares_a_key(run, snapshot_id, asking, frame, row)
    lane_k = pc.max(asking["lane_k"]).as_py()
    if shared:
        return _answer("recall", "lane_k", "other rows answer the same words better", [f"a lane_k above {lane_k}"])
    text = "it shares no term, symbol, path or id with any sub-query, and no lane came near it"
    return _answer(
        "recall", None, text, ["a question or an anchor that names what it says", f"a lane_k above {lane_k}"]
    )


def _returns(sub_query: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether the filter of a sub-query lets a row return, its time apart from events."""
    if sub_query["kinds"] and row["evidence_kind"] not in sub_query["kinds"]:
        return False
    pair = pa.array([row["origin_class"]]), pa.array([row["source_id"]])
    if sub_query["sources"] and not selected(sub_query["sources"], *pair)[0]:
        return False
    limits = [sub_query["oldest"]]
    if sub_query["window_start"] and glob_mask(pa.array([row["path"]], pa.string()), sub_query["window_paths"])[0]:
        limits.append(sub_query["window_start"])
    if row["event_time"] and any(limit and row["event_time"] < limit for limit in limits):
        return False
    return (row["authority"] or 0) >= sub_query["min_authority"]


def _shares_a_key(run: Any, snapshot_id: str, plan: pa.Table, frame: Any, row: int) -> bool:
    """Whether the index has the row under a key that one of these sub-queries looks up."""
    from ..line.driver import build_driver

    anchors = run.table("anchors", texts=True, snapshot_id=snapshot_id)
    given = {"sub_queries": plan, "anchors": anchors}
    terms = build_driver().execute(["query_terms"], overrides=given)["query_terms"]
    segment = int(np.searchsorted(frame.segments["row_start"].to_numpy(), row, side="right")) - 1
    for field in pc.unique(terms["field"]).to_pylist():
        words = pc.unique(terms["term"].filter(pc.equal(terms["field"], field))).to_pylist()
        if np.any(frame.postings.lookup(posting_keys(field, words), np.array([segment])).rows == row):
            return True
    return False


def _answer(stage: str, decided_by: str | None, text: str, advice: list[str]) -> dict[str, Any]:
    return {
        "outcome": "rejected",
        "stage": stage,
        "decided_by": decided_by,
        "reason_code": "not_recalled",
        "reason_text": text,
        "rules": [],
        "would_admit": advice,
    }
