"""`what-if`: a snapshot, or every request of a run, under other weights, budgets, merge policy or role.

Reads: the frozen tables of a run (hits, score terms, candidates), the generation that it pinned, and the changes. Gives:
`what_if`, a `WhatIf`: the new blocks next to the stored ones, item by item. Nothing is written.

Note: an answer from frozen tables equals a fresh run, because the plan is computed again and compared first. If a
change affects recall (a role adds words, `lane_k` requests other hits, a larger pool contains rows that were not
scored), the lanes run again over the pinned generation, and `recalled` has the reason.
Otherwise hits and scores are never recomputed; only the words of the question are looked up, because they select the
passages of excerpts. A wider scope is not a what-if but a new request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.columns.keys import flat, pair_positions, positions
from ....nodes.errors import InputError
from ....nodes.tables import ADMISSIBLE, ANCHORS, FAILURES, SESSION_EVENTS, SUB_QUERIES
from ...config.settings import Settings
from ...engines.shards import with_counters
from ...line.driver import run_frozen, run_line, together
from ...line.tokenizers import registered
from ...progress import counted
from ...requests.allowed_names import AllowedNames
from ...requests.fields import GROUPS, column_of, columns_of, fields_of, is_plugin_weight
from ...runs.ids import is_snapshot
from ...runs.parts import VIEWS, stored_tables
from ..access import audience_of, expect_reader, open_run
from ..grants import grants_now
from ..snapshots import readable
from .difference import COMPARED, Changes, Side, compared_tables
from .difference import changes as compare
from .reproduce import SHARD, first_difference
from .rerun import Recorded, line_of

__all__ = ["CHANGEABLE", "WhatIf", "what_if"]

CHANGEABLE = tuple(sorted({*GROUPS["budget"], *GROUPS["weights"], "detail", "merge_policy", "output_shape", "role"}))
"""Columns of a request that may be changed, in addition to the weights of recorded plugin terms: none of them opens a
row that the request could not see.
"""
_PLAN = (SUB_QUERIES, ANCHORS, SESSION_EVENTS, ADMISSIBLE)
"""The inputs of recall; if a value of these differs, the lanes run again."""


@dataclass(frozen=True)
class WhatIf(Changes):
    """The result under the changes."""

    name: str
    changes: Mapping[str, Any]
    recalled: tuple[str, ...]
    """Why lanes ran again; empty if frozen tables were enough."""
    tables: Mapping[str, pa.Table] = field(repr=False)
    """The tables that a run of these requests would store, texts in place."""

    @property
    def frozen(self) -> bool:
        """Whether no lane ran."""
        return not self.recalled

    @property
    def blocks(self) -> dict[str, str]:
        """The new block of each request."""
        blocks = self.tables["blocks"]
        return dict(zip(blocks["request_id"].to_pylist(), blocks["text"].to_pylist(), strict=True))

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "changes": dict(self.changes),
            "frozen": self.frozen,
            "recalled": list(self.recalled),
            "requests": self.of_requests,
            "items": self.of_items,
        }


def changed_columns(given: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Columns of a request to their new values.

    Raises:
        InputError: a name cannot be changed, or its value is invalid.
    """
    for name in given:
        column = column_of(name)
        if column not in CHANGEABLE and not is_plugin_weight(column) and name != "weights":
            raise InputError.one_of(
                [column.replace("weight_", "weights.") for column in (*CHANGEABLE, "weight_PLUGIN.TERM")], name, at,
                hint="principal, purpose, project and time are fixed; make a new request for another scope",
            )  # fmt: skip
    found = columns_of(given, at)
    if not found:
        raise InputError.described("at least one change", "none", at)
    return found


