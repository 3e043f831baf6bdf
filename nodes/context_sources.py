"""Context sources: everything that a turn's input might show, gathered before any decision.

Reads: turns with their states, the session log, rules, memories, items of retrieval snapshots, tools. Gives
`context_sources`, one row per turn and source. Each becomes one row of the ledger.

Note: a turn reads the last `HORIZON` events. Earlier events are one source, a reference to the log; their effects
persist in the state. The cost of a turn thus does not grow with its session.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import among, constants, flat, integers, positions, rank_within
from .columns.ragged import starts_of
from .context_tables import (
    CONTEXT_SOURCES,
    ContextSources,
    ContextTurns,
    LogEvents,
    LogMatches,
    MemoryRecords,
    RetrievedItems,
    RuleTexts,
    StateFacts,
    ToolSchemas,
    TurnStates,
)
from .turns.as_of import FOREVER, HORIZON, Sessions, before, first_seen, holding
from .turns.conflicts import conflicts
from .turns.duties import BOUND, CUT
from .turns.joining import joined
from .turns.session_sources import crossed, events_of, items_of, matches_of, named_id, rows
from .turns.user_sources import goals, last_messages, pasted_texts

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

_TEXT = pa.large_string()
_ORIGINS = {
    "user": "User request", "repository": "Repo rule", "global": "Global rule", "system": "System rule", "user.message": "User said", "user.confirmation": "User said",
    "user.goal": "From an earlier goal; what it forbids or requires still holds",
}  # fmt: skip
"""Origins whose active constraints are instructions; a constraint of any other origin is a hint."""


def context_sources(
    context_turns: ContextTurns,
    turn_states: TurnStates,
    state_facts: StateFacts,
    log_events: LogEvents,
    log_matches: LogMatches,
    rule_texts: RuleTexts,
    memory_records: MemoryRecords,
    retrieved_items: RetrievedItems,
    tool_schemas: ToolSchemas,
) -> ContextSources:
    """Every source of every turn, by turn.

    Rules, goal, constraints, state, events of the horizon with matches, snapshot items, memories, history, tools.
    """
    sessions = Sessions.of(context_turns)
    seq = integers(log_events["seq"])
    turn, event = before(sessions, sessions.codes(log_events["session_id"]), seq, HORIZON)
    first = first_seen(turn, seq[event], context_turns.num_rows)
    instructing = [
        _rules(context_turns, rule_texts),
        *goals(turn_states),
        *_held(sessions, state_facts, turn_states),
    ]
    parts = [
        *instructing,
        conflicts(pa.concat_tables(instructing)),
        *_state(turn_states),
        last_messages(sessions, state_facts, first),
        events_of(turn, event, log_events, turn_states, state_facts),
        pasted_texts(turn, event, log_events, turn_states),
        matches_of(turn, event, log_events, log_matches),
        items_of(turn, event, context_turns, log_events, retrieved_items),
        _memories(sessions, memory_records),
        _older(first),
        _tools(context_turns.num_rows, tool_schemas),
    ]
    made = pa.concat_tables(parts).combine_chunks()
    owner = integers(made["turn"])
    order = np.argsort(owner, kind="stable")
    made, owner = made.take(pa.array(order)), owner[order]
    return CONTEXT_SOURCES.build(
        {
            **{name: made[name] for name in made.column_names if name != "turn"},
            "input_id": flat(context_turns["input_id"]).take(pa.array(owner)),
            "position": rank_within(owner).astype(np.int32),
        }
    )


def _rules(turns: pa.Table, rules: pa.Table) -> pa.Table:
    turn, row = crossed(turns.num_rows, rules.num_rows)
    at = pa.array(row)
    system = np.asarray(pc.equal(rules["origin"], "system")).astype(bool)[row]
    place = joined(flat(rules["path"]).cast(_TEXT), pc.cast(flat(rules["line"]), _TEXT), between=":", skip_nulls=True)
    return rows(
        turn,
        source_id=named_id("rule", rules["rule_id"]).take(at),
        source_kind=pc.if_else(pa.array(system), "system_rules", "repository_instructions"),
        part="rules",
        content_class="rule",
        standing="instruction",
        required=True,
        heading=pc.if_else(pa.array(system), None, _placed(place, rules["origin"]).take(at)),
        text=flat(rules["text"]).take(at),
        summary=pc.utf8_slice_codeunits(
            pc.replace_substring_regex(flat(rules["text"]).take(at), pattern=r"(?s)[:\n].*", replacement=""), 0, 80
        ),
        reference=flat(rules["path"]).take(at),
        path=flat(rules["path"]).take(at),
        row=row,
    )


def _placed(place: pa.Array, origin: pa.ChunkedArray) -> pa.Array:
    """The place of a rule; a global rule is marked as such."""
    everywhere = joined("global rule", place, between=", ", skip_nulls=True)
    return pc.if_else(pc.equal(flat(origin), "global"), everywhere, place)


def _held(sessions: Sessions, facts: pa.Table, states: pa.Table) -> list[pa.Table]:
    """Active constraints and the summary of earlier rounds. Those stated in the turn's goal are shown with the goal."""
    wanted = np.flatnonzero(among(facts["slot"], ("constraint", "history")))
    some = facts.take(pa.array(wanted))
    until = integers(pc.fill_null(some["until_seq"], FOREVER))
    fact, turn = holding(sessions, sessions.codes(some["session_id"]), integers(some["from_seq"]), until)
    goal = flat(states["goal_event"]).take(pa.array(turn))
    again = pc.and_(
        pc.equal(flat(some["origin"]).take(pa.array(fact)), "user.goal"),
        pc.equal(flat(some["event_id"]).take(pa.array(fact)), goal),
    )
    long = pc.greater(pc.utf8_length(flat(states["user_goal"]).take(pa.array(turn))), BOUND)
    again, long = (np.asarray(pc.fill_null(each, False)).astype(bool) for each in (again, long))
    apart = np.flatnonzero(~again | long)  # a long goal may be cut to its beginning
    fact, turn, again = fact[apart], turn[apart], again[apart]
    order = np.lexsort((integers(some["from_seq"])[fact], turn))
    fact, turn, again = fact[order], turn[order], again[order]
    constraint = among(some["slot"], ("constraint",))[fact]
    origin = flat(some["origin"]).take(pa.array(fact))
    named = pc.index_in(origin, value_set=constants(tuple(_ORIGINS)))
    heading = pc.fill_null(constants(tuple(_ORIGINS.values())).take(named), "Proposed, not confirmed")
    heading = pc.if_else(pa.array(again), "From the goal", heading)
    standing = pc.if_else(named.is_valid(), "instruction", "hint")
    made = []
    for kind, mask in (("active_constraint", constraint), ("history_summary", ~constraint)):
        mine = pa.array(np.flatnonzero(mask))
        at = pa.array(fact[mask])
        event = named_id("event", flat(some["event_id"]).take(at))
        text = flat(some["value"]).take(at)
        rule = kind == "active_constraint"
        made.append(
            rows(
                turn[mask],
                source_id=named_id("constraint" if rule else "history", flat(some["event_id"]).take(at)),
                source_kind=kind,
                part=pc.if_else(pc.equal(standing.take(mine), "instruction"), "rules", "memory")
                if rule
                else "recent_tail",
                content_class="rule" if rule else "guess",
                standing=standing.take(mine) if rule else "hint",
                required=pc.equal(standing, "instruction").take(mine) if rule else False,
                heading=heading.take(mine) if rule else None,
                text=text,
                summary=text,
                cut=pc.match_substring_regex(text, pattern=CUT) if rule else False,
                reference=event,
                seq=flat(some["from_seq"]).take(at),
                row=wanted[fact[mask]],
            )
        )
    return made


