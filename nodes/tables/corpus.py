"""The corpus: evidence, placements, segments."""

from __future__ import annotations

from dataclasses import replace

from ..schema import (
    Table,
    boolean,
    caller,
    float64,
    int8s,
    int32,
    int64,
    spans,
    string,
    strings,
    table,
    text,
    timestamp,
)

EVIDENCE = table(
    "evidence",
    key=("evidence_id",),
    order=("owner_project", "owner_user", "source_id", "path", "line_start"),
    doc="One row per document lineage, text and occurrence. Null where a gate looks counts as least privileged.",
    evidence_id=caller(
        string(
            "base32hex of SHA-256 over owner, source, path, section, text, occurrence, branch and work tree; 26 characters"
        )
    ),
    source_id=caller(string("where it was read, `<kind>:<name>`, e.g. `workspace:shop`")),
    origin_class=caller(string("what kind of source it is; see vocabulary")),
    evidence_kind=caller(string("what it proves: doc, code, test-log, ...; the prefix of its label")),
    document_type=caller(string("free word of the importer: runbook, adr, ...", nullable=True)),
    content_type=caller(string("paragraph, table, list, code or excerpt", nullable=True)),
    domain=caller(string("subject area given by the importer", nullable=True)),
    entity=caller(string("the source's own id of the record, e.g. a memory id or DEL-12345", nullable=True)),
    level=caller(
        string("portfolio, venture, offer, engagement, program, project, sprint, task or deliverable", nullable=True)
    ),
    title=caller(string("title of the document", nullable=True)),
    uri=caller(string("URL or path at which a person can open it", nullable=True)),
    path=caller(string("path inside the source, `/` separated", nullable=True)),
    section=caller(string("heading path, definition name or record part", nullable=True)),
    event_time=caller(timestamp("when it happened", nullable=True)),
    captured_time=timestamp("when it was read into the corpus; envelope", nullable=True, digest=False),
    valid_from=caller(timestamp("start of validity; null = unbounded", nullable=True)),
    valid_until=caller(timestamp("end of validity, exclusive; null = unbounded", nullable=True)),
    superseded_by=string("evidence_id or entity that replaces it; shown only if admissible", nullable=True),
    supersedes=strings("evidence ids and entities that it replaces, of its class and owner", nullable=True),
    owner_project=string("the project it belongs to; never null"),
    owner_user=string("the user it belongs to; null = the whole project", nullable=True),
    namespace=string("finer partition inside a project", nullable=True),
    workspace_root=string("the work tree whose uncommitted text it is; null = every one", nullable=True),
    branch=caller(string("branch of the code; null = all", nullable=True)),
    session_id=caller(string("session it happened in", nullable=True)),
    test_suite=caller(string("test suite it is about; null = all", nullable=True)),
    principals=strings("who may read it, users or groups; null = no list, [] = no user", nullable=True),
    applicable_roles=strings("roles it is for; null = every role", nullable=True),
    excluded_roles=strings("roles it is not for", nullable=True),
    zone=string("public < internal < private < restricted; null counts as restricted", nullable=True),
    declared_visibility=string("model-visible, user-only, runtime-only or denied; null = not visible", nullable=True),
    authority=caller(int32("0 untrusted, 1 general, 2 preferred, 3 authoritative; null = 0", nullable=True)),
    confidence=caller(float64("how sure the record is, 0 to 1", nullable=True)),
    importance=float64("0 to 1, as given by the importer", nullable=True),
    reinforcement_count=int32("how often it was confirmed", nullable=True),
    last_verified_at=caller(timestamp("when it was last checked", nullable=True)),
    source_refs=caller(strings("what it rests on: ids, paths or URLs", nullable=True)),
    lifecycle=caller(string("candidate, verified, deprecated, expired or revoked; null = candidate", nullable=True)),
    conflict_set=caller(string("id of the set of competing claims it belongs to", nullable=True)),
    declared_safety=string("safe, requires-review or blocked; null = requires-review", nullable=True),
    declared_standing=string(
        "how its text may speak: evidence, history, hint, untrusted; null = untrusted", nullable=True
    ),
    language=caller(string("programming or natural language", nullable=True)),
    symbols=strings("identifiers it defines, qualified and bare", nullable=True),
    calls=strings("identifiers it refers to", nullable=True),
    tags=caller(strings("labels of the importer", nullable=True)),
    links=strings("paths, ids or URLs its text points to, as written", nullable=True),
    generated=caller(boolean("made by a tool, not by hand")),
    statements=int8s(
        "per line of the text: n = a statement or paragraph begins, n - 1 around it; -n = those of level n end; 0 = it continues the one above; "
        "127 = an import or a licence; null = any line begins one",
        nullable=True,
    ),
    parent_id=string("evidence_id of the row that contains it", nullable=True),
    length=int32("index terms in text, path, title and section, for BM25"),
    redactions=spans("byte ranges of `text` where a secret was masked", nullable=True),
    text=caller(text("the text, secrets masked")),
    text_sha256=caller(string("SHA-256 of `text` as UTF-8, hex")),
)

PLACEMENTS = table(
    "placements",
    key=("evidence_id", "version", "line_start"),
    order=("row", "recorded_time", "version"),
    doc="The times and places of a row of evidence. A row is admissible if one of its placements is.",
    row=int64("position of its evidence row in the same segment or frame"),
    evidence_id=caller(string("the evidence row")),
    version=caller(string("commit, revision or content version that has it", nullable=True)),
    line_start=caller(int32("first line, from 1", nullable=True)),
    line_end=caller(int32("last line, inclusive", nullable=True)),
    byte_start=caller(int64("first byte in the document", nullable=True)),
    byte_end=caller(int64("end byte in the document, exclusive", nullable=True)),
    recorded_time=caller(timestamp("when its source recorded it")),
    superseded_at=caller(timestamp("when another text took its place; null = not superseded", nullable=True)),
    deleted_at=caller(timestamp("when it was removed; null = not removed", nullable=True)),
)

_DERIVED_AT_IMPORT = ("evidence_id", "captured_time", "length", "text_sha256", "redactions", "row")

IMPORT_ROWS = Table(
    "import_rows",
    "What every reader gives and `--add evidence=FILE` takes: the columns of EVIDENCE and PLACEMENTS, flat. Required: source_id, text.",
    key=("source_id", "path", "section", "text", "occurrence", "version"),
    order=("source_id", "path", "line_start"),
    columns={
        name: replace(column, nullable=name not in ("source_id", "text"))
        for name, column in {**EVIDENCE.columns, **PLACEMENTS.columns}.items()
        if name not in _DERIVED_AT_IMPORT
    }
    | {
        "occurrence": int32(
            "0 for the first occurrence of this text in this document version, then 1, 2, ...", nullable=True
        )
    },
)

SEGMENTS = table(
    "segments",
    key=("segment_id",),
    order=("row_start",),
    doc="The segments of one frame: each belongs to one owner and is a contiguous range of frame rows.",
    segment_id=string("its pack, and its place in it"),
    owner_project=string("the project all its rows belong to"),
    owner_user=string("the user all its rows belong to; null = the whole project", nullable=True),
    row_start=int64("first frame row"),
    row_end=int64("end frame row, exclusive"),
)

Evidence = EVIDENCE.annotation
Placements = PLACEMENTS.annotation
Segments = SEGMENTS.annotation
