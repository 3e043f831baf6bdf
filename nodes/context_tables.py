"""Every table of the context policy, declared once: the inputs of a projection and the outputs of its steps.

Reads: nothing. Gives: one `Table` per input and node (`LOG_EVENTS`, `CONTEXT_SOURCES`, ...) with its annotation, and
`CONTEXT_TABLES`, all of them by name.

Note: `context_sources` makes the rows of a turn once, ordered by turn and position. Every later table about sources has
the same length and the same order, so steps read them beside each other and nothing is joined. Null means unknown.
"""

from __future__ import annotations

from typing import Any

from .schema import Table, boolean, float64, int32, int64, string, strings, table, text, timestamp


def _beside_sources(name: str, *, doc: str, **columns: Any) -> Table:
    """A table with one row per source, in the order of CONTEXT_SOURCES."""
    keys = {"input_id": string("the model input"), "source_id": string("the source"), "position": int32("as in context_sources")}  # fmt: skip
    return table(name, key=("input_id", "source_id"), order=("input_id", "position"), doc=doc, **keys, **columns)  # fmt: skip


# --- inputs of a projection ---------------------------------------------------------------------------------------------

LOG_EVENTS = table(
    "log_events",
    key=("session_id", "seq"),
    order=("session_id", "seq"),
    doc="The session log: one row per event in the order in which it was appended. It is the source of truth; nothing rewrites it.",
    session_id=string("the session"),
    seq=int64("place in the log of the session, from 0"),
    event_id=string("the harness's own id, unique in the session"),
    turn_id=string("the round in which it happened", nullable=True),
    turn=int64("number of that round, from 0, in the order in which rounds begin"),
    kind=string("what happened; see the vocabulary of events"),
    actor=string("who speaks: user, model, tool, system, repository or memory"),
    created_at=timestamp("when the harness recorded it"),
    visibility=string("model-visible, user-only (for the user interface) or runtime-only (for auditors)"),
    zone=string("public, internal, private or restricted"),
    text=text("what it says, secrets masked; of a long output the beginning and the end", nullable=True),
    characters=int64("characters of all that it says"),
    cut=boolean("`text` is not all of it; the last of `refs` has the rest"),
    masked=int32("masks of secrets in the event"),
    diff=boolean("the event gives its text as a diff"),
    summary=text("its key fragment in one line, as stated or found", nullable=True),
    excerpt=text("the part that matters most, as stated or found", nullable=True),
    refs=strings("artifacts that have full texts: those that the event names, then its own"),
    tool=string("name of the tool", nullable=True),
    capability=string("what that tool can do, as declared", nullable=True),
    arguments=text("arguments of the tool as JSON", nullable=True),
    command=text("command line that ran, or query", nullable=True),
    cwd=string("folder in which it ran", nullable=True),
    exit_code=int32("how the command ended", nullable=True),
    outcome=string("succeeded, failed, timed_out, interrupted or running", nullable=True),
    check=string("the declared check that it ran", nullable=True),
    check_status=string("passed, failed or unknown; null = no check", nullable=True),
    changed_files=strings("files that it changed; null = the event does not say", nullable=True),
    path=string("file that it read or changed", nullable=True),
    line_start=int32("first line of a partial read", nullable=True),
    line_end=int32("last line of a partial read", nullable=True),
    version=string("version of that file: a hash, a commit or a number", nullable=True),
    content=text("the file, or those lines of it, as it was after the event", nullable=True),
    matches=text("matches of a search as JSON: path, line, text", nullable=True),
    subject=string("id of the constraint, memory, permission request or call of a tool, or the phase", nullable=True),
    topic=string("topic of a constraint, as declared", nullable=True),
    snapshot_ids=strings("retrieval snapshots that it created or refers to", nullable=True),
)

STATE_FACTS = table(
    "state_facts",
    key=("session_id", "slot", "fact", "zone"),
    order=("session_id", "seq"),
    doc="The state of a session as of `seq`: facts that events or the caller stated and nothing has ended.",
    session_id=string("the session"),
    slot=string("see `turns.folding.SLOTS`"),
    fact=string("which fact of the slot: a path, an id; `` where a slot has one"),
    value=text("the fact", nullable=True),
    detail=text("what belongs to it: the command of a check, the arguments of a denial", nullable=True),
    status=string("passed, failed or unknown; the topic of a constraint", nullable=True),
    origin=string("who stated it", nullable=True),
    zone=string("zone of the event that set it: turns that may not see it do not get it"),
    event_id=string("the event that set it"),
    seq=int64("place of that event; -1 = before the log"),
)

