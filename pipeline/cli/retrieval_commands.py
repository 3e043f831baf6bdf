"""`ask`, `run`: one request, a table of requests."""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from ..progress import counted
from ..views.printed import json_document
from ..views.text_table import plain_text
from .options import PresetFlag, SetFlag, fields_of, given, settings_of
from .output import InterruptedCommandError, deliver, emit, exit_code_of, note, shows_progress

Texts = list[str] | None
READABLE = "`doctor` lists the projects that you may search"
"""The hint for a refusal, the same whether or not the project exists."""
FAILURES_SHOWN = 10
"""Failed requests that `run` lists; the others are counted."""


def run(
    requests: Annotated[
        Path | None,
        typer.Argument(
            metavar="REQUESTS", help="JSONL, Parquet or CSV file with one request per row; not with --resume."
        ),
    ] = None,
    preset: PresetFlag = None,
    resume: Annotated[str | None, typer.Option("--resume", metavar="RUN", help="Resume this interrupted run.")] = None,
) -> int:
    """Execute a table of requests as a run. Rows are named by line or row from 1: `requests.jsonl:2.purpose`."""
    from ...nodes.errors import InputError
    from ..asking.opening import engine_of, open_retriever
    from ..indexing.following import defaults_in, followed
    from ..line.lanes import advised
    from ..progress import quiet
    from ..requests.files import read_requests
    from ..requests.handoff import trees_around
    from ..runs import Runs

    settings = settings_of("corpus", "runs")
    if (requests is None) == (resume is None):
        got, hint = "both" if resume else "none", "a resumed run already has its requests"
        raise InputError.described("a file of requests or --resume", got, "REQUESTS", hint=hint)
    rows = read_requests(requests) if requests is not None else None
    with suppress(InputError):  # a folder that cannot be listed changes nothing about a batch
        for each in followed(settings) if rows is not None else ():
            if not each["current"]:
                note(f"{each['project']}: files changed since they were read, and a run reads none; `index` does")
    before, summary = _unfinished(settings), None

    @cache
    def defaults(project: str | None, *names: str) -> dict[str, Any]:
        """Those of a row with these fields; of their values, the project alone matters."""
        if preset is None:
            return defaults_in(settings, Path.cwd(), dict.fromkeys(names, project))
        return {"project": settings["project"]} if _given(settings, "project") else {}

    try:
        trees = trees_around(Path.cwd())
        opened = open_retriever(settings, preset=preset, work_trees=trees)
        bars = shows_progress(settings["progress"])
        # Ray reports the death of a worker on standard output, which is reserved for the result.
        with (
            opened as retriever,
            redirect_stdout(sys.stderr),
            engine_of(settings) as ready,
        ):
            summary = retriever.run(
                rows, defaults=lambda row: defaults(row.get("project"), *row), resume=resume, progress=bars, say=note if settings["progress"] and not bars else quiet,
                engine=ready,
            )  # fmt: skip
    except KeyboardInterrupt:
        begun = [resume] if resume else sorted(_unfinished(settings) - before)
        hint = f"`run --resume {begun[-1]}` finishes the rest." if begun else ""
        if summary is not None:  # interrupted after the run, while its engine ended
            hint = f"{summary.run_id} was finished before; `verify {summary.run_id}` checks it."
        raise InterruptedCommandError("Interrupted", hint=hint) from None
    result = summary.as_dict()
    text = plain_text({"run": result["run_id"], "folder": result["path"], "statuses": result["statuses"]})
    finished = Runs(summary.path.parent).open(summary.run_id)
    named = ("request_id", "snapshot_id", "error")
    failed = [row for row in finished.table("snapshots", texts=True).select(named).to_pylist() if row["error"]]
    conditions = finished.table("conditions", texts=True).to_pylist()
    off = Counter((row["subject"], row["message"]) for row in conditions if row["condition"] == "lane_off")
    result["lanes_off"] = [
        {"lane": lane, "requests": count, "message": message} for (lane, message), count in sorted(off.items())
    ]
    result["failures"] = failed
    emit(result, text=text)
    for one in result["lanes_off"]:
        note(f"lane_off: {one['lane']}, for {counted(one['requests'], 'request')}: {advised(one['message'])}")
    if denied := result["statuses"].get("denied"):
        note(f"denied: {denied}; {READABLE}")
    for row in failed[:FAILURES_SHOWN]:
        note(f"failed: {row['request_id']} ({row['snapshot_id']}): {advised(row['error'])}")
    if len(failed) > FAILURES_SHOWN:
        note(f"failed: {len(failed) - FAILURES_SHOWN} more; `log {summary.run_id} --status failed` lists them")
    return exit_code_of(result["statuses"])


def _unfinished(settings: Any) -> set[str]:
    """Unfinished runs of the folder."""
    from ..runs import Runs

    return set(Runs(settings["runs"], create=False).unfinished()) if settings["runs"].is_dir() else set()


