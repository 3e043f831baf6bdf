"""Context state: the session log folded into the state of the agent, as of any event.

Reads: the session log, facts that a checkpoint kept, turns. Gives `state_facts` (every fact with the range of events over
which it holds) and `turn_states` (document 003's AgentState, one row per turn).

What one would otherwise get wrong: the fold is no loop. An event asserts facts; a fact holds until the next assertion of the
same fact, so all states of a session are one sort. The last assertions before an event are a checkpoint: folding them with the
events behind gives the same state as folding the whole log. What the user says binds beyond its round: prohibitions, approvals
and checks are constraints until the user ends them, whatever goal comes next. A goal that is not the user's is a proposal.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.digests import text_sha256
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
from .turns.asof import FOREVER, Sessions, before, holding, last_per
from .turns.joining import joined
from .turns.scopes import checks, paths_named

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

LISTED = 12
"""Modified files and artifacts that a state names; it counts them all."""


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
)
"""Slots that the state of a turn shows; the others are looked up by name."""
OTHERS = ("system", "global", "repository", "model", "memory", "tool")
"""Standings besides the user's: what one of them says replaces its own facts alone. Whoever is not named is a tool."""
RING = 64
"""Artifacts that a state remembers at most."""
SAID = 8
"""Messages of the user that a state remembers: each holds until so many later ones."""
_SHARED = ("public", "internal")
"""Zones whose messages a state keeps; those of others stand in their event alone."""


def state_facts(log_events: LogEvents, checkpoint_facts: StateFacts) -> StateFacts:
    """Every fact of every session with its range of events, by session, slot, fact and event.

    `checkpoint_facts` are those that held where the log at hand begins.
    """
    made = pa.concat_tables([checkpoint_facts, *_assertions(log_events)]).combine_chunks()
    if not made.num_rows:
        return STATE_FACTS.empty()
    which = codes_of([made["session_id"], made["slot"], made["fact"]])
    seq = integers(made["from_seq"])
    order = np.lexsort((seq, which))
    made, which, seq = made.take(pa.array(order)), which[order], seq[order]
    until = _replaced(which, seq, 1)
    said = among(made["slot"], ("said",))
    until[said] = _replaced(which, seq, SAID)[said]
    made = made.set_column(
        made.schema.get_field_index("until_seq"),
        STATE_FACTS.schema.field("until_seq"),
        pa.array(until, mask=until == FOREVER),
    )
    held = made.filter(pc.is_valid(made["value"]))  # an assertion without a value ends the fact
    return STATE_FACTS.check(held.sort_by([(name, "ascending") for name in STATE_FACTS.order]).combine_chunks())


def _replaced(which: Int, seq: Int, after: int) -> Int:
    """The event at which each fact is replaced: that of the `after`-th later assertion of the same fact."""
    until = np.full(len(which), FOREVER, dtype=np.int64)
    if len(which) > after:
        until[:-after] = np.where(which[after:] == which[:-after], seq[after:], FOREVER)
    return until


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
    slot = flat(state_facts["slot"]).dictionary_encode()
    names = slot.dictionary.to_pylist()
    slot_of = np.asarray(slot.indices).astype(np.int64)[fact]
    since = integers(state_facts["from_seq"])[fact]

    def members(name: str) -> Int:
        return np.flatnonzero(slot_of == names.index(name)) if name in names else np.empty(0, np.int64)

    def single(name: str) -> Int:
        """The row of STATE_FACTS that each turn has in a slot of one, else -1."""
        mine = members(name)
        last = last_per(turn[mine], rows, since[mine])
        return np.where(last >= 0, np.append(fact[mine], -1)[last], -1)

    def several(name: str, column: str, most: int) -> tuple[pa.Array, Int]:
        """What each turn has in a slot of several, the last ones first, and how many there are."""
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
    what_fails = take_or(state_facts["value"], failure)
    phase = pc.coalesce(flat(context_turns["phase"]), take_or(state_facts["value"], single("phase")).cast(pa.string()))
    first, behind = _events_so_far(sessions, log_events)
    return TURN_STATES.build(
        {
            "input_id": context_turns["input_id"],
            "user_goal": take_or(state_facts["value"], goal),
            "goal_event": take_or(state_facts["event_id"], goal),
            "interpretation": take_or(state_facts["value"], single("interpretation")),
            "phase": phase.fill_null("diagnosing"),
            "plan": take_or(state_facts["value"], single("plan")),
            "latest_command": take_or(state_facts["value"], single("command")),
            "failure": what_fails,
            "failure_paths": paths_named(what_fails),
            "verification": take_or(state_facts["value"], check),
            "modified_files": modified,
            "modified_count": modified_count.astype(np.int32),
            "artifact_refs": artifacts,
            "artifact_count": artifact_count.astype(np.int32),
            "approvals": approvals,
            "approval_count": approval_count.astype(np.int32),
            "turn_count": first,
            "events": behind,
        }
    )