CONTEXT_TURNS = table(
    "context_turns",
    key=("input_id",),
    order=("session_id", "as_of_seq", "input_id"),
    doc="The turns to project: one row is one model input.",
    input_id=string("the model input, `<session>/<turn>` unless the caller names it"),
    run_id=string("the run of the harness"),
    session_id=string("the session"),
    turn_id=string("the round, as the harness names it"),
    turn=int64("number of the round"),
    as_of_seq=int64("events before this place of the log count"),
    as_of=timestamp("memories are verified and expire as of this time"),
    phase=string("phase of the turn; null = the one of the state", nullable=True),
    project=string("project of the task; memories of others are out of scope", nullable=True),
    working_directory=string("folder in which the agent works, inside the repository", nullable=True),
    task_paths=strings("files that the task is about"),
    topics=strings("topics of the task, as declared; null = unknown: rules of every topic apply", nullable=True),
    package_root=string("folder outside of which code is not of this task; null = none", nullable=True),
    zones=strings("zones whose texts this turn may see"),
    instruction_sources=strings("globs of paths whose text may instruct"),
    checks=strings("the declared checks: prefixes of command lines"),
    external_knowledge=boolean("the task needs knowledge from outside: tools declared for that are shown"),
    snapshot_ids=strings("retrieval snapshots of this turn; null = those that its events created", nullable=True),
    max_tokens=int64("the window: input and reserved output together"),
    reserved_output_tokens=int64("kept free for the answer"),
    target_tokens=int64("tokens up to which the input is filled; at most the limit"),
    user_words_tokens=int64("most tokens of the user's own words, verbatim"),
    tokenizer=string("name of the counter"),
    limits=strings("`part=tokens`: hard limits of single parts (S3.34)"),
    trim_order=string("the name of the order in which parts are cut"),
    tail_limit=int32("most events in the tail; null = as many as its share holds", nullable=True),
    fences=string("how sections are fenced: `tags`, or `lines` for providers that mishandle tags"),
)

PHASE_POLICIES = table(
    "phase_policies",
    key=("phase",),
    order=("phase",),
    doc="What each phase of a task gives to the parts of a budget, and which tools it shows.",
    phase=string("the phase"),
    rules=float64("share of the input above which sections of repository rules become references"),
    latest_observation=float64("share of what the required parts leave"),
    recent_tail=float64("share of what the required parts leave"),
    retrieval=float64("share of what the required parts leave"),
    memory=float64("share of what the required parts leave"),
    tools=float64("share of what the required parts leave"),
    capabilities=strings("what the tools that it shows can do"),
    full_characters=int32("longest output that is shown in full before all sources have had their room"),
    memory_items=int32("most memory hints"),
    memory_confidence=float64("least confidence of a memory"),
    memory_days=int32("most days since a memory was verified"),
)

RULE_TEXTS = table(
    "rule_texts",
    key=("rule_id",),
    order=("place",),
    doc="Rules of the system and sections of repository instructions.",
    rule_id=string("path and line of the section, or a name of the system's"),
    place=int32("order among the rules"),
    origin=string("system, global or repository"),
    path=string("file that it is in", nullable=True),
    line=int32("line in that file", nullable=True),
    folder=string("folder whose files it is for, `` = the repository"),
    globs=strings("of the files that it is for, as the file declares; null = all of the folder", nullable=True),
    topics=strings("topics that it is about, as declared; null = every task", nullable=True),
    zone=string("public, internal, private or restricted; null = every turn may see it", nullable=True),
    visibility=string("model-visible, user-only or runtime-only; null = model-visible", nullable=True),
    left_out=string("of a rule file that was not read, the reason; null = it was", nullable=True),
    duty=boolean("it has a duty word (`data/context/duty-words.txt`): it is the last to become a reference"),
    text=text("the rule, a whole section; empty if it was not read"),
)

MEMORY_RECORDS = table(
    "memory_records",
    key=("memory_id",),
    order=("memory_id",),
    doc="Memory records that the caller's governance let through. Memories without metadata are left out.",
    memory_id=string("the record"),
    from_seq=int64("the event that recalled it; -1 = given for the whole session"),
    text=text("what it says"),
    scope=string("project, or folder of the repository, that it holds for", nullable=True),
    source=string("who stated it: user, tool, document or model", nullable=True),
    confidence=float64("0 to 1", nullable=True),
    last_verified_at=timestamp("when it was last checked", nullable=True),
    expires_at=timestamp("when it ends", nullable=True),
    lifecycle=string("candidate, verified, deprecated, expired or revoked"),
    source_refs=strings("evidence that it rests on"),
    verify=text("what to verify before it is relied on; null = its `source_refs`", nullable=True),
    zone=string("public, internal, private or restricted"),
)

