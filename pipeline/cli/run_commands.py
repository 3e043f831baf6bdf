"""`snapshots`, `replay-turn`, `verify`: read and verify what was recorded, without retrieving again."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from ..progress import counted
from .options import settings_of
from .output import EXIT, emit, note, note_left_out, note_other_runs, write_table

__all__ = ["register"]

_STATE_CODES = {
    "unfinished": EXIT["failed"],
    "unreadable": EXIT["unreadable"],
}
"""Exit codes of `verify` for runs in which nothing was rewritten; any other difference is 5."""
LAST = 1_000
"""Snapshots that `snapshots` lists by default."""
QUESTION_SHOWN = 60
"""Characters of a question in the table of snapshots; `--json` and the x-ray have all of it."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (snapshots, replay_turn, verify):
        app.command(command.__name__.replace("_", "-"))(command)


def snapshots(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run; default: every run.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only this status: ok, empty, denied, partial, failed or erased.")
    ] = None,
    last: Annotated[int, typer.Option(min=0, help="Number of most recent snapshots; 0 = all.")] = LAST,
    events: Annotated[
        bool, typer.Option("--events", help="One event per snapshot as JSONL, for an event log.")
    ] = False,
) -> int:
    """List the snapshots that you may read."""
    from ...nodes.vocabulary import STATUSES
    from ..reading.access import expect_reader, open_run
    from ..reading.reports import events_of
    from ..reading.snapshots import readable_snapshots
    from ..runs import RunStore

    if status is not None:
        STATUSES.canonical(status, "--status")
    settings = settings_of("runs")
    wanted = last + 1 if last else sys.maxsize  # one more row shows whether there are older ones

    def read(one: Any) -> list[dict[str, Any]]:
        nonlocal wanted
        rows = readable_snapshots(settings, one, status=status, last=wanted)
        wanted -= len(rows)
        return rows

    if run:
        named = open_run(settings, run)
        expect_reader(settings, named)
        chosen = [(named, read(named))]
    else:
        newest = takewhile(lambda _: wanted > 0, RunStore(settings["runs"], create=False).newest())
        chosen = _each(settings, newest, read)[::-1]
    if not wanted:
        oldest = next(i for i, (_, rows) in enumerate(chosen) if rows)
        chosen[oldest][1].pop(0)
        note(f"the last {last}; older ones are not listed: --last 0 lists all")
    rows = [row for _, of_run in chosen for row in of_run]
    if events:
        found = [event for one, of_run in chosen for event in events_of(one, of_run)]
        emit(found, text="".join(json.dumps(event, ensure_ascii=False) + "\n" for event in found))
        return EXIT["ok"]
    columns = (
        "snapshot_id",
        "request_id",
        "status",
        "project",
        "purpose",
        "as_of",
        "selected_rows",
        "estimated_tokens",
    )
    titles = [{"selected_rows": "rows shown"}.get(c, c.replace("_", " ")) for c in (*columns, "question")]
    shown = [[*(r[c] for c in columns), _shortened(r["question"])] for r in rows]
    text = write_table("", titles, shown)
    emit(rows, text=text)
    return EXIT["ok"]


def replay_turn(
    event: Annotated[Path, typer.Argument(metavar="EVENT_FILE", help="The model request's event: JSON.")],
    model_input: Annotated[
        Path | None,
        typer.Option("--model-input", metavar="FILE", help="File with the model's input, if it is stored elsewhere."),
    ] = None,
) -> int:
    """Show what one model request contained. Lists the snapshots that its event names, and whether the input matches its hash."""
    from ..reading.model_turns import replayed_turn

    turn = replayed_turn(settings_of("runs"), event, model_input)
    words = {True: "yes", False: "NO", None: "-"}
    rows = [
        (one.replay.snapshot_id, one.replay.status, one.replay.citations.num_rows, words[one.in_input])
        for one in turn.snapshots
    ]
    text = write_table("", ("snapshot", "status", "citations", "block in the input"), rows)
    text += f"model input: sha256 {turn.input_sha256 or '-'}, as the event has it: {words[turn.input_matches]}\n"
    text += f"visible tools: {', '.join(turn.event.visible_tools) or '-'}\n"
    emit(turn.as_dict(), text=text)
    if not turn.agrees:
        return EXIT["differs"]
    return EXIT["erased"] if any(one.replay.status == "erased" for one in turn.snapshots) else EXIT["ok"]


