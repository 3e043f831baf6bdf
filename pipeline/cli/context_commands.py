"""`context project|log|open|import`: what a model sees this round. `show`, `diff` and `why` read recorded inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..progress import counted
from ..views.printed import json_document, printed, to_json
from ..views.text_table import plain_text
from .options import given, settings_of
from .output import EXIT, deliver, emit, note

context = typer.Typer(help="Build the model input of a turn. A ledger records every decision.", no_args_is_help=True)

LogArgument = Annotated[Path, typer.Argument(metavar="LOG", help="Folder of a session log, or a file of JSON lines.")]
FormatFlag = Annotated[str, typer.Option("--format", help="text, neutral, openai, anthropic, decisions or ledger.")]
FORMATS = ("text", "neutral", "openai", "anthropic", "decisions", "ledger")


@context.command()
def project(
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="[LOG]",
            help="Folder of a session log, or a file of JSON lines. Default: round 9 of a bundled session.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE", help="Rules, tools, memories, snapshots, budget: YAML or JSON."),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="DIR", help="Work tree whose AGENTS.md and similar files apply.")
    ] = None,
    at: Annotated[
        int | None, typer.Option("--at", metavar="N", help="Use only events before number N; default: all.")
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Build one input for every model request in the log; with --at, for those up to number N."
        ),
    ] = False,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=0, help="Tokens of the window.")] = None,
    phase: Annotated[
        str | None, typer.Option("--phase", help="Phase of the turn, if the log does not state it.")
    ] = None,
    format_: FormatFlag = "text",
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Store the input and its ledger with the runs.")
    ] = True,
) -> int:
    """Project model inputs from a session log. The input goes to standard output, its id to standard error."""
    from ..context.projections import demonstration, project_log
    from ..context.store import ContextStore

    _known_format(format_)
    if log is None:
        shown = demonstration()
        emit(shown.as_dict(), text=_formatted(shown, format_))
        return EXIT["ok"]
    settings = settings_of("runs")
    made = project_log(
        settings, log, inputs=inputs, rules=rules, at=at, every=every, max_tokens=max_tokens, phase=phase
    )
    kept = ContextStore.of(settings).record(made) if record and len(made) else None
    found = list(made)
    for each in found:
        note(
            f"input: {each.input_id} ({each.status}, {counted(each.estimated_tokens, 'token')})"
            + (f", recorded in {kept}" if kept else "")
        )
        for warning in each.warnings:
            note(f"warning: {warning['condition']}: {warning['message']}")
    values = (
        [each.as_dict() for each in found] if given("json") else [None]
    )  # a ledger has a row for every event, so it is read only on request
    emit(values if every else values[0], text="\n".join(_formatted(each, format_) for each in found))
    return EXIT["failed"] if any(each.status != "ok" for each in found) else EXIT["ok"]


@context.command("import")
def import_(
    transcript: Annotated[Path, typer.Argument(metavar="TRANSCRIPT", help="A transcript of Claude Code or Codex CLI.")],
    out: Annotated[Path, typer.Option("--out", metavar="LOG", help="Folder of the session log to write.")],
) -> None:
    """Convert an agent's transcript into a session log."""
    from ..context.projections import import_transcript

    found = import_transcript(transcript, out)
    emit(found)
    note(f"next: `context project {out}`, with --all for every request that the agent made")


@context.command()
def log(
    session: Annotated[Path, typer.Argument(metavar="LOG", help="Folder of a session log.")],
    append: Annotated[
        Path | None, typer.Option("--append", metavar="FILE", help="Append these events (JSON lines).")
    ] = None,
    session_id: Annotated[str | None, typer.Option("--session", help="Id of a new log.")] = None,
) -> None:
    """Append to a session log, or count its events."""
    from ...nodes.errors import InputError
    from ..context.events import read_event_file
    from ..context.log import SessionLog, of_other_file

    opened, added, skipped = SessionLog.open(session, session_id=session_id), 0, 0
    if append:
        file = read_event_file(append)
        skipped = file.skipped
        try:
            added = opened.append(file.values, file.at)
        except InputError as error:
            raise of_other_file(error, file) from error
    events = len(opened.read().events)
    if skipped:
        note(f"log: {counted(skipped, 'line')} could not be read and were left out")
    emit({"session_id": opened.session_id, "events": events, "appended": added})


