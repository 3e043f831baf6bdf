"""What of a stored answer the present grants still admit: `within_rights` of a replay, `items_within_rights` of tables.

An answer is kept as it was given. Who reads it later reads the items that the grants now admit: one on a path that was
denied since, in a zone or of a group that was withdrawn, is left out with its texts, and a condition names it. The
block is rendered again from the items that are left.

Note: rights alone are judged again, by what was recorded of each item: the corpus may be gone. An item is judged by its
leading row: packing merges only rows of the same document and the same rights. Of a row that was not shown, too little
is recorded: once a right of its request is withdrawn, no such row appears.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import BASE, Counters
from ...nodes.columns.keys import pair_positions, positions, rows_of_runs
from ...nodes.context_projection import blocks
from ...nodes.scope.active_grants import active_grants_of, bounds_of
from ...nodes.tables import CONDITIONS, TRIMS
from ...nodes.vocabulary import ZONES
from ...nodes.walls.second_wall import granted

if TYPE_CHECKING:
    from ..runs import Replay

JUDGED_BY = ("requests", "contracts", "contract_bounds", "decisions", "item_details")
"""The tables by which rows are judged."""


def within_rights(found: Replay, grants: pa.Table) -> Replay:
    """The replay without the rows that `grants` do not admit now; its block stays if they admit all of its items."""
    tables = items_within_rights(found.tables, grants)
    if tables["item_details"].num_rows == found.tables["item_details"].num_rows:
        return replace(found, tables=tables)
    tables["blocks"] = _rendered(tables, contracts_now(found.tables, grants)[0])
    labels = found.citations.filter(pc.invert(_kept(found.citations, tables["item_details"])))["label"]
    withheld = _condition(found.request["request_id"], labels.to_pylist())
    tables["conditions"] = pa.concat_tables([tables["conditions"], withheld])
    block = tables["blocks"].to_pylist()[0]
    return replace(found, tables=tables, block=block["text"], block_ref=block["block_ref"])


def items_within_rights(tables: Mapping[str, pa.Table], grants: pa.Table) -> dict[str, pa.Table]:
    """The tables of some requests, with their texts, without the rows of evidence that `grants` do not admit now.

    Judged by `JUDGED_BY`; tables that name no rows of evidence stay.
    """
    contracts, bounds = contracts_now(tables, grants)
    as_wide = _as_wide(tables, contracts, bounds)
    if all(as_wide):
        return dict(tables)
    items = tables["item_details"]
    admitted = granted(_judged(tables), positions(items["request_id"], contracts["request_id"]), contracts, bounds)
    left, whole = items.filter(pa.array(admitted)), contracts["request_id"].filter(pa.array(as_wide))
    return {
        name: table.filter(pc.or_(pc.is_in(table["request_id"], value_set=whole.combine_chunks()), _kept(table, left)))
        if "evidence_id" in table.column_names
        else table
        for name, table in tables.items()
    }


def _as_wide(tables: Mapping[str, pa.Table], contracts: pa.Table, bounds: pa.Table) -> list[bool]:
    """Whether what the grants give each request now includes all that they gave it when it was asked."""
    then, now = (rows_of_runs(table, "request_id") for table in (tables["contract_bounds"], bounds))
    groups = dict(zip(*(tables["contracts"][name].to_pylist() for name in ("request_id", "groups")), strict=True))
    return [
        set(groups[request]) <= set(held)
        and all(any(_includes(new, old) for new in now.get(request, ())) for old in then.get(request, ()))
        for request, held in zip(*(contracts[name].to_pylist() for name in ("request_id", "groups")), strict=True)
    ]


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


def contracts_now(tables: Mapping[str, pa.Table], grants: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The contracts with the groups, and the bounds, that the grants give their requests now."""
    requests = tables["requests"]
    now = {"asked_at": datetime.now(UTC), "asked_by": None}  # who may read for whom is known by now
    held = active_grants_of([row | now for row in requests.to_pylist()], grants)
    contracts = tables["contracts"].take(positions(requests["request_id"], tables["contracts"]["request_id"]))
    return _with(contracts, "groups", [of.groups for of in held]), bounds_of(requests, held)


def _kept(rows: pa.Table, items: pa.Table) -> pa.Array:
    """Which rows are of one of these items."""
    return pa.array(pair_positions(*((table["request_id"], table["evidence_id"]) for table in (rows, items))) >= 0)


def _judged(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The facts of each item that grants bound: those of its row, its source and its path."""
    items, decisions = tables["item_details"], tables["decisions"]
    place = pair_positions(*((table["request_id"], table["evidence_id"]) for table in (items, decisions)))
    of_row = {name: decisions[name].take(pa.array(place)) for name in ("source_id", "path")}
    names = ("owner_project", "owner_user", "namespace", "zone", "lifecycle", "origin_class", "principals")
    return pa.table({**{name: items[name] for name in names}, **of_row})


def _rendered(tables: dict[str, pa.Table], contracts: pa.Table) -> pa.Table:
    """The block of the items that are left. What a fact said of an item may be of a row that is withheld now."""
    details = tables["item_details"]
    place = pa.array(range(details.num_rows), pa.int64())  # the items are the pool
    trimmed, citations, ranked = (
        table.take(positions(details["evidence_id"], table["evidence_id"])).append_column("place", place)
        for table in (tables["trimmed"], tables["citations"], tables["ranked"])
    )
    trimmed = _with(trimmed, "fact_note", pa.nulls(details.num_rows, pa.large_string()))
    pool = pa.table({"contract": positions(trimmed["request_id"], contracts["request_id"]), "row": place})
    rows = pa.table({
        **{name: citations[name] for name in ("evidence_kind", "path", "source_id", "text_sha256")},
        "title": details["title"], "authority": details["authority"], "event_time": details["updated_at"],
    })  # fmt: skip
    plain = _with(contracts, "tokenizer", [BASE] * contracts.num_rows)
    return blocks(trimmed, citations, plain, TRIMS.empty(), ranked, pool, rows, Counters())


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
