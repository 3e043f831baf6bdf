"""Tables of `audit_snapshot`, and rows withheld from a request."""

from __future__ import annotations

from ..schema import boolean, caller, float64, int32, int64, string, table, text, timestamp
from .filtering import VERDICTS

DECISIONS = table(
    "decisions",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    doc="Every candidate ends in exactly one row: selected, hidden or rejected, with stage and reason.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row", of="candidates"),
    **VERDICTS.take("pool_rank"),
    outcome=string("selected, hidden or rejected"),
    stage=string("where it was decided"),
    form=string("how it was shown; none = not shown"),
    decided_by=string("the gate or limit that decided", nullable=True),
    **VERDICTS.take("would_reject_by", of="verdicts"),
    reason_code=string("reason by code"),
    reason_text=string("reason in words; quotes no evidence"),
    redacted=boolean("a span of its text was masked"),
    rank=int32("rank after reranking; null = not ranked", nullable=True, of="ranked"),
    final=float64("final score; null = not ranked", nullable=True, of="ranked"),
    source_id=string("its source"),
    path=text("its path", nullable=True),
    version=string("its version", nullable=True),
    evidence_kind=string("its kind"),
)

CONDITIONS = table(
    "conditions",
    key=("request_id", "condition", "subject"),
    order=("request_id", "condition", "subject"),
    doc="What the caller should know about the answer as a set; the worst action wins.",
    request_id=caller(string("the request", digest=False)),
    condition=caller(string("condition by name")),
    subject=caller(string("what it concerns: a lane, a limit, a kind; empty if nothing")),
    action=caller(string("continue, warn, degrade or block")),
    message=caller(text("in words; for callers a function of contract and A(r) alone")),
    audience=string("caller or audit: who may learn of it"),
)

SNAPSHOTS = table(
    "snapshots",
    key=("request_id",),
    order=("request_id",),
    doc="One row per request: what was asked, decided and shown, by digest.",
    request_id=caller(string("the request", digest=False)),
    snapshot_id=caller(string("time-ordered, unique per capture; envelope", digest=False)),
    snapshot_digest=string(
        "SHA-256 over all digest-bearing rows, corpus generation, policy, code, encoder, tokenizer", digest=False
    ),
    status=caller(string("ok, empty, denied, partial, failed or erased")),
    action=caller(string("worst action of the conditions")),
    contract_id=caller(string("the contract")),
    block_ref=caller(string("the block", nullable=True)),
    visible_sha256=caller(string("SHA-256 of the rendered block")),
    recalled=int64("candidates: selected_rows + hidden + rejected"),
    selected_rows=caller(int64("rows shown")),
    hidden=int64("withheld from the model, kept for the record"),
    rejected=int64("dropped by rank, packing or budget"),
    redacted=int64("selected rows with a masked span"),
    estimated_tokens=caller(int32("tokens of the block")),
    max_tokens=caller(int32("its limit")),
    bound_by=caller(string("the limit that bound", nullable=True)),
    trimming_policy=caller(string("by name")),
    created_at=caller(timestamp("when the snapshot was written; envelope", digest=False)),
    error=text("why the request failed; null = it did not", nullable=True),
)

Decisions = DECISIONS.annotation
Conditions = CONDITIONS.annotation
Snapshots = SNAPSHOTS.annotation
