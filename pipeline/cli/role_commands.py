"""`overlay` and `bundle`: role overlays and retrieval bundles of document 004, checked, listed and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import settings_of
from .output import EXIT, emit, note, write_table

__all__ = ["register"]

INVALID = 2
"""Exit code for an invalid document: the same as for any other input error."""
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    overlays = typer.Typer(help="Check, list and measure role overlays.", no_args_is_help=True, rich_markup_mode=None)
    overlays.command("validate")(validate_overlay_file)
    overlays.command("list")(list_overlays)
    overlays.command("score")(score)
    app.add_typer(overlays, name="overlay")
    bundles = typer.Typer(help="Check retrieval bundles.", no_args_is_help=True, rich_markup_mode=None)
    bundles.command("validate")(validate_bundle_file)
    app.add_typer(bundles, name="bundle")


def validate_overlay_file(file: FileArgument) -> int:
    """Validate a role overlay. Prints {valid, errors}, each error with file, key, expected and actual value."""
    from ..config.policies.overlays import validate_overlay

    return _validated(file, validate_overlay)


def validate_bundle_file(file: FileArgument) -> int:
    """Validate a RetrievalBundle. Prints {valid, errors}, each error with file, key, expected and actual value."""
    from ..views.bundle_models import validate_bundle

    return _validated(file, validate_bundle)


def list_overlays() -> int:
    """List the roles that requests may name. Includes those of the `policies` folder."""
    from ..config.policies.roles import load_roles

    columns = ("role", "version", "label", "mission")
    rows = load_roles(settings_of()["policies"]).policies.select(list(columns)).to_pylist()
    emit(rows, text=write_table("", columns, [tuple(row.values()) for row in rows]))
    return EXIT["ok"]


def score(
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Evidence in the format of `index --evidence`; default: the bundled sample."),
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
    rows = [(name, *(f"{value:.4f}" for value in done.table.loc[name])) for name in done.table.index]
    text = write_table(f"{metric}: golden set by role", ("golden set", *done.table.columns), rows)
    emit(done.as_dict(), text=text)
    for line in done.failed:
        note(f"not distinct: {line}")
    return EXIT["differs"] if done.failed else EXIT["ok"]


def _validated(file: Path, validate: Any) -> int:
    from ...nodes.errors import InputError
    from ..sources.jsonl import parse_json

    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: FILE {file}") from error
    try:
        found = validate(parse_json(data, str(file)), str(file))
    except InputError as error:
        found = {"valid": False, "errors": [error.message]}
    emit(found, text="valid\n" if found["valid"] else "".join(f"{e}\n" for e in found["errors"]))
    return EXIT["ok"] if found["valid"] else INVALID
