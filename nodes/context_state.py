"""Context state: the session log folded into the state of the agent, as of any event.

Reads: the session log, facts of a checkpoint, turns. Gives `state_facts` (every fact with the range of events over
which it holds) and `turn_states` (document 003's AgentState, one row per turn).

Note: the fold is not a loop. An event asserts facts; a fact holds until the next assertion of the same fact, so all
states of a session take one sort. The last assertions before an event are a checkpoint: folding them with the later
events yields the same state as folding the whole log. The user's words bind beyond their round: prohibitions, approvals
and checks are constraints until the user ends them, even under later goals. A goal that is not the user's is a
proposal.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import among, codes_of, constants, flat, integers, rank_within, take_or
from .columns.ragged import Ragged, starts_of
from .context_tables import (
    STATE_FACTS,
    TURN_STATES,
    ContextTurns,
    LogEvents,
    StateFacts,
    TurnStates,
)
from .turns.as_of import FOREVER, Sessions, before, holding, last_per
from .turns.asserting import ABOUT, assertions
from .turns.joining import joined
from .turns.scopes import paths_named, permitted
from .turns.words import DERIVED

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

LISTED = 12
"""Maximum number of modified files and artifacts that a state lists; it counts them all."""


SHOWN = (
    "goal",
    "interpretation",
    "phase",
    "plan",
    "command",
    "failure",
    "verification",
    "modified",
    "artifact",
    "approval",
    "wrote",
)
"""Slots that the state of a turn shows; other slots are looked up by name."""
MESSAGES_KEPT = 8
"""Number of user messages that a state remembers: each holds until this many later ones."""


def state_facts(log_events: LogEvents, checkpoint_facts: StateFacts) -> StateFacts:
    """Every fact of every session with its range of events, by session, slot, fact and event.

    `checkpoint_facts` are those that held at the start of the loaded log.
    """
    made = pa.concat_tables([checkpoint_facts, *assertions(log_events)]).combine_chunks()
    if not made.num_rows:
        return STATE_FACTS.empty()
    which = codes_of([made["session_id"], made["slot"], made["fact"]])
    seq = integers(made["from_seq"])
    order = np.lexsort((seq, which))
    made, which, seq = made.take(pa.array(order)), which[order], seq[order]
    until = _replaced(which, seq, 1)
    is_message = among(made["slot"], ("said",))
    until[is_message] = _replaced(which, seq, MESSAGES_KEPT)[is_message]
    until = np.minimum(until, _cleared(made, seq))
    made = made.set_column(
        made.schema.get_field_index("until_seq"),
        STATE_FACTS.schema.field("until_seq"),
        pa.array(until, mask=until == FOREVER),
    )
    held = made.filter(pc.is_valid(made["value"]))  # an assertion without a value ends the fact
    return STATE_FACTS.check(held.sort_by([(name, "ascending") for name in STATE_FACTS.order]).combine_chunks())


def _replaced(which: Int, seq: Int, after: int) -> Int:
    """The event at which each fact is replaced: the `after`-th later assertion of the same fact."""
    until = np.full(len(which), FOREVER, dtype=np.int64)
    if len(which) > after:
        until[:-after] = np.where(which[after:] == which[:-after], seq[after:], FOREVER)
    return until


def _cleared(made: pa.Table, seq: Int) -> Int:
    """The event at which a fact was ended by name: a failure by the first later check that passed and that it names,
    its own or a wider one; a denial by the first later grant that names its subject or its event, with its action or no
    action.
    """
    until = np.full(made.num_rows, FOREVER, dtype=np.int64)
    fact, session = flat(made["fact"]), flat(made["session_id"])
    for slot, ending, between in (("failure", "cleared", "\n"), ("approval", "lifted", ABOUT)):
        held, ended = (np.flatnonzero(among(made["slot"], (each,))) for each in (slot, ending))
        if not len(held) or not len(ended):
            continue
        names = fact.take(pa.array(held))
        if slot == "approval":
            names = _lifting(names, flat(made["event_id"]).take(pa.array(held)))
        named = Ragged.of(pc.split_pattern(names, between))
        names = named.vocabulary.take(pa.array(named.codes)).cast(pa.string())
        rows = np.concatenate([held[named.rows], ended])
        code = codes_of(
            [session.take(pa.array(rows)), pa.concat_arrays([names, fact.take(pa.array(ended)).cast(pa.string())])]
        )
        key = code * (int(seq.max()) + 3) + seq[rows] + 1
        first = len(named.rows)
        order = np.argsort(key[first:], kind="stable") + first
        place = key[order].searchsorted(key[:first], side="right")
        found = np.flatnonzero(place < len(order))
        found = found[code[order[place[found]]] == code[found]]
        np.minimum.at(until, held[named.rows[found]], seq[rows[order[place[found]]]])
    return until


def _lifting(denial: pa.Array, event: pa.Array) -> pa.Array:
    """All names that lift a denial: subject, event, each name of its action, and each name with subject or event."""
    names = pc.split_pattern(denial.cast(pa.large_string()), ABOUT)
    about, event = (joined(ABOUT, each) for each in (pc.list_element(names, 0), event))
    return joined(denial, event, ABOUT, pc.binary_join(names, about), ABOUT, pc.binary_join(names, event))


def turn_states(context_turns: ContextTurns, state_facts: StateFacts, log_events: LogEvents) -> TurnStates:
    """The state of every turn, in the order of the turns."""
    sessions = Sessions.of(context_turns)
    rows = context_turns.num_rows
    state_facts = state_facts.filter(pc.is_in(state_facts["slot"], value_set=constants(SHOWN))).combine_chunks()
    fact, turn = holding(
        sessions,
        sessions.codes(state_facts["session_id"]),
        integers(state_facts["from_seq"]),
        integers(pc.fill_null(state_facts["until_seq"], FOREVER)),
    )
    zone = flat(state_facts["zone"]).take(pa.array(fact))
    seen = permitted(turn, zone, context_turns["zones"]) | among(state_facts["slot"], ("phase", "wrote"))[fact]
    fact, turn = fact[seen], turn[seen]
    slot = flat(state_facts["slot"]).dictionary_encode()
    names = slot.dictionary.to_pylist()
    slot_of = np.asarray(slot.indices).astype(np.int64)[fact]
    since = integers(state_facts["from_seq"])[fact]

    def members(name: str) -> Int:
        return np.flatnonzero(slot_of == names.index(name)) if name in names else np.empty(0, np.int64)

    def single(name: str) -> Int:
        """The row of STATE_FACTS that each turn has in a single-valued slot, else -1."""
        mine = members(name)
        last = last_per(turn[mine], rows, since[mine])
        return np.where(last >= 0, np.append(fact[mine], -1)[last], -1)

    def several(name: str, column: str, most: int) -> tuple[pa.Array, Int]:
        """The values of each turn in a multi-valued slot, latest first, and their number."""
        mine = members(name)
        order = np.lexsort((fact[mine], -since[mine], turn[mine]))
        mine = mine[order]
        count = np.bincount(turn[mine], minlength=rows)
        kept = mine[rank_within(turn[mine]) < most]
        starts = starts_of(np.bincount(turn[kept], minlength=rows))
        values = flat(state_facts[column]).take(pa.array(fact[kept])).cast(pa.string())
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values), count

    goal, failure, check = single("goal"), single("failure"), single("verification")
    modified, modified_count = several("modified", "fact", LISTED)
    artifacts, artifact_count = several("artifact", "value", LISTED)
    approvals, approval_count = several("approval", "value", LISTED)
    denied, wrote = members("approval"), np.append(integers(state_facts["from_seq"]), -1)[single("wrote")]
    unanswered = np.bincount(turn[denied[since[denied] > wrote[turn[denied]]]], minlength=rows)
    failing, failure_count = several("failure", "fact", LISTED)
    what_fails = take_or(state_facts["value"], failure)
    stated, held = flat(context_turns["phase"]), single("phase")
    derived = pc.equal(take_or(state_facts["origin"], held).cast(pa.string()), DERIVED).fill_null(False)
    derived = pc.if_else(stated.is_valid(), False, pc.if_else(pa.array(held >= 0), derived, None))
    first, behind = _events_so_far(sessions, log_events)
    return TURN_STATES.build(
        {
            "input_id": context_turns["input_id"],
            "user_goal": take_or(state_facts["value"], goal),
            "goal_event": take_or(state_facts["event_id"], goal),
            "interpretation": take_or(state_facts["value"], single("interpretation")),
            "phase": pc.coalesce(stated, take_or(state_facts["value"], held).cast(pa.string()), "diagnosing"),
            "phase_derived": derived,
            "plan": take_or(state_facts["value"], single("plan")),
            "latest_command": take_or(state_facts["value"], single("command")),
            "failure": what_fails,
            "failure_paths": paths_named(what_fails),
            "failing": pa.ListArray.from_arrays(failing.offsets, _check_named(failing.values)),
            "failed_elsewhere": _any_elsewhere(failing),
            "failure_count": failure_count.astype(np.int32),
            "verification": take_or(state_facts["value"], check),
            "modified_files": modified,
            "modified_count": modified_count.astype(np.int32),
            "artifact_refs": artifacts,
            "artifact_count": artifact_count.astype(np.int32),
            "approvals": approvals,
            "approval_count": approval_count.astype(np.int32),
            "unanswered_count": unanswered.astype(np.int32),
            "turn_count": first,
            "events": behind,
        }
    )


def _any_elsewhere(failing: pa.ListArray) -> pa.Array:
    """Whether any check of each list failed on other code: a place follows its name, which ends at the first colon."""
    placed = np.asarray(pc.match_substring_regex(failing.values, r"^[^:\n]*:(?:[^\n]* )@\S"), dtype=bool)
    return pa.array(np.diff(np.append(0, np.cumsum(placed))[np.asarray(failing.offsets)]) > 0)


def _check_named(failure: pa.Array) -> pa.Array:
    """The check of each failure: the first of the names of the checks that can end it."""
    own = pc.list_element(pc.split_pattern(failure, "\n", max_splits=1), 0)
    own = pc.replace_substring(own, ": @", " @")  # with its place, where it failed on other code
    return pc.replace_substring(pc.utf8_rtrim(own, ":"), "%3A", ":")


def _events_so_far(sessions: Sessions, events: pa.Table) -> tuple[Int, Int]:
    """Number of rounds and events before each turn."""
    turn, last = before(sessions, sessions.codes(events["session_id"]), integers(events["seq"]), 1)
    rounds, count = np.zeros((2, len(sessions.turn_seq)), dtype=np.int64)
    rounds[turn] = integers(events["turn"])[last] + 1
    count[turn] = integers(events["seq"])[last] + 1
    return rounds, count


def latest_assertions(log_events: LogEvents, checkpoint_facts: StateFacts) -> StateFacts:
    """The last assertion of every fact (for messages the last `MESSAGES_KEPT`), by fact, including those that end a fact.

    A later fold needs nothing else from these events. `checkpoint_facts` are the assertions before them; facts that
    hold count as assertions.
    """
    made = pa.concat_tables([checkpoint_facts, *assertions(log_events)]).combine_chunks()
    if not made.num_rows:
        return STATE_FACTS.empty()
    which = codes_of([made["session_id"], made["slot"], made["fact"]])
    order = np.lexsort((integers(made["from_seq"]), which))
    behind = rank_within(which[order][::-1])[::-1]  # 0 for the last assertion of a fact
    most = np.where(among(made["slot"], ("said",)), MESSAGES_KEPT, 1)[order]
    kept = made.take(pa.array(order[behind < most]))
    return kept.sort_by([(name, "ascending") for name in STATE_FACTS.order]).combine_chunks()
