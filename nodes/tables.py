"""Every table of the line and the corpus, declared once.

Reads: nothing. Gives: one `Table` per node (`HITS`, ...) and its annotation (`Hits`, ...). Every table of the line leads
with `request_id`. Times are UTC microseconds; intervals are half-open; ranks start at 1; scores are float64 multiples of
2**-30. A column marked `caller(...)` may reach the caller, every other one is for auditors.
"""

from __future__ import annotations

from dataclasses import replace

from .lanes import LANE_NAMES
from .schema import (
    Table,
    boolean,
    caller,
    float64,
    int8s,
    int32,
    int64,
    int64s,
    spans,
    string,
    strings,
    table,
    text,
    texts,
    timestamp,
)
from .score_terms import SCORED, TERMS
from .vocabulary import WEIGHED_TERMS

# --- the corpus -----------------------------------------------------------------------------------------------------

EVIDENCE = table(
    "evidence",
    key=("evidence_id",),
    order=("owner_project", "owner_user", "source_id", "path", "line_start"),
    persist=False,
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
    uri=caller(string("where a person opens it", nullable=True)),
    path=caller(string("path inside the source, `/` separated", nullable=True)),
    section=caller(string("heading path, definition name or record part", nullable=True)),
    event_time=caller(timestamp("when it happened", nullable=True)),
    captured_time=timestamp("when it was read into the corpus; envelope", nullable=True, digest=False),
    valid_from=caller(timestamp("start of validity; null = unbounded", nullable=True)),
    valid_until=caller(timestamp("end of validity, exclusive; null = unbounded", nullable=True)),
    superseded_by=string("evidence_id or entity that replaces it; shown only if admissible", nullable=True),
    owner_project=string("the project it belongs to; never null"),
    owner_user=string("the user it belongs to; null = the whole project", nullable=True),
    namespace=string("finer partition inside a project", nullable=True),
    workspace_root=string("the work tree whose uncommitted text it is; null = every one", nullable=True),
    branch=caller(string("code line; null = every one", nullable=True)),
    session_id=caller(string("session it happened in", nullable=True)),
    test_suite=caller(string("test suite it speaks of; null = every one", nullable=True)),
    principals=strings("who may read it, users or groups; null = no list, [] = nobody", nullable=True),
    applicable_roles=strings("roles it is for; null = every role", nullable=True),
    excluded_roles=strings("roles it is not for", nullable=True),
    zone=string("public < internal < private < restricted; null counts as restricted", nullable=True),
    declared_visibility=string("model-visible, user-only, runtime-only or denied; null = not visible", nullable=True),
    authority=caller(int32("0 untrusted, 1 general, 2 preferred, 3 authoritative; null = 0", nullable=True)),
    confidence=caller(float64("how sure the record is, 0 to 1", nullable=True)),
    importance=float64("0 to 1, as given by the importer", nullable=True),
    reinforcement_count=int32("how often it was confirmed", nullable=True),
    last_verified_at=caller(timestamp("when somebody last checked it", nullable=True)),
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
    persist=False,
    doc="The times and places a row of evidence stood. A row is admissible if one of its placements is.",
    row=int64("position of its evidence row in the same segment or frame"),
    evidence_id=caller(string("the evidence row")),
    version=caller(string("commit, revision or content version it stood in", nullable=True)),
    line_start=caller(int32("first line, from 1", nullable=True)),
    line_end=caller(int32("last line, inclusive", nullable=True)),
    byte_start=caller(int64("first byte in the document", nullable=True)),
    byte_end=caller(int64("end byte in the document, exclusive", nullable=True)),
    recorded_time=caller(timestamp("when its source recorded it")),
    superseded_at=caller(timestamp("when another text took its place; null = still stands", nullable=True)),
    deleted_at=caller(timestamp("when it was removed; null = still stands", nullable=True)),
)

_DERIVED_AT_IMPORT = ("evidence_id", "captured_time", "length", "text_sha256", "redactions", "row")
IMPORT_ROWS = Table(
    "import_rows",
    "What every reader gives and `--evidence` takes: the columns of EVIDENCE and PLACEMENTS, flat. Required: source_id, text.",
    key=("source_id", "path", "section", "text", "occurrence", "version"),
    order=("source_id", "path", "line_start"),
    persist=False,
    columns={
        name: replace(column, nullable=name not in ("source_id", "text"))
        for name, column in {**EVIDENCE.columns, **PLACEMENTS.columns}.items()
        if name not in _DERIVED_AT_IMPORT
    }
    | {
        "occurrence": int32(
            "0 for the first time this text stands in this document version, then 1, 2, ...", nullable=True
        )
    },
)

SEGMENTS = table(
    "segments",
    key=("segment_id",),
    order=("row_start",),
    persist=False,
    doc="The segments of one frame: each belongs to one owner and is a contiguous range of frame rows.",
    segment_id=string("content-derived id"),
    owner_project=string("the project all its rows belong to"),
    owner_user=string("the user all its rows belong to; null = the whole project", nullable=True),
    row_start=int64("first frame row"),
    row_end=int64("end frame row, exclusive"),
)

# --- what comes in at the door --------------------------------------------------------------------------------------

_OWN_WEIGHTS = {
    f"weight_{name}": caller(float64(f"the request's own weight of the {name} term", nullable=True))
    for name in WEIGHED_TERMS
}

