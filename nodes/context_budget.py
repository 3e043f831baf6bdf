"""Context budget: the hard limit of a model input, messages and tool schemas together, for every limit from 0 up.

Reads: isolated sources, their order, turns, states, phases, counters. Gives `fitted`: the content of each input, and
which limit bound.

Note: rules, goal, state and constraints are never cut. If they alone are over the limit, the turn fails and shows
nothing. For counters that are not additive over lines, the whole input is finally rendered as the model reads it, with
its nonces, and counted; sources are dropped in trim order until it fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.token_counting import Counters
from .columns.keys import among, constants, flat, integers, pair_positions, positions
from .context_tables import (
    FITTED,
    ContextSources,
    ContextTurns,
    Fitted,
    Isolated,
    Ordering,
    PhasePolicies,
    TurnStates,
)
from .turns.fitting import (
    BODY,
    FALLBACK,
    FORMS_SHOWN,
    NOTHING,
    QUOTED,
    Candidates,
    Filled,
    Frames,
    fill,
    input_limits,
    on_demand,
    part_limits,
    required,
    tokens_of,
)
from .turns.frame import PLACE, sealed
from .turns.joining import joined
from .turns.texts import texts_of
from .turns.words import PARTS, REQUIRED_PARTS

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

_BOUNDS = ("budget_part", "budget_tokens", "carrier_dropped", "over_budget", None)
_PART, _TOKENS, _CARRIER, _FAILED, _FREE = range(len(_BOUNDS))


def fitted(
    isolated: Isolated,
    context_sources: ContextSources,
    ordering: Ordering,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    phase_policies: PhasePolicies,
    counters: Counters,
) -> Fitted:
    """The form in which every isolated source fits, in the order of the sources."""
    mine = pair_positions(
        (isolated["input_id"], isolated["source_id"]), (context_sources["input_id"], context_sources["source_id"])
    )
    at = pa.array(mine)
    turn = positions(isolated["input_id"], context_turns["input_id"])
    policy = positions(turn_states["phase"], phase_policies["phase"])
    keep = integers(ordering["keep"].take(at))
    order = np.lexsort((keep, turn))
    sources = context_sources.take(at)
    schemas = _schemas(sources, turn, context_turns, counters)
    some = _candidates(isolated, sources, ordering.take(at), schemas, turn, context_turns, counters)
    match = among(sources["source_kind"], ("search_match",))
    carrier = _carriers(isolated, match)
    limit = input_limits(context_turns)
    hard = np.stack([part_limits(context_turns, part) for part in PARTS.values], axis=1)
    shares = _shares(phase_policies, policy)
    frames = Frames.of(context_turns, counters)
    carried, found = carrier >= 0, None
    quoted = carried & match
    for _ in range(2):  # a source whose carrier is not shown is tried once more with its own text
        found = _filled(_in_place(some, carried, quoted, carrier), order, frames, limit, hard, shares)
        lost = carried & (found.shown[carrier] != BODY)
        if not lost.any():
            break
        carried, quoted = carried & ~lost, quoted & ~lost
    assert found is not None
    whole = _Whole(isolated, ordering.take(at), context_turns, counters, schemas, carried, quoted, carrier)
    shown, lost, failed = _counted_whole(found.shown, some, whole, limit, found.failed)
    spent = _in_place(some, carried, quoted, carrier).body
    tokens = np.where(shown == BODY, spent, np.where(shown == FALLBACK, some.fallback, 0))
    full = shown == BODY
    bound = np.full(len(shown), _FREE)
    total_left = some.body > limit[turn] - found.used[turn]
    bound[~full] = np.where(total_left, _TOKENS, _PART)[~full]
    bound[lost], bound[failed[turn]] = _CARRIER, _FAILED
    shown = whole.as_read(shown)
    bound[carried & (shown == FALLBACK)] = _FREE
    return FITTED.build(
        {
            "input_id": isolated["input_id"],
            "source_id": isolated["source_id"],
            "position": isolated["position"],
            "shown": constants(FORMS_SHOWN).take(pa.array(shown)),
            "tokens": tokens,
            "part_limit": _part_limit(found, hard, limit, turn, some),
            "bound_by": constants(_BOUNDS).take(pa.array(bound)),
        }
    )


def _schemas(sources: pa.Table, turn: Int, turns: pa.Table, counters: Counters) -> Int:
    """Tokens of the schema of each tool; 0 for other sources."""
    tokens = np.zeros(len(turn), dtype=np.int64)
    tool = np.flatnonzero(among(sources["source_kind"], ("tool_schema",)))
    schema = joined(flat(sources["text"]).take(pa.array(tool)), "\n")
    tokens[tool] = tokens_of(schema, turn[tool], turns, counters)
    return tokens


def _candidates(
    isolated: pa.Table, sources: pa.Table, order: pa.Table, schemas: Int, turn: Int, turns: pa.Table, counters: Counters
) -> Candidates:
    body = tokens_of(isolated["body"], turn, turns, counters) + schemas
    fallback = np.where(
        flat(isolated["fallback"]).is_valid(), tokens_of(isolated["fallback"], turn, turns, counters), -1
    )
    part = np.asarray(pc.index_in(flat(sources["part"]), value_set=constants(PARTS.values))).astype(np.int64)
    must, last = required(sources, order), on_demand(sources, order)
    return Candidates(turn, integers(isolated["section"]), part, must, body, fallback, last)


def _carriers(isolated: pa.Table, match: Bool) -> Int:
    """The row of each source's carrier; -1 if it is missing, or if a source that is not a match has no fallback."""
    asked = (isolated["input_id"], pc.fill_null(isolated["carrier"], "\0"))
    found = pair_positions(asked, (isolated["input_id"], isolated["source_id"]))
    return np.where(match | np.asarray(flat(isolated["fallback"]).is_valid()), found, -1)


