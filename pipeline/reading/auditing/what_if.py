"""`what-if`: a snapshot, or every request of a run, under other weights, budgets, merge policy or role.

Reads: the frozen tables of a run (hits, score terms, candidates), the generation that it pinned, and the changes. Gives:
`what_if`, a `WhatIf`: the new blocks next to the stored ones, item by item. Nothing is written.

Note: an answer from frozen tables equals a fresh run, because the plan is computed again and compared first. If a
change affects recall (a role adds words, `lane_k` requests other hits, a larger pool contains rows that were not
scored), the lanes run again over the pinned generation for the affected requests, and `recalled` has the reason.
Otherwise hits and scores are never recomputed; only the words of the question are looked up, because they select the
passages of excerpts. A wider scope is not a what-if but a new request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.audit.snapshot_digest import COVERED
from ....nodes.columns.keys import flat, pair_codes, positions
from ....nodes.errors import InputError
from ....nodes.tables import ADMISSIBLE, ANCHORS, FAILURES, SESSION_EVENTS, SUB_QUERIES
from ...config.settings import Settings
from ...engines.shards import with_counters
from ...line.driver import Line, run_frozen, run_line, together
from ...line.tokenizers import registered
from ...progress import counted
from ...requests.allowed_names import AllowedNames
from ...requests.fields import GROUPS, column_of, columns_of, is_plugin_weight, place_of
from ...runs.ids import is_snapshot
from ...runs.parts import stored_tables
from ..access import audience_of, expect_reader, open_run
from ..grants import grants_now
from ..snapshots import readable_snapshots
from .difference import COMPARED, Side, item_changes, records, summarized
from .frozen_plugins import frozen_plugins, recorded_terms
from .reproduce import SHARD, differing_requests, first_difference
from .rerun import Recorded, line_of

__all__ = ["CHANGEABLE", "WhatIf", "changes_of", "what_if"]

CHANGEABLE = tuple(sorted({*GROUPS["budget"], *GROUPS["weights"], "detail", "merge_policy", "output_shape", "role"}))
"""Columns of a request that may be changed, in addition to the weights of recorded plugin terms: none of them opens a
row that the request could not see.
"""
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAN = (SUB_QUERIES, ANCHORS, SESSION_EVENTS, ADMISSIBLE)
"""The inputs of recall; if a value of these differs, the lanes run again."""


@dataclass(frozen=True)
class WhatIf:
    """The result under the changes."""

    name: str
    changes: Mapping[str, Any]
    recalled: tuple[str, ...]
    """Why lanes ran again; empty if frozen tables were enough."""
    recalled_requests: tuple[str, ...]
    """The requests for which lanes ran again."""
    before: Side = field(repr=False)
    after: Side = field(repr=False)
    tables: Mapping[str, pa.Table] = field(repr=False)
    """The tables that a run of these requests would store, texts in place."""

    @property
    def frozen(self) -> bool:
        """Whether no lane ran."""
        return not self.recalled

    @cached_property
    def items(self) -> pd.DataFrame:
        """Per item: pair, evidence_id, change, positions, locator, final scores, why."""
        return item_changes(self.before, self.after)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """Per request: ids, statuses, tokens, and how many items entered, left, moved and stayed."""
        return summarized(self.items, self.before, self.after)

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
            "recalled_requests": list(self.recalled_requests),
            "requests": records(self.requests),
            "items": records(self.items),
        }


def changes_of(pairs: Sequence[str], at: str = "--set") -> dict[str, Any]:
    """The columns and values of `NAME=VALUE` texts, such as `weights.lexical=0.4`, `max_tokens=2000` or
    `role=architect`.

    Raises:
        InputError: a name cannot be changed, or its value is invalid.
    """
    given: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError.expected("NAME=VALUE", pair, at)
        if name.strip() in given:
            raise InputError(f"Expected {name.strip()} once, got it twice - at {at}")
        given[name.strip()] = _number(value.strip())
    return changed_columns(given, at)


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


def _number(value: str) -> Any:
    """A number if the text is a JSON number; the fields check their types."""
    return json.loads(value) if _JSON_NUMBER.fullmatch(value) else value


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
    written, changes = changes, changed_columns(changes, at)
    run = open_run(settings, name)
    roles, tokenizers = run.stored("role_policies")["role"].to_pylist(), registered(settings["tokenizers"])
    known = AllowedNames({}, roles, tokenizers, recorded_terms(run))
    changes = known.expect(changes, lambda column: place_of(written, column, at), at)
    snapshot = name if is_snapshot(name) else None
    if snapshot:
        audit = audience_of(settings, run, snapshot) == "audit"
        recorded = Recorded.of(run, snapshot)
    else:
        expect_reader(settings, run)
        mine = readable_snapshots(settings, run)
        audit = all("recalled" in row for row in mine)
        recorded = Recorded.of(run).only([row["request_id"] for row in mine])
    if not recorded.requests.num_rows:
        raise InputError(
            f"Expected a request that was answered, got one that was refused when it was asked - at {name}",
            hint="`show --as xray` has the reason; ask it again as it should be",
        )
    grants = None if audit else grants_now(settings)
    given = changes if audit else {**changes, "asked_at": datetime.now(UTC)}
    asked = recorded.changed(given)
    stored = {table.name: run.table(table.name, snapshot_id=snapshot) for table in COVERED}
    scored = run.table("score_terms", texts=True, snapshot_id=snapshot)
    line = line_of(settings, run, grants=grants, models=False, plugins=frozen_plugins(run))
    frozen = with_counters(line, asked.requests)
    parts, reasons = _frozen_parts(asked, stored, scored, frozen, set(changes))
    if reasons:
        again = asked.only(sorted(reasons))
        parts += _parts_again(again, with_counters(line_of(settings, run, grants=grants), again.requests))
    order = asked.requests["request_id"]
    tables = {table.name: _in_order([part[table.name] for part in parts], order) for table in COVERED}
    pairs = {request: number for number, request in enumerate(order.to_pylist())}
    shown = stored_tables(tables, COVERED)
    before = Side.of({table: _shown(run, table, snapshot) for table in COMPARED}, pairs, audit=audit)
    after = Side.of(
        {table: tables[table] if table == "citations" else shown[table] for table in COMPARED}, pairs, audit=audit
    )
    again = tuple(request for request in order.to_pylist() if request in reasons)
    return WhatIf(name, changes, tuple(dict.fromkeys(reasons[one] for one in again)), again, before, after, tables)


def _shown(run: Any, table: str, snapshot: str | None) -> pa.Table:
    return run.table(table, texts=table == "citations", snapshot_id=snapshot)


def _frozen_parts(
    asked: Recorded, stored: Mapping[str, pa.Table], scored: pa.Table, line: Line, changes: set[str]
) -> tuple[list[dict[str, pa.Table]], dict[str, str]]:
    """The tables of the requests that frozen tables can answer, and the reason for each of the others."""
    parts, reasons = list[dict[str, pa.Table]](), dict[str, str]()
    for low in range(0, asked.requests.num_rows, SHARD):
        requests = asked.requests.slice(low, SHARD)
        while requests.num_rows:
            held = {name: _of(requests, rows) for name, rows in stored.items()}
            frozen = _Frozen(held, _of(requests, scored), changes)
            if (tables := run_frozen(requests, _of(requests, asked.captures), line, frozen)) is not None:
                parts.append(tables)
                break
            reasons |= dict.fromkeys(frozen.concerned, frozen.reason)
            concerned = pc.is_in(requests["request_id"], pa.array(sorted(frozen.concerned), pa.string()))
            requests = requests.filter(pc.invert(concerned))
    return parts, reasons


def _parts_again(asked: Recorded, line: Line) -> list[dict[str, pa.Table]]:
    """The tables of requests whose lanes run again."""
    shards = (asked.requests.slice(low, SHARD) for low in range(0, asked.requests.num_rows, SHARD))
    return [run_line(one, FAILURES.empty(), _of(one, asked.captures), line) for one in shards]


def _of(requests: pa.Table, rows: pa.Table) -> pa.Table:
    """The rows of these requests."""
    return rows.filter(pc.is_in(rows["request_id"], flat(requests["request_id"])))


def _in_order(parts: Sequence[pa.Table], requests: pa.ChunkedArray) -> pa.Table:
    """The parts of a table combined, in the order of the requests."""
    rows = together(parts)
    if len(parts) == 1:
        return rows
    place = positions(flat(rows["request_id"]), flat(requests))
    return rows.take(pa.array(np.argsort(place, kind="stable")))


@dataclass
class _Frozen:
    """Passes stored hits and score terms to the line if the plan is unchanged; else records the requests concerned."""

    stored: Mapping[str, pa.Table]
    score_terms: pa.Table
    changes: set[str]
    reason: str = ""
    concerned: Collection[str] = ()

    def __call__(self, execute: Any, frame: Any) -> Mapping[str, pa.Table] | None:
        if "role" in self.changes:
            everyone = self.stored["requests"]["request_id"].to_pylist()
            return self._recall("a role has words of its own to search with", everyone)
        planned = stored_tables(execute([table.name for table in _PLAN]), _PLAN)
        if found := first_difference(self.stored, planned, _PLAN):
            differing = differing_requests(self.stored, planned, _PLAN)
            return self._recall(f"{found.table}.{found.column or 'rows'} differs", differing)
        hits = self.stored["hits"]
        row = positions(hits["evidence_id"], frame.evidence["evidence_id"])
        if (row < 0).any():
            return self._recall("a row that was recalled is not in the corpus any more", _marked(hits, row < 0))
        at = hits.schema.get_field_index("row")
        hits = hits.set_column(at, hits.schema.field(at), pa.array(row, hits.schema.field(at).type))
        tables = execute(["candidates", "verdicts", "bounded_candidates"], hits=hits)
        bounded = tables["bounded_candidates"]
        own, known = pair_codes(*((t["request_id"], t["evidence_id"]) for t in (bounded, self.score_terms)))
        place = positions(own, known)
        if unscored := int((place < 0).sum()):
            return self._recall(
                f"{counted(unscored, 'row')} of the larger pool without stored scores", _marked(bounded, place < 0)
            )
        if len(place) < self.score_terms.num_rows:
            left = np.ones(self.score_terms.num_rows, bool)
            left[place] = False
            return self._recall("another pool: terms of feedback come from its rows", _marked(self.score_terms, left))
        terms = self.score_terms.take(pa.array(place)).combine_chunks()
        at = terms.schema.get_field_index("pool_rank")
        terms = terms.set_column(at, terms.schema.field(at), bounded["pool_rank"])
        return {"hits": hits, **tables, "score_terms": terms}

    def _recall(self, reason: str, concerned: Collection[str]) -> None:
        assert concerned, reason
        self.reason, self.concerned = reason, concerned


def _marked(rows: pa.Table, mark: np.ndarray) -> list[str]:
    """The requests of the marked rows."""
    return pc.unique(rows.filter(pa.array(mark))["request_id"]).to_pylist()
