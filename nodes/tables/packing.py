"""Tables of `evidence_packing`, `fact_verification` and `budget_trimming`."""

from __future__ import annotations

from ..schema import boolean, caller, int32, int64, place, spans, string, table, text

_PLACE = place("its place in the pool")

PACKS = table(
    "packs",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    doc="Ranked candidates as items: duplicates dropped, conflict sets together, caps applied.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row that leads the item", of="candidates"),
    place=_PLACE,
    position=int32("order of the item, from 1; 0 = dropped"),
    reason_code=string("why it was dropped; null = kept", nullable=True),
    merged_into=string("evidence_id of the item with the same text", nullable=True),
    standing=string("how the text may speak"),
    form=string("full, excerpt, summary, fact, reference, conflict-note or hint"),
    history=boolean("shown as history"),
)

STRUCTURED_FACTS = table(
    "structured_facts",
    key=("request_id", "evidence_id", "field"),
    order=("request_id", "evidence_id", "field"),
    doc="The fields of every structured record among a request's bounded candidates: what facts are checked against.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the record")),
    entity=caller(text("the record's key")),
    field=caller(text("the field's name, as in the record")),
    value=caller(text("the field's value, as in the record")),
    locator=caller(text("`path#line (Section)` of the record")),
    stale=caller(boolean("the record was recorded more than 30 days before as_of")),
)

FACT_CHECKS = table(
    "fact_checks",
    key=("request_id", "evidence_id", "value"),
    order=("request_id", "evidence_id", "value"),
    doc="Dates, ids, numbers and money in items, checked against the structured records the contract admits.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the item", of="candidates")),
    place=_PLACE,
    value=caller(text("the value as the item has it")),
    kind=caller(string("id, date, money or number")),
    finding=caller(string("match, mismatch, unknown_key, stale_sot or unread")),
    field=caller(text("the record's field", nullable=True)),
    canonical=caller(text("the record's value", nullable=True)),
    record_id=caller(string("evidence_id of the record", nullable=True)),
    **STRUCTURED_FACTS.take("locator", nullable=True),
)

TRIMS = table(
    "trims",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    doc="Every item that reached trimming: which bytes of its text stay, and which limit cut or dropped it.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the row that leads the item", of="candidates")),
    place=_PLACE,
    position=caller(int32("its order among the packs, from 1", of="packs")),
    number=caller(int32("order in which it was chosen, from 1: the n of `kind#n`; 0 = dropped")),
    shown=caller(int32("order in the block, from 1; 0 = dropped")),
    kept_start=caller(int64("first byte of the item's text that stays")),
    kept_end=caller(int64("end byte of the item's text that stays, exclusive; equal to kept_start = none of it")),
    size=caller(int64("bytes of the item's text")),
    bound_by=caller(
        string(
            "max_items, max_tokens, max_chars or max_chunk_tokens; conflict_set = its rival has no room; null = all of it "
            "is shown",
            nullable=True,
        )
    ),
)

TRIMMED = table(
    "trimmed",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    doc="The items that fit, with the text that the model will see.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the row that leads the item", of="candidates")),
    place=_PLACE,
    position=caller(int32("order in the block, from 1", of="trims.shown")),
    label=caller(string("`kind#n`")),
    visible_text=caller(text("the text as shown, before fencing")),
    visible_sha256=caller(string("SHA-256 of visible_text, hex", of="trimmed.visible_text")),
    tokens=caller(int32("tokens of visible_text under the contract's counter")),
    chars=caller(int32("characters of visible_text")),
    line_start=caller(int32("first line shown", nullable=True)),
    line_end=caller(int32("last line shown", nullable=True)),
    byte_start=caller(int64("first byte of the document shown", nullable=True)),
    byte_end=caller(int64("end byte of the document shown, exclusive", nullable=True)),
    lines_above=caller(int32("lines of the item's text above those shown")),
    lines_below=caller(int32("lines of the item's text below those shown, but for blank ones at its end")),
    cut=caller(boolean("whether a part of its text is not shown")),
    **PACKS.take("standing", audience="caller", of="packs"),
    **PACKS.take("form", audience="caller"),
    **PACKS.take("history", audience="caller", of="packs"),
    conflict_note=caller(
        boolean("whether it says that a competing claim may exist: a member of a conflict set shown alone")
    ),
    fact_note=caller(text("what a structured record says in place of a value of the item", nullable=True)),
    masked=caller(
        spans("byte ranges of visible_text that policy masked, each as long as what it covers", nullable=True)
    ),
    masked_by=caller(string("the detector by name and version; null = nothing was masked", nullable=True)),
)

Packs = PACKS.annotation
StructuredFacts = STRUCTURED_FACTS.annotation
FactChecks = FACT_CHECKS.annotation
Trimmed = TRIMMED.annotation
Trims = TRIMS.annotation