def _shares(phases: pa.Table, policy: Int) -> NDArray[np.float64]:
    """[turns, parts]: the share of each part; required parts have none."""
    columns = [
        phases[part].to_numpy() if part not in REQUIRED_PARTS else np.zeros(phases.num_rows) for part in PARTS.values
    ]
    return np.stack(columns, axis=1)[policy]


def _in_place(some: Candidates, carried: Bool, quoted: Bool, carrier: Int) -> Candidates:
    """The sources, with references in place of texts that a carrier shows, and nothing in place of quoted matches."""
    return replace(
        some,
        group=np.where(quoted, some.group[carrier], np.where(carried, PLACE["references"], some.group)),
        body=np.where(quoted, 0, np.where(carried, some.fallback, some.body)),
        fallback=np.where(carried, -1, some.fallback),
    )


def _filled(some: Candidates, order: Int, frames: Frames, limit: Int, hard: Int, shares: NDArray[np.float64]) -> Filled:
    """Runs `fill` in keep order; the result is in the order of the sources."""
    sorted_ = Candidates(
        some.turn[order],
        some.group[order],
        some.part[order],
        some.required[order],
        some.body[order],
        some.fallback[order],
        some.last[order],
    )
    found = fill(sorted_, frames, limit, hard, shares)
    shown = np.empty(len(order), dtype=np.int64)
    shown[order] = found.shown
    return replace(found, shown=shown)


def _part_limit(found: Filled, hard: Int, limit: Int, turn: Int, some: Candidates) -> Int:
    """Tokens available to the part of each source: its share (required: the whole input), at most the part's limit."""
    share = np.where(some.required, limit[turn], found.share[turn, some.part])
    return np.minimum(share, hard[turn, some.part])


@dataclass(frozen=True)
class _Whole:
    """The data needed to assemble and count whole inputs."""

    isolated: pa.Table
    ordering: pa.Table
    turns: pa.Table
    counters: Counters
    schemas: Int
    carried: Bool
    quoted: Bool
    carrier: Int

    def as_read(self, shown: Int) -> Int:
        """What is shown, with a fallback for each text that a carrier already shows, and no line for a quoted match."""
        return np.where(self.carried & (shown == BODY), np.where(self.quoted, QUOTED, FALLBACK), shown)

    def tokens(self, shown: Int, some: Candidates) -> Int:
        """Tokens of both messages, as `context_messages` seals them, and of the schemas of each turn."""
        shown = self.as_read(shown)
        texts = sealed(*texts_of(shown, some.turn, some.group, self.isolated, self.ordering, self.turns))
        turn = np.arange(self.turns.num_rows)
        schemas = np.bincount(some.turn, weights=np.where(shown == BODY, self.schemas, 0), minlength=len(turn))
        return schemas.astype(np.int64) + sum(tokens_of(text, turn, self.turns, self.counters) for text in texts)


def _counted_whole(shown: Int, some: Candidates, whole: _Whole, limit: Int, failed: Bool) -> tuple[Int, Bool, Bool]:
    """Drop sources that lost their carrier and, while a non-additive counter finds an input too long, the last source
    in keep order.

    Returns what is shown, the sources that lost their carrier, and the turns that fail: their required sources alone
    are over the limit. `failed` are the turns that fail by the sum of their lines; a non-additive counter counts these
    again as a whole.
    """
    names = flat(whole.turns["tokenizer"]).dictionary_encode()
    additive = np.array([whole.counters.get(name).additive for name in names.dictionary.to_pylist()], dtype=bool)
    over = ~additive[np.asarray(names.indices).astype(np.int64)]
    lost, shown = np.zeros(len(shown), dtype=bool), shown.copy()
    keep = integers(whole.ordering["keep"])
    shown[some.required & (over & failed)[some.turn]] = BODY
    failed = failed & ~over
    while True:
        alone = whole.carried & (shown != NOTHING) & (shown[whole.carrier] != BODY)
        shown[alone], lost = NOTHING, lost | alone
        if over.any():
            over &= whole.tokens(np.where(over[some.turn], shown, NOTHING), some) > limit
        droppable = (shown != NOTHING) & ~some.required & ~whole.quoted & over[some.turn]
        if not droppable.any():
            shown[over[some.turn]] = NOTHING
            return shown, lost, failed | over
        last = np.full(len(limit), -1, dtype=np.int64)
        np.maximum.at(last, some.turn[droppable], keep[droppable])
        shown[droppable & (keep == last[some.turn])] = NOTHING
