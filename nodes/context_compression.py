"""Context compression: the form in which a source is shown, always with a way back to the original.

Reads: sources, selection, turns, states, phases, counters. Gives `compressed`, one row per source that the gates let
through or that the input names as left out.

Note: a summary is a projection and replaces nothing: the log and the artifacts stay unchanged, and every short form
names its original. Rules and words of the user lose no sentence: if rules exceed their share, whole sections that
contain no duty become references, and all others stay unchanged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import among, constants, flat, integers, positions, truth
from .context_tables import (
    COMPRESSED,
    Compressed,
    ContextSources,
    ContextTurns,
    PhasePolicies,
    Selection,
    TurnStates,
)
from .turns.duties import LONG_MESSAGE, LONG_SECTION, has_duty, lost
from .turns.fitting import input_limits, part_limits, tokens_of
from .turns.found_lines import FILE_SHARE, RESULT_CHARACTERS
from .turns.joining import joined

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

USER_CHARACTERS = LONG_MESSAGE
"""Longest user message that the tail of any input shows in full; the last one is always shown in full."""
USER_SHARE = 0.25
"""Longest message that the tail of a large input shows in full, in characters per token of the input's limit."""
CONSTRAINTS_SHARE = 0.25
"""Share of the input's limit for all constraints; beyond it the longest ones become references."""
_FULL, _EXCERPT, _SUMMARY, _REFERENCE, _CUT = range(5)
_FORMS = constants(("full", "excerpt", "summary", "reference", "excerpt"))
"""The names of the forms. A cut text is another kind of excerpt: beginning and end, not the most relevant parts."""


def compressed(
    context_sources: ContextSources,
    selection: Selection,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    phase_policies: PhasePolicies,
    counters: Counters,
) -> Compressed:
    """The shown form of every source that passed or is referenced, in the order of the sources."""
    passed = selection["decided_by"].is_null()
    on = pc.or_(passed, selection["referenced"])
    sources, chosen = context_sources.filter(on), selection.filter(on)
    turn = positions(sources["input_id"], context_turns["input_id"])
    policy = positions(turn_states["phase"], phase_policies["phase"])[turn]
    most = phase_policies["full_characters"].to_numpy()[policy]
    form = _forms(sources, chosen, turn, most, np.floor(input_limits(context_turns) * USER_SHARE).astype(np.int64))
    text = flat(sources["text"])
    long = np.flatnonzero(_long_rules(sources, chosen, turn, policy, context_turns, phase_policies, counters))
    form[long[~has_duty(text.take(pa.array(long)))]] = _REFERENCE
    form[_long_constraints(sources, chosen, turn, context_turns, counters)] = _REFERENCE
    form[_long_goals(sources, turn, context_turns, counters)] = _EXCERPT
    shown = _shown(sources, form, text)
    brief = np.isin(form, (_EXCERPT, _SUMMARY, _CUT))
    digest = joined("sum-", pc.utf8_slice_codeunits(text_sha256(shown), 0, 16))
    spoken = among(sources["content_class"], ("rule",)) | among(sources["standing"], ("history",))
    gone = np.zeros(sources.num_rows, dtype=np.int32)
    looked = np.flatnonzero(spoken & (form != _FULL) & ~truth(chosen["referenced"]))
    gone[looked] = lost(text.take(pa.array(looked)), shown.take(pa.array(looked)))
    return COMPRESSED.build(
        {
            "input_id": sources["input_id"],
            "source_id": sources["source_id"],
            "position": sources["position"],
            "form": _FORMS.take(pa.array(form)),
            "text": shown,
            "summary_id": pc.if_else(pa.array(brief), digest, None),
            "original_ref": pc.if_else(pa.array(form != _FULL), flat(sources["reference"]), None),
            "lost_sentences": gone,
        }
    )


