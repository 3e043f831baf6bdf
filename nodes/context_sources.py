"""Context sources: everything that might stand in a turn's input, gathered and judged by nobody yet.

Reads: turns with their states, the session log, rules, memories, items of retrieval snapshots, tools. Gives
`context_sources`, one row per turn and source. Each of them ends in one row of the ledger.

What one would otherwise get wrong: a turn looks at the last `HORIZON` events. Earlier ones are one source, a reference to the
log; what they set still holds through the state. So the cost of a turn does not grow with its session.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import among, constants, flat, integers, positions, rank_within
from .columns.ragged import Ragged, spread
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
from .turns.asof import FOREVER, Sessions, before, holding
from .turns.joining import joined
from .turns.words import OBSERVATIONS

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

HORIZON = 48
"""Events that a turn looks at one by one."""
HEADING_CHARACTERS = 120
"""Of a command, the characters that head its line in the tail."""
LATEST = 8
"""Most results of the last tool calls that count as the latest observation; a round seldom has more calls at once."""
_TEXT = pa.large_string()
_ORIGINS = {"user": "User request", "repository": "Repo rule", "global": "Global rule", "system": "System rule"}
"""Who may set an active constraint that instructs; of everybody else, a constraint is a hint."""


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
    """Every source of every turn, by turn: rules, goal, constraints, state, events of the horizon with their matches, items of
    snapshots, memories, history, tools.
    """
    sessions = Sessions.of(context_turns)
    turn, event = before(sessions, sessions.codes(log_events["session_id"]), integers(log_events["seq"]), HORIZON)
    parts = [
        _rules(context_turns, rule_texts),
        _goal(turn_states),
        *_held(context_turns, sessions, state_facts),
        _state(turn_states),
        _events(turn, event, log_events, turn_states, state_facts),
        _matches(turn, event, log_events, log_matches),
        _items(turn, event, context_turns, log_events, retrieved_items),
        _memories(sessions, memory_records),
        _older(turn, event, log_events, context_turns.num_rows),
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


_FILLED: dict[str, Any] = {
    "required": False, "seq": -1, "content_class": "fact", "standing": "evidence", "row": 0,
}  # fmt: skip


def _rows(turn: Int, **columns: Any) -> pa.Table:
    """Sources without their turn's id and position; a value that is no array stands in every row."""
    arrays: dict[str, Any] = {"turn": pa.array(turn)}
    for name, column in CONTEXT_SOURCES.columns.items():
        if name in ("input_id", "position"):
            continue
        value = columns.get(name, _FILLED.get(name))
        if isinstance(value, (pa.Array, pa.ChunkedArray, np.ndarray)):
            array = pa.array(value) if isinstance(value, np.ndarray) else flat(value)
            arrays[name] = array.cast(column.type)
        else:
            arrays[name] = pa.repeat(pa.scalar(value, column.type), len(turn))
    return pa.table(arrays)


def _crossed(turns: int, rows: int) -> tuple[Int, Int]:
    """Every turn with every row of a table, by turn."""
    return np.repeat(np.arange(turns), rows), np.tile(np.arange(rows), turns)


def _named(prefix: str, *parts: pa.Array) -> pa.Array:
    """Ids of sources: `prefix:part:part`."""
    return joined(prefix, *(flat(part).cast(pa.string()) for part in parts), between=":")


def _rules(turns: pa.Table, rules: pa.Table) -> pa.Table:
    turn, row = _crossed(turns.num_rows, rules.num_rows)
    at = pa.array(row)
    system = np.asarray(pc.equal(rules["origin"], "system")).astype(bool)[row]
    place = joined(flat(rules["path"]).cast(_TEXT), pc.cast(flat(rules["line"]), _TEXT), between=":", skip_nulls=True)
    return _rows(
        turn,
        source_id=_named("rule", rules["rule_id"]).take(at),
        source_kind=pc.if_else(pa.array(system), "system_rules", "repository_instructions"),
        part="rules",
        content_class="rule",
        standing="instruction",
        required=True,
        heading=pc.if_else(pa.array(system), None, place.take(at)),
        text=flat(rules["text"]).take(at),
        reference=flat(rules["path"]).take(at),
        path=flat(rules["path"]).take(at),
        row=row,
    )


def _goal(states: pa.Table) -> pa.Table:
    turn = np.flatnonzero(np.asarray(flat(states["user_goal"]).is_valid()))
    at = pa.array(turn)
    return _rows(
        turn,
        source_id=_named("goal", flat(states["goal_event"]).take(at)),
        source_kind="user_goal",
        part="user_goal",
        content_class="rule",
        standing="instruction",
        required=True,
        text=flat(states["user_goal"]).take(at),
        reference=_named("event", flat(states["goal_event"]).take(at)),
        row=turn,
    )


