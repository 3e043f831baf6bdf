"""`policies list|check|score`: the roles of document 004, its overlays and bundles; `grants show|token`: who may read what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..views.text_table import plain_text, row_table
from .options import settings_of
from .output import EXIT, emit, frame_table, note

policies = typer.Typer(help="List, check and measure roles and other policies.", no_args_is_help=True)
grants = typer.Typer(help="Show grants, and create tokens.", no_args_is_help=True)

INVALID = 2
"""Exit code for an invalid document: the same as for any other input error."""


@policies.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A role overlay or a RetrievalBundle, JSON.")],
) -> int:
    """Validate a role overlay or a bundle of document 004. Prints {valid, errors}: file, key, expected and actual value."""
    from ...nodes.errors import InputError
    from ..config.policies.roles import validate_overlay
    from ..sources.jsonl import parse_json
    from ..views.bundle import validate_bundle

    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: FILE {file}") from error
    try:
        value = parse_json(data, str(file))
        is_bundle = isinstance(value, dict) and "selected" in value
        found = (validate_bundle if is_bundle else validate_overlay)(value, str(file))
    except InputError as error:
        found = {"valid": False, "errors": [error.message]}
    emit(found, text="valid\n" if found["valid"] else "".join(f"{e}\n" for e in found["errors"]))
    return EXIT["ok"] if found["valid"] else INVALID


@policies.command("list")
def list_roles() -> None:
    """List the roles that requests may name. Includes those of the `policies` folder."""
    from ..config.policies.roles import load_roles

    rows = load_roles(settings_of()["policies"]).policies.select(["role", "version", "label", "mission"]).to_pylist()
    emit(rows, text=row_table(rows))


@policies.command()
def score(
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Evidence in the format of `index --add evidence=PATH`; default: the bundled sample."
        ),
    ] = None,
    golden: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Golden sets, <golden_set_id>.jsonl; default: the bundled ones.")
    ] = None,
    metric: Annotated[str, typer.Option(help="A measure by its ir_measures name.")] = "nDCG@5",
) -> int:
    """Measure every role on every golden set. Exits with 5 if a role does not outperform the roles that it must beat on its own set."""
    from ..config.policies.tables import load_policies
    from ..evaluation.roles import bundled_sample, score_roles

    sample, sets = bundled_sample()
    done = score_roles(load_policies(settings_of()["policies"]), evidence or sample, golden or sets, metric)
    emit(done.as_dict(), text=frame_table(f"{metric}: golden set by role", done.table.rename_axis("golden set")))
    for line in done.failed:
        note(f"not distinct: {line}")
    return EXIT["differs"] if done.failed else EXIT["ok"]


@grants.command("show")
def show_grants() -> None:
    """Show your grants that hold now. Auditors also see those of others in their projects."""
    from ..reading.grants import grants_of_readers

    settings = settings_of("corpus")
    rows = [{name: value for name, value in row.items() if value is not None} for row in grants_of_readers(settings)]
    emit(rows, text="\n".join(map(plain_text, rows)))


@grants.command()
def token(
    principal: Annotated[str, typer.Argument(metavar="NAME", help="A principal of the grants file.")],
) -> None:
    """Create a bearer token of a principal. It is printed once; the grants file gets its SHA-256. Comments of the file are not kept."""
    from ..config.grants import write_token

    settings = settings_of("corpus")
    made = write_token(settings.grants_path, principal)
    emit({"principal": principal, "token": made}, text=made)
    note(f"{settings.grants_path} has its SHA-256; a server with `tokens` refuses every request without one")