REQUESTS = table(
    "requests",
    key=("request_id",),
    order=("request_id",),
    persist=True,
    doc="The resolved requests: aliases and defaults settled, both clocks stamped at the door.",
    request_id=caller(string("unique in the run; default: digest of the request", digest=False)),
    intent_id=caller(string("id of the intent", nullable=True, digest=False)),
    intent_source=caller(string("model, policy or runtime; all take the same path")),
    model_request_id=caller(string("the model call this feeds", nullable=True, digest=False)),
    trace_id=caller(string("trace of the caller", nullable=True, digest=False)),
    question=caller(text("the question or task")),
    context_summary=caller(text("what the conversation said so far", nullable=True)),
    principal=caller(string("whose rights apply: the credential's, or one that it may act as")),
    asked_by=caller(string("the credential's principal, where it asks for another; null = `principal`", nullable=True)),
    preset=caller(string("the preset that bounds it: first 16 hex digits of its SHA-256", nullable=True)),
    project=caller(string("the project asked in")),
    namespace=caller(string("narrows to one namespace", nullable=True)),
    workspace_root=caller(string("the work tree whose uncommitted text counts", nullable=True)),
    branch=caller(string("code line", nullable=True)),
    test_suite=caller(string("test suite", nullable=True)),
    session_id=caller(string("session asked from", nullable=True)),
    turn_id=caller(string("turn in the session", nullable=True)),
    task_id=caller(string("task", nullable=True)),
    purpose=caller(string("fix-test, explain-code, review-risk or answer-question")),
    mode=caller(string("planning, execution or review", nullable=True)),
    role=caller(string("role overlay", nullable=True)),
    phase=caller(string("diagnosing, planning, editing, verifying, summarizing or blocked", nullable=True)),
    recall_effort=caller(string("none, minimal, full or graph")),
    state=caller(text("task state and observations as JSON, for the plan", nullable=True)),
    variables=caller(text("values for path templates as a JSON object", nullable=True)),
    failing_test=caller(text("anchor: the failing test's name or path", nullable=True)),
    error_text=caller(text("anchor: the error as printed", nullable=True)),
    current_files=caller(texts("anchor: paths being worked on", nullable=True)),
    anchor_symbols=caller(texts("anchor: identifiers", nullable=True)),
    stack_trace=caller(text("anchor: the stack trace as printed", nullable=True)),
    required_evidence=caller(
        strings("current-code, test-log, project-rule, verified-memory, decision-record", nullable=True)
    ),
    allowed_sources=caller(
        strings(
            "source selectors: an origin_class or a glob on source_id; null = all granted, [] = none", nullable=True
        )
    ),
    denied_sources=caller(strings("source selectors; any match denies", nullable=True)),
    allowed_paths=caller(
        strings("anchored globs on path, `dir/` = all below; null = all granted, [] = none", nullable=True)
    ),
    denied_paths=caller(strings("anchored globs on path; any match denies", nullable=True)),
    as_of=caller(timestamp("facts are judged at this instant")),
    asked_at=caller(timestamp("rights are judged at this instant; stamped at the door; envelope", digest=False)),
    include_after=caller(timestamp("window start on event time (recorded time where null)", nullable=True)),
    exclude_after=caller(timestamp("window end, exclusive", nullable=True)),
    window_days=caller(float64("window length back from as_of, days", nullable=True)),
    allow_stale_memory=caller(boolean("deprecated and expired memory may be shown as history")),
    require_citation=caller(boolean("items whose citation does not resolve are dropped")),
    require_snapshot=caller(boolean("no block leaves unless its snapshot was written")),
    accepted_authority=caller(strings("accepted source classes (S0.19); null = all", nullable=True)),
    min_authority=caller(int32("least authority, 0 to 3", nullable=True)),
    max_unverified_items=caller(int32("cap on items of lifecycle candidate; null = the purpose's", nullable=True)),
    lane_k=caller(int32("rows a lane returns per sub-query", nullable=True)),
    pool_k=caller(int32("candidates kept after merging", nullable=True)),
    max_items=caller(int32("items in the block; a conflict set counts as one", nullable=True)),
    max_items_per_source=caller(
        int32("items of one document: a structured record, a path, else an entity, else the row", nullable=True)
    ),
    max_tokens=caller(int32("tokens of the block under `tokenizer`", nullable=True)),
    max_chars=caller(int32("characters of the block", nullable=True)),
    max_chunk_tokens=caller(int32("tokens of one item's text", nullable=True)),
    tokenizer=caller(string("counter by name, e.g. approx-bpe/1")),
    merge_policy=caller(string("overrides the purpose's", nullable=True)),
    output_shape=caller(string("overrides the purpose's", nullable=True)),
    detail=caller(string("overrides the purpose's", nullable=True)),
    **_OWN_WEIGHTS,
)

GRANTS = table(
    "grants",
    key=("rule_id",),
    order=("rule_id",),
    persist=True,
    doc="What principals may read: one row per principal and project, from `grants.yaml`.",
    rule_id=string("position in the file, e.g. `principals.ana.projects[0]` or `grants[2]`"),
    principal=string("who"),
    project=string("which project's rows; of an `act_as` row the project to ask in, null = every one", nullable=True),
    own_project=boolean("true: the project may be asked in; false: read from another project's contract"),
    for_projects=strings(
        "for a cross-project grant: projects whose requests may use it; null = any the principal may ask in",
        nullable=True,
    ),
    sources=strings("source selectors; null = every source, [] = none", nullable=True),
    paths=strings("anchored globs on path; null = every path, [] = none", nullable=True),
    denied_paths=strings("anchored globs on path that no grant of the principal in the project opens", nullable=True),
    zone=string("highest zone"),
    users=strings("other users whose rows are readable; the principal's own always are", nullable=True),
    states=strings("lifecycles the principal may include; null = the defaults of the purpose", nullable=True),
    groups=strings("groups the principal belongs to", nullable=True),
    act_as=strings("principals it may ask for; a row that has them opens no rows", nullable=True),
    audit=boolean("may use auditor views"),
    expires=timestamp("end of the grant, exclusive; judged at asked_at", nullable=True),
    reason=string("why it was granted", nullable=True),
)

PURPOSE_POLICIES = table(
    "purpose_policies",
    key=("purpose",),
    order=("purpose",),
    persist=True,
    doc="Defaults and weights per purpose, from `data/policies/purposes/`.",
    purpose=string("fix-test, explain-code, review-risk or answer-question"),
    version=string("SHA-256 of the file, first 16 hex digits"),
    merge_policy=string("how sub-queries merge into one list"),
    output_shape=string("what the block looks like"),
    detail=string("how much of each item is shown: full, outline or auto"),
    include_states=strings("lifecycles that may be shown"),
    max_unverified_items=int32("cap on items of lifecycle candidate"),
    lane_k=int32("rows a lane returns per sub-query"),
    pool_k=int32("candidates kept after merging"),
    max_items=int32("items in the block; a conflict set counts as one"),
    max_items_per_source=int32("items of one document: a structured record, a path, else an entity, else the row"),
    max_tokens=int32("tokens of the block"),
    max_chars=int32("characters of the block"),
    max_chunk_tokens=int32("tokens of one item's text"),
    withheld_k=int32("rows withheld by time or visibility gates that become candidates, per request"),
    instruction_sources=strings("path globs whose text may have standing instruction (C16)"),
    mask=strings("what is masked at projection: email, absolute-path; null = nothing", nullable=True),
    **{f"weight_{term.name}": float64(term.weight_doc) for term in TERMS if term.family != "role"},
)

MODE_POLICIES = table(
    "mode_policies",
    key=("mode",),
    order=("mode",),
    persist=True,
    doc="The modes of document 001, from `data/policies/modes/`. Lists of conditional globs are parallel.",
    mode=string("planning, execution or review"),
    version=string("SHA-256 of the file, first 16 hex digits"),
    search_paths=strings("path templates: globs with `{variables}`"),
    include_paths=strings("further path templates"),
    include_when=strings("the variable that each of `include_paths` waits for; empty = none"),
    exclude_kinds=strings("what each exclusion speaks of: path, level or zone"),
    exclude_values=strings("the path template, level or zone that it leaves out"),
    exclude_unless=strings("the variable that lifts each exclusion; empty = none"),
    lanes=strings("lanes its strategies name"),
    lane_k=int32("`k_in`"),
    max_items=int32("`k_out`"),
    window_days=float64("`time_window`, days; null = any age", nullable=True),
    window_paths=strings("path templates that the window holds for"),
    chunk_expansion=boolean("`chunk_expansion`"),
    exact_lookups=boolean("`exact_lookups`"),
    citation_chaining=boolean("whether its strategies name citation chaining"),
    include_deleted=boolean("`include_deleted`"),
    newest_first=boolean("whether its strategies name temporal search"),
    cross_encoder=boolean("whether its strategies name cross-encoder reranking"),
)

