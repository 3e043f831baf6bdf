"""Tables of `context_state`.

Note: facts of the state hold over half-open ranges of events.
"""

from __future__ import annotations

from ..schema import boolean, int32, int64, string, strings, table, text

STATE_FACTS = table(
    "state_facts",
    key=("session_id", "slot", "fact", "from_seq"),
    order=("session_id", "slot", "fact", "from_seq"),
    persist=False,
    doc="The state of every session as of every event: each fact with the range of events over which it holds.",
    session_id=string("the session"),
    slot=string(
        "goal, interpretation, phase, constraint, said, plan, command, failure, modified, changed, artifact, approval, lifted, verification, cleared, revoked, disclosed, listed, retrieved, topic, folder, wrote or history"
    ),
    fact=string("which fact of the slot: a path, an id; `` where a slot has one"),
    value=text("the fact", nullable=True),
    origin=string("who stated it; for the slot `said`, the kind of event", nullable=True),
    zone=string("zone of the event that set it: turns that may not see it do not get it"),
    event_id=string("the event that set it"),
    from_seq=int64("the event that set it"),
    until_seq=int64("the event that ended or replaced it; null = it holds", nullable=True),
)

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
    phase_derived=boolean("an importer derived it from what was done; null = nothing states one", nullable=True),
    plan=text("the current plan", nullable=True),
    latest_command=text("the last command", nullable=True),
    failure=text("what failed last, and has not passed since", nullable=True),
    failure_paths=strings("files that the failure points to"),
    failing=strings("checks that failed and have not passed since, the last ones first"),
    failed_elsewhere=boolean("one of these failed on another branch or without the stashed work"),
    failure_count=int32("number of failing checks"),
    verification=text("the last verification since a file was modified", nullable=True),
    modified_files=strings("files modified in this session, the last ones first"),
    modified_count=int32("number of modified files"),
    artifact_refs=strings("artifacts, the last ones first"),
    artifact_count=int32("number of artifacts"),
    approvals=strings("what was denied and not granted since, the last ones first"),
    approval_count=int32("number of denials in force"),
    unanswered_count=int32("how many of them the user has written nothing since"),
    turn_count=int64("rounds so far"),
    events=int64("events so far"),
)

StateFacts = STATE_FACTS.annotation
TurnStates = TURN_STATES.annotation
