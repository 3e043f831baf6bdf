"""`diff`, `what-if`, `sql`: stored results, compared with those of the current line or with
other stored results.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..views.text_table import folded, text_table
from .options import fields_of, given, named, settings_of
from .output import deliver, emit, note_other_runs


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A snapshot, a run, a model input, or a file of request fields.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="B", help="What to compare with; with a file, A and B are compared as contracts.")
    ],
) -> None:
    """Compare two snapshots, runs, model inputs or contracts. Shows what entered, left or moved, and why."""
    from ..reading.auditing.difference import compared
    from ..storage.places import at_home
    from .context_commands import difference_of_inputs
    from .contract_commands import difference_of_contracts

    settings = settings_of("runs", "corpus")
    if any(at_home(Path(name), "A or B").is_file() for name in (before, after)):
        value, text = difference_of_contracts(settings, before, after)
    else:
        sides = [named(settings, name) for name in (before, after)]
        if all(kind == "input" for kind, _ in sides):
            value, text = difference_of_inputs(settings, *(name for _, name in sides))
        else:
            found = compared(settings, *(name for _, name in sides))
            value, text = found.as_dict(), _diff_text(found)
    emit(value, text=text)


def what_if(
    name: Annotated[
        str, typer.Argument(metavar="RUN-OR-SNAPSHOT", help="A snapshot, or a run for all of its requests.")
    ],
    changes: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="weights.TERM, a field of the budget, detail, merge_policy, output_shape or role.",
        ),
    ],
    block: Annotated[bool, typer.Option("--block", help="Print the new block of a snapshot.")] = False,
) -> None:
    """Show a snapshot or run under other settings. Changes weights, budgets, merge policy or role; nothing is written."""
    from ..reading.across_runs import snapshot_named
    from ..reading.auditing import what_if as questions

    settings = settings_of("runs", "corpus")
    found = questions.what_if(settings, snapshot_named(settings, name), fields_of(changes), "--set")
    if block and len(found.blocks) == 1 and not given("json"):
        deliver(next(iter(found.blocks.values())), None)
        return
    frozen = "frozen; ranked, packed and trimmed again as a fresh run would"
    head = [f"what if: {found.name}", f"changes: {', '.join(changes)}"]
    head.append(f"recall: {frozen if found.frozen else 'ran again: ' + '; '.join(found.recalled)}")
    value = found.as_dict() | ({"blocks": found.blocks} if block else {})
    emit(
        value,
        text="\n".join(head) + "\n" + _changes_text(found),
    )


def sql(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A SELECT; `-` reads it from standard input.")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option("--run", metavar="RUN", help="A run; default: every run that you may audit.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Query the tables of runs with DuckDB. Without a query, lists tables and views. For auditors."""
    from ...nodes.errors import InputError
    from ..reading.auditing.sql import VIEWS, queried, rows_of
    from ..runs.parts import READABLE
    from ..views.text_table import csv_table

    if query is None:
        named = [{"name": name, "kind": "view", "doc": view.doc} for name, view in VIEWS.items()]
        named += [{"name": table.name, "kind": "table", "doc": table.doc} for table in READABLE]
        emit(
            named,
            text=text_table(("name", "kind", "what"), [list(row.values()) for row in named]),
        )
        return
    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise InputError.described("a query", "nothing", "QUERY")
    settings = settings_of("runs")
    found = queried(settings, text, run or ())
    if not run:
        note_other_runs(settings)
    rows = rows_of(found)
    if as_csv:
        emit(None, text=csv_table(found.column_names, ([*row.values()] for row in rows)))
        return
    emit(rows, text=text_table(found.column_names, [list(row.values()) for row in rows]))


def _diff_text(found: Any) -> str:
    """Both sides and their differences."""
    lines = [f"before: {found.before}", f"after: {found.after}"]
    if found.only_before or found.only_after:
        lines.append(f"without a partner: {found.only_before} requests before, {found.only_after} after")
    return "\n".join(lines) + "\n" + _changes_text(found)


def _changes_text(found: Any) -> str:
    """How many requests and items differ, and the items that changed."""
    requests, items = found.of_requests, [row for row in found.of_items if row["change"] != "same"]
    names = ("entered", "left", "moved", "same")
    differ = [row for row in requests if any(row[n] for n in names[:3]) or row["status_before"] != row["status_after"]]
    lines = [
        f"requests: {len(requests)} compared, {len(differ)} differ",
        "items: " + ", ".join(f"{sum(row[name] for row in requests)} {name}" for name in names),
        "",
    ]
    asked = {row["pair"]: row["request_id_after"] for row in requests}
    for row in items:
        moved = f"{row['change']} {row['position_before'] or '-'} -> {row['position_after'] or '-'}"
        score = f"score {_score(row['final_before'])} -> {_score(row['final_after'])}"
        of = f" of {asked[row['pair']]}" if len(requests) > 1 else ""
        lines += [f"{moved}{of}, {score}: {row['locator']}", f"    {row['evidence_id']}; {row['why']}"]
    if not items:
        lines += ["every item is where it was" if requests else "no request is on both sides"]
    return "\n".join(map(folded, lines)) + "\n"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