KIND_POLICIES = table(
    "kind_policies",
    key=("purpose", "evidence_kind", "document_type"),
    order=("purpose", "evidence_kind", "document_type"),
    persist=True,
    doc="Per purpose, how far a kind of evidence supports the next action and how fast it ages.",
    purpose=string("the purpose"),
    evidence_kind=string("the kind of evidence"),
    document_type=string("the document type inside that kind; empty = any that has no row of its own"),
    actionability=float64("0 to 1: supports the next action (S0.94)"),
    half_life_days=float64("age at which recency halves; infinite for standards (S0.33)"),
)

PLAN_RULES = table(
    "plan_rules",
    key=("purpose", "ordinal"),
    order=("purpose", "ordinal"),
    persist=True,
    doc="The sub-queries a purpose plans, from `data/policies/purposes/` (S0.34 to S0.42).",
    purpose=string("the purpose"),
    ordinal=int32("order of the sub-query, from 1"),
    intent=string("find-error, find-code, find-rule, find-memory or find-decision"),
    question=string("the plan question in words (S0.41)"),
    parts=strings(
        "what the query text is made of: question, context, failing_test, error, stack, files, symbols, state, session"
    ),
    lanes=strings("lanes this sub-query uses"),
    sources=strings("source selectors; [] = every source"),
    kinds=strings("evidence kinds that may return; [] = every kind"),
    lane_k=int32("rows a lane returns; null = the purpose's", nullable=True),
    min_authority=int32("least authority of a returned row, 0 to 3"),
    max_age_days=float64("greatest age at as_of; null = any", nullable=True),
    requires=strings("required_evidence values that this sub-query serves; it runs also when its anchors are missing"),
)

ROLE_POLICIES = table(
    "role_policies",
    key=("role",),
    order=("role",),
    persist=True,
    doc="Role overlays, one row each, from `data/policies/roles/` (S4.8, S4.15 to S4.17).",
    role=string("role_id of the overlay"),
    version=string("SHA-256 of the file, first 16 hex digits"),
    label=string("the role's name, as reasons print it"),
    mission=string("what the role retrieves for; its words count a little in the vocabulary term"),
    anti_goals=strings("what it must not drift into; a row that speaks of one loses in the vocabulary term"),
    preferred_terms=strings("words of the role: they expand its lexical queries and count in the vocabulary term"),
    boost_phrases=strings("phrases that count twice in the vocabulary term"),
    suppress_phrases=strings("phrases that count against a row"),
    allowed_sources=strings("source selectors; null = all", nullable=True),
    forbidden_sources=strings("source selectors; any match is withheld"),
    weight_lexical=float64("share of the lexical and anchor classes"),
    weight_semantic=float64("share of the semantic class"),
    weight_metadata=float64("share of the metadata, authority and recency classes"),
    weight_rerank=float64("share of the vocabulary and actionability classes"),
    max_selected_chunks=int32("cap on items; null = none", nullable=True),
    require_source_diversity=boolean("no source stands twice before every source stands once"),
    max_chunks_per_source=int32(
        "cap on items of one document: a structured record, a path, else an entity, else the row; null = none",
        nullable=True,
    ),
    freshness_max_age_days=float64("age from which a row is stale; null = two half-lives of its kind", nullable=True),
    stale_penalty=float64("taken from the metadata term of a stale row, 0 to 1"),
    role_mismatch_penalty=float64("taken from the metadata term of a row that is for other roles, 0 to 1"),
    bridge_roles=strings("other roles whose rows count as its own"),
    prioritize=strings("what stands first in the block: a kind, document type, domain, tag, or a phrase of the text"),
    avoid=strings("what stands last, in the same words"),
    required_evidence=strings("required_evidence values that answers in this role need"),
    citation_style=string("inline, footnote or bundle_only"),
    golden_set_id=string("golden set that the role is measured on", nullable=True),
    distinctiveness_checks=strings("roles that must do worse on that golden set"),
)

ROLE_RULES = table(
    "role_rules",
    key=("role", "rule", "pattern"),
    order=("role", "rule", "pattern"),
    persist=True,
    doc="The parts of role overlays that come in pairs: what matches, and what that gives.",
    role=string("role_id of the overlay"),
    rule=string("preferred_source, trust_tier, document_type, domain or synonym"),
    pattern=string("source selector, rank of authority, document type, domain, or the word asked with"),
    boost=float64("added to the metadata term, -1 to 1; 0 for synonyms"),
    reason=string("why the source is preferred; printed as the reason of selection", nullable=True),
    words=strings("the synonyms", nullable=True),
)

FAILURES = table(
    "failures",
    key=("request_id",),
    order=("request_id",),
    persist=True,
    doc="Requests that were refused at the door or broke on the line: each becomes a snapshot of status failed.",
    request_id=caller(
        string("its id; else `line-<n>` by its line in JSONL and CSV, `row-<n>` elsewhere, from 1", digest=False)
    ),
    error=caller(text("the message; quotes ids, names and types only")),
    project=caller(string("the project it named, where that could be read", nullable=True)),
    purpose=caller(text("its purpose, where that could be read", nullable=True)),
    question=caller(text("its question, secrets masked, where that could be read", nullable=True)),
)

CAPTURES = table(
    "captures",
    key=("request_id",),
    order=("request_id",),
    persist=False,
    doc="The envelope of each snapshot, stamped by the driving process.",
    request_id=string("the request"),
    snapshot_id=string("time-ordered, unique"),
    created_at=timestamp("when"),
)

PROVENANCE = table(
    "provenance",
    key=("part",),
    order=("part",),
    persist=True,
    doc="What the snapshot digest covers beside the tables.",
    part=string(
        "generation, policies, grants, code, encoder, cross_encoder, analyzers, tokenizer, redactor, digest or settings"
    ),
    value=string(
        "digest, or name with version; of encoder and cross_encoder the profile: model or server, digests, and how texts are read"
    ),
)

QUERY_VECTORS = table(
    "query_vectors",
    key=("request_id", "sub_query_id"),
    order=("request_id", "sub_query_id"),
    persist=False,
    doc="Query vectors, computed once in the driving process. Components are multiples of 2**-15.",
    request_id=string("the request"),
    sub_query_id=string("the sub-query"),
    vector_row=int32("row in the matrix of distinct query vectors"),
)

CROSS_ENCODER_SCORES = table(
    "cross_encoder_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "evidence_id"),
    persist=False,
    doc="What a cross-encoder says of question and text, computed once in the driving process; no rows where it is off.",
    request_id=string("the request"),
    evidence_id=string("a row of `cross_encoder_pool`"),
    score=float64("sigmoid of the logit, or the share that a server gives, 0 to 1; a multiple of 2**-30"),
)

