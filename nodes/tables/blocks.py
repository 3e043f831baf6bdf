"""Tables of `citation_binding` and `context_projection`."""

from __future__ import annotations

import pyarrow as pa

from ..schema import boolean, caller, int32, place, string, table, text, texts, timestamp
from .corpus import EVIDENCE
from .packing import TRIMMED

_MASKED = {"type": pa.large_string(), "audience": "caller", "free_text": True}
_MASKED_LISTS = _MASKED | {"type": pa.list_(pa.large_string())}
"""Columns of EVIDENCE that come from sources, masked as the text is."""

CITATIONS = table(
    "citations",
    key=("request_id", "label"),
    order=("request_id", "position"),
    doc="The citation map: the row and the place that each label of the block cites.",
    request_id=caller(string("the request", digest=False)),
    **TRIMMED.take("position"),
    **TRIMMED.take("label", of="trimmed"),
    **TRIMMED.take("standing", "visible_sha256"),
    **TRIMMED.take("line_start", "line_end", "byte_start", "byte_end", of="trimmed"),
    evidence_id=caller(string("the snapshot item", of="candidates")),
    place=place("its place in the pool"),
    source_id=caller(string("the source, masked as the text is")),
    path=caller(text("path inside the source, masked as the text is", nullable=True)),
    section=caller(text("section", nullable=True)),
    version=caller(string("version of the source", nullable=True)),
    captured_time=timestamp("when the corpus took the text in; envelope", nullable=True, digest=False),
    source_refs=texts("what the record says it rests on (S0.115)", nullable=True),
    locator=caller(text("`path#line (Section)`")),
    text_sha256=caller(string("SHA-256 of the stored text, hex")),
    authority=caller(string("high, medium or low")),
    evidence_kind=caller(string("its kind")),
    resolves=caller(boolean("source and hash are there, and lines, bytes or a version say where")),
)

ITEM_DETAILS = table(
    "item_details",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    doc="What a bundle says of each item besides its citation (S4.12): the leading row's own columns.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the row that leads the item", of="candidates")),
    place=place("its place in the pool"),
    **TRIMMED.take("position"),
    **EVIDENCE.take("entity", "title", "uri", "content_type", "document_type", "domain", **_MASKED),
    **EVIDENCE.take("tags", "applicable_roles", "excluded_roles", **_MASKED_LISTS),
    **EVIDENCE.take("origin_class", "confidence", "lifecycle", "importance", audience="caller"),
    authority=caller(int32("0 untrusted, 1 general, 2 preferred, 3 authoritative")),
    disputed=caller(boolean("it belongs to a set of competing claims")),
    freshness=caller(string("fresh, aging, stale or undated", of="score_terms")),
    updated_at=caller(timestamp("when it happened, else when it was recorded")),
    recorded_at=caller(timestamp("when this version was recorded")),
    **EVIDENCE.take("owner_project", "owner_user", "namespace", "zone", "principals"),
)

BLOCKS = table(
    "blocks",
    key=("request_id",),
    order=("request_id",),
    doc="The bytes the model may read.",
    request_id=caller(string("the request", digest=False)),
    block_ref=caller(
        string(
            "first 16 hex digits of the SHA-256 of the block with ref and nonce zeroed; empty block: null",
            nullable=True,
        )
    ),
    text=caller(text("the rendered block")),
    text_sha256=caller(string("SHA-256 of the rendered block, hex", of="blocks.text")),
    shape=caller(string("context-block, citation-pack or model-brief")),
    items=caller(int32("items in it")),
    tokens=caller(int32("tokens of the whole rendering")),
    chars=caller(int32("characters of the whole rendering")),
    tokenizer=caller(string("the counter that counted")),
    bound_by=caller(string("the limit that bound; null = none", nullable=True)),
)

Citations = CITATIONS.annotation
ItemDetails = ITEM_DETAILS.annotation
Blocks = BLOCKS.annotation
