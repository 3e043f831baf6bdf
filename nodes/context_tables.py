"""Every table of the context policy that is kept, declared once: its turns, and what the line makes of each.

Reads: nothing. Gives: one `Table` each with its annotation, and `CONTEXT_TABLES`, all of them by name.

Note: between its steps the line has records: a turn has some hundred sources, and each step adds fields to them
(`turns.reading`). Null means unknown.
"""

from __future__ import annotations

from .schema import Table, boolean, int32, int64, string, strings, table, text, timestamp

CONTEXT_TURNS = table(
    "context_turns",
    key=("input_id",),
    order=("session_id", "as_of_seq", "input_id"),
    doc="The turns to project: one row is one model input.",
    input_id=string("the model input, `<session>/<turn>` unless the caller names it"),
    run_id=string("the run of the harness"),
    session_id=string("the session"),
    turn_id=string("the round, as the harness names it"),
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
    failure_paths=strings("files that the failing checks point to"),
    modified_files=strings("files changed in this session, the last ones first"),
    unstated_changes=int32("commands since the last stated change that may have changed files without saying so"),
    read_files=strings("files read in this session, the last ones first"),
    artifact_refs=strings("artifacts, the last ones first"),
    approvals=text("permission requests that nothing has granted: id, status (requested or denied), text, event_id"),
    revoked=strings("memories that no longer hold"),
    turn_count=int64("rounds so far"),
)

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
    snapshot_ids=strings("retrieval snapshots whose items it was offered"),
)

CONTEXT_DECISIONS = table(
    "context_decisions",
    key=("input_id", "source_id"),
    order=("input_id", "position"),
    doc="The ledger: one row for every source of every turn, with the reason. The model never sees it.",
    input_id=string("the model input"),
    source_id=string("the source"),
    position=int32("order in which sources were gathered, from 0 within the turn"),
    source_kind=string("kind of source (S3.13)"),
    part=string("part of the budget"),
    content_class=string("fact, guess, stale, ui_only, audit_only, rule or untrusted_text (S3.4)"),
    action=string("include, summarize, reference or exclude (S3.15)"),
    mode=string("full, excerpt, summary, reference or none (S3.40)"),
    standing=string("how its text may speak: instruction, evidence, history, hint or untrusted"),
    trust_level=string("instruction, fact or untrusted_text (S3.16)"),
    decided_by=string("the first gate that refused it, else `budget` or null", nullable=True),
    reason_code=string("why"),
    reason=string("the same in words"),
    level=int32("1 to 9 (S3.23)"),
    place=int32("place in the input; -1 = not in it"),
    section=int32("the section that it is in, by its place in `turns.frame.GROUPS`; -1 = none"),
    lines=text("its lines in the input, each behind a margin", nullable=True),
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

TurnStates = TURN_STATES.annotation
ModelInputs = MODEL_INPUTS.annotation
ContextDecisions = CONTEXT_DECISIONS.annotation
TurnWarnings = TURN_WARNINGS.annotation