def _held(turns: pa.Table, sessions: Sessions, facts: pa.Table) -> list[pa.Table]:
    """Active constraints and the summary of earlier rounds."""
    wanted = np.flatnonzero(among(facts["slot"], ("constraint", "history")))
    some = facts.take(pa.array(wanted))
    until = integers(pc.fill_null(some["until_seq"], FOREVER))
    fact, turn = holding(sessions, sessions.codes(some["session_id"]), integers(some["from_seq"]), until)
    order = np.lexsort((integers(some["from_seq"])[fact], turn))
    fact, turn = fact[order], turn[order]
    constraint = among(some["slot"], ("constraint",))[fact]
    origin = flat(some["origin"]).take(pa.array(fact))
    named = pc.index_in(origin, value_set=constants(tuple(_ORIGINS)))
    heading = pc.fill_null(constants(tuple(_ORIGINS.values())).take(named), "Proposed, not confirmed")
    standing = pc.if_else(named.is_valid(), "instruction", "hint")
    made = []
    for kind, mask in (("active_constraint", constraint), ("history_summary", ~constraint)):
        mine = pa.array(np.flatnonzero(mask))
        at = pa.array(fact[mask])
        event = _named("event", flat(some["event_id"]).take(at))
        text = flat(some["value"]).take(at)
        rule = kind == "active_constraint"
        made.append(
            _rows(
                turn[mask],
                source_id=_named("constraint" if rule else "history", flat(some["event_id"]).take(at)),
                source_kind=kind,
                part="rules" if rule else "recent_tail",
                content_class="rule" if rule else "fact",
                standing=standing.take(mine) if rule else "history",
                required=rule,
                heading=heading.take(mine) if rule else "Earlier rounds",
                text=text,
                summary=text,
                reference=event,
                seq=flat(some["from_seq"]).take(at),
                row=wanted[fact[mask]],
            )
        )
    return made


def _state(states: pa.Table) -> pa.Table:
    """One summary per turn, a line per thing that is known; what a tool printed stands on one line of it."""
    rows = states.num_rows
    files = _listed(states["modified_files"], integers(states["modified_count"]))
    artifacts = _listed(states["artifact_refs"], integers(states["artifact_count"]))
    denied = pc.binary_join(flat(states["approvals"]), ", ")
    lines = [
        _line("phase: ", states["phase"]),
        _line("modified_files: ", files),
        _line("latest command: ", states["latest_command"]),
        _line("current failure: ", states["failure"]),
        _line("verification: ", states["verification"]),
        _line("plan (by the model): ", states["plan"]),
        _line("interpretation of the goal (by the model): ", states["interpretation"]),
        _line("denied, no approval yet: ", pc.if_else(pc.greater(pc.binary_length(denied), 0), denied, None)),
        _line("artifacts: ", artifacts),
    ]
    text = joined(*lines, between="\n", skip_nulls=True)
    return _rows(
        np.arange(rows),
        source_id="state",
        source_kind="state_summary",
        part="state",
        required=True,
        text=text,
        reference="state",
        row=np.arange(rows),
    )


STATE_CHARACTERS = 400
"""Of a plan, a failure or a command, the characters that the state shows: it says where things stand, and quotes no log."""


def _line(words: str, values: Any) -> pa.Array:
    value = pc.utf8_slice_codeunits(flat(values).cast(_TEXT), 0, STATE_CHARACTERS)
    value = pc.replace_substring_regex(value, pattern=r"\s+", replacement=" ")
    return joined(words, value)


def _listed(lists: Any, count: Int) -> pa.Array:
    """`a, b and 7 more`; null for an empty list."""
    values = flat(lists)
    more = count - integers(pc.fill_null(pc.list_value_length(values), 0))
    tail = pc.if_else(
        pa.array(more > 0),
        joined(" and ", pc.cast(pa.array(more), pa.string()), " more"),
        "",
    )
    return pc.if_else(pa.array(count > 0), joined(pc.binary_join(values, ", "), tail), None)


