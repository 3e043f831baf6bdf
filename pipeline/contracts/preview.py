"""Preview: how many rows a contract could see, by source, class, zone, lifecycle and time. Counts no other rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import gathered
from .scope import ContractScope

__all__ = ["preview"]

_COUNTED = {
    "project": "owner_project",
    "source": "source_id",
    "origin_class": "origin_class",
    "evidence_kind": "evidence_kind",
    "zone": "zone",
    "lifecycle": "lifecycle",
}


def preview(scope: ContractScope) -> dict[str, Any]:
    """The number of visible rows, in total and per value of some columns, the most frequent first.

    `month` is that of the event time, else of the recorded time, in UTC.
    """
    counts = {name: _counts(scope.column(column)) for name, column in _COUNTED.items()}
    recorded = gathered(scope.frame.placements["recorded_time"], scope.placement)
    happened = pc.coalesce(scope.column("event_time"), recorded)
    months = _counts(pc.strftime(happened, format="%Y-%m"))
    return {
        "contract_id": scope.contract["contract_id"],
        "denied_reason": scope.contract["denied_reason"],
        "rows": len(scope.rows),
        "documents": pc.count_distinct(scope.column("path"), mode="only_valid").as_py(),
        "by": {**counts, "month": dict(sorted(months.items()))},
    }


def _counts(column: pa.Array) -> dict[str, int]:
    counted = pc.value_counts(column)
    found = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
    return dict(sorted(((str(value), count) for value, count in found.items()), key=lambda pair: (-pair[1], pair[0])))
