"""`context-actions`: what was retrieved by whom, as `context_actions.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..views.printed import json_document, printed
from .options import GrantsFlag, JsonFlag, RunsFlag, settings_of
from .output import EXIT, deliver, note_left_out

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("context-actions")(context_actions)


def context_actions(
    runs: RunsFlag = None,
    grants: GrantsFlag = None,
    principal: Annotated[
        str | None,
        typer.Option(help="Principal whose retrievals to list; default: you. Another principal needs an audit grant."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Every retrieval with mode, scope, k and citations, as CSV; `index --logs` makes it evidence for review."""
    from ..asking.service import read_each, readable_snapshots
    from ..runs import RunStore
    from ..views.context_actions import actions_of, as_csv

    settings = settings_of(runs=runs, grants=grants)
    whose = principal or settings.principal
    read, damaged = read_each(
        settings,
        RunStore(settings["runs"], create=False).list(),
        lambda run: actions_of(run, readable_snapshots(settings, run), whose),
    )
    note_left_out(len(damaged))
    found = [action for _, actions in read for action in actions]
    found.sort(key=lambda action: (action["timestamp"], action["snapshot_id"]))
    deliver(json_document(found) if as_json and out is None else printed(as_csv(found)), out)
    return EXIT["ok"]
