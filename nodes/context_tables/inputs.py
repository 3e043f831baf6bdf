"""The inputs of a projection: the session log, turns, policies, rules, memories, items of retrieval and tools.

Note: a turn sees the events before its `as_of_seq`, never the one at it.
"""

from __future__ import annotations

from ..schema import boolean, float64, int32, int64, string, strings, table, text, timestamp

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
    command=text(
        "the command that ran, or the name and argument of the tool; of a permission the tool, the action and the command",
        nullable=True,
    ),
    exit_code=int32("how the command ended", nullable=True),
    failed=boolean("the command failed, was denied or timed out"),
    grants=boolean("it gives a permission: a grant that does not say no, a confirmation that says yes"),
    lifts=strings(
        "of a denial the names by which its action may be granted; of what grants an action, those that it lifts, behind the subject where it names one",
        nullable=True,
    ),
    check_scope=string(
        "of tests, lints, type checks and builds their names: program, place, and what they are narrowed to, `pytest in web:tests/a.py`",
        nullable=True,
    ),
    check_outcome=string("how that check came out: passed, failed or unknown", nullable=True),
    check_clears=strings(
        "names of the checks that passed: their failures end; with the place, where other code than the work was checked",
        nullable=True,
    ),
    check_fails=strings(
        "of every check that may have failed its name, and the names of those that end its failure, a line each",
        nullable=True,
    ),
    may_change=strings(
        "files that the command changed; `*` = it may have changed some that it does not name", nullable=True
    ),
    doubtful=strings("files that the command names but may have left unchanged", nullable=True),
    path=string("file that it read or changed", nullable=True),
    version=string("version of that file: a hash, a commit or a number", nullable=True),
    subject=string(
        "what it sets or ends: id of a constraint, memory or approval; the phase; the lines of a partial read; the name of a verification; what ended a command",
        nullable=True,
    ),
    origin=string(
        "who set a goal or a constraint, ran a command, or reports a verification, as the event names it: user, repository, global, model, tool",
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
    fences=string("how sections are fenced: `tags`, or `lines` for providers that mishandle tags"),
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
    path=string("file that it is in", nullable=True),
    line=int32("line in that file", nullable=True),
    folder=string("folder whose files it is for, `` = the repository"),
    topics=strings("topics that it is about; none = every task"),
    zone=string("public, internal, private or restricted; null = every turn may see it", nullable=True),
    visibility=string("model-visible, user-only or runtime-only; null = model-visible", nullable=True),
    left_out=string("of a rule file that was not read, the reason; null = it was", nullable=True),
    text=text("the rule, a whole section; empty if it was not read"),
)

MEMORY_RECORDS = table(
    "memory_records",
    key=("memory_id",),
    order=("memory_id",),
    persist=True,
    doc="Memory records that the caller's governance let through. Memories without metadata are left out.",
    memory_id=string("the record"),
    session_id=string("the session that recalled it; null = given for every session", nullable=True),
    from_seq=int64("the event that recalled it; 0 = before the session"),
    text=text("what it says"),
    scope=string("project, or folder of the repository, that it holds for", nullable=True),
    source=string("who stated it: user, tool, document or model", nullable=True),
    confidence=float64("0 to 1", nullable=True),
    last_verified_at=timestamp("when it was last checked", nullable=True),
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
    zone=string("public, internal, private or restricted; null = its contract let it through", nullable=True),
    visibility=string("model-visible, user-only or runtime-only; null = model-visible", nullable=True),
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

LogEvents = LOG_EVENTS.annotation
LogMatches = LOG_MATCHES.annotation
ContextTurns = CONTEXT_TURNS.annotation
PhasePolicies = PHASE_POLICIES.annotation
RuleTexts = RULE_TEXTS.annotation
MemoryRecords = MEMORY_RECORDS.annotation
RetrievedItems = RETRIEVED_ITEMS.annotation
ToolSchemas = TOOL_SCHEMAS.annotation
