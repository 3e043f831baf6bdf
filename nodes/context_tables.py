"""Every table of the context policy, declared once: what a projection is given, and what its steps make.

Reads: nothing. Gives: one `Table` per input and node (`LOG_EVENTS`, `CONTEXT_SOURCES`, ...) and its annotation, and `CONTEXT_TABLES`,
all of them by name. Tables about the session log lead with `session_id`, and `seq` counts its events from 0; tables about turns lead
with `input_id`, one model input.

Note: a turn sees the events before its `as_of_seq`, never the one at it, and facts of the
state hold over half-open ranges of events.
"""

from __future__ import annotations

from .schema import Table, boolean, float64, int32, int64, string, strings, table, text, timestamp

# --- what is given --------------------------------------------------------------------------------------------------

LOG_EVENTS = table(
    "log_events",
    key=("session_id", "seq"),
    order=("session_id", "seq"),
    persist=False,
    doc="The session log: one row per event, in the order in which it was appended. It is the source of truth; nothing rewrites it.",
    session_id=string("the session"),
    seq=int64("place in the log of the session, from 0"),
    event_id=string("the harness's own id, unique in the session"),
    turn_id=string("the round in which it happened", nullable=True),
    turn=int64("number of that round, from 0, in the order in which rounds begin"),
    kind=string("what happened; see the vocabulary of events"),
    actor=string("who speaks: user, model, tool, system or memory; the origin that it names, else by its kind"),
    created_at=timestamp("when the harness recorded it"),
    key_event=boolean("a key event: one that a later round has to know of"),
    observation_class=string(
        "stdout, stderr, file_diff, search_result, permission_denied, timeout, file_content or web_content",
        nullable=True,
    ),
    visibility=string("model-visible, user-only (for the user interface) or runtime-only (for auditors)"),
    zone=string("public, internal, private or restricted"),
    text=text("what it says, its secrets masked: of a long output the beginning and the end", nullable=True),
    characters=int64("characters of all that it says"),
    cut=boolean("`text` is not all of it; `ref` leads to the rest"),
    masked=int32("masks of secrets in all of its text and in its command"),
    binding=text("of the user's words what forbids, asks for an approval or a check, in whole sections", nullable=True),
    pasted=text("of the user's words what is pasted: code, quotations, logs; it binds nothing", nullable=True),
    summary=text("its key fragment in one line", nullable=True),
    excerpt=text("the lines around what failed", nullable=True),
    ref=string("artifact that has the full text", nullable=True),
    command=text("the command that ran, or the name and argument of the tool", nullable=True),
    exit_code=int32("how the command ended", nullable=True),
    failed=boolean("the command failed, was denied or timed out"),
    check_scope=string(
        "of a test, lint, type check or build what it covers: `test:` and the files, names and packages that it is narrowed to",
        nullable=True,
    ),
    check_outcome=string("how that check came out: passed, failed or unknown", nullable=True),
    check_clears=strings(
        "kinds of checks whose failures end because it passed, all of them: it was not narrowed", nullable=True
    ),
    may_change=strings("files that the command may have changed; `*` = some that it does not name", nullable=True),
    path=string("file that it read or changed", nullable=True),
    version=string("version of that file: a hash, a commit or a number", nullable=True),
    subject=string(
        "what it sets or ends: id of a constraint, memory or approval; the phase; the lines of a partial read",
        nullable=True,
    ),
    origin=string(
        "who set a goal or a constraint, or reports a verification, as the event names it: user, repository, global, model, tool",
        nullable=True,
    ),
    evidence_ids=strings("rows of evidence whose text its text carries", nullable=True),
    snapshot_ids=strings("retrieval snapshots that it created or refers to", nullable=True),
    suspicious=boolean("its text addresses the model with instructions"),
)

LOG_MATCHES = table(
    "log_matches",
    key=("session_id", "seq", "place"),
    order=("session_id", "seq", "place"),
    persist=False,
    doc="The matches of search results in the session log.",
    session_id=string("the session"),
    seq=int64("the event that found it"),
    place=int32("its place among the matches of the event, from 1"),
    path=string("file of the match"),
    line=int32("line of the match", nullable=True),
    text=text("the line that matched", nullable=True),
    generated=boolean("the file is made by a tool"),
    public_api=boolean("the file exports an interface"),
)

