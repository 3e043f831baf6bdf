"""`index`, `corpus info`: from paths and flags to a corpus."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..config.settings import Settings
from ..sources.records import READERS
from .options import settings_of
from .output import EXIT, InterruptedCommandError, emit, note, shows_progress, write_table

__all__ = ["register"]

corpus_app = typer.Typer(help="Inspect a corpus.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(_with_record_flags(index))
    app.add_typer(corpus_app, name="corpus")


Paths = list[Path] | None


def _with_record_flags(command: Callable[..., int]) -> Callable[..., int]:
    """The command with a flag for every reader of records instead of the parameter `records`, which receives their
    values.
    """

    def with_flags(**given: Any) -> int:
        named = [(reader.name, path) for reader in READERS for path in given.pop(reader.name) or ()]
        return command(**given, records=named)

    flags = [
        inspect.Parameter(
            reader.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[Paths, typer.Option(f"--{reader.name}", metavar="PATH", help=reader.doc)],
        )
        for reader in READERS
    ]
    parameters = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += flags if parameter.name == "records" else [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    with_flags.__name__, with_flags.__doc__ = command.__name__, command.__doc__
    with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] - typeshed does not name it
    return with_flags


def _with_reader(given: str) -> tuple[str, Path]:
    """`NAME=PATH` as a pair."""
    name, equals, path = given.partition("=")
    if not (name and equals and path):
        from ...nodes.errors import InputError

        raise InputError.expected("NAME=PATH", given, "--read")
    from ..storage.places import at_home

    return name, at_home(Path(path), "--read")


def index(
    paths: Annotated[Paths, typer.Argument(metavar="PATH...", help="Work trees, folders or files to read.")] = None,
    history: Annotated[
        bool, typer.Option("--history", "--git", help="Also read the Git history of each PATH, its latest files first.")
    ] = False,
    records: list[tuple[str, Path]] | None = None,
    evidence: Annotated[
        Paths, typer.Option("--evidence", metavar="FILE", help="Generic evidence rows, Parquet or JSONL.")
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option("--read", metavar="NAME=PATH", help="Read PATH with reader NAME (built in or from a plugin)."),
    ] = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option("--mcp", metavar="NAME=SERVER", help="Resources of an MCP server, a command or a URL; untrusted."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", help="Name of the source of PATH; default: its folder name.")
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
    no_git: Annotated[
        bool, typer.Option("--no-git", help="List files by the .gitignore files of PATH, without Git.")
    ] = False,
    submodules: Annotated[bool, typer.Option("--submodules", help="Also read the files of submodules.")] = False,
    no_semantic: Annotated[
        bool, typer.Option("--no-semantic", help="Skip embedding; the semantic lane stays off.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes that cut many files; default: one per core."),
    ] = None,
) -> int:
    """Build or extend a corpus. Its rows belong to --project; default: the only one, or the folder's name."""
    settings = settings_of("corpus")
    before = _current(settings)
    try:
        from ..indexing.following import of_folder, remember
        from ..indexing.importing import IndexRequest, index_into
        from ..progress import quiet
        from ..sources.selection import Selection

        request = IndexRequest(
            paths=tuple(paths or ()),
            history=history,
            evidence=tuple(evidence or ()),
            read=(*(records or ()), *(_with_reader(each) for each in read or ())),
            mcp=tuple(mcp or ()),
            source=source,
            selection=Selection(tuple(exclude or ()), tuple(include or ()), not no_git, submodules),
            semantic=not no_semantic,
            workers=workers or 0,
        )
        bars = shows_progress(settings["progress"])
        settings = of_folder(settings, request.paths[0]) if request.paths else settings
        report = index_into(settings, request, progress=bars, say=note if settings["progress"] and not bars else quiet)
        remember(settings, request)
    except KeyboardInterrupt:
        state = "the corpus is unchanged" if _current(settings) == before else "the corpus has a new generation"
        if _current(settings) is None:
            state = "nothing is in the corpus yet"
        hint = "run the same `index` again"
        raise InterruptedCommandError(f"Interrupted: {state} - at {settings['corpus']}", hint=hint) from None
    emit(report.as_dict(), text=report.text())
    for line in report.notes:
        note(line)
    return EXIT["unreadable"] if report.unreadable else 0


@corpus_app.command("info")
def info() -> int:
    """Show the projects that you may search. Auditors of all projects also see generations, rows and sizes."""
    from ..reading.grants import corpus_facts

    found = corpus_facts(settings_of("corpus"))
    emit(found, text=_facts(found))
    return 0


def _current(settings: Settings) -> str | None:
    """The current generation; None if there is no corpus or it is still empty."""
    from ..config.opening import corpus_of, head_of

    if head_of(settings) is None or not (corpus := corpus_of(settings)).projects():
        return None
    return corpus.generation


def _facts(found: dict) -> str:
    """A mapping as two columns; nested values as short text."""
    from .output import to_json

    rows = [(k, v if isinstance(v, (str, int, float)) else to_json(v)) for k, v in found.items()]
    return write_table("", ("what", "value"), rows)
