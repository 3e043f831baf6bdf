"""`replay-turn`, `verify`: read and verify what was recorded, without retrieving again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from ..progress import counted
from .options import settings_of
from .output import EXIT, emit, write_table

__all__ = ["register"]

_STATE_CODES = {
    "unfinished": EXIT["failed"],
    "unreadable": EXIT["unreadable"],
}
"""Exit codes of `verify` for runs in which nothing was rewritten; any other difference is 5."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (replay_turn, verify):
        app.command(command.__name__.replace("_", "-"))(command)


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


def _verify_code(report: dict[str, Any]) -> int:
    """5 if anything was changed, else 7 if a run cannot be read, else 4 if one is unfinished."""
    states = {one["status"] for one in report["runs"] if one["problems"]}
    if states - {*_STATE_CODES}:
        return EXIT["differs"]
    return max(_STATE_CODES[state] for state in states)


def _problems(of_run: dict[str, Any]) -> list[str]:
    return [f"{p['kind']}: {p['part']}: {p['detail']}" for p in of_run["problems"]]
