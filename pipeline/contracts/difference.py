"""The difference of two contracts: fields that say something else, and how many rows only one of them could see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.tables import CONTRACTS
from .scope import ContractScope

__all__ = ["difference"]

_APART = ("request_id", "contract_id")
IDS_SHOWN = 20
"""Evidence ids of one side that an auditor is shown."""


def difference(one: ContractScope, other: ContractScope, *, ids: bool = False) -> dict[str, Any]:
    """Fields whose values differ, and rows in one, in the other and in both; with `ids`, the first ids of each side."""
    names = [name for name in CONTRACTS.names(audience="caller") if name not in _APART]
    fields = [
        {"field": name, "a": one.contract[name], "b": other.contract[name]}
        for name in names
        if one.contract[name] != other.contract[name]
    ]
    only_a, only_b = _without(one.ids, other.ids), _without(other.ids, one.ids)
    found: dict[str, Any] = {
        "a": one.contract["contract_id"],
        "b": other.contract["contract_id"],
        "fields": fields,
        "rows": {"only_a": len(only_a), "only_b": len(only_b), "both": len(one.rows) - len(only_a)},
    }
    if ids:
        found["ids"] = {
            side: np.sort(np.asarray(some, dtype=object))[:IDS_SHOWN].tolist()
            for side, some in (("only_a", only_a), ("only_b", only_b))
        }
    return found


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))