def _state(states: pa.Table) -> list[pa.Table]:
    """The state of the task, one line per field: from the harness, from tools, and from the model."""
    files = _listed(states["modified_files"], integers(states["modified_count"]))
    few = pc.list_slice(flat(states["artifact_refs"]), 0, ARTIFACTS)
    artifacts = _listed(few, integers(states["artifact_count"]))
    denials, unanswered = integers(states["approval_count"]), integers(states["unanswered_count"])
    newest, others = _divided(states["approvals"], unanswered)
    denied, answered = _listed(newest, unanswered), _listed(others, denials - unanswered)
    count = integers(states["failure_count"])
    failing = _listed(states["failing"], count)
    # The name of a single check that failed on the code at hand is in the line of the failure.
    several = pc.if_else(pc.or_(pa.array(count > 1), flat(states["failed_elsewhere"])), failing, None)
    derived, phase = flat(states["phase_derived"]), flat(states["phase"])
    guessed = pc.fill_null(derived, False)
    known = [
        _line("phase: ", pc.if_else(derived, None, phase)),
        _line("phase, as nothing states one: ", pc.if_else(derived.is_null(), phase, None)),
        _line("modified_files: ", files),
        _line("latest command: ", states["latest_command"]),
    ]
    printed = [
        _line("current failure: ", states["failure"]),
        _line("failing checks: ", several),
        _line("verification: ", states["verification"]),
        _line("denied, no approval recorded since: ", denied),
        _line("denied, and the user has written since: ", answered),
        _line("artifacts: ", artifacts),
    ]
    unproven = [
        _line("phase, derived from what was done: ", pc.if_else(guessed, phase, None)),
        _line("plan: ", states["plan"], between="; "),
        _line("interpretation of the goal: ", states["interpretation"]),
    ]
    made = []
    for name, lines, standing in (
        ("state", known, "evidence"),
        ("state:observed", printed, "untrusted"),
        ("state:said", unproven, "hint"),
    ):
        text = joined(*lines, between="\n", skip_nulls=True)
        turn = np.flatnonzero(np.asarray(text.is_valid()))
        made.append(
            rows(
                turn,
                source_id=name,
                source_kind="state_summary",
                part="state",
                required=True,
                content_class={"evidence": "fact", "untrusted": "untrusted_text", "hint": "guess"}[standing],
                standing=standing,
                text=text.take(pa.array(turn)),
                reference="state",
                row=turn,
            )
        )
    return made


