"""Places of rejected rows as their caller may read them: masked like the citations of the same contract.

DECISIONS is for auditors and has source and path as stored. Gives: `masked_places`, for all output to callers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...nodes.blocks.masking import class_lists, masked
from .xray import Row

__all__ = ["masked_places"]

_PLACES = ("source_id", "path")


def masked_places(decisions: Sequence[Row], contracts: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of DECISIONS of one request with `source_id` and `path` masked as its contract requires."""
    mask = next((contract["mask"] for contract in contracts), None)
    classes = class_lists(pa.array([mask] * len(decisions), pa.list_(pa.string())))
    places = {
        name: masked(pa.array([row[name] for row in decisions], pa.string()), classes).to_pylist() for name in _PLACES
    }
    return [{**row, **{name: places[name][at] for name in _PLACES}} for at, row in enumerate(decisions)]