@context.command("open")
def open_(
    log: LogArgument,
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="artifact:ID, event:ID or log:FIRST-LAST, as an input names it.")
    ],
) -> None:
    """Print the full text behind a reference of a model input."""
    from ..context.log import read_session

    text = read_session(log).artifacts.open(reference, str(log))
    emit({"reference": reference, "text": text}, text=text)


def difference_of_inputs(settings: Any, first: str, second: str) -> tuple[dict[str, Any], str]:
    """How two recorded inputs differ in sources, tokens and lines, as values and as text."""
    from ..context.projection import difference
    from ..context.store import ContextStore

    found = difference(*(ContextStore.of(settings).replay(each).projection for each in (first, second)))
    lines = plain_text({name: value for name, value in found.items() if name != "diff"})
    return found, "\n".join([lines, *found["diff"]])


def why_of_input(settings: Any, input_id: str, expected: str, log: Path | None) -> tuple[dict[str, Any], str]:
    """What happened to a source in an input, and the layer that dropped it, as values and as text, for `why`."""
    from ..context.log import read_session
    from ..context.projections import snapshots_of
    from ..context.store import ContextStore
    from ..context.why import why

    seen = ContextStore.of(settings).replay(input_id).projection
    decided = {name: each.decisions.to_pylist() for name, each in snapshots_of(settings, seen).items() if each}
    found = why(seen, expected, events=read_session(log) if log else None, snapshots=decided)
    lines = [f"{found['layer'] or 'no layer failed'}: {found['answer']}"]
    lines += [
        f"  {each['source_id']}: {each['action']} ({each['reason_code']}: {each['reason']})"
        for each in found["sources"]
    ]
    return found, "\n".join(lines)


def show_input(settings: Any, input_id: str, form: str, out: Path | None) -> int:
    """Print a recorded input again, byte for byte, for `show`; names the snapshots whose items it was offered."""
    from ..context.projections import snapshots_of
    from ..context.store import ContextStore

    _known_format(form, "--as")
    found = ContextStore.of(settings).replay(input_id)
    snapshots = [_snapshot(*each) for each in snapshots_of(settings, found.projection).items()]
    value = found.projection.as_dict() | {
        "record": found.record,
        "erased": list(found.erased),
        "snapshots": snapshots,
    }
    deliver(json_document(value) if given("json") else printed(_formatted(found.projection, form)), out)
    note(f"input: {found.projection.input_id}, recorded {found.recorded_at} in {found.record}")
    for each in snapshots:
        note(f"snapshot: {each['snapshot_id']} ({each['status']})")
    if found.erased:
        note(f"erased: the text of {', '.join(found.erased)}")
    return EXIT["erased"] if found.erased else EXIT["ok"]


def _snapshot(name: str, replay: Any) -> dict[str, Any]:
    """A retrieval snapshot of an input, for listings; `replay` is None where the caller may not read it."""
    if replay is None:
        return {"snapshot_id": name, "status": "not readable", "block_ref": None, "citations": []}
    citations = replay.citations.to_pylist()
    return {"snapshot_id": name, "status": replay.status, "block_ref": replay.block_ref, "citations": citations}


def _known_format(name: str, at: str = "--format") -> None:
    from ...nodes.errors import InputError

    if name not in FORMATS:
        raise InputError.one_of(FORMATS, name, at)


def _formatted(seen: Any, name: str) -> str:
    """An input in a shape, as text."""
    if name == "text":
        return seen.text()
    if name == "neutral":
        return seen.neutral()
    return to_json(getattr(seen, "context_decisions" if name == "decisions" else name)())