ARTIFACTS = 4
"""Artifact references that the state shows; it counts them all, and each is also shown with its text."""
STATE_CHARACTERS = 400
"""Characters of a plan, a failure or a command that the state shows: it is a summary and quotes no log."""


def _line(words: str, values: Any, between: str = " ") -> pa.Array:
    """The beginning of each value on one line, with `between` where a line ends that no mark ends."""
    whole = flat(values).cast(_TEXT)
    value = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(whole, 0, STATE_CHARACTERS))
    value = pc.replace_substring_regex(value, pattern=r"([^\s.:;,!?])\s*\n\s*", replacement=rf"\1{between}")
    value = pc.replace_substring_regex(value, pattern=r"\s+", replacement=" ")
    more = pc.subtract(pc.utf8_length(whole), STATE_CHARACTERS)
    cut = joined(" [", pc.cast(more, pa.string()), " more characters]")
    return joined(words, value, pc.if_else(pc.greater(more, 0), cut, ""))


def _divided(lists: Any, first: Int) -> tuple[pa.Array, pa.Array]:
    """The first entries of each list, and the remaining ones."""
    values = flat(lists)
    length = integers(pc.list_value_length(values))
    row = np.repeat(np.arange(len(length)), length)
    among_first = np.arange(len(row)) - starts_of(length)[row] < first[row]
    parts = []
    for mine in (among_first, ~among_first):
        starts = starts_of(np.bincount(row[mine], minlength=len(length)))
        kept = values.flatten().take(pa.array(np.flatnonzero(mine)))
        parts.append(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), kept))
    return parts[0], parts[1]


def _listed(lists: Any, count: Int) -> pa.Array:
    """`a, b and 7 more`; null for an empty list."""
    values = flat(lists)
    more = count - integers(pc.fill_null(pc.list_value_length(values), 0))
    tail = pc.if_else(
        pa.array(more > 0),
        joined(pc.if_else(pa.array(more < count), " and ", ""), pc.cast(pa.array(more), pa.string()), " more"),
        "",
    )
    return pc.if_else(pa.array(count > 0), joined(pc.binary_join(values, ", "), tail), None)


def _memories(sessions: Sessions, memories: pa.Table) -> pa.Table:
    """Memories without a session, and those that the session recalled within the horizon."""
    everywhere = np.flatnonzero(np.asarray(flat(memories["session_id"]).is_null()))
    turn, row = crossed(len(sessions.turn_seq), len(everywhere))
    row = everywhere[row]
    session = np.where(np.asarray(flat(memories["session_id"]).is_valid()), sessions.codes(memories["session_id"]), -1)
    start = integers(memories["from_seq"])
    fact, later = holding(sessions, session, start, start + HORIZON)
    turn, row = np.concatenate([turn, later]), np.concatenate([row, fact])
    order = np.lexsort((row, start[row], turn))
    turn, row = turn[order], row[order]
    code = (
        turn * (memories.num_rows + 1) + positions(memories["memory_id"], pc.unique(flat(memories["memory_id"])))[row]
    )
    last = np.sort(len(code) - 1 - np.unique(code[::-1], return_index=True)[1])  # the last record of an id wins
    turn, row = turn[last], row[last]
    at = pa.array(row)
    return rows(
        turn,
        source_id=named_id("memory", flat(memories["memory_id"]).take(at)),
        source_kind="memory_candidate",
        part="memory",
        standing="hint",
        text=flat(memories["text"]).take(at),
        summary=flat(memories["text"]).take(at),
        reference=named_id("memory", flat(memories["memory_id"]).take(at)),
        row=row,
    )


def _older(first: Int) -> pa.Table:
    """The events before the horizon of each turn, as one reference to the log."""
    behind = np.flatnonzero((first > 0) & (first < FOREVER))
    numbers = pc.cast(pa.array(first[behind] - 1), pa.string())
    return rows(
        behind,
        source_id="older",
        source_kind="older_history",
        part="recent_tail",
        standing="history",
        reference=joined("log:0-", numbers),
        heading=joined("Events 0 to ", numbers, " of the session"),
        row=behind,
    )


def _tools(turns: int, tools: pa.Table) -> pa.Table:
    turn, row = crossed(turns, tools.num_rows)
    at = pa.array(row)
    return rows(
        turn,
        source_id=named_id("tool", flat(tools["tool"]).take(at)),
        source_kind="tool_schema",
        part="tools",
        heading=flat(tools["tool"]).take(at),
        text=flat(tools["schema"]).take(at),
        reference=named_id("tool", flat(tools["tool"]).take(at)),
        row=row,
    )