def what_if(settings: Settings, name: str, changes: Mapping[str, Any], at: str = "changes") -> WhatIf:
    """Evaluate a snapshot, or the requests of a run that the principal may read, under other values.

    Auditors see it under the original rights, others under their current rights, because more may be shown than before.

    Raises:
        AccessError: the principal may not read it.
        ErasedError: texts of the requests were erased.
        InputError: a column cannot be changed (`CHANGEABLE`), a request may not have its value (`at` names the change), or
            no request was answered.
        StoreError: the corpus, or the generation that the run pinned, is gone.
    """
    places, changes = fields_of(changes, at).places, changed_columns(changes, at)
    run = open_run(settings, name)
    roles, tokenizers = run.stored("role_policies")["role"].to_pylist(), registered(settings["tokenizers"])
    known = AllowedNames({}, roles, tokenizers, run.plugin_terms)
    changes = known.expect(changes, lambda column: places.get(column, f"{at}.{column}"), at)
    snapshot = name if is_snapshot(name) else None
    if snapshot:
        audit = audience_of(settings, run, snapshot) == "audit"
        recorded = Recorded.of(run, snapshot)
    else:
        expect_reader(settings, run)
        mine = readable(settings, run)
        audit, recorded = mine.audit, Recorded.of(run).only(mine.request_ids)
    if not recorded.requests.num_rows:
        raise InputError(
            "Expected a request that was answered, got one that was refused when it was asked",
            at=name,
            hint="`show --as xray` has the reason; ask it again as it should be",
        )
    grants = None if audit else grants_now(settings)
    given = changes if audit else {**changes, "asked_at": datetime.now(UTC)}
    asked = recorded.changed(given)
    stored = {table.name: run.table(table.name, snapshot_id=snapshot) for table in VIEWS}
    stored["score_terms"] = run.table("score_terms", texts=True, snapshot_id=snapshot)
    line = with_counters(line_of(settings, run, grants=grants, models=False), asked.requests)
    parts, reasons, again = list[dict[str, pa.Table]](), list[str](), None
    for low in range(0, asked.requests.num_rows, SHARD):
        requests = asked.requests.slice(low, SHARD)
        captures = _of(requests, asked.captures)
        frozen = _Frozen({name: _of(requests, rows) for name, rows in stored.items()}, set(changes))
        tables = run_frozen(requests, captures, line, frozen)
        if tables is None:
            reasons.append(frozen.reason)
            again = again or with_counters(line_of(settings, run, grants=grants), asked.requests)
            tables = run_line(requests, FAILURES.empty(), captures, again)
        parts.append(tables)
    tables = {table.name: together([part[table.name] for part in parts]) for table in VIEWS}
    pairs = {request: number for number, request in enumerate(asked.requests["request_id"].to_pylist())}
    before = Side(compared_tables(run, grants, snapshot), pairs, audit)
    found = compare(before, Side({table: tables[table] for table in COMPARED}, pairs, audit))
    return WhatIf(found.of_items, found.of_requests, name, changes, tuple(dict.fromkeys(reasons)), tables)


def _of(requests: pa.Table, rows: pa.Table) -> pa.Table:
    """The rows of these requests."""
    return rows.filter(pc.is_in(rows["request_id"], flat(requests["request_id"])))


@dataclass
class _Frozen:
    """Passes stored hits and score terms to the line if the plan is unchanged; else says why lanes have to run."""

    stored: Mapping[str, pa.Table]
    changes: set[str]
    reason: str = ""

    def __call__(self, execute: Any, frame: Any) -> Mapping[str, pa.Table] | None:
        if "role" in self.changes:
            return self._recall("a role has words of its own to search with")
        planned = stored_tables(execute([table.name for table in _PLAN]), _PLAN)
        if found := first_difference(self.stored, planned, _PLAN):
            return self._recall(f"{found.table}.{found.column or 'rows'} differs")
        hits, terms = self.stored["hits"], self.stored["score_terms"]
        row = positions(hits["evidence_id"], frame.evidence["evidence_id"])
        if (row < 0).any():
            return self._recall("a row that was recalled is not in the corpus any more")
        asked = (hits, planned[SUB_QUERIES.name])
        sub_query = pair_positions(*((table["request_id"], table["sub_query_id"]) for table in asked))
        hits = _with(_with(hits, "row", pa.array(row)), "sub_query", pa.array(sub_query))
        tables = execute(["candidates", "verdicts", "pool"], hits=hits)
        pool = tables["pool"]
        place = pair_positions(*((table["request_id"], table["evidence_id"]) for table in (pool, terms)))
        if unscored := int((place < 0).sum()):
            return self._recall(f"{counted(unscored, 'row')} of the larger pool without stored scores")
        if len(place) < terms.num_rows:
            return self._recall("another pool: terms of feedback come from its rows")
        terms = _with(terms.take(pa.array(place)).combine_chunks(), "pool_rank", pool["pool_rank"])
        return {"hits": hits, **tables, "score_terms": terms}

    def _recall(self, reason: str) -> None:
        self.reason = reason


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, values.cast(field.type))
