"""`index`: from paths and flags to a corpus; `status`: whether it is as its files are; `doctor` and `demo`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..sources.readers import READERS
from ..views.text_table import folded, plain_text
from .options import pairs_of, settings_of
from .output import EXIT, InterruptedCommandError, emit, note, shows_progress

Paths = list[Path] | None
FACTS = ("path", "created", "projects", "rows", "encoded_rows", "encoder_profile", "sources", "bytes")
"""What `status` prints of a corpus; `--json` has all facts."""


def index(
    paths: Annotated[Paths, typer.Argument(metavar="PATH...", help="Work trees, folders or files to read.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Also read the Git history of each PATH.")] = False,
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add",
            metavar="KIND=PATH",
            help=f"Records: {', '.join(reader.name for reader in READERS if reader.of_files)} (rows, Parquet or JSONL); a reader "
            "of a plugin; mcp=NAME=SERVER (resources of a command or URL).",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Name of the source of PATH, or without one of --add; default: its folder name."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="PATTERN", help="Leave out files, as a line of .gitignore; more in .scopedignore."
        ),
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="PATTERN", help="Read files even if they are ignored.")
    ] = None,
    submodules: Annotated[bool, typer.Option("--submodules", help="Also read the files of submodules.")] = False,
    no_semantic: Annotated[
        bool, typer.Option("--no-semantic", help="Skip embedding; the semantic lane stays off.")
    ] = False,
) -> int:
    """Build or extend a corpus. Its rows belong to --project; default: the one that has the folder, or its name."""
    settings, added = settings_of("corpus"), pairs_of(add, "--add")
    try:
        from ..indexing.following import IndexRequest, of_folder
        from ..indexing.freshness import index_followed
        from ..progress import quiet
        from ..sources.selection import Selection

        request = IndexRequest(
            paths=tuple(paths or ()),
            history=history,
            read=tuple((kind, name if kind == "mcp" else _path(name)) for kind, name in added),
            source=source,
            selection=Selection(tuple(exclude or ()), tuple(include or ()), submodules),
            semantic=not no_semantic,
            workers=settings["workers"] or 0,
        )
        bars = shows_progress(settings["progress"])
        settings = of_folder(settings, next(iter(request.paths), None))
        report = index_followed(
            settings, request, progress=bars, say=note if settings["progress"] and not bars else quiet
        )
    except KeyboardInterrupt:
        hint = "what was published stays; the same `index` again reads the rest"
        raise InterruptedCommandError(f"Interrupted - at {settings['corpus']}", hint=hint) from None
    emit(report.as_dict(), text=report.text())
    for line in report.notes:
        note(line)
    return EXIT["unreadable"] if report.unreadable else 0


def status() -> None:
    """Show whether files changed since they were read. Lists the projects that you may search; auditors of all projects also
    see generations, rows and sizes.
    """
    from ..indexing.following import FOLLOWS_NOTHING, followed
    from ..reading.grants import corpus_facts

    settings = settings_of("corpus")
    found = corpus_facts(settings) | {"followed": followed(settings)}
    following = "\n".join(map(folded, map(_following, found["followed"]))) or folded(FOLLOWS_NOTHING)
    emit(found, text=f"{following}\n" + plain_text({name: found.get(name) for name in FACTS}))
    if found.get("encoded_rows", 1) < found.get("rows", 0):
        note("rows without a vector are found by words alone; `index` makes vectors, with the extra `semantic`")


def doctor() -> int:
    """Check corpus, model, grants and runs. Shows each setting and its source."""
    from ..maintenance.doctor import examine

    found = examine(settings_of("corpus", "runs"))
    lines = [
        " ".join((f"{c['status']:<4}", f"{c['name']}:", c["found"], c["hint"] and f"({c['hint']})"))
        for c in found["checks"]
    ]
    lines.append("")
    for s in found["settings"]:
        value = "unset" if s["value"] is None else json.dumps(s["value"], ensure_ascii=False)
        lines.append(f"{s['name']} = {value} ({s['origin']})")
    emit(found, text="\n".join(map(folded, lines)))
    return EXIT["ok"] if found["healthy"] else EXIT["unreadable"]


def demo(
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Folder for the demo's output.")] = Path(
        ".demo"
    ),
    no_semantic: Annotated[bool, typer.Option("--no-semantic", help="Skip the semantic lane.")] = False,
) -> None:
    """Run a demo on the bundled sample. Shows a question, the same question refused, and a report."""
    from ..demo import run_demo

    settings = settings_of()
    demonstration = run_demo(
        folder,
        semantic=not no_semantic,
        progress=shows_progress(settings["progress"]),
        say=note,
    )
    emit(demonstration.as_dict(), text=demonstration.screen())


def _following(row: dict[str, Any]) -> str:
    """A line about folders that a project follows."""
    state = (
        "as it was read"
        if row["current"]
        else "files changed since; `index` reads them, and the next question if the setting `fresh` is on"
    )
    if row["gone"]:
        state = f"gone: {', '.join(row['gone'])}; what was read stays until `index` reads a folder of the name"
    return f"{row['project']}: {', '.join(row['paths'])}: {state}"


def _path(name: str) -> Path:
    from ..storage.places import at_home

    return at_home(Path(name), "--add")