LANE_STATES = table(
    "lane_states",
    key=("request_id", "lane"),
    order=("request_id", "lane"),
    persist=False,
    doc="Lanes that did not run for a request, from the driving process; what came of it stands in `conditions`. "
    "The cross-encoder counts as one here.",
    request_id=string("the request"),
    lane=string("the lane, or cross_encoder"),
    state=string("off (not available here) or failed (it raised)"),
    message=string("what happened and how to turn the lane on; quotes no evidence"),
)

# --- scope_resolution -----------------------------------------------------------------------------------------------

MODE_PRESETS = table(
    "mode_presets",
    key=("request_id",),
    order=("request_id",),
    persist=False,
    doc="The mode of each request with its paths filled in; a request without a mode has a row that chooses nothing.",
    request_id=string("the request", digest=False),
    mode=string("planning, execution or review", nullable=True),
    version=string("SHA-256 of the mode's file, first 16 hex digits", nullable=True),
    search_paths=strings("path globs it searches, variables filled in; null = every path", nullable=True),
    excluded_paths=strings("path globs it leaves out"),
    excluded_levels=strings("levels it leaves out"),
    excluded_zones=strings("zones it leaves out"),
    lanes=strings("lanes that every sub-query uses beside its own"),
    lane_k=int32("`k_in`: rows a lane returns", nullable=True),
    pool_k=int32("twice `k_in` (S1.27)", nullable=True),
    max_items=int32("`k_out`: items in the block", nullable=True),
    window_days=float64("age up to which rows of `window_paths` return, days", nullable=True),
    window_paths=strings("path globs the window holds for"),
    chunk_expansion=boolean("neighbors, parents and children of hits return"),
    exact_lookups=boolean("records that hits name return, and facts are checked against them"),
    citation_chaining=boolean("documents that hits refer to return"),
    include_deleted=boolean("superseded and deleted text is shown as history"),
    newest_first=boolean("the block is in order of time, newest first"),
)

CONTRACTS = table(
    "contracts",
    key=("request_id",),
    order=("request_id",),
    persist=True,
    doc="The resolved retrieval contract of each request: what it may see, and how it chooses inside that.",
    request_id=caller(string("the request", digest=False)),
    contract_id=caller(string("first 16 hex digits of the contract digest: the scope id of S0.14")),
    denied=caller(boolean("nothing can be asked under this contract")),
    denied_reason=caller(string("why, from the contract alone", nullable=True)),
    principal=caller(string("whose rights apply")),
    asked_by=caller(string("who asks, where it is another", nullable=True)),
    groups=strings("groups of the principal at asked_at"),
    project=caller(string("the project asked in")),
    namespace=caller(string("only this namespace and rows without one", nullable=True)),
    workspace_root=caller(string("work tree", nullable=True)),
    branch=caller(string("code line", nullable=True)),
    test_suite=caller(string("test suite", nullable=True)),
    session_id=caller(string("session", nullable=True)),
    purpose=caller(string("purpose")),
    mode=caller(string("the mode that chose inside the bounds", nullable=True)),
    search_paths=caller(strings("path globs the mode searches; null = every path", nullable=True)),
    excluded_paths=caller(strings("path globs the mode leaves out")),
    excluded_levels=caller(strings("levels the mode leaves out")),
    excluded_zones=caller(strings("zones the mode leaves out")),
    allowed_sources=caller(strings("source selectors; null = all granted", nullable=True)),
    denied_sources=caller(strings("source selectors")),
    allowed_paths=caller(strings("anchored globs on path; null = all granted", nullable=True)),
    denied_paths=caller(strings("anchored globs on path")),
    as_of=caller(timestamp("facts are judged here")),
    asked_at=timestamp("rights are judged here; envelope", digest=False),
    window_start=caller(timestamp("start of the window", nullable=True)),
    window_end=caller(timestamp("end of the window, exclusive", nullable=True)),
    allow_stale_memory=caller(boolean("deprecated and expired memory may be shown as history")),
    include_states=caller(strings("lifecycles that may be shown")),
    accepted_authority=caller(strings("accepted source classes; null = all", nullable=True)),
    min_authority=caller(int32("least authority, 0 to 3")),
    require_citation=caller(boolean("items must resolve")),
    require_snapshot=caller(boolean("no block without snapshot")),
    max_unverified_items=caller(int32("cap on candidate items")),
    lane_k=caller(int32("rows per lane and sub-query")),
    pool_k=caller(int32("candidates after merging")),
    max_items=caller(int32("items in the block; a conflict set counts as one")),
    max_items_per_source=caller(
        int32("items of one document: a structured record, a path, else an entity, else the row")
    ),
    max_tokens=caller(int32("tokens of the block")),
    max_chars=caller(int32("characters of the block")),
    max_chunk_tokens=caller(int32("tokens of one item's text")),
    tokenizer=caller(string("counter by name")),
    withheld_k=int32("withheld rows that become candidates"),
    merge_policy=caller(string("how sub-queries merge")),
    output_shape=caller(string("what the block looks like")),
    detail=caller(string("how much of each item is shown: full, outline or auto")),
    instruction_sources=caller(strings("path globs with standing instruction")),
    mask=caller(strings("what is masked at projection; null = nothing", nullable=True)),
    required_evidence=caller(strings("evidence the caller or the role requires")),
    recall_effort=caller(string("none, minimal, full or graph")),
    mode_lanes=caller(strings("lanes that every sub-query uses beside its own")),
    path_window_start=caller(timestamp("rows of `window_paths` that happened earlier do not return", nullable=True)),
    window_paths=caller(strings("path globs that `path_window_start` holds for")),
    chunk_expansion=caller(boolean("neighbors, parents and children of hits return")),
    exact_lookups=caller(boolean("records that hits name return, and facts are checked against them")),
    citation_chaining=caller(boolean("documents that hits refer to return")),
    include_deleted=caller(boolean("superseded and deleted text is shown as history")),
    newest_first=caller(boolean("the block is in order of time, newest first")),
    role=caller(string("the role overlay that applies; null = none", nullable=True)),
    role_sources=caller(strings("source selectors the role allows; null = all", nullable=True)),
    forbidden_sources=caller(strings("source selectors the role forbids; any match is withheld")),
    source_diversity=caller(boolean("no source stands twice before every source stands once")),
    citation_style=caller(string("inline, footnote or bundle_only")),
    **_OWN_WEIGHTS,
)

CONTRACT_BOUNDS = table(
    "contract_bounds",
    key=("request_id", "project", "rule_id"),
    order=("request_id", "project", "rule_id"),
    persist=True,
    doc="The grants a contract reaches through; a row is reachable if one of them covers it whole.",
    request_id=string("the request", digest=False),
    project=string("a reachable project"),
    users=strings("users whose rows are readable: the principal and those granted"),
    sources=strings("source selectors granted; null = every source", nullable=True),
    paths=strings("anchored globs on path granted; null = every path", nullable=True),
    denied_paths=strings("anchored globs on path that a grant of this project denies"),
    zone=string("highest zone granted"),
    states=strings("lifecycles granted; null = no narrowing", nullable=True),
    rule_id=string("the grant that opened it, by its place in the file; envelope", digest=False),
)

