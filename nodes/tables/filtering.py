"""Tables of `boundary_filtering`, the second wall."""

from __future__ import annotations

from ..schema import boolean, int32, int64, string, table
from .corpus import EVIDENCE, PLACEMENTS
from .recall import CANDIDATES

VERDICTS = table(
    "verdicts",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    doc="The second wall: every candidate judged again from contract and stored row alone.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row", of="candidates"),
    pool_rank=int32("its place among the candidates"),
    admitted=boolean("passes every gate"),
    source_access=boolean("gate 1 of S0.43: the system may read it"),
    model_visibility=string("gate 2 of S0.43: model-visible, user-only, runtime-only or denied"),
    decided_by=string("first gate that removed it; null = admitted", nullable=True),
    reason_code=string("its reason; null = admitted", nullable=True),
    would_reject_by=string("first soft gate that would have rejected an admitted row", nullable=True),
    standing=string("how the text may speak under this contract"),
    wall_disagreement=boolean("one of the two walls lets it through and the other does not"),
)

STORED = (
    "evidence_kind", "document_type", "content_type", "origin_class", "source_id", "path", "entity", "authority", "confidence",
    "lifecycle", "generated", "event_time", "owner_project", "owner_user", "workspace_root", "branch", "session_id",
    "test_suite", "length", "conflict_set", "text_sha256", "zone", "principals",
)  # fmt: skip
"""The columns of EVIDENCE that steps read of all rows of a pool."""
PLACED = ("recorded_time", "version", "line_start", "line_end", "byte_start", "byte_end")
"""The columns of PLACEMENTS that they read."""

POOL = table(
    "pool",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    doc="The candidates that both walls let through, in recall order, with what is stored of them. Scores have a row for each, "
    "in this order; ranks, items and decisions name a row by its place here.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates of its request"),
    candidate=int64("its place in `candidates`"),
    contract=int64("the place of its request in `contracts`"),
    row=int64("its frame row"),
    placement=int64("its frame placement"),
    **CANDIDATES.take("lanes", "bm25_raw", "semantic_raw"),
    **VERDICTS.take("standing"),
    **EVIDENCE.take(*STORED),
    **PLACEMENTS.take(*PLACED),
)

Pool = POOL.annotation
Verdicts = VERDICTS.annotation
