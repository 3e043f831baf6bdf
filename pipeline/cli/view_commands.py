"""`show`, `xray`, `lineage`: answers and runs, rendered; `diff`, `what-if`, `sql`: compared with others, asked of their
tables. `xray` asks first, the others never retrieve.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..views.text_table import row_table, text_table
from .options import fields_of, given, named, settings_of
from .output import EXIT, deliver, emit, note, write_file


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="@ (your last answer), @2 (the one before), @session:S (the last of a session), a snapshot, the id that a "
            "block prints, a run, or a model input.",
        ),
    ] = "@",
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="block (default), replay (all values); xray (why each item is shown, and what was "
            "not); text, markdown, json (document 002); "
            "audit, observation, context-block (document 000); bundle (document 004); html; export (one "
            "file for auditors, which `verify FILE` checks). A run: html. A model input: text (default), neutral, openai, "
            "anthropic, decisions, ledger.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write to this file.")] = None,
) -> int:
    """Show an answer again, or explain it. Nothing is retrieved again; with --json, all of its values."""
    from ...nodes.errors import InputError
    from ..reading.reports import report_of
    from ..servers.renderings import FORMATS, rendered
    from .context_commands import show_input

    settings = settings_of("runs")
    kind, name = named(settings, name)
    if kind == "input":
        return show_input(settings, name, form or "text", out)
    if kind == "run":
        if form != "html":
            hint = f"`show {name} --as html` is its report, `log {name}` lists its answers."
            raise InputError.one_of(("html",), form, "--as", hint=hint)
        deliver(report_of(settings, name), out)
        return EXIT["ok"]
    form = FORMATS.canonical(form or "block", "--as")
    if given("json"):
        form = {"block": "replay", "text": "json", "xray": "json"}.get(form, form)
    found = rendered(settings, name, form)
    deliver(found.text, out)
    note(f"snapshot: {name} ({found.status})")
    for message in found.withheld:
        note(message)
    return EXIT["erased"] if found.status == "erased" else EXIT["ok"]


def xray(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question.")],
    budget: Annotated[int | None, typer.Option(min=1, metavar="CHARS", help="Characters of the block.")] = None,
    namespace: Annotated[str | None, typer.Option(metavar="NS", help="Namespace of the question.")] = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, markdown or json.")] = "text",
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """Ask a question and show why each item was selected. Its formats are those of document 002."""
    from ...nodes.errors import InputError, StoreError
    from ..servers.renderings import XRAY, rendered
    from ..servers.retriever_pool import RetrieverPool

    format_ = XRAY.canonical("json" if given("json") else format_, "--format")
    if not query.strip():
        raise InputError.expected("a question", query, "QUERY")
    settings = settings_of("runs", "corpus")
    pool = RetrieverPool(settings, folder=Path.cwd())
    try:
        _, snapshot_id = pool.session_of(settings.principal).recall_xray(query, namespace=namespace, budget=budget)
    finally:
        pool.close()
    if snapshot_id is None:
        hint = "`ask` says why an answer is not stored; the setting record = false stores none"
        raise StoreError("Expected a stored snapshot, got none", at=settings["runs"], hint=hint)
    found = rendered(settings, snapshot_id, format_)
    note(f"snapshot: {snapshot_id} ({found.status})")
    deliver(found.text, out)


def lineage(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="A run or an answer (`@` is your last), to add rows and times; default: the installed version.",
        ),
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="WHAT", help="steps, all (every node), or one step; default: steps.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="json, dot, svg or png; default: by --out, else json."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """Draw the dataflow. It has steps, or nodes, tables, columns and edges; JSON contains everything."""
    from ...nodes.errors import InputError
    from ..reading.reports import measured
    from ..views.lineage import FORMATS, current_lineage, drawn

    format_ = "json" if given("json") else format_ or (out.suffix.removeprefix(".") if out else "json")
    if format_ not in FORMATS:
        raise InputError.one_of(FORMATS, format_, "--format")
    if run:
        settings = settings_of("runs")
        opened, rows, seconds = measured(settings, named(settings, run)[1])
        data = drawn(opened.lineage, format_, of, rows=rows, seconds=seconds)
    else:
        data = drawn(current_lineage(), format_, of)
    if out:
        write_file(out, data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


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
            help="weights.TERM, a field of the budget, merge_policy, output_shape or role.",
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
    head = [f"what if: {found.name}", f"changes: {', '.join(changes)}"]
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
        emit(named, text=row_table(named))
        return
    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise InputError.described("a query", "nothing", "QUERY")
    settings = settings_of("runs")
    found = queried(settings, text, run or ())
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
    columns = {"change": "change", "from": "position_before", "to": "position_after", "score": "final_before",
               "new score": "final_after", "why": "why", "id": "evidence_id", "item": "locator"}  # fmt: skip
    rows = [
        ({"request": asked[row["pair"]]} if len(requests) > 1 else {}) | {name: row[of] for name, of in columns.items()}
        for row in items
    ]
    nothing = "every item is where it was\n" if requests else "no request is on both sides\n"
    return "\n".join(lines) + (row_table(rows) or nothing)
