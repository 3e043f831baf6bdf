"""Every table of the context policy, declared once: those that its steps make here, those that it is given in `context_given`.

Reads: nothing. Gives: one `Table` per node and input (`CONTEXT_SOURCES`, ...) and its annotation, and `CONTEXT_TABLES`, all of
them by name. Tables about turns lead with `input_id`, one model input.
"""

from __future__ import annotations

from . import context_given
from .context_given import (
    CONTEXT_TURNS,
    LOG_EVENTS,
    LOG_MATCHES,
    MEMORY_RECORDS,
    PHASE_POLICIES,
    RETRIEVED_ITEMS,
    RULE_TEXTS,
    STATE_FACTS,
    TOOL_SCHEMAS,
    ContextTurns,
    LogEvents,
    LogMatches,
    MemoryRecords,
    PhasePolicies,
    RetrievedItems,
    RuleTexts,
    StateFacts,
    ToolSchemas,
)
from .schema import Table, boolean, int32, int64, string, strings, table, text

__all__ = [
    "COMPRESSED",
    "CONTEXT_DECISIONS",
    "CONTEXT_SOURCES",
    "CONTEXT_TABLES",
    "CONTEXT_TURNS",
    "FITTED",
    "ISOLATED",
    "LOG_EVENTS",
    "LOG_MATCHES",
    "MEMORY_RECORDS",
    "MODEL_INPUTS",
    "ORDERING",
    "PHASE_POLICIES",
    "RETRIEVED_ITEMS",
    "RULE_TEXTS",
    "SELECTION",
    "STATE_FACTS",
    "TOOL_SCHEMAS",
    "TURN_STATES",
    "TURN_WARNINGS",
    "Compressed",
    "ContextDecisions",
    "ContextSources",
    "ContextTurns",
    "Fitted",
    "Isolated",
    "LogEvents",
    "LogMatches",
    "MemoryRecords",
    "ModelInputs",
    "Ordering",
    "PhasePolicies",
    "RetrievedItems",
    "RuleTexts",
    "Selection",
    "StateFacts",
    "ToolSchemas",
    "TurnStates",
    "TurnWarnings",
]

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

CONTEXT_TABLES = {t.name: t for t in [*vars(context_given).values(), *list(globals().values())] if isinstance(t, Table)}
"""Every table of the context policy by name."""

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