def _events(turn: Int, event: Int, events: pa.Table, states: pa.Table, facts: pa.Table) -> pa.Table:
    """The events of the horizon: the last round's results, what was read, and the tail."""
    at = pa.array(event)
    kind = flat(events["kind"]).take(at)
    observed = among(kind, OBSERVATIONS)
    rounds = integers(events["turn"])[event]
    last = np.full(states.num_rows, -1, dtype=np.int64)
    np.maximum.at(last, turn[observed], rounds[observed])
    latest = observed & (rounds == last[turn])
    latest &= _from_behind(turn, latest) < LATEST
    read = among(kind, ("file.read",)) & ~latest
    actor = flat(events["actor"]).take(at)
    model, tool = among(actor, ("model",)), among(actor, ("tool", "memory"))
    visibility = flat(events["visibility"]).take(at)
    hidden = pc.index_in(visibility, value_set=constants(("model-visible", "user-only"))).fill_null(2)
    of_sight = constants(("fact", "ui_only", "audit_only")).take(hidden)
    quoted = latest | read | tool
    content = pc.if_else(pa.array(quoted), "untrusted_text", pc.if_else(pa.array(model), "guess", "fact"))
    standing = pc.if_else(pa.array(quoted), "untrusted", pc.if_else(pa.array(model), "hint", "history"))
    command, path = flat(events["command"]).take(at), flat(events["path"]).take(at)
    where = pc.coalesce(path.cast(_TEXT), command.cast(_TEXT))
    own = flat(events["turn_id"]).take(at)
    round_ = joined("Turn ", pc.coalesce(own, pc.cast(pa.array(rounds), pa.string())))
    names = pc.replace_substring(kind, pattern=".", replacement=" ").cast(_TEXT)
    tail_heading = joined(
        round_, names, pc.utf8_slice_codeunits(where, 0, HEADING_CHARACTERS), between=", ", skip_nulls=True
    )
    ref = flat(events["ref"]).take(at)
    return _rows(
        turn,
        source_id=_named("event", flat(events["event_id"]).take(at)),
        source_kind=pc.if_else(
            pa.array(latest), "latest_observation", pc.if_else(pa.array(read), "file_content", "recent_tail")
        ),
        part=pc.if_else(pa.array(latest), "latest_observation", pc.if_else(pa.array(read), "retrieval", "recent_tail")),
        content_class=pc.if_else(pc.equal(of_sight, "fact"), content, of_sight),
        standing=standing,
        heading=pc.if_else(pa.array(latest | read), where, tail_heading),
        text=flat(events["text"]).take(at),
        summary=flat(events["summary"]).take(at),
        excerpt=flat(events["excerpt"]).take(at),
        reference=pc.coalesce(ref, _named("event", flat(events["event_id"]).take(at))),
        path=path,
        seq=flat(events["seq"]).take(at),
        observation_class=flat(events["observation_class"]).take(at),
        row=event,
    )


def _from_behind(turn: Int, mask: Bool) -> Int:
    """For members of a mask: how many of their turn stand behind them. Turns lie side by side."""
    place = np.zeros(len(turn), dtype=np.int64)
    mine = np.flatnonzero(mask)[::-1]
    place[mine] = rank_within(turn[mine])
    return place


def _matches(turn: Int, event: Int, events: pa.Table, matches: pa.Table) -> pa.Table:
    """The matches of the search results in the horizon."""
    searched = np.flatnonzero(among(flat(events["kind"]).take(pa.array(event)), ("search.result",)))
    turn, event = turn[searched], event[searched]
    session = positions(matches["session_id"], pc.unique(flat(events["session_id"])))
    width = int(integers(events["seq"]).max(initial=0)) + 1
    known = np.flatnonzero((session >= 0) & (integers(matches["seq"]) < width))
    code = session[known] * width + integers(matches["seq"])[known]
    order = np.argsort(code, kind="stable")
    known, code = known[order], code[order]
    own = positions(events["session_id"], pc.unique(flat(events["session_id"]))) * width + integers(events["seq"])
    low = code.searchsorted(own[event], side="left")
    which, place = spread(low, code.searchsorted(own[event], side="right") - low)
    row, turn = known[place], turn[which]
    at = pa.array(row)
    path, line = flat(matches["path"]).take(at), flat(matches["line"]).take(at)
    locator = joined(path, pc.cast(line, pa.string()), between=":", skip_nulls=True)
    return _rows(
        turn,
        source_id=_named(
            "match", flat(events["event_id"]).take(pa.array(event[which])), flat(matches["place"]).take(at)
        ),
        source_kind="search_match",
        part="retrieval",
        content_class="untrusted_text",
        standing="untrusted",
        heading=locator,
        text=flat(matches["text"]).take(at),
        reference=locator,
        path=path,
        seq=flat(matches["seq"]).take(at),
        observation_class="search_result",
        row=row,
    )


