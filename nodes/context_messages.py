"""Context messages: the fitted sources assembled once; the model reads exactly these bytes.

Reads: fitted and isolated sources, their order, turns. Gives `model_inputs`, one row per turn.

Note: the digest covers the neutral form, both messages and tools. Provider formats are made from the same texts and
have no digest of their own. A turn that fails with `over_budget` has empty messages and the token count of its required
parts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.token_counting import BASE, Counters
from .columns.digests import text_sha256
from .columns.keys import among, constants, flat, integers, pair_positions, positions
from .columns.ragged import starts_of
from .context_tables import (
    MODEL_INPUTS,
    ContextSources,
    ContextTurns,
    Fitted,
    Isolated,
    ModelInputs,
    Ordering,
    RetrievedItems,
)
from .turns.fitting import BODY, FORMS_SHOWN, input_limits, required, tokens_of
from .turns.frame import neutral, sealed
from .turns.joining import joined
from .turns.texts import texts_of
from .turns.words import PARTS


def model_inputs(
    fitted: Fitted,
    isolated: Isolated,
    ordering: Ordering,
    context_sources: ContextSources,
    context_turns: ContextTurns,
    retrieved_items: RetrievedItems,
    counters: Counters,
) -> ModelInputs:
    """One model input per turn, in turn order; that of a failed turn is empty and counts its required parts."""
    turns = context_turns.num_rows
    turn = positions(fitted["input_id"], context_turns["input_id"])
    at = pa.array(
        pair_positions(
            (fitted["input_id"], fitted["source_id"]), (context_sources["input_id"], context_sources["source_id"])
        )
    )
    sources, order = context_sources.take(at), ordering.take(at)
    shown = np.asarray(pc.index_in(flat(fitted["shown"]), value_set=constants(FORMS_SHOWN))).astype(np.int64)
    section = integers(isolated["section"])
    system, user = sealed(*texts_of(shown, turn, section, isolated, order, context_turns))
    failed = np.zeros(turns, dtype=bool)
    failed[turn[among(fitted["bound_by"], ("over_budget",))]] = True
    wanted = np.flatnonzero(failed[turn] & required(sources, order))
    spent = integers(fitted["tokens"])
    counted_texts = system, user
    if failed.any():  # nothing of it is shown, but its required size is reported
        needed = shown.copy()
        needed[wanted] = BODY
        spent = spent.copy()
        spent[wanted] = tokens_of(isolated["body"].take(pa.array(wanted)), turn[wanted], context_turns, counters)
        counted_texts = sealed(*texts_of(needed, turn, section, isolated, order, context_turns))
    tool = np.flatnonzero(among(sources["source_kind"], ("tool_schema",)) & (shown > 0))
    tool = tool[np.lexsort((integers(order["place"])[tool], turn[tool]))]
    starts = starts_of(np.bincount(turn[tool], minlength=turns))
    names = pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), flat(sources["heading"]).take(pa.array(tool)).cast(pa.string())
    )
    lists = pa.LargeListArray.from_arrays(pa.array(starts), flat(sources["text"]).take(pa.array(tool)))
    first, second = (tokens_of(text, np.arange(turns), context_turns, counters) for text in counted_texts)
    schema = joined(flat(sources["text"]).take(pa.array(tool)), "\n")
    schemas = np.bincount(
        turn[tool], weights=tokens_of(schema, turn[tool], context_turns, counters), minlength=turns
    ).astype(np.int64)
    whole = neutral(system, user, pc.binary_join(lists, pa.scalar(",", pa.large_string())))
    return MODEL_INPUTS.build(
        {
            "input_id": context_turns["input_id"],
            "status": pc.if_else(pa.array(failed), "over_budget", "ok"),
            "system_text": system,
            "user_text": user,
            "tools": names,
            "tool_schemas": pc.binary_join(lists, pa.scalar("\n", pa.large_string())),
            "input_sha256": text_sha256(whole),
            "prefix_sha256": text_sha256(system),
            "tokens": first + second + schemas,
            "part_tokens": _part_tokens(spent, sources, turn, first + second + schemas),
            "tokenizer": context_turns["tokenizer"],
            "upper_bound": pc.equal(context_turns["tokenizer"], BASE),
            "input_limit": input_limits(context_turns),
            "snapshot_ids": _snapshots(context_sources, context_turns, retrieved_items),
        }
    )


def _part_tokens(spent: np.ndarray, sources: pa.Table, turn: np.ndarray, whole: np.ndarray) -> pa.Array:
    """`part=tokens` of every turn; the remaining tokens count as `frame`."""
    part = np.asarray(pc.index_in(flat(sources["part"]), value_set=constants(PARTS.values))).astype(np.int64)
    width = len(PARTS.values)
    sums = np.bincount(turn * width + part, weights=spent, minlength=len(whole) * width).astype(np.int64)
    sums = sums.reshape(-1, width)
    table = np.column_stack([sums, whole - sums.sum(axis=1)]).reshape(-1)
    names = constants((*PARTS.values, "frame")).take(pa.array(np.tile(np.arange(width + 1), len(whole))))
    words = joined(names, pc.cast(pa.array(table), pa.string()), between="=")
    return pa.ListArray.from_arrays(pa.array(np.arange(len(whole) + 1) * (width + 1), pa.int32()), words)


def _snapshots(sources: pa.Table, turns: pa.Table, items: pa.Table) -> pa.Array:
    """The snapshots whose items were offered to each input, kept or not, sorted."""
    offered = np.flatnonzero(among(sources["source_kind"], ("retrieval_result",)) & (integers(sources["row"]) >= 0))
    row = integers(sources["row"])[offered]
    some = np.asarray(flat(items["label"]).is_valid()).astype(bool)[row]  # an empty snapshot has a row without an item
    row, offered = row[some], offered[some]
    names = pc.unique(flat(items["snapshot_id"])).sort()
    code = positions(flat(items["snapshot_id"]).take(pa.array(row)), names)
    turn = positions(flat(sources["input_id"]).take(pa.array(offered)), turns["input_id"])
    pairs = np.unique(np.stack([turn, code], axis=1), axis=0)
    starts = starts_of(np.bincount(pairs[:, 0], minlength=turns.num_rows))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), names.take(pa.array(pairs[:, 1])))