CONTEXT_TURNS = table(
    "context_turns",
    key=("input_id",),
    order=("session_id", "as_of_seq", "input_id"),
    persist=True,
    doc="The turns to project: one row is one model input.",
    input_id=string("the model input, `<session>/<turn>` unless the caller names it"),
    run_id=string("the run of the harness"),
    session_id=string("the session"),
    turn_id=string("the round, as the harness names it"),
    turn=int64("number of the round"),
    as_of_seq=int64("events before this place of the log count"),
    as_of=timestamp("memories are verified and expire as of this time"),
    phase=string(
        "diagnosing, planning, editing, verifying, summarizing or blocked; null = the one of the state", nullable=True
    ),
    project=string("project of the task; memories of others are out of scope", nullable=True),
    working_directory=string("folder in which the agent works, inside the repository", nullable=True),
    task_paths=strings("files that the task is about"),
    package_root=string("folder outside of which code is not of this task; null = none", nullable=True),
    zones=strings("zones whose texts this turn may see"),
    instruction_sources=strings("globs of paths whose text may instruct"),
    snapshot_ids=strings("retrieval snapshots of this turn; null = those that its last events created", nullable=True),
    max_tokens=int64("the window: input and reserved output together"),
    reserved_output_tokens=int64("kept free for the answer"),
    tokenizer=string("name of the counter"),
    limits=strings("`part=tokens`: hard limits of single parts (S3.34)"),
    trim_order=strings("parts in the order in which they are cut"),
    tail_limit=int32("key events in the tail, 6 to 10"),
    disclosure=strings("`part=items`: what the session may disclose of a part over all its turns"),
    fences=string("how sections are fenced: `tags`, or `lines` for providers that take tags amiss"),
)

PHASE_POLICIES = table(
    "phase_policies",
    key=("phase",),
    order=("phase",),
    persist=True,
    doc="What each phase of a task gives to the parts of a budget, and which tools it shows.",
    phase=string("the phase"),
    rules=float64("share of the input above which sections of repository rules without a duty become references"),
    latest_observation=float64("share of what the required parts leave"),
    recent_tail=float64("share of what the required parts leave"),
    retrieval=float64("share of what the required parts leave"),
    memory=float64("share of what the required parts leave"),
    tools=float64("share of what the required parts leave"),
    capabilities=strings("what the tools that it shows can do"),
    full_characters=int32("longest observation that is shown in full"),
    retrieval_items=int32("most items of evidence, files and matches"),
    memory_items=int32("most memory hints"),
    memory_confidence=float64("least confidence of a memory"),
    memory_days=int32("most days since a memory was verified"),
)

RULE_TEXTS = table(
    "rule_texts",
    key=("rule_id",),
    order=("place",),
    persist=True,
    doc="Rules of the system and sections of repository instructions.",
    rule_id=string("path and section, or a name of the system's"),
    place=int32("order among the rules"),
    origin=string("system, global or repository"),
    path=string("file that it stands in", nullable=True),
    line=int32("line in that file", nullable=True),
    folder=string("folder whose files it is for, `` = the repository"),
    topics=strings("topics that it is about; none = every task"),
    text=text("the rule, a whole section"),
)

MEMORY_RECORDS = table(
    "memory_records",
    key=("memory_id",),
    order=("memory_id",),
    persist=True,
    doc="Memory records that the caller's governance let through. What lacks metadata is no record.",
    memory_id=string("the record"),
    session_id=string("the session that recalled it; null = given for every session", nullable=True),
    from_seq=int64("the event that recalled it; 0 = before the session"),
    text=text("what it says"),
    scope=string("project, or folder of the repository, that it holds for", nullable=True),
    source=string("who said so: user, tool, document or model", nullable=True),
    confidence=float64("0 to 1", nullable=True),
    last_verified_at=timestamp("when somebody checked it", nullable=True),
    expires_at=timestamp("when it ends", nullable=True),
    lifecycle=string("candidate, verified, deprecated, expired or revoked"),
    source_refs=strings("evidence that it rests on"),
    zone=string("public, internal, private or restricted"),
)

