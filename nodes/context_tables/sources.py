"""Tables of `context_sources`, `context_selection` and `context_ordering`."""

from __future__ import annotations

from ..schema import boolean, int32, int64, string, strings, table, text

CONTEXT_SOURCES = table(
    "context_sources",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=False,
    doc="Everything that a model input might show, by turn: each ends in one row of the ledger.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("order in which sources were gathered, from 0 within the turn"),
    source_kind=string("kind of source (S3.13)"),
    part=string("the part of the budget that it counts for"),
    content_class=string("fact, guess, stale, ui_only, audit_only, rule or untrusted_text (S3.4)"),
    standing=string("how its text may speak: instruction, evidence, history, hint or untrusted"),
    required=boolean("present in every input, or the turn fails"),
    heading=text("the words in front of the text: who, where, what", nullable=True),
    text=text("the text", nullable=True),
    summary=text("the text in one line", nullable=True),
    excerpt=text("the lines of it that matter most", nullable=True),
    reference=string("where the whole of it can be opened", nullable=True),
    path=string("file", nullable=True),
    evidence_id=string("row of evidence", nullable=True),
    characters=int64("characters of all of it"),
    cut=boolean("`text` is not all of it"),
    seq=int64("its event; -1 = none"),
    observation_class=string("class of an observation", nullable=True),
    row=int64("its row in the table that it comes from"),
    about=strings("of a conflict the rules that it names: it is shown where all of them are", nullable=True),
)

SELECTION = table(
    "selection",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=True,
    doc="The decisions of the five gates on each source, in their order.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    decided_by=string(
        "the first gate that refused: relevance, currency, trust, permission or worth; null = none", nullable=True
    ),
    reason_code=string("why it was refused or shown"),
    referenced=boolean("its text is not wanted, a reference is"),
    tier=int32(
        "how near it is to the failure: 1 the failing stack, 2 modified, 3 beside the failing case, 4 public interface, 5 other"
    ),
    rank=int32("order within its part, 0 first"),
    carrier=string("source of this turn whose text carries the same evidence, or the line of the match", nullable=True),
)

ORDERING = table(
    "ordering",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=True,
    doc="Priority and place of each source.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    level=int32("1 to 9 (S3.23)"),
    keep=int32("order in which a binding budget keeps sources, within the turn; 0 first"),
    place=int32("order in the input, within the turn; 0 first"),
)

ContextSources = CONTEXT_SOURCES.annotation
Selection = SELECTION.annotation
Ordering = ORDERING.annotation