CONTRACT_LAYERS = table(
    "contract_layers",
    key=("request_id", "ordinal"),
    order=("request_id", "ordinal"),
    persist=True,
    doc="What each layer did to the contract, with its version.",
    request_id=string("the request", digest=False),
    ordinal=int32("order, from 1"),
    layer=string("act_as, grants, purpose, mode, role, preset or request"),
    version=string("digest of the layer's file or preset, or `request`"),
    effect=string("the fields it set or narrowed, comma separated"),
)

SCOPE_GROUPS = table(
    "scope_groups",
    key=("request_id",),
    order=("request_id",),
    persist=False,
    doc="Which requests share access and visibility bounds; as_of is not part of it. Denied requests are in no group.",
    request_id=string("the request"),
    scope_group=int32("dense group number inside the shard; -1 = denied"),
    leader=boolean("the first request of its group, whose contract row speaks for the group"),
)

# --- query_planning -------------------------------------------------------------------------------------------------

ANCHORS = table(
    "anchors",
    key=("request_id", "kind", "value"),
    order=("request_id", "kind", "value"),
    persist=True,
    doc="What the request names: identifiers, paths, tests, error lines and ids found in question, anchors and traces.",
    request_id=string("the request", digest=False),
    kind=string("identifier, path, test, error, id"),
    value=text("the anchor as matched"),
    origin=string(
        "failing_test, error_text, stack_trace, current_files, anchor_symbols, question, state, context_summary or "
        "session_events"
    ),
    weight=float64("1 for a declared anchor, less for one found in prose"),
)

SESSION_EVENTS = table(
    "session_events",
    key=("request_id", "rank"),
    order=("request_id", "rank"),
    persist=True,
    doc="What each request's own session has just observed, read before planning (S0.42); `anchors` keeps what it names.",
    request_id=string("the request", digest=False),
    rank=int32("1 = the newest"),
    evidence_id=string("the event"),
    row=int64("its frame row; envelope", digest=False),
)

SESSION_TEXTS = table(
    "session_texts",
    key=("request_id", "rank"),
    order=("request_id", "rank"),
    persist=False,
    doc="The words of those events that planning reads.",
    request_id=string("the request"),
    rank=int32("1 = the newest"),
    text=text("the event, cut where it is long"),
)

SUB_QUERIES = table(
    "sub_queries",
    key=("request_id", "sub_query_id"),
    order=("request_id", "ordinal"),
    persist=True,
    doc="The retrieval plan: one row per sub-query, best first.",
    request_id=string("the request", digest=False),
    sub_query_id=string("`q1`, `q2`, ... inside the request"),
    ordinal=int32("order in the plan, from 1"),
    intent=string("find-error, find-code, find-rule, find-memory or find-decision"),
    query_text=text("what is searched for"),
    expansion=text("words the role adds to the lexical lane, at a quarter of a term's weight", nullable=True),
    lanes=strings("lanes it uses"),
    sources=strings("source selectors; [] = every source"),
    kinds=strings("evidence kinds that may return; [] = every kind"),
    lane_k=int32("rows a lane returns"),
    min_authority=int32("least authority of a returned row"),
    oldest=timestamp("rows older than this do not return; null = any age", nullable=True),
    window_paths=strings("path globs that `window_start` holds for"),
    window_start=timestamp("rows of `window_paths` older than this do not return; null = any age", nullable=True),
)

QUERY_TERMS = table(
    "query_terms",
    key=("request_id", "sub_query_id", "field", "term"),
    order=("request_id", "sub_query_id", "field", "term"),
    persist=False,
    doc="The index keys each sub-query looks up.",
    request_id=string("the request"),
    sub_query_id=string("the sub-query"),
    field=string(
        "text, definition, reference, path or id: the index field; the expansion lane alone asks for conflict"
    ),
    term=string("the term as indexed"),
    weight=float64(
        "of a text term its count in the query, a quarter of it in what the role adds; of another, the anchor's weight, "
        "less for vaguer keys"
    ),
)

MATCH_TERMS = table(
    "match_terms",
    key=("request_id", "term"),
    order=("request_id", "term"),
    persist=False,
    doc="What each request asks for in words, where some row that it may see says them: what passages are chosen by.",
    request_id=string("the request"),
    term=string("the term as indexed"),
    weight=float64("times asked for, times the idf of A(r); the greatest of the sub-queries'"),
)

# --- boundary_gates -------------------------------------------------------------------------------------------------

GATED_ROWS = table(
    "gated_rows",
    key=("scope_group", "row_start"),
    order=("scope_group", "row_start"),
    persist=False,
    doc="Every segment a scope group reads, with the first access or visibility gate that stops each of its rows.",
    scope_group=int32("the group; one that reads no segment has one row without any"),
    row_start=int64("first frame row of the segment"),
    same_as=int32("the first group that reads the same rows with the same outcome; only that one lists it"),
    stopped_by=int8s("per row of the segment: 0 = passes them all, else the gate's number in `gates.GATES`"),
)

REACHABLE = table(
    "reachable",
    key=("scope_group", "row"),
    order=("scope_group", "row"),
    persist=False,
    doc="Frame rows that pass every access gate, per scope group, with the first visibility gate that withholds each.",
    scope_group=int32("the group"),
    row=int64("frame row"),
    withheld_by=int32("0 = passes every visibility gate, else the gate's number in `gates.GATES`"),
)

SCOPE_TIMES = table(
    "scope_times",
    key=("scope_group", "as_of", "window_start", "window_end", "include_deleted"),
    order=("scope_group", "as_of", "window_start", "window_end", "include_deleted"),
    persist=False,
    doc="The distinct instants and windows a scope group is asked for, each judged once.",
    scope_group=int32("the group"),
    as_of=timestamp("the instant"),
    window_start=timestamp("start of the window; null = open, sorted first", nullable=True),
    window_end=timestamp("end of the window, exclusive; null = open, sorted last", nullable=True),
    include_deleted=boolean("superseded and deleted text passes"),
    rows=int64("rows that pass every gate"),
    total_length=int64("index terms in those rows"),
    row_digest=string("SHA-256 over the sorted evidence ids, a line end after each, hex"),
    stopped=int64s("rows each time gate stopped, in the order of `gates.GATES`"),
    sources=strings("class and id of the sources of those rows, a tab between them; [] where no request names sources"),
)

ADMISSIBLE = table(
    "admissible",
    key=("request_id",),
    order=("request_id",),
    persist=True,
    doc="What recall may score for each request: A(r), as counts and a digest; the statistics of BM25 are taken here.",
    request_id=string("the request", digest=False),
    scope_group=int32("group inside the shard; envelope", digest=False),
    segments=strings("segments read; envelope: merging changes them and nothing else", digest=False),
    rows=int64("N, the number of admissible rows"),
    total_length=int64("index terms in those rows; avgdl = total_length / rows"),
    withheld=int64("rows that pass the access gates and are withheld by time or visibility"),
    row_digest=string("SHA-256 over the sorted evidence ids, a line end after each, hex"),
    unmatched_sources=caller(strings("allowed source selectors of the request that pick no row of A(r)")),
)

