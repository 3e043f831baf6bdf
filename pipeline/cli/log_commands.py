"""`log`: what was recorded, newest first: answers, and with `--of` runs, verified answers or model inputs."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..progress import counted
from ..views.printed import json_document, printed
from ..views.text_table import row_table
from .options import given, settings_of
from .output import deliver, note, note_left_out

LAST = 100
"""Entries that `log` lists by default."""
QUESTION_SHOWN = 76
"""Characters of a question, which fit a line of a terminal; `--json` and the x-ray have all of it."""
KINDS = ("answers", "runs", "checks", "inputs")
FORMS = ("text", "csv")


def log(
    run: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A run; with --of checks, a snapshot. Default: all.")
    ] = None,
    of: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="WHAT",
            help="answers, runs (with their states), checks (verified answers and their findings) or inputs (recorded model "
            "inputs).",
        ),
    ] = "answers",
    last: Annotated[
        int | None,
        typer.Option("-n", min=0, help=f"Number of entries; 0 = all, as with --as csv. Default: {LAST}."),
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="Only answers of this status: ok, empty, denied, partial, failed or erased.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="text or csv (context_actions.csv of document 001: mode, scope, k, "
            "citations, which `index --add logs=FILE` imports as evidence for review).",
        ),
    ] = "text",
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """List what was recorded, newest first. Shows what you may read."""
    from ...nodes.errors import InputError
    from ...nodes.vocabulary import STATUSES

    if of not in KINDS:
        raise InputError.one_of(KINDS, of, "--of")
    if form not in (FORMS if of == "answers" else FORMS[:1]):
        raise InputError.one_of(FORMS if of == "answers" else FORMS[:1], form, "--as")
    if status is not None:
        STATUSES.canonical(status, "--status")
        if of != "answers":
            raise InputError.described("--of answers", of, "--status")
    if run is not None and of not in ("answers", "checks"):
        raise InputError.described("--of answers or checks", of, "RUN")
    settings = settings_of("runs")
    if last is None:
        last = LAST if form == "text" else 0
    if of == "answers":
        value, text = _answers(settings, run, last, status, form)
    elif of == "runs":
        value, text = _runs(settings, last)
    elif of == "checks":
        value, text = _checks(settings, run, last)
    else:
        value, text = _inputs(settings, last)
    deliver(json_document(value) if given("json") else printed(text), out)


def _answers(settings: Any, name: str | None, last: int, status: str | None, form: str) -> tuple[Any, str]:
    from ..reading.across_runs import latest
    from ..reading.reports import actions_of, as_csv

    make = partial(actions_of, settings) if form == "csv" else lambda _, rows: rows
    listed = latest(settings, name, status=status, last=last, make=make)
    if name is None:
        note_left_out(len(listed.damaged))
        for run_id in listed.damaged:
            note(f"skipped: {run_id}: damaged")
    if listed.older:
        note(f"the last {last}; older ones are not listed: -n 0 lists all")
    found = [value for _, value in listed.entries]
    if form == "text":
        return found, "".join(map(_entry, found))
    return found, as_csv(found)


def _entry(row: dict[str, Any]) -> str:
    """An answer in two lines, as a commit in the log of Git."""
    question = " ".join((row["question"] or "").split()) or "-"
    if len(question) > QUESTION_SHOWN:
        question = f"{question[: QUESTION_SHOWN - 3]}..."
    size = f"{counted(row['selected_rows'] or 0, 'row')}, {counted(row['estimated_tokens'] or 0, 'token')}"
    return f"{row['snapshot_id']} {_minute(row['created_at'])} {row['status']}, {size}\n    {question}\n"


def _minute(time: Any) -> str:
    """A time in UTC without its seconds."""
    return str(time or "-")[:16].replace("T", " ")


def _runs(settings: Any, last: int) -> tuple[Any, str]:
    from ..reading.across_runs import read_each
    from ..reading.snapshots import readable
    from ..runs import Runs

    store = Runs(settings["runs"], create=False)
    found, damaged = list[Any](), dict[str, str]()
    for run, seen in read_each(settings, store, lambda run: readable(settings, run).rows, damaged):
        found += [(run, seen)] if seen.num_rows else []
        if last and len(found) == last:
            break
    listed = [
        {
            "run_id": run.run_id,
            "state": "ok",
            "created_at": run.created_at,
            "kind": "batch" if run.batch else "interactive",
            "statuses": dict(sorted(Counter(rows["status"].to_pylist()).items())),
        }
        for run, rows in found
    ]
    mine = [run_id for run_id in store.unfinished() if store.starter_of(run_id) == settings.principal]
    others = {run_id: ("unfinished", f"`run --resume {run_id}` completes the run") for run_id in mine}
    others |= {run_id: ("damaged", reason) for run_id, reason in damaged.items()}
    for run_id, (state, detail) in others.items():
        listed.append({"run_id": run_id, "state": state, "detail": detail})
        note(f"{state}: {run_id}: {detail}")
    note_left_out(len(damaged))
    listed.sort(key=lambda row: row["run_id"], reverse=True)
    return listed, row_table([row | {"created_at": _minute(row.get("created_at"))} for row in listed])


def _checks(settings: Any, snapshot: str | None, last: int) -> tuple[Any, str]:
    from ..reading.across_runs import snapshot_named
    from ..reading.answers import answers_of

    found, damaged = answers_of(settings, snapshot and snapshot_named(settings, snapshot))
    note_left_out(damaged)
    found = found[::-1][: last or None]
    rows = [
        {"verified_at": _minute(entry["verified_at"])}
        | {name: entry[name] for name in ("snapshot_id", "principal", "ok")}
        | {"wrong": sum(each["wrong"] for each in entry["findings"])}
        | {"records": Counter(fact["finding"] for fact in entry["facts"])}
        for entry in found
    ]
    return found, row_table(rows)


def _inputs(settings: Any, last: int) -> tuple[Any, str]:
    from ..config.opening import runs_of
    from ..context.store import ContextStore

    runs_of(settings)  # there are some
    store = ContextStore.of(settings)
    found = [
        {"input_id": input_id, "record": each["record"], "recorded_at": each["recorded_at"]}
        for each in store.records() for input_id in each["inputs"]
    ][::-1][: last or None]  # fmt: skip
    note_left_out(store.unreadable, "line")
    return found, row_table(found)
