"""`show`, `xray`, `lineage`: answers and runs, rendered. `xray` asks first, the others never retrieve."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import given, named, settings_of
from .output import EXIT, deliver, note, write_file


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
            help="block (default), search-result (of Anthropic's Messages API); xray (why each item is shown, and what was "
            "not); text, markdown, json (document 002); "
            "audit (document 000); bundle (document 004); html; tables; export (one "
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
    from ..asking.opening import open_retriever
    from ..servers.renderings import XRAY, rendered

    format_ = XRAY.canonical("json" if given("json") else format_, "--format")
    if not query.strip():
        raise InputError.expected("a question", query, "QUERY")
    settings = settings_of("runs", "corpus")
    fields = {
        "question": query,
        "project": settings["project"],
        "purpose": settings["purpose"],
        "namespace": namespace,
        "budget": {"max_chars": budget},
    }
    if not settings["record"]:
        raise InputError.described("answers to be kept", "the setting record = false", "record")
    with open_retriever(settings) as retriever:
        found = retriever.retrieve(fields)
    if found.snapshot_id is None:
        reason = next(c["message"] for c in found.conditions if c["condition"] == "snapshot_missing")
        raise StoreError(f"Expected a stored snapshot, got none ({reason}) - at {settings['runs']}")
    note(f"snapshot: {found.snapshot_id} ({found.status})")
    deliver(rendered(settings, found.snapshot_id, format_).text, out)


def lineage(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run or snapshot, to add rows and times; default: the installed version."),
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
    from ..views.drawing import FORMATS, drawn
    from ..views.lineage import current_lineage

    format_ = "json" if given("json") else format_ or (out.suffix.removeprefix(".") if out else "json")
    if format_ not in FORMATS:
        raise InputError.one_of(FORMATS, format_, "--format")
    if run:
        settings = settings_of("runs")
        opened, rows, seconds = measured(settings, run)
        data = drawn(opened.lineage, format_, of, rows=rows, seconds=seconds)
    else:
        data = drawn(current_lineage(), format_, of)
    if out:
        write_file(out, data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