GROUP_LADDER = table(
    "group_ladder",
    key=("scope_group", "gate"),
    order=("scope_group", "gate"),
    persist=False,
    doc="The ladder of the gates that do not depend on as_of, per scope group.",
    scope_group=int32("the group"),
    gate=int32("number in `gates.GATES`"),
    considered=int64("rows that reached this gate"),
    admitted=int64("rows that passed it"),
)

FILTER_LADDER = table(
    "filter_ladder",
    key=("request_id", "ordinal"),
    order=("request_id", "ordinal"),
    persist=True,
    doc="Gate by gate, how many rows were considered and admitted. A caller's ladder starts after the access gates.",
    request_id=string("the request", digest=False),
    ordinal=int32("order of the gate, from 1"),
    gate=caller(string("name of the gate")),
    gate_class=caller(string("access, visibility or time")),
    considered=int64("rows that reached this gate"),
    admitted=int64("rows that passed it"),
    reason_code=caller(string("the reason of a row that did not")),
)

# --- candidate_recall -----------------------------------------------------------------------------------------------

HITS = table(
    "hits",
    key=("request_id", "sub_query_id", "lane", "evidence_id"),
    order=("request_id", "sub_query_id", "lane", "rank"),
    persist=True,
    doc="Rows the lanes recalled, best first within a lane.",
    request_id=string("the request", digest=False),
    sub_query_id=string("the sub-query that asked"),
    lane=string(f"{', '.join(LANE_NAMES[:-1])} or {LANE_NAMES[-1]}"),
    evidence_id=string("the row"),
    row=int64("its frame row; envelope", digest=False),
    rank=int32("1 is best, dense within request, sub-query and lane"),
    score=float64("raw lane score; not comparable between lanes"),
    withheld=boolean("recalled for the record only: a time or visibility gate withholds it"),
    via=string(
        "by which link: parent, child, neighbour, conflict, superseding, citation, record, or call (symbol lane, "
        "second hop); of the graph lane the edge, its confidence and the evidence id that it starts from, as in "
        "`citation 0.90 <id>`, also import and cochange; null = directly",
        nullable=True,
    ),
)

CANDIDATES = table(
    "candidates",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=True,
    doc="Hits merged: one row per request and evidence, in recall order under the merge policy.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    row=int64("its frame row; envelope", digest=False),
    placement=int64(
        "frame placement shown or judged: the one alive at as_of, else the nearest; envelope", digest=False
    ),
    pool_rank=int32("1 is best; order of the merge policy"),
    merge_score=float64("reciprocal rank fusion over sub-queries and lanes, k = 60"),
    lanes=strings("lanes that recalled it, sorted"),
    intents=strings("intents of the sub-queries that recalled it, sorted"),
    bm25_raw=float64("best lexical score over sub-queries; 0 = not recalled there"),
    semantic_raw=float64("best cosine over sub-queries; 0 = not recalled there"),
    symbol_raw=float64("best symbol score over sub-queries; 0 = not recalled there"),
    via=string("by which link it was reached; null = a lane found it directly", nullable=True),
    withheld=boolean("recalled for the record only"),
)

# --- boundary_filtering ---------------------------------------------------------------------------------------------

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
    wall_disagreement=boolean("the first wall let it through and this one does not, or the reverse"),
)

# --- task_aware_reranking -------------------------------------------------------------------------------------------

LANE_SCORES = table(
    "lane_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="BM25 and cosine of every bounded candidate, whichever lane recalled it; `score_terms` has what is made of them.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    bm25=float64("best BM25 over the texts of the request's sub-queries; 0 = no term in common"),
    bm25_reach=float64("the most that BM25 could give: the sum of the weights of the request's terms that A(r) holds"),
    cosine=float64("best cosine over the texts of the request's sub-queries; 0 = one of both has no vector"),
)

FILE_SCORES = table(
    "file_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="How well the file of every bounded candidate answers; 0 for rows that are no source code.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    file=float64("BM25 of the whole file as a share of the most that the request's terms could give"),
    passages=float64("lexical term of the file's three best candidates, added up, over three"),
    outlines=float64("semantic term of the file's three best candidates, added up, over three"),
)

TURN_SCORES = table(
    "turn_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="What the conversation around a bounded candidate says; all 0 where the row is no turn of a session.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    context=float64("BM25 together with the turns beside it less BM25 alone"),
    answer=float64("BM25 of the turn before it, where that one asks something"),
    session=float64("BM25 of its session among the sessions of A(r); 0 where there are not two"),
    session_reach=float64("the most that BM25 could give a session"),
)

FEEDBACK_ROWS = table(
    "feedback_rows",
    key=("request_id", "evidence_id"),
    order=("request_id", "rank"),
    persist=False,
    doc="The rows that a request takes feedback from: its best bounded candidates, words before meaning.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    row=int64("its frame row; envelope", digest=False),
    rank=int32("1 is best"),
    score=float64("3/4 of its share of the lexical reach and 1/4 of its cosine"),
)

FEEDBACK_TERMS = table(
    "feedback_terms",
    key=("request_id", "term"),
    order=("request_id", "term"),
    persist=False,
    doc="The terms that the feedback rows of a request use most (RM1, Lavrenko & Croft 2001).",
    request_id=string("the request"),
    term=text("a term of the posting index"),
    weight=float64("its share of all that are taken, times how many those are: 1 on average"),
)

FEEDBACK_SCORES = table(
    "feedback_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="What the feedback rows say of every bounded candidate; `score_terms` has it.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    rank=int32("its place among the feedback rows; 0 = none of them"),
    lexical=float64("BM25 of the feedback terms as a share of the most that they could give"),
    semantic=float64("mean cosine with the best feedback rows"),
)

SCORE_TERMS = table(
    "score_terms",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=True,
    extra=float64("a term of a plugin, 0 to 1"),
    doc="The raw score classes of every bounded candidate, 0 to 1, turn_context and the role's two from -1; `ranked` weighs them.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    evidence_kind=string("its kind, for the diversity term"),
    **{term.name: float64(term.doc) for term in SCORED},
    freshness=string("fresh, aging, stale or undated, at as_of (C25)"),
    anchor_signal=string("the strongest anchor it hits, in words; null = none", nullable=True),
    source_signal=string("what kind of source it is, in words"),
    role_signal=string("why the role prefers it, in words; null = it does not", nullable=True),
    feedback_rank=int32("its place among the rows that gave feedback; 0 = none of them"),
)

RERANK_WEIGHTS = table(
    "rerank_weights",
    key=("request_id",),
    order=("request_id",),
    persist=True,
    extra=float64("weight of a term of a plugin"),
    doc="The weights of the score terms per request, resolved from purpose and role; override it to try others.",
    request_id=string("the request", digest=False),
    **{term.name: float64("weight, 0 or more") for term in TERMS},
)

