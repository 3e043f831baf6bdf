"""Context messages: the fitted sources assembled once; the model reads exactly these bytes.

Reads: fitted and isolated sources, their order, turns. Gives `model_inputs`, one row per turn.

Note: the digest covers the neutral form, both messages and tools. Provider formats are made from the same texts and
have no digest of their own. A turn that fails with `over_budget` has empty messages and the token count of its required
parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .blocks.token_counting import BASE, Counters
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
from .turns.fitting import BODY, NONE, input_limit, is_required, shown_texts, tokens_of
from .turns.frame import neutral, sealed
from .turns.reading import with_sources
from .turns.words import PARTS

Row = Mapping[str, Any]


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
    sources, lines, order, fits = (table.to_pylist() for table in (context_sources, isolated, ordering, fitted))
    items = retrieved_items.select(["snapshot_id", "label"]).to_pylist()
    made = [
        _input(turn, sources[part], lines[part], order[part], fits[part], items)
        for turn, part in with_sources(context_turns, context_sources)
    ]
    ids = [row["input_id"] for row in made]
    texts = [[row.pop(name) for row in made] for name in ("counted_system", "counted_user", "counted_tools")]
    system, user, tools = (tokens_of(each, ids, context_turns, counters) for each in texts)
    counts = system + user + tools
    for row, whole in zip(made, counts, strict=True):
        row["tokens"] = int(whole)
        row["part_tokens"] = [
            *row["part_tokens"],
            f"frame={int(whole) - sum(int(each.split('=')[1]) for each in row['part_tokens'])}",
        ]
    return MODEL_INPUTS.from_rows(made)


def _input(
    turn: Row, sources: list[Row], lines: list[Row], order: list[Row], fits: list[Row], items: list[Row]
) -> dict[str, Any]:
    shown = [fit["shown"] for fit in fits]
    failed = any(fit["bound_by"] == "over_budget" for fit in fits)
    system, user = sealed(*shown_texts(shown, lines, order, turn["fences"]))
    needed = shown
    if failed:  # nothing of it is shown, but its required size is reported
        needed = [BODY if is_required(source, line) else NONE for source, line in zip(sources, lines, strict=True)]
    counted = sealed(*shown_texts(needed, lines, order, turn["fences"])) if failed else (system, user)
    tools = sorted(
        (rank["place"], source["heading"], source["text"])
        for source, rank, form in zip(sources, order, shown, strict=True)
        if source["source_kind"] == "tool_schema" and form != NONE
    )
    schemas = [schema for _, _, schema in tools]
    spent = dict.fromkeys(PARTS.values, 0)
    for source, fit, form in zip(sources, fits, needed, strict=True):
        spent[source["part"]] += fit["tokens"] if form != NONE else 0
    offered = {items[source["row"]]["snapshot_id"] for source in sources
               if source["source_kind"] == "retrieval_result" and source["row"] >= 0 and items[source["row"]]["label"] is not None}  # fmt: skip
    whole = neutral(system, user, schemas)
    return {
        "input_id": turn["input_id"], "status": "over_budget" if failed else "ok", "system_text": system, "user_text": user,
        "tools": [name for _, name, _ in tools], "tool_schemas": "\n".join(schemas),
        "input_sha256": hashlib.sha256(whole.encode()).hexdigest(), "prefix_sha256": hashlib.sha256(system.encode()).hexdigest(),
        "part_tokens": [f"{part}={count}" for part, count in spent.items()], "tokenizer": turn["tokenizer"],
        "upper_bound": turn["tokenizer"] == BASE, "input_limit": input_limit(turn), "snapshot_ids": sorted(offered),
        "counted_system": counted[0], "counted_user": counted[1], "counted_tools": "".join(f"{schema}\n" for schema in schemas),
    }  # fmt: skip
