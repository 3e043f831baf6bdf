"""`verify --rerun`: the requests of a run executed again at the generation that it pinned, and the first value that differs.

Reads: a stored run, its corpus, the current policies, models and tokenizers. Gives: `reproduced`, a `Reproduction` that
names the first table, row and column that differs, and what changed since: corpus, policies, code, models, packages.

Note: the tables decide, not the digests. A snapshot digest covers the code version, so it differs under another version
even if every value is the same; `same` is then True and `changed` names the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.columns.keys import flat
from ....nodes.schema import Table
from ...config.policies.tables import load_policies
from ...config.settings import Settings
from ...line.driver import Line
from ...line.provenance import package_versions, parts_of
from ...runs.parts import VIEWS, home_of, stored_whole, viewed
from ..access import opened
from ..snapshots import Readable
from .rerun import Recorded, line_of

_NOT_COMPARED = {"contracts": ("contract_id",), "snapshots": ("contract_id", "snapshot_digest")}
"""Digests over other columns, the code and the models; `changed` names those that differ."""


@dataclass(frozen=True)
class TableDifference:
    """The first value that differs: stored and computed, free text as SHA-256."""

    table: str
    row: dict[str, Any]
    """The key of the row; `request_id` first."""
    column: str | None
    """None if the whole row is missing or extra."""
    stored: Any
    computed: Any


@dataclass(frozen=True)
class Reproduction:
    """The result of executing a run again."""

    run_id: str
    snapshots: int
    same: bool
    first: TableDifference | None
    changed: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """Parts of the provenance that changed, with their value then and now."""
    problems: tuple[str, ...] = ()
    """What `verify corpus` says of the generation, if a value differs."""

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        first = self.first and {
            "table": self.first.table, "row": self.first.row, "column": self.first.column,
            "stored": self.first.stored, "computed": self.first.computed,
        }  # fmt: skip
        changed = {part: {"stored": old, "now": new} for part, (old, new) in self.changed.items()}
        return {
            "run_id": self.run_id, "snapshots": self.snapshots, "same": self.same, "first_difference": first,
            "changed": changed, "problems": list(self.problems),
        }  # fmt: skip


def reproduced(settings: Settings, name: str) -> Reproduction:
    """Execute a run, or one snapshot, again and compare every table with the stored one.

    Raises:
        AccessError: the principal does not audit the snapshot, or every snapshot of the run.
        ErasedError: texts of the requests were erased.
        ModelError: a model or tokenizer of the run cannot be loaded.
        StoreError: the corpus, or the generation that the run pinned, is gone.
    """
    hint = "reproduction compares everything that was decided, which only auditors of the projects may read"
    seen = opened(settings, name, auditors=hint)
    run, recorded = seen.run, Recorded.of(seen)
    line = line_of(settings, run, policies=load_policies(settings["policies"], settings["weights"]))
    first = _compared(seen, recorded, line)
    problems = tuple(line.corpus.verify()) if first else ()
    return Reproduction(
        run.run_id, recorded.captures.num_rows, first is None, first, changed_since(run, line), problems
    )


def first_difference(
    stored: Mapping[str, pa.Table], computed: Mapping[str, pa.Table], tables: Sequence[Table] = VIEWS
) -> TableDifference | None:
    """The first value that differs between two sets of tables in stored form, in the order of the line; None if none does.

    Only columns that digests cover are compared, whatever the order of the rows.
    """
    return next((found for table in tables if (found := _table_difference(table, stored, computed))), None)


def _table_difference(
    table: Table, stored: Mapping[str, pa.Table], computed: Mapping[str, pa.Table]
) -> TableDifference | None:
    covered = dict.fromkeys([*table.key, *_covered(table)])
    was, now = (
        tables[table.name].select(list(covered)).sort_by([(name, "ascending") for name in table.key])
        for tables in (stored, computed)
    )
    if was.equals(now):
        return None
    ours, theirs = ({tuple(row[name] for name in table.key): row for row in rows.to_pylist()} for rows in (was, now))
    for key in sorted(ours | theirs, key=str):
        one, other = ours.get(key), theirs.get(key)
        if one != other:
            column = next((name for name in covered if one[name] != other[name]), None) if one and other else None
            values = (row and (row[column] if column else "row") for row in (one, other))
            return TableDifference(table.name, dict(zip(table.key, key, strict=True)), column, *values)
    return None  # equal values whose columns differ in nullability


def _covered(table: Table) -> list[str]:
    left_out = _NOT_COMPARED.get(table.name, ())
    return [name for name, column in table.columns.items() if column.digest and name not in left_out]


def _compared(seen: Readable, recorded: Recorded, line: Line) -> TableDifference | None:
    """The first difference over shards of the run's requests."""
    stored = {table.name: seen.run.table(table.name, snapshot_id=seen.snapshot) for table in VIEWS}
    for tables in recorded.executed(line):
        ids, whole = flat(tables["snapshots"]["request_id"]), stored_whole(tables)
        computed = {table.name: viewed(whole[home_of(table.name)], table.name) for table in VIEWS}
        mine = {name: table.filter(pc.is_in(table["request_id"], ids)) for name, table in stored.items()}
        if found := first_difference(mine, computed):
            return found
    return None


def changed_since(run: Any, line: Line) -> dict[str, tuple[str | None, str | None]]:
    """The parts of the provenance, and versions of packages, that changed."""
    then, now = parts_of(run.provenance), parts_of(line.provenance)
    parts = {part: (then.get(part), now.get(part)) for part in sorted(then | now) if then.get(part) != now.get(part)}
    installed, before = package_versions(), run.settings.get("packages") or {}
    for package in sorted(before):
        if before[package] != installed.get(package):
            parts[f"package {package}"] = (before[package], installed.get(package))
    return parts