RETRIEVED_ITEMS = table(
    "retrieved_items",
    key=("snapshot_id", "label"),
    order=("snapshot_id", "place"),
    persist=True,
    doc="The selected items of retrieval snapshots with their citations. A snapshot without items has one row without a label.",
    snapshot_id=string("the snapshot"),
    given=boolean("for every turn that names no snapshots: the caller gave it, and no event names it"),
    as_of=timestamp(
        "it knows of changes up to this time; null = it does not say, and is taken as retrieved for its turn",
        nullable=True,
    ),
    block_ref=string("the reference that its block prints", nullable=True),
    label=string("label in that block", nullable=True),
    place=int32("place in that block, from 1"),
    evidence_id=string("the row of evidence", nullable=True),
    evidence_kind=string("what it proves", nullable=True),
    path=string("file", nullable=True),
    locator=string("`path#line (section)`", nullable=True),
    standing=string("how its text may speak"),
    generated=boolean("the file is made by a tool"),
    public_api=boolean("the file exports an interface"),
    text=text("the text that the block shows", nullable=True),
)

TOOL_SCHEMAS = table(
    "tool_schemas",
    key=("tool",),
    order=("place",),
    persist=True,
    doc="The tools of the harness.",
    tool=string("name of the tool"),
    place=int32("order among the tools"),
    capability=string("read, search, run_read_only, run, write, external, ask_user or other"),
    phases=strings("phases that show it; null = those that show its capability", nullable=True),
    schema=text("name, description and parameters as canonical JSON"),
)

STATE_FACTS = table(
    "state_facts",
    key=("session_id", "slot", "fact", "from_seq"),
    order=("session_id", "slot", "fact", "from_seq"),
    persist=False,
    doc="The state of every session as of every event: each fact with the range of events over which it holds.",
    session_id=string("the session"),
    slot=string(
        "goal, interpretation, phase, constraint, said, plan, command, failure, modified, changed, read, artifact, approval, verification, cleared, revoked, disclosed or history"
    ),
    fact=string("which fact of the slot: a path, an id; `` where a slot has one"),
    value=text("the fact", nullable=True),
    origin=string("who said so; of what the user said in passing, the kind of event", nullable=True),
    zone=string("zone of the event that set it: a turn that may not see it is not told"),
    event_id=string("the event that set it"),
    from_seq=int64("the event that set it"),
    until_seq=int64("the event that ended or replaced it; null = it holds", nullable=True),
)

# --- what the steps make --------------------------------------------------------------------------------------------

TURN_STATES = table(
    "turn_states",
    key=("input_id",),
    order=("input_id",),
    persist=True,
    doc="The state of each turn: document 003's AgentState as of the turn's event.",
    input_id=string("the model input"),
    user_goal=text("the goal in the user's words", nullable=True),
    goal_event=string("the event that set it", nullable=True),
    interpretation=text("how the model reads it", nullable=True),
    phase=string("the phase"),
    plan=text("the current plan", nullable=True),
    latest_command=text("the last command", nullable=True),
    failure=text("what fails", nullable=True),
    failure_paths=strings("files that the failure points to"),
    verification=text("the last verification since a file was modified", nullable=True),
    modified_files=strings("files modified in this session, the last ones first"),
    modified_count=int32("how many there are"),
    artifact_refs=strings("artifacts, the last ones first"),
    artifact_count=int32("how many there are"),
    approvals=strings("what was denied and not granted since, the last ones first"),
    approval_count=int32("how many there are"),
    turn_count=int64("rounds so far"),
    events=int64("events so far"),
)