def _assertions(events: pa.Table) -> list[pa.Table]:
    """The facts that events assert, slot by slot; a value of null ends the fact."""
    kind, failed = flat(events["kind"]), np.asarray(flat(events["failed"])).astype(bool)
    said = pc.coalesce(flat(events["summary"]), flat(events["text"]))
    named = pc.coalesce(flat(events["subject"]), flat(events["event_id"]))
    command, origin = flat(events["command"]), flat(events["origin"])
    path, version = flat(events["path"]), pc.coalesce(flat(events["version"]), flat(events["event_id"]))
    none = pa.nulls(events.num_rows, pa.large_string())
    told = ~among(events["actor"], ("model", "memory"))  # a model that says its tests passed ran none
    ran, checked = (
        among(kind, ("command.finished",)) & told,
        among(kind, ("command.finished", "verification.finished")) & told,
    )
    modified, on_file = among(kind, ("file.modified",)), np.asarray(path.is_valid())
    ended = pc.if_else(pa.array(failed), said, none)
    checked_words = joined(
        pc.coalesce(command, said).cast(pa.large_string()),
        pc.if_else(pa.array(failed), "failed", "passed").cast(pa.large_string()),
        between=": ",
    )
    is_check = checked & checks(pc.coalesce(command, said))
    reported = among(kind, ("verification.finished",)) & np.asarray(origin.is_valid()).astype(bool)
    is_check &= failed | ~(
        reported & among(events["actor"], ("tool",))
    )  # a tool's word ends no failure, and may tell of one
    one = pa.nulls(events.num_rows, pa.string()).fill_null("")
    by_user = among(events["actor"], ("user",))
    goals = among(kind, ("user.goal",))
    shared = by_user & among(events["visibility"], ("model-visible",)) & among(events["zone"], _SHARED)
    message = among(kind, ("user.message", "user.confirmation")) & shared
    binds = np.asarray(flat(events["binding"]).is_valid()) & (message | (goals & by_user))
    granted = among(kind, ("permission.granted",)) & among(events["actor"], ("user", "system"))
    granted |= among(kind, ("user.confirmation",)) & by_user
    own = flat(events["event_id"])
    asked = pc.if_else(pa.array(by_user), "user", pc.coalesce(origin, flat(events["actor"])))
    asked = pc.if_else(
        pa.array(~by_user & np.asarray(pc.starts_with(asked, pattern="user")).astype(bool)), "tool", asked
    )
    standing = pc.if_else(pc.is_in(asked, value_set=constants(OTHERS)), asked, OTHERS[-1])
    theirs = pc.if_else(pa.array(by_user), named, _of_others(standing, named))
    by_harness = among(events["actor"], ("user", "system"))
    ends = among(kind, ("constraint.ended",)) & by_user
    slots: tuple[tuple[str, Bool, pa.Array, pa.Array, *tuple[pa.Array, ...]], ...] = (
        ("goal", goals & by_user, one, flat(events["text"])),
        ("constraint", goals & ~by_user, _of_others("goal", theirs), flat(events["text"]), joined("goal by ", asked)),
        ("constraint", binds, own, flat(events["binding"]), kind),
        ("said", message, one, flat(events["text"]), kind),
        ("interpretation", among(kind, ("plan.updated",)) & np.asarray(flat(events["excerpt"]).is_valid()), one, flat(events["excerpt"])),
        ("phase", among(kind, ("phase.changed",)) & by_harness, one, flat(events["subject"])),
        ("constraint", among(kind, ("user.constraint",)), theirs, flat(events["text"]), asked),
        ("constraint", ends, named, none),
        *(("constraint", ends, _of_others(each, named), none) for each in OTHERS),
        *(("constraint", ends, _of_others("goal", _of_others(each, named)), none) for each in OTHERS),
        ("plan", among(kind, ("plan.updated",)), one, flat(events["text"])),
        ("command", ran & np.asarray(command.is_valid()), one, command),
        ("failure", is_check, one, ended),
        ("verification", is_check, one, checked_words),
        ("verification", modified, one, none),
        ("modified", modified & on_file, path, version),
        ("read", among(kind, ("file.read",)) & on_file, path, version),
        ("artifact", np.asarray(flat(events["ref"]).is_valid()), _ring(events), flat(events["ref"])),
        ("approval", among(kind, ("permission.denied",)), named, joined(named, joined(" (", pc.utf8_slice_codeunits(command, 0, 80), ")"), skip_nulls=True)),
        ("approval", granted, named, none),
        ("revoked", among(kind, ("memory.revoked",)) & (by_harness | among(events["actor"], ("memory",))), named, named),
        ("history", among(kind, ("history.summarized",)), one, flat(events["text"])),
    )  # fmt: skip
    made = [
        _asserted(events, name, mask, fact, value, *asked) for name, mask, fact, value, *asked in slots if mask.any()
    ]
    return [*made, *_disclosed(events)]


