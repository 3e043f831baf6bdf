"""`xray`, `explain`, `report`, `lineage`, `context-actions`: snapshots and runs, rendered or stored.

Note: `xray --ask`, or `xray` of several words, runs a query first and shows its new snapshot. The others never retrieve.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..views.printed import json_document, printed
from .flag_names import XRAY_FLAGS, named_by_flags
from .options import given, settings_of
from .output import EXIT, deliver, note, note_left_out, to_json, write_file

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (xray, explain, report, lineage, context_actions):
        app.command(command.__name__.replace("_", "-"))(command)


def xray(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SNAPSHOT-OR-QUESTION",
            help="A snapshot id or block id; any other text is run as a query (a single word needs --ask).",
        ),
    ],
    ask: Annotated[bool, typer.Option("--ask", help="Run the text as a query and show its snapshot.")] = False,
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="CHARS", help="Characters of the block, with --ask.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace of the question, with --ask.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, markdown, json (document 002); audit (document 000); full (text with what was not shown); html; "
            "tables (rows as JSON); bundle; replay; block, search-result, openai, block-markdown, block-text.",
        ),
    ] = "text",
) -> int:
    """Show why each item of a snapshot was selected. Also shows what was left out."""
    from ...nodes.errors import InputError, StoreError
    from ..asking.opening import open_retriever
    from ..reading.across_runs import snapshot_named
    from ..runs.ids import is_snapshot
    from ..servers.renderings import FORMATS, rendered

    format_ = FORMATS.canonical("json" if given("json") else format_, "--format")
    if not subject.strip():
        raise InputError.expected("a question" if ask else "a snapshot id", subject, "SNAPSHOT-OR-QUESTION")
    ask = ask or len(subject.split()) > 1  # an id contains no space
    if not ask and (budget is not None or namespace is not None):
        raise InputError.expected("--ask with it", None, "--budget" if budget is not None else "--namespace")
    settings = settings_of("runs", "corpus")
    if not ask:
        subject = snapshot_named(settings, subject)
        if not is_snapshot(subject):
            hint = "`snapshots` lists those that you may read; `xray --ask QUESTION` asks first."
            expected = "a snapshot id such as retr-snap-<token>-0007, or the id that a block prints"
            raise InputError.expected(expected, subject, "SNAPSHOT-OR-QUESTION", hint=hint)
    else:
        fields = {
            "question": subject,
            "project": settings["project"],
            "purpose": settings["purpose"],
            "namespace": namespace,
            "budget": {"max_chars": budget},
        }
        with open_retriever(settings) as retriever, named_by_flags(XRAY_FLAGS, settings):
            found = retriever.retrieve(fields)
        if found.snapshot_id is None:
            reason = next(c["message"] for c in found.conditions if c["condition"] == "snapshot_missing")
            raise StoreError(f"Expected a stored snapshot, got none ({reason}) - at {settings['runs']}")
        subject = found.snapshot_id
        note(f"snapshot: {subject} ({found.status}), of this question")
    shown = rendered(settings, subject, format_)
    deliver(shown.text, out)
    return EXIT["ok"]


def explain(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session id of the requests.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="As for xray.")] = "text",
) -> int:
    """Show the x-ray of the last recall of a session. Nothing is executed again."""
    from ..servers.renderings import FORMATS, explained

    format_ = FORMATS.canonical("json" if given("json") else format_, "--format")
    shown = explained(settings_of("runs"), session, format_)
    deliver(shown.text, out)
    return EXIT["ok"]


def report(
    name: Annotated[str, typer.Argument(metavar="RUN-OR-SNAPSHOT", help="A run, or a snapshot.")],
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judgements of the run's requests, to report quality.")
    ] = None,
    documents: Annotated[
        str, typer.Option(metavar="NAME", help="Column that judgements refer to: evidence_id or path.")
    ] = "evidence_id",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
) -> int:
    """Write an HTML report of a run or snapshot. It is one file without scripts or network access."""
    from ..reading.across_runs import snapshot_named
    from ..reading.reports import report_of

    settings = settings_of("runs")
    quality = None
    if qrels is not None:
        from ..evaluation.judgements import read_qrels
        from ..evaluation.run_quality import quality_of

        judged = read_qrels(qrels)

        def of_run(run: Any, requests: list[str]) -> Any:
            return quality_of(run, judged, documents, requests)

        quality = of_run

    deliver(report_of(settings, snapshot_named(settings, name), quality), out)
    return EXIT["ok"]


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
        typer.Option(
            "--format", help="json, dot, svg, png, html, or openlineage of a run; default: by --out, else json."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
) -> int:
    """Draw the dataflow. It has steps, or nodes, tables, columns and edges; JSON and HTML contain everything."""
    from ...nodes.errors import InputError
    from ..reading.reports import measured
    from ..runs.ids import is_snapshot
    from ..views.drawing import FORMATS, drawn
    from ..views.lineage import current_lineage

    format_ = "json" if given("json") else format_ or (out.suffix.removeprefix(".") if out else "json")
    if format_ not in (*FORMATS, "openlineage"):
        raise InputError.one_of((*FORMATS, "openlineage"), format_, "--format")
    if format_ == "openlineage" and not run:
        raise InputError.described("a run", "none", "RUN")
    if run:
        settings = settings_of("runs")
        opened, rows, seconds = measured(settings, run)
        if format_ == "openlineage":
            from ..views.openlineage import complete_event

            event = complete_event(opened.run_id, opened.manifest, opened.lineage, rows or None)
            data = (to_json(event, sort_keys=True) + "\n").encode()
        else:
            title = f"{'Snapshot' if is_snapshot(run) else 'Run'} {run}"
            data = drawn(opened.lineage, format_, of, title=title, rows=rows, seconds=seconds)
    else:
        data = drawn(current_lineage(), format_, of, title="The dataflow")
    if out:
        write_file(out, data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return EXIT["ok"]


def context_actions(
    principal: Annotated[
        str | None,
        typer.Option(help="Principal whose retrievals to list; default: you. Another principal needs an audit grant."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
) -> int:
    """Export retrievals as CSV: mode, scope, k, citations. `index --logs` imports the file as evidence for review."""
    from ..reading.across_runs import read_each
    from ..reading.snapshots import readable_snapshots
    from ..runs import RunStore
    from ..views.context_actions import actions_of, as_csv

    settings = settings_of("runs")
    whose = principal or settings.principal
    read, damaged = read_each(
        settings,
        RunStore(settings["runs"], create=False).list(),
        lambda run: actions_of(run, readable_snapshots(settings, run), whose),
    )
    note_left_out(len(damaged))
    found = [action for _, actions in read for action in actions]
    found.sort(key=lambda action: (action["timestamp"], action["snapshot_id"]))
    deliver(json_document(found) if given("json") and out is None else printed(as_csv(found)), out)
    return EXIT["ok"]
