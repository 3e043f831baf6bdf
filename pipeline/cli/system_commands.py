"""`doctor` and `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import settings_of
from .output import EXIT, emit, note, shows_progress, write_table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(doctor)
    app.command()(demo)


def doctor() -> int:
    """Check corpus, model, grants and runs. Shows each setting and its source."""
    from ..maintenance.doctor import examine

    found = examine(settings_of("corpus", "runs"))
    text = write_table(
        "health", ("check", "status", "found", "what to do"), [tuple(c.values()) for c in found["checks"]]
    ) + write_table(
        "settings",
        ("setting", "value", "from"),
        [(s["name"], s["value"], s["origin"]) for s in found["settings"]],
    )
    emit(found, text=text)
    return EXIT["ok"] if found["healthy"] else EXIT["unreadable"]


def demo(
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Folder for the demo's output.")] = Path(
        ".demo"
    ),
    no_semantic: Annotated[bool, typer.Option("--no-semantic", help="Skip the semantic lane.")] = False,
) -> int:
    """Run a demo on the bundled sample and this repository. Shows a question, the same question refused, and a report."""
    from ..demo import run_demo

    settings = settings_of()
    demonstration = run_demo(
        folder,
        repository=Path.cwd(),
        semantic=not no_semantic,
        progress=shows_progress(settings["progress"]),
        say=note,
    )
    emit(demonstration.as_dict(), text=demonstration.screen())
    return EXIT["ok"]