def _of_others(standing: pa.Array | str, name: pa.Array) -> pa.Array:
    """The name of a fact of somebody else: it never takes the place of one of the user, whatever it is called."""
    return joined("\x1f", standing, "\x1f", name)


def _ring(events: pa.Table) -> pa.Array:
    """Places for artifacts: a later one takes the place of one that is `RING` events older, so that a state does not grow with its log."""
    return pc.cast(pa.array(integers(events["seq"]) % RING), pa.string())


def _disclosed(events: pa.Table) -> list[pa.Table]:
    """What earlier inputs of the session showed: evidence ids, and memories as `memory:<id>`."""
    requests = np.flatnonzero(among(events["kind"], ("model.request",)))
    shown = Ragged.of(flat(events["evidence_ids"]).take(pa.array(requests)))
    if not len(shown.codes):
        return []
    of_event = events.take(pa.array(requests[shown.rows]))
    ids = shown.vocabulary.take(pa.array(shown.codes)).cast(pa.string())
    everything = np.ones(len(ids), dtype=bool)
    return [_asserted(of_event, "disclosed", everything, ids, ids)]


def _asserted(
    events: pa.Table, slot: str, mask: Bool, fact: pa.Array, value: pa.Array, origin: pa.Array | None = None
) -> pa.Table:
    index = pa.array(np.flatnonzero(mask))
    value = value.take(index).cast(pa.large_string())
    return STATE_FACTS.build(
        {
            "session_id": flat(events["session_id"]).take(index),
            "slot": constants((slot,)).take(pa.array(np.zeros(len(index), dtype=np.int64))),
            "fact": fact.take(index).cast(pa.string()),
            "value": value,
            "origin": (flat(events["actor"]) if origin is None else origin).take(index).cast(pa.string()),
            "event_id": flat(events["event_id"]).take(index),
            "from_seq": flat(events["seq"]).take(index),
            "until_seq": pa.nulls(len(index), pa.int64()),
        }
    )


def _events_so_far(sessions: Sessions, events: pa.Table) -> tuple[Int, Int]:
    """Rounds and events before each turn."""
    turn, last = before(sessions, sessions.codes(events["session_id"]), integers(events["seq"]), 1)
    rounds, count = np.zeros((2, len(sessions.turn_seq)), dtype=np.int64)
    rounds[turn] = integers(events["turn"])[last] + 1
    count[turn] = integers(events["seq"])[last] + 1
    return rounds, count


def latest_assertions(log_events: LogEvents, checkpoint_facts: StateFacts) -> StateFacts:
    """The last assertion of every fact (of messages the last `SAID`), by fact, those that end one included: all that a later fold
    needs of these events.

    `checkpoint_facts` are the assertions before them; facts that hold are assertions.
    """
    made = pa.concat_tables([checkpoint_facts, *_assertions(log_events)]).combine_chunks()
    if not made.num_rows:
        return STATE_FACTS.empty()
    which = codes_of([made["session_id"], made["slot"], made["fact"]])
    order = np.lexsort((integers(made["from_seq"]), which))
    behind = rank_within(which[order][::-1])[::-1]  # the last assertion of a fact has 0
    most = np.where(among(made["slot"], ("said",)), SAID, 1)[order]
    kept = made.take(pa.array(order[behind < most]))
    return kept.sort_by([(name, "ascending") for name in STATE_FACTS.order]).combine_chunks()


def constraint_ids(origin: pa.Array, text: pa.Array) -> pa.Array:
    """Ids of constraints that have none of their own: origin and hash of the words."""
    return joined(origin, pc.utf8_slice_codeunits(text_sha256(text), 0, 12), between=":")