RANKED = table(
    "ranked",
    key=("request_id", "evidence_id"),
    order=("request_id", "rank"),
    persist=True,
    extra=float64("contribution of a term of a plugin"),
    doc="The bounded candidates in final order; the contributions add up to `final` exactly.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    rank=int32("1 is best"),
    final=float64("sum of the contributions"),
    **{term.name: float64(term.contribution) for term in TERMS},
    selected_reason=caller(string("short reason, from its strongest signal (S0.60)")),
)

# --- evidence_packing, fact_verification, budget_trimming -----------------------------------------------------------

PACKS = table(
    "packs",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    persist=True,
    doc="Ranked candidates as items: merged with neighbours, duplicates dropped, conflict sets together, caps applied.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row that leads the item"),
    row=int64("its frame row; envelope", digest=False),
    placement=int64("its frame placement; envelope", digest=False),
    position=int32("order of the item, from 1; 0 = dropped"),
    kept=boolean("goes on to trimming"),
    reason_code=string("why it was dropped; null = kept", nullable=True),
    merged_into=string("evidence_id of the item that swallowed it", nullable=True),
    merged_rows=strings("evidence ids in the item, in document order, the lead included"),
    standing=string("how the text may speak"),
    form=string("full, excerpt, summary, fact, reference, conflict-note or hint"),
    conflict_note=boolean("says that a competing claim may exist"),
    history=boolean("shown as history"),
)

STRUCTURED_FACTS = table(
    "structured_facts",
    key=("request_id", "evidence_id", "field"),
    order=("request_id", "evidence_id", "field"),
    persist=True,
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
    persist=True,
    doc="Dates, ids, numbers and money in items, checked against the structured records the contract admits.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the item")),
    value=caller(text("the value as it stands in the item")),
    kind=caller(string("id, date, money or number")),
    finding=caller(string("match, mismatch, unknown_key, stale_sot or unread")),
    field=caller(text("the record's field", nullable=True)),
    canonical=caller(text("the record's value", nullable=True)),
    record_id=caller(string("evidence_id of the record", nullable=True)),
    locator=caller(text("`path#line (Section)` of the record", nullable=True)),
)

FITS = table(
    "fits",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    persist=False,
    doc="Every item that reached trimming: what of its text fits, and which limit bound.",
    request_id=string("the request"),
    evidence_id=string("the row that leads the item"),
    position=int32("its order among the packs, from 1"),
    number=int32("order in which it was chosen, from 1: the n of `kind#n`; 0 = dropped"),
    place=int32("order in the block, from 1; 0 = dropped"),
    visible_text=text("the text that stays, a slice of the item's text; null = dropped", nullable=True),
    kept_start=int64("first byte of the item's text that stays"),
    kept_end=int64("end byte of the item's text that stays, exclusive; equal to kept_start = dropped"),
    size=int64("bytes of the item's text"),
    line_start=int32("first line shown", nullable=True),
    line_end=int32("last line shown", nullable=True),
    byte_start=int64("first byte of the document shown", nullable=True),
    byte_end=int64("end byte of the document shown, exclusive", nullable=True),
    merged_rows=strings("evidence ids of which something is shown, in document order"),
    form=string("form as shown: a cut `full` is an `excerpt`"),
    conflict_note=boolean("a member of a conflict set shown alone"),
    fact_note=text("what a structured record says in place of a value of the item", nullable=True),
    masked=spans("byte ranges of visible_text that are masked", nullable=True),
    bound_by=string("the limit that cut or dropped it; null = shown whole", nullable=True),
)

TRIMMED = table(
    "trimmed",
    key=("request_id", "evidence_id"),
    order=("request_id", "position"),
    persist=True,
    doc="The items that fit, with the text that the model will see.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the row that leads the item")),
    row=int64("its frame row; envelope", digest=False),
    placement=int64("its frame placement; envelope", digest=False),
    position=caller(int32("order in the block, from 1")),
    label=caller(string("`kind#n`")),
    form=caller(string("full, excerpt, summary, fact, reference, conflict-note or hint")),
    standing=caller(string("how the text may speak")),
    merged_rows=caller(strings("evidence ids in the item, in document order")),
    visible_text=caller(text("the text as shown, before fencing")),
    visible_sha256=caller(string("SHA-256 of visible_text, hex")),
    tokens=caller(int32("tokens of visible_text under the contract's counter")),
    chars=caller(int32("characters of visible_text")),
    line_start=caller(int32("first line shown", nullable=True)),
    line_end=caller(int32("last line shown", nullable=True)),
    byte_start=caller(int64("first byte of the document shown; null = unknown", nullable=True)),
    byte_end=caller(int64("end byte of the document shown, exclusive; null = unknown", nullable=True)),
    conflict_note=caller(boolean("says that a competing claim may exist")),
    fact_note=caller(text("what a structured record says in place of a value of the item", nullable=True)),
    history=caller(boolean("shown as history")),
    masked=caller(
        spans("byte ranges of visible_text that policy masked, each as long as what it covers", nullable=True)
    ),
    masked_by=caller(string("the detector by name and version; null = nothing was masked", nullable=True)),
)

TRIMS = table(
    "trims",
    key=("request_id", "evidence_id"),
    order=("request_id", "evidence_id"),
    persist=True,
    doc="What trimming cut, to the byte range of the item's text; items dropped whole have no kept range.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the item")),
    policy=caller(string("trimming policy by name: line-end/2")),
    bound_by=caller(
        string("max_items, max_tokens, max_chars or max_chunk_tokens; conflict_set = its rival has no room")
    ),
    kept_ranges=caller(spans("byte ranges of the item's text that stayed")),
    dropped_ranges=caller(spans("byte ranges that were cut")),
)

# --- citation_binding, context_projection ---------------------------------------------------------------------------

CITATIONS = table(
    "citations",
    key=("request_id", "label"),
    order=("request_id", "position"),
    persist=True,
    doc="The citation map: every label of the block, and where it leads.",
    request_id=caller(string("the request", digest=False)),
    position=caller(int32("order in the block, from 1")),
    label=caller(string("`kind#n`, unique inside the block")),
    evidence_id=caller(string("the snapshot item")),
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
    persist=True,
    doc="What a bundle says of each item beside its citation (S4.12): the leading row's own columns.",
    request_id=caller(string("the request", digest=False)),
    evidence_id=caller(string("the row that leads the item")),
    position=caller(int32("order in the block, from 1")),
    entity=caller(text("the source's own id of the record", nullable=True)),
    origin_class=caller(string("what kind of source it is")),
    title=caller(text("title of the document", nullable=True)),
    uri=caller(text("where a person opens it", nullable=True)),
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
    updated_at=caller(timestamp("when it happened, else when it was recorded")),
    applicable_roles=caller(texts("roles it is for; null = every role", nullable=True)),
    excluded_roles=caller(texts("roles it is not for", nullable=True)),
)

