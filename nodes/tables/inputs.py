"""Inputs of the line: requests, grants, policies, and records about a run."""

from __future__ import annotations

from ..schema import boolean, caller, float64, int32, string, strings, table, text, texts, timestamp
from ..score_terms import TERMS

_COUNTS = ("max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens")  # fmt: skip
"""The columns of REQUESTS that purposes and contracts have, too."""

REQUESTS = table(
    "requests",
    key=("request_id",),
    order=("request_id",),
    doc="The resolved requests: aliases and defaults settled, both clocks stamped on arrival.",
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
    branch=caller(string("branch of the code", nullable=True)),
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
    regexes=caller(texts("anchor: regular expressions (RE2) that lines match", nullable=True)),
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
        strings(
            "only these paths: globs from the root, `dir/` = all below; null = all that is granted, [] = none",
            nullable=True,
        )
    ),
    denied_paths=caller(strings("anchored globs on path; any match denies", nullable=True)),
    as_of=caller(timestamp("the time at which facts must hold; default: now")),
    asked_at=caller(timestamp("rights are judged at this instant; stamped on arrival; envelope", digest=False)),
    include_after=caller(timestamp("window start on event time (recorded time where null)", nullable=True)),
    exclude_after=caller(timestamp("window end, exclusive", nullable=True)),
    window_days=caller(float64("window length back from as_of, days", nullable=True)),
    allow_stale_memory=caller(boolean("deprecated and expired memory may be shown as history")),
    require_citation=caller(boolean("items whose citation does not resolve are dropped")),
    require_snapshot=caller(
        boolean("no block leaves unless its snapshot was written; default: true where runs are kept")
    ),
    accepted_authority=caller(strings("accepted source classes (S0.19); null = all", nullable=True)),
    min_authority=caller(int32("least authority, 0 to 3", nullable=True)),
    max_unverified_items=caller(int32("cap on items of lifecycle candidate", nullable=True)),
    lane_k=caller(int32("rows a lane returns per sub-query", nullable=True)),
    pool_k=caller(int32("candidates kept after merging", nullable=True)),
    max_items=caller(int32("items in the block; a conflict set counts as one", nullable=True)),
    max_items_per_source=caller(
        int32("items of one document: a structured record, a path, else an entity, else the row", nullable=True)
    ),
    max_tokens=caller(int32("most tokens of the block, as `tokenizer` counts them", nullable=True)),
    max_chars=caller(int32("characters of the block", nullable=True)),
    max_chunk_tokens=caller(int32("tokens of one item's text", nullable=True)),
    tokenizer=caller(string("counter by name, e.g. approx-bpe/1")),
    merge_policy=caller(string("overrides the purpose's", nullable=True)),
    output_shape=caller(string("overrides the purpose's", nullable=True)),
    detail=caller(string("overrides the purpose's", nullable=True)),
    weights=caller(string("its own weights of score terms, a JSON object by name; null = none", nullable=True)),
)

GRANTS = table(
    "grants",
    key=("rule_id",),
    order=("rule_id",),
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
    namespaces=strings("namespaces whose rows are readable, besides rows without one; null = every one", nullable=True),
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
    doc="Defaults and weights per purpose, from `data/policies/purposes/`.",
    purpose=string("fix-test, explain-code, review-risk or answer-question"),
    version=string("SHA-256 of the file, first 16 hex digits"),
    merge_policy=string("how sub-queries merge into one list"),
    output_shape=string("what the block looks like"),
    include_states=strings("lifecycles that may be shown"),
    **REQUESTS.take(*_COUNTS, nullable=False, audience="audit"),
    withheld_k=int32("rows withheld by time or visibility gates that become candidates, per request"),
    graph_floor=float64("least confidence of an edge that the graph lane walks, above 0 to 1"),
    graph_iterations=int32("steps of its walk"),
    instruction_sources=strings("path globs whose text may have standing instruction (C16)"),
    mask=strings("what is masked at projection: email, absolute-path; null = nothing", nullable=True),
    extra=float64("weight of a term of a plugin; null = the plugin's own", nullable=True),
    **{f"weight_{term.name}": float64(term.weight_doc) for term in TERMS if term.family != "role"},
)

MODE_POLICIES = table(
    "mode_policies",
    key=("mode",),
    order=("mode",),
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
    weight_lexical=float64("share of the lexical and anchor terms"),
    weight_semantic=float64("share of the semantic term"),
    weight_metadata=float64("share of the metadata, authority and recency terms"),
    weight_rerank=float64("share of the vocabulary and actionability terms"),
    max_selected_chunks=int32("cap on items; null = none", nullable=True),
    require_source_diversity=boolean("no source gets a second item before every source has one"),
    max_chunks_per_source=int32(
        "cap on items of one document: a structured record, a path, else an entity, else the row; null = none",
        nullable=True,
    ),
    freshness_max_age_days=float64("age from which a row is stale; null = two half-lives of its kind", nullable=True),
    stale_penalty=float64("subtracted from the metadata term of a stale row, 0 to 1"),
    role_mismatch_penalty=float64("subtracted from the metadata term of a row that is for other roles, 0 to 1"),
    bridge_roles=strings("other roles whose rows count as its own"),
    prioritize=strings("what comes first in the block: a kind, document type, domain, tag, or a phrase of the text"),
    avoid=strings("what comes last in the block; same values as `prioritize`"),
    required_evidence=strings("required_evidence values that answers in this role need"),
    citation_style=string("inline, footnote or bundle_only"),
    golden_set_id=string("golden set that the role is measured on", nullable=True),
    distinctiveness_checks=strings("roles that must do worse on that golden set"),
)

ROLE_RULES = table(
    "role_rules",
    key=("role", "rule", "pattern"),
    order=("role", "rule", "pattern"),
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
    doc="Requests that were refused on arrival or failed on the line: each becomes a snapshot of status failed.",
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
    doc="The envelope of each snapshot, stamped by the driving process.",
    request_id=string("the request", digest=False),
    snapshot_id=string("time-ordered, unique"),
    created_at=timestamp("when"),
)

PROVENANCE = table(
    "provenance",
    key=("part",),
    order=("part",),
    doc="What the snapshot digest covers besides the tables.",
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
    doc="Query vectors, computed once in the driving process. Components are multiples of 2**-15.",
    request_id=string("the request"),
    sub_query_id=string("the sub-query"),
    vector_row=int32("row in the matrix of distinct query vectors"),
)

LANE_STATES = table(
    "lane_states",
    key=("request_id", "lane"),
    order=("request_id", "lane"),
    doc="Lanes that did not run for a request, from the driving process; the consequences are in `conditions`. "
    "The cross-encoder counts as one here.",
    request_id=string("the request"),
    lane=string("the lane, or cross_encoder"),
    state=string("off (not available here) or failed (it raised)"),
    message=string("what happened and how to turn the lane on; quotes no evidence"),
)

Requests = REQUESTS.annotation
Grants = GRANTS.annotation
PurposePolicies = PURPOSE_POLICIES.annotation
ModePolicies = MODE_POLICIES.annotation
KindPolicies = KIND_POLICIES.annotation
PlanRules = PLAN_RULES.annotation
RolePolicies = ROLE_POLICIES.annotation
RoleRules = ROLE_RULES.annotation
Failures = FAILURES.annotation
Captures = CAPTURES.annotation
Provenance = PROVENANCE.annotation
LaneStates = LANE_STATES.annotation
