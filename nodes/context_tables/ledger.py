"""Tables of `context_ledger`."""

from __future__ import annotations

from ..schema import int32, int64, string, table

CONTEXT_DECISIONS = table(
    "context_decisions",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=True,
    doc="The ledger: one row for every source of every turn, with the reason. The model never sees it.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    source_kind=string("kind of source"),
    part=string("part of the budget"),
    content_class=string("fact, guess, stale, ui_only, audit_only, rule or untrusted_text"),
    action=string("include, summarize, reference or exclude (S3.15)"),
    mode=string("full, excerpt, summary, reference or none (S3.40)"),
    standing=string("how its text may speak"),
    trust_level=string("instruction, fact or untrusted_text (S3.16)"),
    decided_by=string("gate, `budget` or null", nullable=True),
    reason_code=string("why"),
    reason=string("the same in words"),
    level=int32("1 to 9"),
    place=int32("place in the input; -1 = not in it"),
    tokens=int64("tokens that it takes; 0 = none"),
    characters=int64("characters of all of the source"),
    shown_characters=int64("characters of its text that are in the input; 0 = none"),
    masked=int32("masks of secrets in the source"),
    token_budget=int64("tokens that its part may have"),
    path=string("file", nullable=True),
    evidence_id=string("row of evidence", nullable=True),
    reference=string("where the whole of it can be opened", nullable=True),
    summary_id=string("the summary that replaces it", nullable=True),
    original_ref=string("where the original is; of what is `shown_in_tail` the event that shows it", nullable=True),
    lost_sentences=int32("of rules and words of the user: sentences of the original that the form lacks"),
)

TURN_WARNINGS = table(
    "turn_warnings",
    key=("input_id", "condition"),
    order=("input_id", "condition"),
    persist=True,
    doc="Warnings about a turn.",
    input_id=string("the model input"),
    condition=string("see the vocabulary of turn conditions"),
    message=string("the same in words"),
)

ContextDecisions = CONTEXT_DECISIONS.annotation
TurnWarnings = TURN_WARNINGS.annotation