def ask(
    question: Annotated[
        Texts, typer.Argument(help="The question or task, with or without quotes; optional if an anchor is given.")
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="fix-test, explain-code, review-risk or answer-question.")] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="Time at which facts are judged: ISO 8601 with an offset (2025-06-01T12:00:00Z, 2025-06-01T14:00+02:00), or "
            "commit:SHA, 7 to 64 hex digits of an indexed history. Default: now.",
        ),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Work tree whose uncommitted files to include; default: this one."),
    ] = None,
    session: Annotated[str | None, typer.Option(help="Session of the request.")] = None,
    mode: Annotated[
        str | None, typer.Option(help="planning, execution or review; default: that of SHO.json in the work tree.")
    ] = None,
    failing_test: Annotated[str | None, typer.Option("--failing-test", help="Anchor: the failing test.")] = None,
    error_text: Annotated[str | None, typer.Option("--error-text", help="Anchor: the error as printed.")] = None,
    file: Annotated[Texts, typer.Option("--file", metavar="PATH", help="Anchor: a file being worked on.")] = None,
    literal: Annotated[
        Texts, typer.Option("--literal", metavar="TEXT", help="Anchor: a text as it is written.")
    ] = None,
    regex: Annotated[
        Texts, typer.Option("--regex", metavar="RE2", help="Anchor: a regular expression that lines match.")
    ] = None,
    preset: PresetFlag = None,
    chosen: SetFlag = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, help="Tokens of the block.")] = None,
) -> int:
    """Ask one question. The block goes to standard output, the snapshot id to standard error. Files that changed are read
    first; a folder without a corpus is indexed."""
    from ...nodes.errors import InputError
    from ..asking.opening import open_retriever
    from ..asking.retrieval import warnings_of
    from ..indexing.following import defaults_in, uncommitted
    from ..indexing.freshness import up_to_date
    from ..requests.fields import column_of
    from ..requests.handoff import trees_around

    settings = settings_of("corpus", "runs", purpose=purpose)
    settings = up_to_date(settings, progress=shows_progress(settings["progress"]), say=note)
    if workspace is not None and not workspace.is_dir():
        raise InputError.expected("the folder of a work tree", str(workspace), "--workspace")
    typed = {
        "question": " ".join(question or ()) or None,
        "project": settings["project"] if _given(settings, "project") else None,
        "purpose": purpose,
        "workspace_root": str(workspace.resolve()) if workspace else None,
        "session_id": session,
        "mode": mode,
        "failing_test": failing_test,
        "error_text": error_text,
        "current_files": file or None,
        "regexes": [*map(_written, literal or ()), *(regex or ())] or None,
        "as_of": as_of,
        "max_tokens": max_tokens,
    }
    changes = fields_of(chosen)
    for name in changes:
        if typed.get(column_of(name) or name) is not None:
            raise InputError.described("a field once", "a value of its own flag, too", f"--set {name}")
    fields = {name: value for name, value in typed.items() if value is not None}
    fields |= changes
    defaults = {} if preset else defaults_in(settings, workspace or Path.cwd(), fields)
    fields = defaults | fields
    trees = trees_around(Path.cwd()) | ({workspace.resolve()} if workspace else set())
    opened = open_retriever(settings, preset=preset, work_trees=trees)
    with opened as retriever:
        found = retriever.retrieve(fields)
    if given("json"):
        from ..servers.renderings import answer_values

        deliver(json_document(answer_values(found)), None)
    else:
        deliver(found.block, None)
    note(f"snapshot: {(settings['record'] and found.snapshot_id) or 'none'} ({found.status})")
    if settings.origin("corpus") == "default" and not settings["corpus"].is_relative_to(Path.cwd()):
        note(f"corpus: {settings['corpus']}, the nearest one at or above this folder")
    asked_in = settings.having("request", project=fields.get("project"))
    if edited := uncommitted(asked_in, fields.get("workspace_root")):
        flags = " or ".join(f"--workspace {path}" for path in edited)
        note(f"what is not committed is not shown; it is with {flags}")
    if others := defaults.get("denied_sources"):
        note(f"not from other work trees of this repository: {', '.join(others)}")
    for warning in warnings_of(found.conditions):
        note(warning)
    named = {column_of(name) or name for name in changes} | ({"current_files"} if file else set())
    if any(name.endswith(("_sources", "_paths", "_files")) for name in named):
        from ..contracts.explain import idle_lists
        from ..requests.presets import fields_named
        from .contract_commands import resolver_here

        for finding in idle_lists(resolver_here(settings), fields_named(fields, "--set")):
            if finding["at"] != "request.allowed_sources":  # the answer has a condition that says so
                note(f"{finding['message']} ({finding['at']})")
    if any(each["condition"] == "snapshot_missing" for each in found.conditions):
        note("--runs names another folder for snapshots; with -c record=false an answer is not recorded")
    if any(each["condition"] == "nothing_granted" for each in found.conditions):
        note(READABLE)
    return exit_code_of({found.status: 1})


def _written(text: str) -> str:
    """The regular expression of a text, in printable characters."""
    return re.escape(text).replace("\\\n", r"\n").replace("\\\t", r"\t")


def _given(settings: Any, name: str) -> bool:
    """Whether the value was set by a flag, which alone overrides a preset."""
    return settings.origin(name).startswith("flag ")