RETRIEVED_ITEMS = table(
    "retrieved_items",
    key=("snapshot_id", "label"),
    order=("snapshot_id", "place"),
    doc="The selected items of retrieval snapshots with their citations. A snapshot without items has one row without a label.",
    snapshot_id=string("the snapshot"),
    given=boolean("for every turn that names no snapshots: the caller gave it, and no event names it"),
    as_of=timestamp("it knows of changes up to this time; null = it was retrieved for its turn", nullable=True),
    block_ref=string("the reference that its block prints", nullable=True),
    label=string("label in that block", nullable=True),
    place=int32("place in that block, from 1"),
    evidence_id=string("the row of evidence", nullable=True),
    evidence_kind=string("what it proves", nullable=True),
    path=string("file", nullable=True),
    locator=string("`path:line`, `path:from-to` or `path#section`", nullable=True),
    standing=string("how its text may speak"),
    reason=text("why it is there, as stated", nullable=True),
    generated=boolean("the file is made by a tool"),
    public_api=boolean("the file exports an interface"),
    zone=string("public, internal, private or restricted; null = its contract let it through", nullable=True),
    visibility=string("model-visible, user-only or runtime-only; null = model-visible", nullable=True),
    text=text("the text that the block shows", nullable=True),
)

TOOL_SCHEMAS = table(
    "tool_schemas",
    key=("tool",),
    order=("place",),
    doc="The tools of the harness.",
    tool=string("name of the tool"),
    place=int32("order among the tools"),
    capability=string("read, search, run_read_only, run, edit, ask_user, external_read or external"),
    declared=boolean("the tool states its capability; else it counts as external"),
    phases=strings("phases that show it; null = those that show its capability", nullable=True),
    schema=text("name, description and parameters as canonical JSON"),
)

# --- the state of each turn ---------------------------------------------------------------------------------------------

TURN_STATES = table(
    "turn_states",
    key=("input_id",),
    order=("input_id",),
    doc="The state of each turn: document 003's AgentState as of the turn's event. Lists of objects are JSON.",
    input_id=string("the model input"),
    user_goal=text("the goal in the user's words", nullable=True),
    phase=string("the phase; diagnosing where nothing states one"),
    phase_stated=boolean("an event or the caller states the phase"),
    constraints=text("declared constraints and proposals: id, origin, topic, text, event_id, zone"),
    plan=text("the model's current plan", nullable=True),
    latest_command=text("the last command and how it ended", nullable=True),
    latest_observation=text("the last result of a tool, or the one of a given state (S3.50)", nullable=True),
    checks=text("declared checks, the last run of each: name, status, command, summary, event_id, changed_since"),
    failure=text("what the last check that failed in its last run says", nullable=True),
    failure_paths=strings("files that the failing checks point to"),
    modified_files=strings("files changed in this session, the last ones first"),
    unstated_changes=int32("commands since the last stated change that may have changed files without saying so"),
    read_files=strings("files read in this session, the last ones first"),
    artifact_refs=strings("artifacts, the last ones first"),
    approvals=text("permission requests that nothing has granted: id, status (requested or denied), text, event_id"),
    revoked=strings("memories that no longer hold"),
    turn_count=int64("rounds so far"),
    events=int64("events so far"),
)

# --- sources of each turn; the tables below have one row per source, in one order ----------------------------------------

CONTEXT_SOURCES = table(
    "context_sources",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    doc="Everything that a model input might show, by turn: each ends in one row of the ledger.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("order in which sources were gathered, from 0 within the turn"),
    source_kind=string("kind of source (S3.13)"),
    part=string("the part of the budget that it counts for"),
    content_class=string("fact, guess, stale, ui_only, audit_only, rule or untrusted_text (S3.4)"),
    standing=string("how its text may speak: instruction, evidence, history, hint or untrusted"),
    heading=text("the words in front of the text: who, where, what", nullable=True),
    text=text("the text", nullable=True),
    summary=text("the text in one line", nullable=True),
    excerpt=text("the part of it that matters most", nullable=True),
    reference=string("where the whole of it can be opened", nullable=True),
    path=string("file", nullable=True),
    evidence_id=string("row of evidence", nullable=True),
    characters=int64("characters of all of it"),
    masked=int32("masks of secrets in it"),
    seq=int64("its event; -1 = none"),
    changed_seq=int64("the last event that changed its file; -1 = none"),
    changed_at=timestamp("the time of that event", nullable=True),
    row=int64("its row in the table that it comes from; -1 = none"),
    detail=text(
        "what gates and lines need besides: of an event its fields as JSON, of the user's messages their events, of counted events the zone",
        nullable=True,
    ),
)

