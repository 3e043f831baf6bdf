"""Context messages: the fitted sources assembled once; the model reads exactly these bytes.

Reads: a turn with its fitted sources. Gives `model_inputs`, one row.

Note: the digest covers the neutral form, both messages and tools. Provider formats are made from the same texts and
have no digest of their own. A turn that fails with `over_budget` has empty messages and the token count of its required
parts.
"""

from __future__ import annotations

import hashlib

from .context_tables import MODEL_INPUTS, ModelInputs
from .turns.fitting import shown_texts
from .turns.frame import neutral, sealed
from .turns.reading import TurnSources
from .turns.words import PARTS


def model_inputs(fitted: TurnSources) -> ModelInputs:
    """The model input; that of a failed turn is empty and counts its required parts."""
    turn, sources = fitted.turn, fitted.sources
    system, user = sealed(*shown_texts(sources, turn["fences"]))
    tools = sorted(
        (row["place"], row["heading"], row["text"])
        for row in sources
        if row["source_kind"] == "tool_schema" and row["place"] >= 0
    )
    schemas = [schema for _, _, schema in tools]
    spent = dict.fromkeys(PARTS.values, 0)
    for row in sources:
        spent[row["part"]] += row["tokens"]
    spent["frame"] = fitted.tokens - sum(spent.values())
    offered = {
        row["of"]["snapshot_id"]
        for row in sources
        if row["source_kind"] == "retrieval_result" and row["of"].get("label")
    }
    return MODEL_INPUTS.from_rows([{
        "input_id": turn["input_id"], "status": "over_budget" if fitted.failed else "ok", "system_text": system, "user_text": user,
        "tools": [name for _, name, _ in tools], "tool_schemas": "\n".join(schemas), "tokens": fitted.tokens,
        "input_sha256": hashlib.sha256(neutral(system, user, schemas).encode()).hexdigest(),
        "prefix_sha256": hashlib.sha256(system.encode()).hexdigest(), "part_tokens": [f"{part}={count}" for part, count in spent.items()],
        "snapshot_ids": sorted(offered),
    }])  # fmt: skip
