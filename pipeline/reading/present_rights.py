"""What of a stored answer the present grants still admit: `within_rights` of a replay.

An answer is kept as it was given. Who reads it later reads the items that the grants now admit: one on a path that was
denied since, in a zone or of a group that was withdrawn, is left out with its texts, and a condition names it. The
block is rendered again from the items that are left.

Note: rights alone are judged again, by what was recorded of each item: the corpus may be gone. An item is judged by its
leading row; the rows merged into it are of the same version of the same document.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import BASE, Counters
from ...nodes.context_projection import blocks
from ...nodes.scope.active_grants import active_grants_of, bounds_of
from ...nodes.tables import CONDITIONS, FITS
from ...nodes.walls.second_wall import granted

if TYPE_CHECKING:
    from ..runs import Replay

__all__ = ["within_rights"]

_ITEMS = ("trimmed", "trims", "citations", "item_details")
"""Tables with a row per item of the block."""


def within_rights(found: Replay, grants: pa.Table) -> Replay:
    """The replay without the items that `grants` do not admit now; unchanged if they admit all of them."""
    items, requests = found.tables["item_details"], found.tables["requests"]
    if not items.num_rows:
        return found
    asked = _with(requests, "asked_at", [datetime.now(UTC)] * requests.num_rows)
    asked = _with(asked, "asked_by", [None] * requests.num_rows)  # who may read for whom is known by now
    held = active_grants_of(asked, grants)
    bounds = bounds_of(requests, held, ~held.granted)
    contracts = _with(found.tables["contracts"], "groups", held.groups())
    admitted = granted(_judged(found), np.zeros(items.num_rows, dtype=np.int64), contracts, bounds)
    if admitted.all():
        return found
    kept = items["evidence_id"].filter(pa.array(admitted))
    tables = dict(found.tables)
    for name in _ITEMS:
        tables[name] = tables[name].filter(pc.is_in(tables[name]["evidence_id"], value_set=kept))
    tables["blocks"] = _rendered(tables, contracts)
    withheld = found.citations.filter(pc.invert(pc.is_in(found.citations["evidence_id"], value_set=kept)))
    tables["conditions"] = pa.concat_tables([
        tables["conditions"], _condition(requests["request_id"][0].as_py(), withheld["label"].to_pylist()),
    ])  # fmt: skip
    block = tables["blocks"].to_pylist()[0]
    return replace(found, tables=tables, block=block["text"], block_ref=block["block_ref"])


def _judged(found: Replay) -> pa.Table:
    """The facts of each item that grants bound: those of its row, its source and its path."""
    items, decisions = found.tables["item_details"], found.tables["decisions"]
    place = pc.index_in(items["evidence_id"], value_set=decisions["evidence_id"])
    of_row = {name: decisions[name].take(place) for name in ("source_id", "path")}
    names = ("owner_project", "owner_user", "zone", "lifecycle", "origin_class", "principals")
    return pa.table({**{name: items[name] for name in names}, **of_row})


def _rendered(tables: dict[str, pa.Table], contracts: pa.Table) -> pa.Table:
    """The block of the items that are left. What a fact said of an item may be of a row that is withheld now."""
    trimmed, details = tables["trimmed"], tables["item_details"]
    cited = tables["citations"].take(pc.index_in(details["evidence_id"], value_set=tables["citations"]["evidence_id"]))
    trimmed = _with(trimmed, "row", pa.array(range(trimmed.num_rows), pa.int64()))
    trimmed = _with(trimmed, "fact_note", pa.nulls(trimmed.num_rows, pa.large_string()))
    rows = pa.table({
        **{name: cited[name] for name in ("evidence_kind", "path", "source_id", "text_sha256")},
        "title": details["title"], "authority": details["authority"], "event_time": details["updated_at"],
    }).take(pc.index_in(trimmed["evidence_id"], value_set=details["evidence_id"]))  # fmt: skip
    plain = _with(contracts, "tokenizer", [BASE] * contracts.num_rows)
    return blocks(trimmed, tables["citations"], plain, FITS.empty(), tables["ranked"], rows, Counters())


def _condition(request_id: str, labels: list[str]) -> pa.Table:
    message = f"withheld, since your present grants do not admit them: {', '.join(labels)}"
    return CONDITIONS.build({
        "request_id": [request_id], "condition": ["rights_withdrawn"], "subject": [""], "action": ["warn"], "message": [message],
        "audience": ["caller"],
    })  # fmt: skip


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    column = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, field.type)
    return table.set_column(place, field.with_type(column.type), column)