BLOCKS = table(
    "blocks",
    key=("request_id",),
    order=("request_id",),
    persist=True,
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

# --- audit_snapshot -------------------------------------------------------------------------------------------------

DECISIONS = table(
    "decisions",
    key=("request_id", "evidence_id"),
    order=("request_id", "evidence_id"),
    persist=True,
    doc="Every candidate ends in exactly one row: selected, hidden or rejected, with stage and reason.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    outcome=string("selected, hidden or rejected"),
    stage=string("where it was decided"),
    form=string("how it was shown; none = not shown"),
    decided_by=string("the gate or limit that decided", nullable=True),
    would_reject_by=string("first soft gate that would have rejected it", nullable=True),
    admitted_by=string("names of the gates passed, in order, a space between"),
    reason_code=string("reason by code"),
    reason_text=string("reason in words; quotes no evidence"),
    redacted=boolean("a span of its text was masked"),
    rank=int32("rank after reranking; null = not ranked", nullable=True),
    final=float64("final score; null = not ranked", nullable=True),
    source_id=string("its source"),
    path=text("its path", nullable=True),
    version=string("its version", nullable=True),
    evidence_kind=string("its kind"),
)

CONDITIONS = table(
    "conditions",
    key=("request_id", "condition", "subject"),
    order=("request_id", "condition", "subject"),
    persist=True,
    doc="What the caller should know about the answer as a set; the worst action wins.",
    request_id=caller(string("the request", digest=False)),
    condition=caller(string("condition by name")),
    subject=caller(string("what it speaks of: a lane, a limit, a kind; empty if nothing")),
    action=caller(string("continue, warn, degrade or block")),
    message=caller(text("in words; for callers a function of contract and A(r) alone")),
    audience=string("caller or audit: who may learn of it"),
)

REQUEST_DIGESTS = table(
    "request_digests",
    key=("table", "request_id"),
    order=("table", "request_id"),
    persist=False,
    doc="The digest of each request's rows of each table a snapshot digest covers, that of the snapshots apart.",
    table=string("name of the table"),
    request_id=string("whose rows"),
    digest=string("SHA-256 of the rows as a table of their own, 64 hex digits"),
)

SNAPSHOTS = table(
    "snapshots",
    key=("request_id",),
    order=("request_id",),
    persist=True,
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
    selected_rows=caller(int64("rows shown: items, and the rows merged into them")),
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

OUT_OF_SCOPE = table(
    "out_of_scope",
    key=("request_id", "evidence_id"),
    order=("request_id", "rank"),
    persist=False,
    doc="Best matches that an access gate stopped, for auditors: kept on demand, in files outside every run and digest.",
    request_id=string("the request"),
    rank=int32("1 is best, among rows out of scope, by statistics of theirs alone"),
    evidence_id=string("the row"),
    owner_project=string("its project"),
    source_id=string("its source"),
    path=string("its path", nullable=True),
    lanes=strings("lanes that found it, sorted"),
    decided_by=string("the first gate that stops it"),
    reason_code=string("that gate's reason"),
)

# --- after the line: an answer held against what it was given -------------------------------------------------------

ANSWER_FINDINGS = table(
    "answer_findings",
    key=("finding", "byte_start", "byte_end", "subject"),
    order=("byte_start", "byte_end", "finding", "subject"),
    persist=False,
    doc="What an answer says that the visible bytes of its snapshot do not carry, and what it leaves unused.",
    finding=caller(
        string(
            "unknown_citation, changed_quote, misattributed_quote, unsupported_value, contradicted_fact, "
            "unfounded_action, unused_evidence"
        )
    ),
    wrong=caller(boolean("false: worth knowing, no defect of the answer")),
    subject=caller(text("the words of the answer; of unused evidence its label")),
    label=caller(string("the citation it concerns", nullable=True)),
    expected=caller(text("what the visible evidence says instead", nullable=True)),
    line=caller(int32("line of the answer, from 1; 0 = the answer as a whole")),
    byte_start=caller(int64("first byte in the answer")),
    byte_end=caller(int64("end byte in the answer, exclusive")),
)

TABLES = {t.name: t for t in list(globals().values()) if isinstance(t, Table)}
"""Every declared table by name."""

Evidence = EVIDENCE.annotation
Placements = PLACEMENTS.annotation
Segments = SEGMENTS.annotation
Requests = REQUESTS.annotation
Grants = GRANTS.annotation
PurposePolicies = PURPOSE_POLICIES.annotation
KindPolicies = KIND_POLICIES.annotation
PlanRules = PLAN_RULES.annotation
ModePolicies = MODE_POLICIES.annotation
ModePresets = MODE_PRESETS.annotation
StructuredFacts = STRUCTURED_FACTS.annotation
RolePolicies = ROLE_POLICIES.annotation
RoleRules = ROLE_RULES.annotation
QueryVectors = QUERY_VECTORS.annotation
CrossEncoderScores = CROSS_ENCODER_SCORES.annotation
Contracts = CONTRACTS.annotation
ContractBounds = CONTRACT_BOUNDS.annotation
ContractLayers = CONTRACT_LAYERS.annotation
ScopeGroups = SCOPE_GROUPS.annotation
Anchors = ANCHORS.annotation
SessionEvents = SESSION_EVENTS.annotation
SessionTexts = SESSION_TEXTS.annotation
SubQueries = SUB_QUERIES.annotation
QueryTerms = QUERY_TERMS.annotation
MatchTerms = MATCH_TERMS.annotation
Reachable = REACHABLE.annotation
Admissible = ADMISSIBLE.annotation
FilterLadder = FILTER_LADDER.annotation
Hits = HITS.annotation
Candidates = CANDIDATES.annotation
Verdicts = VERDICTS.annotation
FileScores = FILE_SCORES.annotation
LaneScores = LANE_SCORES.annotation
TurnScores = TURN_SCORES.annotation
FeedbackRows = FEEDBACK_ROWS.annotation
FeedbackTerms = FEEDBACK_TERMS.annotation
FeedbackScores = FEEDBACK_SCORES.annotation
ScoreTerms = SCORE_TERMS.annotation
Ranked = RANKED.annotation
Packs = PACKS.annotation
Fits = FITS.annotation
FactChecks = FACT_CHECKS.annotation
Trimmed = TRIMMED.annotation
Trims = TRIMS.annotation
Citations = CITATIONS.annotation
ItemDetails = ITEM_DETAILS.annotation
Blocks = BLOCKS.annotation
Decisions = DECISIONS.annotation
Conditions = CONDITIONS.annotation
RequestDigests = REQUEST_DIGESTS.annotation
Snapshots = SNAPSHOTS.annotation
Failures = FAILURES.annotation
Captures = CAPTURES.annotation
LaneStates = LANE_STATES.annotation
Provenance = PROVENANCE.annotation
GroupLadder = GROUP_LADDER.annotation
GatedRows = GATED_ROWS.annotation
ScopeTimes = SCOPE_TIMES.annotation
RerankWeights = RERANK_WEIGHTS.annotation
AnswerFindings = ANSWER_FINDINGS.annotation