CONTEXT_SOURCES = table(
    "context_sources",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    persist=False,
    doc="Everything that might stand in a model input, by turn: each ends in one row of the ledger.",
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
    doc="What the five gates said of each source, in their order.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    decided_by=string(
        "the first gate that refused: relevance, currency, trust, permission or worth; null = none", nullable=True
    ),
    reason_code=string("why it was refused, or what it is shown for"),
    referenced=boolean("its text is not wanted, a reference is"),
    tier=int32(
        "how near it is to the failure: 1 the failing stack, 2 modified, 3 beside the failing case, 4 public interface, 5 other"
    ),
    rank=int32("order within its part, 0 first"),
    carrier=string("source of this turn whose text carries the same evidence", nullable=True),
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
    summary_id=string("`sum-` and the hash of the summary, where one stands for the text", nullable=True),
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
    section=int32("the section that it stands in, by its place in `turns.frame.SECTIONS`; -1 = tool schema"),
    body=text("its lines, each behind a margin"),
    fallback=text("the line that refers to it where its text has no room", nullable=True),
    marker=string(
        "word on its own fence, the class of the observation; null = it stands in the fence of the section",
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
    doc="What fits: the form in which each selected source stands in the input.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("as in context_sources"),
    shown=string("body, fallback or none"),
    tokens=int64("tokens that it takes, without fences and headings"),
    part_limit=int64("tokens that its part may have"),
    bound_by=string("budget_part, budget_tokens, carrier_dropped or over_budget; null = nothing", nullable=True),
)

MODEL_INPUTS = table(
    "model_inputs",
    key=("input_id",),
    order=("input_id",),
    persist=True,
    doc="The model inputs: what the model reads of each turn.",
    input_id=string("the model input"),
    status=string("ok or over_budget"),
    system_text=text("first message: what may instruct; the same bytes as long as rules, goal and constraints are"),
    user_text=text("second message: state, observations, tail, evidence, hints, references"),
    tools=strings("names of the visible tools, in their order"),
    tool_schemas=text("their schemas, one JSON object per line"),
    input_sha256=string("SHA-256 of the neutral form as UTF-8; empty inputs have one as well"),
    prefix_sha256=string("SHA-256 of the first message"),
    tokens=int64(
        "tokens of both messages and the schemas; of a failed turn, of all that it requires, which is over the limit"
    ),
    part_tokens=strings("`part=tokens` of the same for the eight parts, fences and headings in `frame`"),
    tokenizer=string("name of the counter"),
    upper_bound=boolean("the counter estimates the model's: the count is an upper bound"),
    input_limit=int64("tokens that the input may have"),
    snapshot_ids=strings("retrieval snapshots that it draws on"),
)

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
    shown_characters=int64("characters of its text that stand in the input; 0 = none"),
    masked=int32("masks of secrets in the source"),
    token_budget=int64("tokens that its part may have"),
    path=string("file", nullable=True),
    evidence_id=string("row of evidence", nullable=True),
    reference=string("where the whole of it can be opened", nullable=True),
    summary_id=string("the summary that stands for it", nullable=True),
    original_ref=string("where the original is", nullable=True),
    lost_sentences=int32("of rules and words of the user: sentences of the original that the form lacks"),
)

TURN_WARNINGS = table(
    "turn_warnings",
    key=("input_id", "condition"),
    order=("input_id", "condition"),
    persist=True,
    doc="What is worth knowing of a turn.",
    input_id=string("the model input"),
    condition=string("see the vocabulary of turn conditions"),
    message=string("the same in words"),
)

CONTEXT_TABLES = {each.name: each for each in list(globals().values()) if isinstance(each, Table)}
"""Every table of the context policy by name."""

LogEvents = LOG_EVENTS.annotation
LogMatches = LOG_MATCHES.annotation
ContextTurns = CONTEXT_TURNS.annotation
PhasePolicies = PHASE_POLICIES.annotation
RuleTexts = RULE_TEXTS.annotation
MemoryRecords = MEMORY_RECORDS.annotation
RetrievedItems = RETRIEVED_ITEMS.annotation
ToolSchemas = TOOL_SCHEMAS.annotation
StateFacts = STATE_FACTS.annotation
TurnStates = TURN_STATES.annotation
ContextSources = CONTEXT_SOURCES.annotation
Selection = SELECTION.annotation
Ordering = ORDERING.annotation
Compressed = COMPRESSED.annotation
Isolated = ISOLATED.annotation
Fitted = FITTED.annotation
ModelInputs = MODEL_INPUTS.annotation
ContextDecisions = CONTEXT_DECISIONS.annotation
TurnWarnings = TURN_WARNINGS.annotation