def _forms(sources: pa.Table, chosen: pa.Table, turn: Int, most: Int, roomy: Int) -> Int:
    """Full if short enough, else the first available of excerpt, summary and reference."""
    kind, text = flat(sources["source_kind"]), flat(sources["text"])
    size = np.asarray(pc.fill_null(pc.utf8_length(text), 0)).astype(np.int64)
    lines = np.asarray(pc.fill_null(pc.count_substring(text, "\n"), 0)).astype(np.int64)
    from_user = among(chosen["reason_code"], ("user_message",))
    tail = among(kind, ("recent_tail", "user_message"))
    rank = np.where(from_user, integers(chosen["rank"]), np.iinfo(np.int64).max)
    first = np.full(int(turn.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, turn, rank)
    last = from_user & (rank == first[turn])
    allowed = np.full(len(size), np.iinfo(np.int64).max)
    allowed[tail] = np.where(
        last, allowed, np.where(from_user, np.maximum(USER_CHARACTERS, roomy[turn]), RESULT_CHARACTERS)
    )[tail]
    spoken = among(sources["standing"], ("hint",))
    allowed[tail & ~from_user & ~spoken & (lines > 1)] = -1  # the tail has no room for tool output
    observed = among(kind, ("latest_observation",))
    allowed[observed] = most[observed]
    file = among(kind, ("file_content", "pasted_text"))
    read = file | (observed & among(sources["observation_class"], ("file_content",)))
    allowed[read] = most[read] * FILE_SHARE
    form = np.where(size <= allowed, _FULL, _SUMMARY)
    excerpt = np.asarray(flat(sources["excerpt"]).is_valid()).astype(bool)
    form = np.where((form == _SUMMARY) & excerpt & (observed | file | from_user), _EXCERPT, form)
    summary = np.asarray(flat(sources["summary"]).is_valid()).astype(bool)
    form = np.where((form == _SUMMARY) & ~summary, _REFERENCE, form)
    form = np.where(among(kind, ("history_summary",)), _SUMMARY, form)
    form = np.where((form == _FULL) & truth(sources["cut"]), _CUT, form)
    absent = np.asarray(text.is_null()).astype(bool) & ~summary
    return np.where(truth(chosen["referenced"]) | absent, _REFERENCE, form)


def _shown(sources: pa.Table, form: Int, text: pa.Array) -> pa.Array:
    """The text of each form; where a full text is missing, as for a denial, its summary."""
    summary, excerpt = flat(sources["summary"]), flat(sources["excerpt"])
    whole = pc.coalesce(text, summary)
    return pc.choose(pa.array(form), whole, excerpt, summary, pa.nulls(len(form), pa.large_string()), whole)


def _long_constraints(sources: pa.Table, chosen: pa.Table, turn: Int, turns: pa.Table, counters: Counters) -> Int:
    """Constraints that exceed their share, the longest first, and among equals the oldest; short ones always stay."""
    mine = np.flatnonzero(
        among(sources["source_kind"], ("active_constraint",))
        & among(sources["standing"], ("instruction",))
        & np.asarray(chosen["decided_by"].is_null())
    )
    cost = tokens_of(flat(sources["text"]).take(pa.array(mine)), turn[mine], turns, counters)
    size = np.asarray(pc.fill_null(pc.utf8_length(flat(sources["text"]).take(pa.array(mine))), 0)).astype(np.int64)
    order = np.lexsort((-mine, size, turn[mine]))
    mine, cost, size = mine[order], cost[order], size[order]
    owner = turn[mine]
    so_far = np.cumsum(cost)
    first = np.r_[True, owner[1:] != owner[:-1]] if len(owner) else np.empty(0, dtype=bool)
    before = np.maximum.accumulate(np.where(first, so_far - cost, 0)) if len(owner) else so_far
    return mine[(so_far - before > CONSTRAINTS_SHARE * input_limits(turns)[owner]) & (size > LONG_SECTION)]


def _long_goals(sources: pa.Table, turn: Int, turns: pa.Table, counters: Counters) -> Int:
    """Goals that would take more than half of the input and have an excerpt."""
    mine = np.flatnonzero(
        among(sources["source_kind"], ("user_goal",)) & np.asarray(flat(sources["excerpt"]).is_valid())
    )
    cost = tokens_of(flat(sources["text"]).take(pa.array(mine)), turn[mine], turns, counters)
    return mine[2 * cost > input_limits(turns)[turn[mine]]]


def _long_rules(
    sources: pa.Table, chosen: pa.Table, turn: Int, policy: Int, turns: pa.Table, phases: pa.Table, counters: Counters
) -> Bool:
    """Repository rules of turns in which all rules together exceed their share or the limit of their part."""
    kinds = among(sources["source_kind"], ("system_rules", "repository_instructions"))
    rules = np.flatnonzero(kinds & ~truth(chosen["referenced"]))
    found = np.zeros(sources.num_rows, dtype=bool)
    if not len(rules):
        return found
    cost = tokens_of(flat(sources["text"]).take(pa.array(rules)), turn[rules], turns, counters)
    total = np.bincount(turn[rules], weights=cost, minlength=turns.num_rows)
    share = np.floor(phases["rules"].to_numpy()[policy[rules]] * input_limits(turns)[turn[rules]])
    limit = np.minimum(share, part_limits(turns, "rules")[turn[rules]])
    found[rules] = (total[turn[rules]] > limit) & among(sources["source_kind"], ("repository_instructions",))[rules]
    return found
