"""Tables of `context_compression`, `context_isolation` and `context_budget`."""

from __future__ import annotations

from ..schema import int32, int64, string, table, text

COMPRESSED = table(
    "compressed",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=False,
    doc="The text of each selected source in the form in which it may be shown.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    form=string("full, excerpt, summary or reference"),
    text=text("what is shown of it", nullable=True),
    summary_id=string("`sum-` and the hash of the summary, if it replaces the text", nullable=True),
    original_ref=string("where the original is", nullable=True),
    lost_sentences=int32("of rules and words of the user: sentences of the original that the form lacks"),
)

ISOLATED = table(
    "isolated",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=False,
    doc="Each selected source behind its margin, and the fence that it goes into.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    section=int32("the section that it is in, by its place in `turns.frame.GROUPS`; -1 = tool schema"),
    body=text("its lines, each behind a margin"),
    fallback=text("the line that refers to it where its text has no room", nullable=True),
    marker=string(
        "word on its own fence, the class of the observation; null = it is in the fence of the section",
        nullable=True,
    ),
    carrier=string(
        "source of this turn whose full text carries the same evidence; null = none, or it is shortened", nullable=True
    ),
)

FITTED = table(
    "fitted",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=True,
    doc="What fits: the form in which the input shows each selected source.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    shown=string("body, fallback, none, or quoted: another source of the input has its line"),
    tokens=int64("tokens that it takes, without fences and headings"),
    part_limit=int64("tokens that its part may have"),
    bound_by=string("budget_part, budget_tokens, carrier_dropped or over_budget; null = nothing", nullable=True),
)

Compressed = COMPRESSED.annotation
Isolated = ISOLATED.annotation
Fitted = FITTED.annotation
