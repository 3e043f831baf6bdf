"""Tables of `boundary_filtering`, the second wall."""

from __future__ import annotations

from ..schema import boolean, int32, string, table

VERDICTS = table(
    "verdicts",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=True,
    doc="The second wall: every candidate judged again from contract and stored row alone.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    admitted=boolean("passes every gate"),
    source_access=boolean("gate 1 of S0.43: the system may read it"),
    model_visibility=string("gate 2 of S0.43: model-visible, user-only, runtime-only or denied"),
    admitted_by=string("names of the gates passed, in order, a space between"),
    decided_by=string("first gate that removed it; null = admitted", nullable=True),
    reason_code=string("its reason; null = admitted", nullable=True),
    would_reject_by=string("first soft gate that would have rejected an admitted row", nullable=True),
    standing=string("how the text may speak under this contract"),
    validity=string("valid, not_yet or expired at as_of"),
    wall_disagreement=boolean("one of the two walls lets it through and the other does not"),
)

Verdicts = VERDICTS.annotation