SELECTION = _beside_sources(
    "selection",
    doc="The decisions of the five gates on each source, in their order.",
    decided_by=string(
        "the first gate that refused: relevance, currency, trust, permission or worth; null = none", nullable=True
    ),
    reason_code=string("why it was refused or may be shown"),
    referenced=boolean("its text is not wanted, a reference is"),
    tier=int32(
        "how near it is to the failure: 1 the failing stack, 2 modified, 3 beside the failing case, 4 public interface, 5 other"
    ),
    rank=int32("order within its part, 0 first"),
)

ORDERING = _beside_sources(
    "ordering",
    doc="Priority and place of each source.",
    level=int32("1 to 9 (S3.23)"),
    keep=int32("order in which a binding budget keeps sources, within the turn; 0 first"),
    place=int32("order in the input, within the turn; 0 first"),
)

COMPRESSED = _beside_sources(
    "compressed",
    doc="The forms in which each source may be shown: a short one, and a longer one where there is room.",
    form=string("full, excerpt, summary, reference or none"),
    text=text("what the short form shows", nullable=True),
    longer=text("a longer text, if the short form is not all of it", nullable=True),
    whole=boolean("the longer text is all of it"),
    summary_id=string("`sum-` and the hash of the short form, if it replaces the text", nullable=True),
    original_ref=string(
        "where the original is; of the user's messages, those that the longer text lacks", nullable=True
    ),
)

ISOLATED = _beside_sources(
    "isolated",
    doc="Each source behind its margin, and the section that it goes into.",
    section=int32("the section that it is in, by its place in `turns.frame.GROUPS`; -1 = shown in no form"),
    body=text("the lines of its short form, each behind a margin", nullable=True),
    longer=text("the lines of its longer form", nullable=True),
    fallback=text("the line that refers to it where its text has no room", nullable=True),
)

FITTED = _beside_sources(
    "fitted",
    doc="What fits: the form in which the input shows each source.",
    shown=string("body, longer, fallback or none"),
    tokens=int64("tokens that it takes, without fences and headings"),
    part_limit=int64("tokens that its part may have"),
    bound_by=string("budget_part, budget_tokens or over_budget; null = nothing", nullable=True),
)

# --- outputs -------------------------------------------------------------------------------------------------------------

MODEL_INPUTS = table(
    "model_inputs",
    key=("input_id",),
    order=("input_id",),
    doc="The model inputs: what the model reads of each turn.",
    input_id=string("the model input"),
    status=string("ok or over_budget"),
    system_text=text(
        "first message: what may instruct; the same bytes as long as rules, goal, constraints and the user's words are"
    ),
    user_text=text("second message: state, observations, tail, evidence, hints, references"),
    tools=strings("names of the visible tools, in their order"),
    tool_schemas=text("their schemas, one JSON object per line"),
    input_sha256=string("SHA-256 of the neutral form as UTF-8; empty inputs have one as well"),
    prefix_sha256=string("SHA-256 of the first message"),
    tokens=int64(
        "tokens of both messages and the schemas; for a failed turn, of all that it requires, which exceeds the limit"
    ),
    part_tokens=strings("`part=tokens` of the same for the eight parts, fences and headings in `frame`"),
    tokenizer=string("name of the counter"),
    upper_bound=boolean("the counter estimates the model's: the count is an upper bound"),
    input_limit=int64("tokens that the input may have"),
    snapshot_ids=strings("retrieval snapshots whose items it was offered"),
)

CONTEXT_DECISIONS = _beside_sources(
    "context_decisions",
    doc="The ledger: one row for every source of every turn, with the reason. The model never sees it.",
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
    original_ref=string("where the original is", nullable=True),
)

TURN_WARNINGS = table(
    "turn_warnings",
    key=("input_id", "condition"),
    order=("input_id", "condition"),
    doc="Warnings about a turn.",
    input_id=string("the model input"),
    condition=string("see the vocabulary of turn conditions"),
    message=string("the same in words"),
)

CONTEXT_TABLES = {each.name: each for each in tuple(vars().values()) if isinstance(each, Table)}
"""Every table of the context policy by name."""

LogEvents = LOG_EVENTS.annotation
StateFacts = STATE_FACTS.annotation
ContextTurns = CONTEXT_TURNS.annotation
PhasePolicies = PHASE_POLICIES.annotation
RuleTexts = RULE_TEXTS.annotation
MemoryRecords = MEMORY_RECORDS.annotation
RetrievedItems = RETRIEVED_ITEMS.annotation
ToolSchemas = TOOL_SCHEMAS.annotation
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
