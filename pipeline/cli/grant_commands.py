"""`grants show`, `grants token`: who may read what, and bearer tokens for servers."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import settings_of
from .output import EXIT, emit, note, to_json, write_table

__all__ = ["register"]

grants_app = typer.Typer(help="Show grants, and create tokens.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.add_typer(grants_app, name="grants")


@grants_app.command()
def show() -> int:
    """Show your grants that hold now. Auditors also see those of others in their projects."""
    from ..reading.grants import grants_of_readers

    settings = settings_of("corpus")
    rows = [{name: value for name, value in row.items() if value is not None} for row in grants_of_readers(settings)]
    named = ("rule_id", "principal", "project", "zone", "audit")
    cells = [
        (*(row.get(name) for name in named), ", ".join(f"{k}={to_json(v)}" for k, v in row.items() if k not in named))
        for row in rows
    ]
    emit(rows, text=write_table("", ("rule", "principal", "project", "zone", "audit", "more"), cells))
    return EXIT["ok"]


@grants_app.command()
def token(
    principal: Annotated[str, typer.Argument(metavar="NAME", help="A principal of the grants file.")],
) -> int:
    """Create a bearer token of a principal. It is printed once; the grants file gets its SHA-256. Comments of the file are not kept."""
    from ..config.grants import write_token

    settings = settings_of("corpus")
    made = write_token(settings.grants_path, principal)
    emit({"principal": principal, "token": made}, text=made)
    note(f"{settings.grants_path} has its SHA-256; a server with `tokens` refuses every request without one")
    return EXIT["ok"]
