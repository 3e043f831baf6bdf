"""`sql`: queries the tables of runs with DuckDB, with predefined views, for operators.

Reads: every table of one or more runs, texts in place. Gives: `queried`, the result as an Arrow table; `rows_of` it; `VIEWS`.

Note: SQL sees whole tables, withheld rows included, so it is for those who audit every snapshot of a run. A query reads
only the tables it names: files, networks, extensions and settings are disabled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ....nodes.errors import InputError, StoreError
from ....nodes.tables import TABLES
from ...config.settings import Settings
from ...extras import package
from ...runs.parts import READABLE
from ..access import opened
from ..across_runs import read_each
from ..snapshots import readable


class View(NamedTuple):
    """A predefined view: its description and its SQL."""

    doc: str
    sql: str


_KEY = "using (run_id, request_id)"
VIEWS: Mapping[str, View] = {
    "questions": View(
        "what was asked, and how it ended",
        f"select run_id, request_id, snapshot_id, status, question, project, principal, purpose, as_of from snapshots "
        f"join requests {_KEY}",
    ),
    "items": View(
        "every item that was shown, with its place, score and citation",
        "select run_id, request_id, trimmed.position, trimmed.label, evidence_id, locator, trimmed.form, tokens, "
        "ranked.rank, ranked.final, selected_reason, visible_text from trimmed "
        "join citations using (run_id, request_id, evidence_id, label) "
        "left join ranked using (run_id, request_id, evidence_id)",
    ),
    "scores": View(
        "the contributions to the score of each ranked row, one row per term",
        "unpivot (select * exclude (selected_reason) from ranked) "
        "on columns(* exclude (run_id, request_id, evidence_id, rank, final)) into name term value contribution",
    ),
    "losses": View(
        "how many candidates each stage and reason lost, per request",
        "select run_id, request_id, stage, reason_code, outcome, count(*) as rows from decisions "
        "where outcome <> 'selected' group by all",
    ),
    "budgets": View(
        "tokens and characters used and allowed, and which limit bound",
        f"select run_id, request_id, blocks.tokens, max_tokens, chars, max_chars, items, max_items, blocks.bound_by, "
        f"blocks.tokenizer from blocks join (select run_id, request_id, max_chars, max_items from contracts) {_KEY} "
        f"join (select run_id, request_id, max_tokens from snapshots) {_KEY}",
    ),
}
"""The predefined views by name."""


def queried(settings: Settings, query: str, runs: Sequence[str] = ()) -> pa.Table:
    """The result of a query over runs, by default all finished ones that the principal audits completely.

    Tables are those of a run (`docs/data-dictionary.md`), each with the column `run_id`, and those of `VIEWS`.

    Raises:
        AccessError: the principal does not audit every snapshot of a run.
        InputError: DuckDB refuses the query.
        ModelError: the extra `sql` is not installed.
    """
    duckdb = package("duckdb", "sql")
    named = named_in(query)
    tables = tables_of(settings, named, runs)
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    with duckdb.connect(config=config) as connection:
        connection.execute("set timezone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        for name, view in VIEWS.items():
            if {*tables_in(view.sql)} <= tables.keys():
                connection.execute(f"create view {name} as {view.sql}")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        try:
            found = connection.sql(query)
            return pa.table({"done": [True]}) if found is None else _named_once(found.to_arrow_table())
        except duckdb.Error as error:
            message = re.split("\n\n|\nDid you mean", str(error))[0].replace("\n", " ")
            raise InputError(
                f"Expected a query over tables of runs, got {message}",
                at="QUERY",
                hint=_hint(any_run=bool(tables) or not named),
            ) from error


def rows_of(found: pa.Table) -> list[dict[str, Any]]:
    """The rows of a result as Python values.

    Raises:
        InputError: a column has dates or times that Python lacks.
    """
    columns = {}
    for name, column in zip(found.column_names, found.columns, strict=True):
        try:
            columns[name] = column.to_pylist()
        except (OverflowError, ValueError) as error:
            raise InputError.described(
                "dates from the year 1 to 9999", "others", f"column {name}", hint=f'cast it: "{name}"::varchar'
            ) from error
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _named_once(found: pa.Table) -> pa.Table:
    """The result with unique column names: the second `a` is `a_1`, as in a table that DuckDB creates."""
    names: list[str] = []
    for name in found.column_names:
        place, unique = 0, name
        while unique in names:
            place, unique = place + 1, f"{name}_{place + 1}"
        names.append(unique)
    return found.rename_columns(names)


def named_in(query: str) -> list[str]:
    """The tables that a query may read: those it names, and those of the views it names."""
    return tables_in(" ".join([query, *(view.sql for name, view in VIEWS.items() if name in _words(query))]))


def tables_in(query: str) -> list[str]:
    """The tables that a query names."""
    return [name for name in (*(table.name for table in READABLE), "texts") if name in _words(query)]


def _words(query: str) -> set[str]:
    return set(re.findall(r"[a-z_]+", query.lower()))


def tables_of(settings: Settings, names: Sequence[str], runs: Sequence[str] = ()) -> dict[str, pa.Table]:
    """Tables of runs, texts in place, each with a first column `run_id`.

    Raises:
        AccessError: the principal does not audit every snapshot of a named run.
    """
    hint = "SQL sees whole tables; `show` and `diff` have what you may see of a snapshot"
    audited = [opened(settings, name, auditors=hint).run for name in runs] if runs else _all_audited(settings)
    return {name: pa.concat_tables([_with_run(run, name) for run in audited], promote_options="permissive")
            for name in names if audited}  # fmt: skip


def _with_run(run: Any, name: str) -> pa.Table:
    table = run.texts if name == "texts" else run.table(name, texts=bool(TABLES[name].names(free_text=True)))
    return table.add_column(0, "run_id", pa.array([run.run_id] * table.num_rows, pa.string()))


def _all_audited(settings: Settings) -> list[Any]:
    from ...runs import Runs

    damaged = dict[str, str]()
    store = Runs(settings["runs"], create=False)
    found = [
        run for run, whole in read_each(settings, store, lambda run: readable(settings, run).whole, damaged) if whole
    ]
    if damaged:
        raise StoreError("Expected whole runs, got damaged ones", at=", ".join(damaged), hint="name runs with --run")
    return found


def _hint(*, any_run: bool) -> str:
    if not any_run:
        return "there is no finished run whose every snapshot you audit; auditors need a grant with `audit: true`"
    return f"tables are those of the data dictionary; views: {', '.join(VIEWS)}"