def verify(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run or snapshot; default: every run.")] = None,
    anchor: Annotated[str | None, typer.Option(help="Head of the run log that was stored elsewhere.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Verify an exported snapshot on its own.")
    ] = None,
) -> int:
    """Verify the runs that you may read. Reports the first part that differs from its record."""
    if file is not None:
        return _verify_file(file, run, anchor)
    from ..reading.verification import verified

    report = verified(settings_of("runs", "corpus"), run, anchor=anchor)
    counts = Counter(problem for one in report["runs"] for problem in _problems(one))
    of_all = [problem for problem, runs_of in counts.items() if runs_of == len(report["runs"]) > 1]
    lines = [f"every run: {problem}" for problem in of_all]
    for one in report["runs"]:
        lines.append(
            f"{one['run_id']}: {one['status']}, {counted(one['parts'], 'part')}, {counted(one['snapshots'], 'snapshot')}"
        )
        lines += [f"  {problem}" for problem in _problems(one) if problem not in of_all]
    lines.append(f"head of the log: {report['head'] or '-'}")
    emit(report, text="\n".join(lines))
    return EXIT["ok"] if report["ok"] else _verify_code(report)


FILE_HINT = "do not rely on this file: ask for it again, or export the snapshot again and compare"


def _verify_file(file: Path, run: str | None, anchor: str | None) -> int:
    """Check an exported snapshot: no folder of runs is read."""
    from ...nodes.errors import InputError
    from ..config.opening import trust_of
    from ..reading.auditing.exported_file import check_file

    if run is not None:
        raise InputError.expected("either a run or --file", f"both {run} and a file", "RUN")
    found = check_file(file, trust_of(settings_of()), anchor=anchor)
    signed = "signed with the trusted key" if found.signed else "no trusted key was given, so no signature was checked"
    lines = [f"{found.snapshot_id}: {'ok' if found.ok else 'changed'}", *(f"  {problem}" for problem in found.problems)]
    lines.append(f"  {signed}" if found.ok else f"  {FILE_HINT}")
    if found.erased:
        lines.append(f"  erased texts: {found.erased}")
    lines.append(
        f"head of the log: {found.head or '-'}{'' if found.chained else ' (the file lacks log lines up to it)'}"
    )
    emit(found.as_dict(), text="\n".join(lines))
    return EXIT["ok"] if found.ok else EXIT["differs"]


def _each(settings: Any, runs: Iterable[Any], read: Callable[[Any], list[Any]]) -> list[tuple[Any, list[Any]]]:
    """Each run and what `read` returns for it; omitted runs are named on standard error with their state."""
    from ..reading.across_runs import read_each

    found, damaged = read_each(settings, runs, read)
    note_left_out(len(damaged))
    for run_id in damaged:
        note(f"skipped: {run_id}: damaged")
    note_other_runs(settings, but=damaged)
    return found


def _verify_code(report: dict[str, Any]) -> int:
    """5 if anything was changed, else 7 if a run cannot be read, else 4 if one is unfinished."""
    states = {one["status"] for one in report["runs"] if one["problems"]}
    if states - {*_STATE_CODES}:
        return EXIT["differs"]
    return max(_STATE_CODES[state] for state in states)


def _problems(of_run: dict[str, Any]) -> list[str]:
    return [f"{p['kind']}: {p['part']}: {p['detail']}" for p in of_run["problems"]]


def _shortened(question: str | None) -> str | None:
    """The start of a question on one line, for a table."""
    line = " ".join(question.split()) if question else None
    return line if line is None or len(line) <= QUESTION_SHOWN else f"{line[: QUESTION_SHOWN - 3]}..."
