"""Sources of the session log: horizon events, search matches, items of retrieval snapshots; and builders of sources.

Gives `rows`, `crossed` and `named_id`, with which `context_sources` builds all sources, `item_names`, `item_ids`, and
`events_of`, `matches_of`, `items_of`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, constants, flat, integers, literal, pair_positions, positions, rank_within
from ..columns.ragged import Ragged, spread
from ..context_tables import CONTEXT_SOURCES
from .as_of import FOREVER
from .asserting import SHARED
from .joining import joined
from .words import OBSERVATIONS, RUNNING

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

HEADING_CHARACTERS = 120
"""Most characters of a command in the heading of its line in the tail."""
LATEST = 8
"""Most results of the last tool calls that count as the latest observation; a round seldom has more calls at once."""
_TEXT = pa.large_string()
_FILLED: dict[str, Any] = {
    "required": False, "cut": False, "characters": 0, "seq": -1, "content_class": "fact", "standing": "evidence", "row": 0,
}  # fmt: skip


def rows(turn: Int, **columns: Any) -> pa.Table:
    """Sources without the id and position of their turn; a value that is not an array is repeated in every row."""
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
    if "characters" not in columns:
        arrays["characters"] = pc.cast(
            pc.fill_null(pc.utf8_length(pc.coalesce(arrays["text"], arrays["summary"])), 0), pa.int64()
        )
    return pa.table(arrays)


def crossed(turns: int, rows: int) -> tuple[Int, Int]:
    """The cross product of turns and rows, by turn."""
    return np.repeat(np.arange(turns), rows), np.tile(np.arange(rows), turns)


def named_id(prefix: str, *parts: pa.Array) -> pa.Array:
    """Ids of sources: `prefix:part:part`."""
    return joined(prefix, *(flat(part).cast(pa.string()) for part in parts), between=":")


def item_names(items: pa.Table) -> pa.Array:
    """`SNAPSHOT:LABEL` of each row of RETRIEVED_ITEMS; null for a snapshot without items. In `SNAPSHOT`, `%` and `:`
    are escaped as `%25` and `%3A`, so that names are unique.
    """
    escaped = pc.replace_substring(pc.replace_substring(flat(items["snapshot_id"]), "%", "%25"), ":", "%3A")
    return joined(escaped, items["label"], between=":").cast(pa.string())


def item_ids(items: pa.Table) -> pa.Array:
    """The source of each row of RETRIEVED_ITEMS: `item:SNAPSHOT:LABEL`, named as above, or `snapshot:SNAPSHOT` for one without items."""
    return pc.coalesce(named_id("item", item_names(items)), named_id("snapshot", items["snapshot_id"]))


def events_of(turn: Int, event: Int, events: pa.Table, states: pa.Table, facts: pa.Table) -> pa.Table:
    """The events of the horizon: results of the last round, files that were read, and the tail."""
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
    lines = pc.if_else(pc.equal(kind, "file.read"), flat(events["subject"]).take(at), None)
    place = joined(path.cast(_TEXT), lines.cast(_TEXT), between=":", skip_nulls=True)
    checked = pc.if_else(pc.equal(kind, "verification.finished"), flat(events["subject"]).take(at).cast(_TEXT), None)
    where = pc.coalesce(pc.if_else(path.is_valid(), place, None), command.cast(_TEXT), checked)
    own = flat(events["turn_id"]).take(at)
    round_ = joined("Turn ", pc.coalesce(own, pc.cast(pa.array(rounds), pa.string())))
    names = pc.replace_substring(kind, pattern=".", replacement=" ").cast(_TEXT)
    ran = pc.equal(kind, "command.finished")
    names = pc.if_else(pc.and_(ran, flat(events["observation_class"]).take(at).is_null()), "tool result", names)
    commands = pc.and_(ran, flat(events["observation_class"]).take(at).is_valid())
    names = pc.if_else(commands, pc.coalesce(_ending(events.take(at)), names), names)
    grant, by_harness = among(kind, ("permission.granted",)), among(actor, ("user", "system"))
    refused = pc.and_not(pa.array(grant & by_harness), flat(events["grants"]).take(at))
    names = pc.if_else(refused, literal("permission not granted"), names)
    claimed = joined("not a permission: words of the ", actor)
    names = pc.if_else(pa.array(grant & ~by_harness), claimed, names)
    of_others = among(actor, ("model", "tool", "memory", "system")) & np.asarray(
        pc.starts_with(kind, pattern="user.")
    ).astype(bool)
    names = pc.if_else(pa.array(of_others), joined("not the user: words of the ", actor), names)
    over = pa.array(_ended(turn, event, events, states, facts))
    whole = pc.if_else(pc.equal(kind, "user.constraint"), literal(""), literal("what it forbids or requires is "))
    names = pc.if_else(over, joined(names, ", ", whole, "no longer in force"), names)
    short = joined(pc.utf8_slice_codeunits(where, 0, HEADING_CHARACTERS), "...")
    short = pc.if_else(pc.greater(pc.utf8_length(where), HEADING_CHARACTERS), short, where)
    tail_heading = joined(round_, names, short, between=", ", skip_nulls=True)
    ref = flat(events["ref"]).take(at)
    return rows(
        turn,
        source_id=named_id("event", flat(events["event_id"]).take(at)),
        source_kind=pc.if_else(
            pa.array(latest), "latest_observation", pc.if_else(pa.array(read), "file_content", "recent_tail")
        ),
        part=pc.if_else(pa.array(latest), "latest_observation", pc.if_else(pa.array(read), "retrieval", "recent_tail")),
        content_class=pc.if_else(pc.equal(of_sight, "fact"), content, of_sight),
        standing=standing,
        heading=pc.if_else(pa.array(latest | read), where, tail_heading),
        text=flat(events["text"]).take(at),
        characters=flat(events["characters"]).take(at),
        cut=flat(events["cut"]).take(at),
        summary=flat(events["summary"]).take(at),
        excerpt=flat(events["excerpt"]).take(at),
        reference=pc.coalesce(ref, named_id("event", flat(events["event_id"]).take(at))),
        path=path,
        seq=flat(events["seq"]).take(at),
        observation_class=flat(events["observation_class"]).take(at),
        row=event,
    )


def _ending(events: pa.Table) -> pa.Array:
    """The endings of commands that did not end well; null for the others."""
    how, code = (flat(events[name]).cast(_TEXT) for name in ("subject", "exit_code"))
    failed, running = flat(events["failed"]), pc.fill_null(pc.equal(how, RUNNING), False)
    ended = pc.if_else(pc.equal(how, RUNNING), "command still running then", joined("command ", how))
    by_code = joined(pc.if_else(failed, "command failed (exit ", "command finished (exit "), code, ")")
    by_code = pc.if_else(pc.not_equal(code, "0"), by_code, None)
    return pc.coalesce(
        ended, by_code, pc.if_else(pc.and_not(failed, running), pa.scalar("command failed", _TEXT), None)
    )


def _ended(turn: Int, event: Int, events: pa.Table, states: pa.Table, facts: pa.Table) -> Bool:
    """Whether each event set a constraint that, as its turn knows, has ended or was replaced."""
    held = facts.filter(pc.equal(facts["slot"], "constraint"))
    found = pair_positions((held["session_id"], held["event_id"]), (events["session_id"], events["event_id"]))
    until = np.full(events.num_rows + 1, -1, dtype=np.int64)
    np.maximum.at(until, found, integers(pc.fill_null(held["until_seq"], FOREVER)))  # last place: no event
    binds = among(events["kind"], ("user.message", "user.confirmation")) & np.asarray(
        flat(events["binding"]).is_valid()
    ).astype(bool)
    binds |= among(events["kind"], ("user.constraint",))
    binds &= among(events["visibility"], ("model-visible",)) & among(events["zone"], SHARED)
    return binds[event] & (until[event] < integers(states["events"])[turn])


def _from_behind(turn: Int, mask: Bool) -> Int:
    """For members of a mask, the number of later members in the same turn. Turns are contiguous."""
    place = np.zeros(len(turn), dtype=np.int64)
    mine = np.flatnonzero(mask)[::-1]
    place[mine] = rank_within(turn[mine])
    return place


def matches_of(turn: Int, event: Int, events: pa.Table, matches: pa.Table) -> pa.Table:
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
    return rows(
        turn,
        source_id=named_id(
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


def items_of(turn: Int, event: Int, turns: pa.Table, events: pa.Table, items: pa.Table) -> pa.Table:
    """Items of the snapshots that a turn names, else of those supplied for every turn and those that events of the
    horizon created, newest first.
    """
    given = flat(turns["snapshot_ids"])
    named = np.asarray(given.is_valid()).astype(bool)
    own = Ragged.of(given)
    created = Ragged.of(flat(events["snapshot_ids"]))
    of_event = np.flatnonzero(among(events["kind"], ("retrieval.snapshot.created",)))
    mine = np.flatnonzero(~named[turn] & np.isin(event, of_event))[::-1]
    which, place = spread(created.starts[event[mine]], np.diff(created.starts)[event[mine]])
    names = pc.unique(flat(items["snapshot_id"]))
    given_ids = pc.unique(flat(items["snapshot_id"]).filter(flat(items["given"])))
    unnamed = np.flatnonzero(~named)
    of_turn, of_given = np.repeat(unnamed, len(given_ids)), np.tile(np.arange(len(given_ids)), len(unnamed))
    owner = np.concatenate([own.rows, of_turn, turn[mine][which]])
    seq = np.concatenate([np.full(len(own.codes) + len(of_turn), -1), integers(events["seq"])[event[mine]][which]])
    ids = pa.concat_arrays(
        [own.vocabulary.take(pa.array(own.codes)).cast(pa.string()), given_ids.take(pa.array(of_given)),
         created.vocabulary.take(pa.array(created.codes[place])).cast(pa.string())]
    )  # fmt: skip
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
    found = rows(
        owner[which],
        source_id=item_ids(items).take(at),
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
    missing = rows(
        owner[lost],
        source_id=named_id("snapshot", ids.take(pa.array(lost))),
        source_kind="retrieval_result",
        part="retrieval",
        reference=ids.take(pa.array(lost)),
        seq=seq[lost],
        row=-1,
    )
    both = pa.concat_tables([found, missing]).combine_chunks()
    owner, code = integers(both["turn"]), positions(both["source_id"], pc.unique(flat(both["source_id"])))
    first = np.sort(np.unique(np.stack([owner, code], axis=1), axis=0, return_index=True)[1])
    return both.take(pa.array(first))  # a snapshot that several events name appears once
