"""Context compression: in which form a source is shown, never without a way back to the original.

Reads: sources, selection, turns, states, phases, counters. Gives `compressed`, one row per source that the gates let through
or that the input names as left out.

What one would otherwise get wrong: a summary is a projection and replaces nothing: the log and the artifacts stand as they
are, and every short form names where the original is. Rules that are too long for their share are cut to their duties, all of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import among, constants, flat, positions, truth
from .columns.ragged import Ragged
from .context_tables import (
    COMPRESSED,
    Compressed,
    ContextSources,
    ContextTurns,
    PhasePolicies,
    Selection,
    TurnStates,
)
from .turns.duties import duties_only, lost
from .turns.filling import input_limits, part_limits, tokens_of
from .turns.joining import joined
from .turns.words import FORMS

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

TAIL_CHARACTERS = 240
"""Longest text of a tool or of the model that stands in the tail as it is."""
USER_CHARACTERS = 1_200
"""Longest message of a user that stands in the tail as it is."""
FILE_SHARE = 4
"""A file may have so many times the characters of an observation."""
_FULL, _EXCERPT, _SUMMARY, _REFERENCE = range(4)


def compressed(
    context_sources: ContextSources,
    selection: Selection,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    phase_policies: PhasePolicies,
    counters: Counters,
) -> Compressed:
    """The shown form of every source that goes on, in the order of the sources."""
    passed = selection["decided_by"].is_null()
    on = pc.or_(passed, selection["referenced"])
    sources, chosen = context_sources.filter(on), selection.filter(on)
    turn = positions(sources["input_id"], context_turns["input_id"])
    policy = positions(turn_states["phase"], phase_policies["phase"])[turn]
    most = phase_policies["full_characters"].to_numpy()[policy]
    form = _forms(sources, chosen, most)
    text = flat(sources["text"])
    duties = _long_rules(sources, turn, policy, context_turns, phase_policies, counters)
    shown = _shown(sources, form, text)
    if duties.any():
        short = Ragged.of(text.filter(pa.array(duties)).cast(pa.string())).expand(lambda rule: [duties_only(rule)])
        shorter = pa.array(short.vocabulary.take(pa.array(short.codes))).cast(pa.large_string())
        form[duties] = np.where(np.asarray(pc.equal(shorter, text.filter(pa.array(duties)))), _FULL, _SUMMARY)
        shown = pc.replace_with_mask(shown, pa.array(duties), shorter)
    brief = np.isin(form, (_EXCERPT, _SUMMARY))
    digest = joined("sum-", pc.utf8_slice_codeunits(text_sha256(shown), 0, 16))
    spoken = among(sources["content_class"], ("rule",)) | among(sources["source_kind"], ("history_summary",))
    gone = np.zeros(sources.num_rows, dtype=np.int32)
    looked = np.flatnonzero(brief & spoken)
    gone[looked] = lost(text.take(pa.array(looked)), shown.take(pa.array(looked)))
    return COMPRESSED.build(
        {
            "input_id": sources["input_id"],
            "source_id": sources["source_id"],
            "position": sources["position"],
            "form": constants(FORMS.values).take(pa.array(form)),
            "text": shown,
            "summary_id": pc.if_else(pa.array(brief), digest, None),
            "original_ref": pc.if_else(pa.array(form != _FULL), flat(sources["reference"]), None),
            "lost_duties": gone,
        }
    )


def _forms(sources: pa.Table, chosen: pa.Table, most: Int) -> Int:
    """Full where it is short enough, else an excerpt where there is one, else a summary, else a reference."""
    kind, text = flat(sources["source_kind"]), flat(sources["text"])
    size = np.asarray(pc.fill_null(pc.utf8_length(text), 0)).astype(np.int64)
    lines = np.asarray(pc.fill_null(pc.count_substring(text, "\n"), 0)).astype(np.int64)
    said = among(sources["standing"], ("history",))
    tail = among(kind, ("recent_tail",))
    allowed = np.full(len(size), np.iinfo(np.int64).max)
    allowed[tail] = np.where(said, USER_CHARACTERS, TAIL_CHARACTERS)[tail]
    allowed[tail & ~said & (lines > 1)] = -1  # the tail has no room for the output of tools
    observed = among(kind, ("latest_observation",))
    allowed[observed] = most[observed]
    file = among(kind, ("file_content",))
    allowed[file] = most[file] * FILE_SHARE
    form = np.where(size <= allowed, _FULL, _SUMMARY)
    excerpt = np.asarray(flat(sources["excerpt"]).is_valid()).astype(bool)
    form = np.where((form == _SUMMARY) & excerpt & (observed | file), _EXCERPT, form)
    summary = np.asarray(flat(sources["summary"]).is_valid()).astype(bool)
    form = np.where((form == _SUMMARY) & ~summary, _REFERENCE, form)
    form = np.where(among(kind, ("history_summary",)), _SUMMARY, form)
    absent = np.asarray(text.is_null()).astype(bool) & ~summary
    return np.where(truth(chosen["referenced"]) | absent, _REFERENCE, form)


def _shown(sources: pa.Table, form: Int, text: pa.Array) -> pa.Array:
    """The words of each form; a full text that is none, as of a denial, is its summary."""
    summary, excerpt = flat(sources["summary"]), flat(sources["excerpt"])
    whole = pc.coalesce(text, summary)
    return pc.choose(pa.array(form), whole, excerpt, summary, pa.nulls(len(form), pa.large_string()))


def _long_rules(
    sources: pa.Table, turn: Int, policy: Int, turns: pa.Table, phases: pa.Table, counters: Counters
) -> Bool:
    """Repository rules of turns in which all rules together are longer than their share, or than the limit of their part."""
    rules = np.flatnonzero(among(sources["source_kind"], ("system_rules", "repository_instructions")))
    found = np.zeros(sources.num_rows, dtype=bool)
    if not len(rules):
        return found
    cost = tokens_of(flat(sources["text"]).take(pa.array(rules)), turn[rules], turns, counters)
    total = np.bincount(turn[rules], weights=cost, minlength=turns.num_rows)
    share = np.floor(phases["rules"].to_numpy()[policy[rules]] * input_limits(turns)[turn[rules]])
    limit = np.minimum(share, part_limits(turns, "rules")[turn[rules]])
    found[rules] = (total[turn[rules]] > limit) & among(sources["source_kind"], ("repository_instructions",))[rules]
    return found