def _items(turn: Int, event: Int, turns: pa.Table, events: pa.Table, items: pa.Table) -> pa.Table:
    """Items of the snapshots that a turn names, else of those that events of the horizon created, the last ones first."""
    given = flat(turns["snapshot_ids"])
    named = np.asarray(given.is_valid()).astype(bool)
    own = Ragged.of(given)
    created = Ragged.of(flat(events["snapshot_ids"]))
    of_event = np.flatnonzero(among(events["kind"], ("retrieval.snapshot.created",)))
    mine = np.flatnonzero(~named[turn] & np.isin(event, of_event))[::-1]
    which, place = spread(created.starts[event[mine]], np.diff(created.starts)[event[mine]])
    owner = np.concatenate([own.rows, turn[mine][which]])
    seq = np.concatenate([np.full(len(own.codes), -1), integers(events["seq"])[event[mine]][which]])
    ids = pa.concat_arrays(
        [own.vocabulary.take(pa.array(own.codes)).cast(pa.string()),
         created.vocabulary.take(pa.array(created.codes[place])).cast(pa.string())]
    )  # fmt: skip
    names = pc.unique(flat(items["snapshot_id"]))
    code, of_item = positions(ids, names), positions(items["snapshot_id"], names)
    by = np.argsort(of_item, kind="stable")
    low = of_item[by].searchsorted(code, side="left")
    count = np.where(code >= 0, of_item[by].searchsorted(code, side="right") - low, 0)
    which, place = spread(low, count)
    row = by[place]
    lost = np.flatnonzero(code < 0)
    at = pa.array(row)
    label = joined(flat(items["block_ref"]).take(at), flat(items["label"]).take(at), between=":")
    absent = flat(items["label"]).take(at).is_null()
    found = _rows(
        owner[which],
        source_id=pc.coalesce(
            _named("item", flat(items["snapshot_id"]).take(at), flat(items["label"]).take(at)),
            _named("snapshot", flat(items["snapshot_id"]).take(at)),
        ),
        source_kind="retrieval_result",
        part="retrieval",
        content_class=pc.if_else(pc.equal(flat(items["standing"]).take(at), "untrusted"), "untrusted_text", "fact"),
        standing=pc.if_else(pc.equal(flat(items["standing"]).take(at), "instruction"), "evidence", flat(items["standing"]).take(at)),
        heading=joined("[", label, "] ", pc.fill_null(flat(items["locator"]).take(at), "")),
        text=flat(items["text"]).take(at),
        reference=pc.if_else(absent, flat(items["snapshot_id"]).take(at), label),
        path=flat(items["path"]).take(at),
        evidence_id=flat(items["evidence_id"]).take(at),
        seq=seq[which],
        row=row,
    )  # fmt: skip
    missing = _rows(
        owner[lost],
        source_id=_named("snapshot", ids.take(pa.array(lost))),
        source_kind="retrieval_result",
        part="retrieval",
        reference=ids.take(pa.array(lost)),
        seq=seq[lost],
        row=-1,
    )
    both = pa.concat_tables([found, missing]).combine_chunks()
    owner, code = integers(both["turn"]), positions(both["source_id"], pc.unique(flat(both["source_id"])))
    first = np.sort(np.unique(np.stack([owner, code], axis=1), axis=0, return_index=True)[1])
    return both.take(pa.array(first))  # a snapshot that several events name is one


def _memories(sessions: Sessions, memories: pa.Table) -> pa.Table:
    """Memories given for every session, and those that the session recalled within the horizon."""
    everywhere = np.flatnonzero(np.asarray(flat(memories["session_id"]).is_null()))
    turn, row = _crossed(len(sessions.turn_seq), len(everywhere))
    row = everywhere[row]
    session = np.where(np.asarray(flat(memories["session_id"]).is_valid()), sessions.codes(memories["session_id"]), -1)
    start = integers(memories["from_seq"])
    fact, later = holding(sessions, session, start, start + HORIZON)
    turn, row = np.concatenate([turn, later]), np.concatenate([row, fact])
    at = pa.array(row)
    return _rows(
        turn,
        source_id=_named("memory", flat(memories["memory_id"]).take(at)),
        source_kind="memory_candidate",
        part="memory",
        standing="hint",
        text=flat(memories["text"]).take(at),
        summary=flat(memories["text"]).take(at),
        reference=_named("memory", flat(memories["memory_id"]).take(at)),
        row=row,
    )


def _older(turn: Int, event: Int, events: pa.Table, count: int) -> pa.Table:
    """The events before the horizon, as one reference to the log."""
    seq = integers(events["seq"])
    first = np.full(count, FOREVER, dtype=np.int64)
    np.minimum.at(first, turn, seq[event])
    behind = np.flatnonzero((first > 0) & (first < FOREVER))
    numbers = pc.cast(pa.array(first[behind] - 1), pa.string())
    return _rows(
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
    turn, row = _crossed(turns, tools.num_rows)
    at = pa.array(row)
    return _rows(
        turn,
        source_id=_named("tool", flat(tools["tool"]).take(at)),
        source_kind="tool_schema",
        part="tools",
        heading=flat(tools["tool"]).take(at),
        text=flat(tools["schema"]).take(at),
        reference=_named("tool", flat(tools["tool"]).take(at)),
        row=row,
    )
