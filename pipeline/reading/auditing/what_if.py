"""`what-if`: what a snapshot, or every request of a run, would show under other weights, budgets, merge policy or role.

Reads: the frozen tables of a run (hits, score terms, candidates), the generation that it pinned, and the changes. Gives:
`what_if`, a `WhatIf`: the new blocks beside the stored ones, item by item. Nothing is written.

Note: an answer from frozen tables equals a fresh run, because the plan is made again and compared first. Where a change
reaches recall (a role adds words, `lane_k` asks for other hits, a larger pool holds rows that were not scored), the lanes
run again over the pinned generation, and `recalled` says why. Hits and scores are never found anew otherwise; the words of
the question are looked up, because they choose the passages of what is cut. A wider scope is no what-if: it is a new request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.audit.snapshot_digest import COVERED
from ....nodes.columns.keys import flat, pair_codes, positions
from ....nodes.errors import InputError
from ....nodes.tables import ADMISSIBLE, ANCHORS, SESSION_EVENTS, SUB_QUERIES
from ...config.settings import Settings
from ...line.driver import run_frozen, run_line
from ...requests.fields import GROUPS, column_of, columns_of
from ...runs.parts import stored_tables
from ..access import audience_of, expect_reader, grants_now, open_run, readable_snapshots
from .difference import COMPARED, Side, item_changes, records, summarized
from .reproduce import SHARD, expect_stored, first_difference
from .rerun import Recorded, line_of

__all__ = ["CHANGEABLE", "WhatIf", "changes_of", "what_if"]

CHANGEABLE = tuple(sorted({*GROUPS["budget"], *GROUPS["weights"], "detail", "merge_policy", "output_shape", "role"}))
"""Columns of a request that may be changed: none of them opens a row that the request could not see."""
_PLAN = (SUB_QUERIES, ANCHORS, SESSION_EVENTS, ADMISSIBLE)
"""What recall depends on; where a value of these differs, the lanes run again."""


@dataclass(frozen=True)
class WhatIf:
    """What would have been shown."""

    name: str
    changes: Mapping[str, Any]
    recalled: tuple[str, ...]
    """Why lanes ran again, one reason per shard in which they did; empty where frozen tables were enough."""
    recalled_requests: tuple[str, ...]
    """The requests for which lanes ran again: all those of a shard in which they did."""
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
    """Columns and values of `NAME=VALUE` texts, such as `weights.lexical=0.4`, `max_tokens=2000` or `role=architect`.

    Raises:
        InputError: a name cannot be changed, or its value is not what was expected.
    """
    given: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError.expected("NAME=VALUE", pair, at)
        given[name.strip()] = _number(value.strip())
    return changed_columns(given, at)


def changed_columns(given: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Columns of a request to their new values.

    Raises:
        InputError: a name cannot be changed, or its value is not what was expected.
    """
    for name in given:
        if column_of(name) not in CHANGEABLE and name != "weights":
            raise InputError.one_of(
                [column.replace("weight_", "weights.") for column in CHANGEABLE], name, at,
                hint="principal, purpose, project and time are fixed; make a new request for another scope",
            )  # fmt: skip
    found = columns_of(given, at)
    if not found:
        raise InputError.described("at least one change", "none", at)
    return found


