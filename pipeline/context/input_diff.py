"""Input diff: the difference between two model inputs in sources, tokens and lines. Gives `difference`."""

from __future__ import annotations

import difflib
import re
from typing import Any

from .projection import Projection

__all__ = ["difference"]


def difference(first: Projection, second: Projection) -> dict[str, Any]:
    """The difference between two inputs: sources, tokens, and lines."""
    rows = [{row["source_id"]: row for row in each.decisions} for each in (first, second)]
    shown = [{id_: row for id_, row in each.items() if row["mode"] != "none"} for each in rows]
    changed = [
        {"source_id": id_, **{name: [rows[0][id_][name], rows[1][id_][name]] for name in ("action", "mode", "reason_code") if rows[0][id_][name] != rows[1][id_][name]}}
        for id_ in rows[0].keys() & rows[1].keys()
        if any(rows[0][id_][name] != rows[1][id_][name] for name in ("action", "mode", "reason_code"))
    ]  # fmt: skip
    lines = difflib.unified_diff(_lines(first), _lines(second), first.input_id, second.input_id, lineterm="", n=1)
    return {
        "inputs": [first.input_id, second.input_id],
        "same_input": first.input_sha256 == second.input_sha256,
        "same_prefix": first.model_input["prefix_sha256"] == second.model_input["prefix_sha256"],
        "phase": [first.state["phase"], second.state["phase"]],
        "tokens": [first.estimated_tokens, second.estimated_tokens],
        "part_tokens": {
            name: [count, second.part_tokens[name]]
            for name, count in first.part_tokens.items()
            if count != second.part_tokens[name]
        },
        "only_in_first": sorted(shown[0].keys() - shown[1].keys()),
        "only_in_second": sorted(shown[1].keys() - shown[0].keys()),
        "changed": sorted(changed, key=lambda each: each["source_id"]),
        "warnings": [sorted(first.conditions), sorted(second.conditions)],
        "diff": list(lines),
    }


def _lines(seen: Projection) -> list[str]:
    """The lines of an input without its nonces, which differ whenever anything does."""
    return re.sub(
        r"(?m)^(</?[a-z_]+|==== (?:begin|end) [a-z ]+?) [a-z]{7}(?= source=|>| ====)", r"\1", seen.text()
    ).splitlines()
