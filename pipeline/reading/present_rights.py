"""An answer that was recorded is shown as it was given, or not at all: to users whose rights are no less by now.

Gives: `narrowed`, the requests that were answered under more than the grants give now: a path was denied, a zone, a group or a
source was withdrawn since. Nothing of such an answer is shown, as too little is recorded of rows that it does not show; who
may ask asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ...nodes.columns.keys import rows_of_runs
from ...nodes.scope.active_grants import active_grants_of, bounds_of
from ...nodes.vocabulary import ZONES

JUDGED_BY = ("requests", "contracts", "contract_bounds")
"""The tables that say what requests were answered under."""


def narrowed(tables: Mapping[str, pa.Table], grants: pa.Table) -> pa.Array:
    """The ids of the requests in `JUDGED_BY`, with their texts, to which these grants now give less than they had."""
    requests = tables["requests"]
    now = {"asked_at": datetime.now(UTC), "asked_by": None}  # who may read for whom is known by now
    reach = active_grants_of([row | now for row in requests.to_pylist()], grants)
    had, has = (rows_of_runs(table, "request_id") for table in (tables["contract_bounds"], bounds_of(requests, reach)))
    groups = dict(zip(*(tables["contracts"][name].to_pylist() for name in ("request_id", "groups")), strict=True))
    return pa.array(
        [
            id_
            for id_, own in zip(requests["request_id"].to_pylist(), reach, strict=True)
            if not set(groups.get(id_) or ()) <= set(own.groups)
            or not all(any(_includes(new, old) for new in has.get(id_, ())) for old in had.get(id_, ()))
        ],
        pa.string(),
    )


def _includes(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether a bound admits every row that the other one admits."""
    return (
        new["project"] == old["project"]
        and set(old["users"]) <= set(new["users"])
        and ZONES.values.index(old["zone"]) <= ZONES.values.index(new["zone"])
        and set(new["denied_paths"]) <= set(old["denied_paths"])
        and all(
            new[name] is None or (old[name] is not None and set(old[name]) <= set(new[name]))
            for name in ("sources", "paths", "namespaces", "states")
        )
    )