def _number(value: str) -> Any:
    """A number where the text is one; the fields say what they take."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def what_if(settings: Settings, name: str, changes: Mapping[str, Any]) -> WhatIf:
    """What a snapshot, or the requests of a run that the principal may read, would show under other values.

    An auditor sees it under the rights of then; anybody else under those of now, because more may be shown than before.

    Raises:
        AccessError: the principal may not read it.
        ErasedError: texts of the requests were erased.
        InputError: a column cannot be changed (`CHANGEABLE`).
        StoreError: the corpus, or the generation that the run pinned, is gone.
    """
    changes = changed_columns(changes, "changes")
    run = open_run(settings, name)
    expect_stored(run)
    snapshot = name if name.startswith("retr-snap-") else None
    if snapshot:
        audit = audience_of(settings, run, snapshot) == "audit"
        recorded = Recorded.of(run, snapshot)
    else:
        expect_reader(settings, run)
        mine = readable_snapshots(settings, run)
        audit = all("recalled" in row for row in mine)
        recorded = Recorded.of(run).only([row["request_id"] for row in mine])
    grants = None if audit else grants_now(settings)
    given = changes if audit else {**changes, "asked_at": datetime.now(UTC)}
    asked = recorded.changed(given)
    stored = {table.name: run.table(table.name, snapshot_id=snapshot) for table in COVERED}
    scored = run.table("score_terms", texts=True, snapshot_id=snapshot)
    line = line_of(settings, run, grants=grants, models=False)
    parts, reasons, again = [], list[str](), list[str]()
    for low in range(0, asked.requests.num_rows, SHARD):
        requests = asked.requests.slice(low, SHARD)
        ids = flat(requests["request_id"])
        captures = asked.captures.filter(pc.is_in(asked.captures["request_id"], ids))
        held = {table: rows.filter(pc.is_in(rows["request_id"], ids)) for table, rows in stored.items()}
        frozen = _Frozen(held, scored.filter(pc.is_in(scored["request_id"], ids)), set(changes))
        tables = run_frozen(requests, captures, line, frozen)
        if tables is None:
            reasons.append(frozen.reason)
            again += ids.to_pylist()
            whole = line_of(settings, run, grants=grants)
            tables = run_line(requests, recorded.failures.slice(0, 0), captures, whole)
        parts.append(tables)
    tables = {table.name: pa.concat_tables([part[table.name] for part in parts]) for table in COVERED}
    pairs = {request: number for number, request in enumerate(asked.requests["request_id"].to_pylist())}
    shown = stored_tables(tables, COVERED)
    before = Side.of({table: _shown(run, table, snapshot) for table in COMPARED}, pairs, audit=audit)
    after = Side.of(
        {table: tables[table] if table == "citations" else shown[table] for table in COMPARED}, pairs, audit=audit
    )
    return WhatIf(name, changes, tuple(dict.fromkeys(reasons)), tuple(again), before, after, tables)


def _shown(run: Any, table: str, snapshot: str | None) -> pa.Table:
    return run.table(table, texts=table == "citations", snapshot_id=snapshot)


@dataclass
class _Frozen:
    """Gives the stored hits and score terms to the line, where the plan is the stored one."""

    stored: Mapping[str, pa.Table]
    score_terms: pa.Table
    changes: set[str]
    reason: str = ""

    def __call__(self, execute: Any, frame: Any) -> Mapping[str, pa.Table] | None:
        if "role" in self.changes:
            return self._recall("a role has words of its own to search with")
        planned = stored_tables(execute([table.name for table in _PLAN]), _PLAN)
        if found := first_difference(self.stored, planned, _PLAN):
            return self._recall(f"{found.table}.{found.column or 'rows'} differs")
        hits = self.stored["hits"]
        row = positions(hits["evidence_id"], frame.evidence["evidence_id"])
        if (row < 0).any():
            return self._recall("a row that was recalled is not in the corpus any more")
        at = hits.schema.get_field_index("row")
        hits = hits.set_column(at, hits.schema.field(at), pa.array(row, hits.schema.field(at).type))
        tables = execute(["candidates", "verdicts", "bounded_candidates"], hits=hits)
        bounded = tables["bounded_candidates"]
        own, known = pair_codes(*((t["request_id"], t["evidence_id"]) for t in (bounded, self.score_terms)))
        place = positions(own, known)
        if unscored := int((place < 0).sum()):
            return self._recall(f"{unscored} rows of the larger pool have no stored scores")
        if len(place) < self.score_terms.num_rows:
            return self._recall("another pool: terms of feedback come from its rows")
        terms = self.score_terms.take(pa.array(place)).combine_chunks()
        at = terms.schema.get_field_index("pool_rank")
        terms = terms.set_column(at, terms.schema.field(at), bounded["pool_rank"])
        return {"hits": hits, **tables, "score_terms": terms}

    def _recall(self, reason: str) -> None:
        self.reason = reason
