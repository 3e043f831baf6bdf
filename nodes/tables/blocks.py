"""Tables of `citation_binding` and `context_projection`."""

from __future__ import annotations

from ..schema import boolean, caller, float64, int32, int64, string, strings, table, text, texts, timestamp

CITATIONS = table(
    "citations",
    key=("request_id", "label"),
    order=("request_id", "position"),
    doc="The citation map: the row and the place that each label of the block cites.",
    request_id=caller(string("the request", digest=False)),
    position=caller(int32("order in the block, from 1")),
    label=caller(string("`kind#n`, unique inside the block")),
    evidence_id=caller(string("the snapshot item")),
    place=int64("its place in the pool; envelope", digest=False),
    source_id=caller(string("the source, masked as the text is")),
    path=caller(text("path inside the source, masked as the text is", nullable=True)),
    line_start=caller(int32("first line shown", nullable=True)),
    line_end=caller(int32("last line shown", nullable=True)),
    byte_start=caller(int64("first byte of the document shown", nullable=True)),
    byte_end=caller(int64("end byte, exclusive", nullable=True)),
    section=caller(text("section", nullable=True)),
    version=caller(string("version of the source", nullable=True)),
    captured_time=timestamp("when the corpus took the text in; envelope", nullable=True, digest=False),
    source_refs=texts("what the record says it rests on (S0.115)", nullable=True),
    locator=caller(text("`path#line (Section)`")),
    text_sha256=caller(string("SHA-256 of the stored text, hex")),
    visible_sha256=caller(string("SHA-256 of the visible text, hex")),
    authority=caller(string("high, medium or low")),
    evidence_kind=caller(string("its kind")),
    standing=caller(string("how the text may speak")),
    resolves=caller(boolean("source and hash are there, and lines, bytes or a version say where")),
)

ITEM_DETAILS = table(
    "item_details",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    doc="What a bundle says of each item besides its citation (S4.12): the leading row's own columns.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the row that leads the item")),
    position=caller(int32("order in the block, from 1")),
    entity=caller(text("the source's own id of the record", nullable=True)),
    origin_class=caller(string("what kind of source it is")),
    title=caller(text("title of the document", nullable=True)),
    uri=caller(text("URL or path at which a person can open it", nullable=True)),
    content_type=caller(text("paragraph, table, list, code or excerpt", nullable=True)),
    document_type=caller(text("free word of the importer", nullable=True)),
    domain=caller(text("subject area", nullable=True)),
    tags=caller(texts("labels of the importer", nullable=True)),
    authority=caller(int32("0 untrusted, 1 general, 2 preferred, 3 authoritative")),
    confidence=caller(float64("how sure the record is, 0 to 1; null = it does not say", nullable=True)),
    lifecycle=caller(
        string("candidate, verified, deprecated, expired or revoked; null = it does not say", nullable=True)
    ),
    disputed=caller(boolean("it belongs to a set of competing claims")),
    freshness=caller(string("fresh, aging, stale or undated")),
    importance=caller(float64("0 to 1, as the importer gave it", nullable=True)),
    updated_at=caller(timestamp("when it happened, else when it was recorded")),
    recorded_at=caller(timestamp("when this version was recorded")),
    applicable_roles=caller(texts("roles it is for; null = every role", nullable=True)),
    excluded_roles=caller(texts("roles it is not for", nullable=True)),
    owner_project=string("the project it belongs to"),
    owner_user=string("the user it belongs to; null = the whole project", nullable=True),
    namespace=string("the namespace it belongs to; null = none", nullable=True),
    zone=string("public < internal < private < restricted; null counts as restricted", nullable=True),
    principals=strings("who may read it, users or groups; null = no list, [] = no user", nullable=True),
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
    text_sha256=caller(string("SHA-256 of the rendered block, hex")),
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
