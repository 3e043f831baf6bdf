"""The texts of a run that show something of some rows of evidence and are removed when these rows are erased.

Note: a block contains the text of every item, so the block of a request is erased with any of its items; the citation
of an item may name the section of any of its merged rows; the value of a record may be noted on an item that is not a
record; session events are in anchors and queries of requests that do not show them; and a path stays as long as another
row has it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat, pair_codes, positions
from ...nodes.columns.list_columns import flattened, holds
from ...nodes.facts.fact_conflicts import DISAGREE
from .parts import PERSISTED, values_of

__all__ = ["StoredTables", "requests_showing", "texts_showing"]

_SHOWN = ("trimmed", "citations")
"""Tables whose rows record that something of a row of evidence reached a block."""
_PATH = "path"


class StoredTables(Protocol):
    """Tables in stored form with their texts: a run, or one shard of it."""

    @property
    def texts(self) -> pa.Table: ...

    def stored(self, name: str) -> pa.Table: ...


def texts_showing(run: StoredTables, evidence_ids: pa.Array) -> set[str]:
    """The hashes of the stored texts of a run that show something of these rows, blocks included."""
    found: list[pa.Array] = []
    requests: list[pa.Array] = []
    paths = [[pa.array([], pa.string())] for _ in range(2)]
    trimmed = run.stored("trimmed")
    shown = trimmed.filter(_hit(trimmed, evidence_ids))
    for declared in PERSISTED:
        free = declared.names(free_text=True)
        if "evidence_id" not in declared.columns or not (free or declared.name in _SHOWN):
            continue
        stored = run.stored(declared.name)
        hit = _hit(stored, evidence_ids)
        if declared.name == "citations":
            hit = pc.or_(hit, _same_items(stored, shown))
        rows = stored.filter(hit)
        found += [values_of(rows[name]) for name in free if name != _PATH]
        if _PATH in free:
            paths[0].append(flat(rows[_PATH]))
            paths[1].append(flat(stored.filter(pc.invert(hit))[_PATH]))
        if declared.name in _SHOWN:
            requests.append(flat(rows["request_id"]))
    checks = run.stored("fact_checks")
    against = checks.filter(pc.is_in(checks["record_id"], value_set=evidence_ids))
    noted = trimmed.filter(pc.and_(_same_items(trimmed, against), trimmed["fact_note"].is_valid()))
    found += [flat(against[name]) for name in ("field", "canonical", "locator")] + [flat(noted["fact_note"])]
    requests.append(flat(noted["request_id"]))
    found += _observed(run, evidence_ids)
    gone, stay = (pa.concat_arrays(each) for each in paths)
    found.append(gone.filter(pc.invert(pc.is_in(gone, value_set=stay))))
    conditions = run.stored("conditions")
    mismatches = pc.and_(
        pc.equal(conditions["condition"], "fact_mismatch"), pc.is_in(conditions["request_id"], value_set=requests[-1])
    )
    found.append(flat(conditions["message"].filter(mismatches)))
    found.append(_naming_fields(run, conditions, evidence_ids))
    blocks = run.stored("blocks")
    asked = pc.is_in(blocks["request_id"], value_set=pa.concat_arrays(requests))
    found.append(flat(blocks["text"].filter(pc.and_(asked, blocks["block_ref"].is_valid()))))
    wanted = pc.unique(pa.concat_arrays(found).drop_null())
    return set(wanted.filter(pc.is_in(wanted, value_set=flat(run.texts["sha256"]))).to_pylist())


def requests_showing(run: StoredTables, evidence_ids: pa.Array) -> pa.Array:
    """The ids of the requests whose block showed something of these rows."""
    shown = [table.filter(_hit(table, evidence_ids))["request_id"] for table in map(run.stored, _SHOWN)]
    return pc.unique(pa.concat_arrays([flat(ids) for ids in shown]))


def _naming_fields(run: StoredTables, conditions: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Messages with field names of conflicting rows, for requests with these rows as candidates, shown or not."""
    candidates = run.stored("candidates")
    asked = candidates["request_id"].filter(pc.is_in(candidates["evidence_id"], value_set=evidence_ids))
    named = pc.and_(
        pc.equal(conditions["condition"], "conflicting"), pc.is_in(conditions["request_id"], value_set=flat(asked))
    )
    naming = run.texts["sha256"].filter(pc.starts_with(run.texts["text"], DISAGREE))
    messages = flat(conditions["message"].filter(named))
    return messages.filter(pc.is_in(messages, value_set=flat(naming)))


def _observed(run: StoredTables, evidence_ids: pa.Array) -> list[pa.Array]:
    """Hashes of texts that requests took from these rows as events of their session: anchors, and queries with them.

    Which of a request's events named an anchor is not recorded, so erasing any of them removes all.
    """
    events, anchors, asked = (run.stored(name) for name in ("session_events", "anchors", "sub_queries"))
    read = pc.unique(flat(events["request_id"]).filter(_hit(events, evidence_ids)))
    named = anchors.filter(
        pc.and_(pc.equal(anchors["origin"], "session_events"), pc.is_in(anchors["request_id"], value_set=read))
    )
    rules, contracts = run.stored("plan_rules"), run.stored("contracts")
    rules = rules.filter(pa.array(holds(rules["parts"], "session")))
    asked = asked.filter(pc.is_in(asked["request_id"], value_set=pc.unique(flat(named["request_id"]))))
    purpose = contracts["purpose"].take(pa.array(positions(asked["request_id"], contracts["request_id"])))
    codes, wanted = pair_codes((purpose, asked["intent"]), (rules["purpose"], rules["intent"]))
    observed = asked.filter(pa.array(np.isin(np.asarray(codes), np.asarray(wanted))))
    return [flat(named["value"]), flat(observed["query_text"])]


def _hit(table: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Which rows refer to one of these rows of evidence, alone or merged with others."""
    hit = flat(pc.is_in(table["evidence_id"], value_set=evidence_ids))
    if "merged_rows" not in table.column_names:
        return hit
    item, member = flattened(table["merged_rows"])
    rows = pc.unique(pa.array(item).filter(pc.is_in(member, value_set=evidence_ids)))
    return pc.or_(hit, pc.is_in(pa.array(range(table.num_rows), pa.int64()), value_set=rows.cast(pa.int64())))


def _same_items(table: pa.Table, items: pa.Table) -> pa.Array:
    """Which rows belong to one of these items, by request and leading row."""
    codes, wanted = pair_codes(*((t["request_id"], t["evidence_id"]) for t in (table, items)))
    return pa.array(np.isin(np.asarray(codes), np.asarray(wanted)))
