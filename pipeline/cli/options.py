"""The options of every command and those of several, declared once; and the settings with those of the command that runs."""

from __future__ import annotations

import copy
import os
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from .output import GIVEN, given, note


class Command(TyperCommand):
    """A command that takes the global options, those of `root`, after its name, too."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *self._global(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = [each for each in self.get_params(ctx) if each.param_type_name == "option"]
        names = {name for each in options for name in (*each.opts, *each.secondary_opts)}
        valued = {name for each in options if not each.is_flag for name in each.opts}
        for name, value in pairwise(args[: args.index("--")] if "--" in args else args):
            if name in valued and value in names:
                from ...nodes.errors import InputError

                raise InputError.described("a value", f"the option {value}", name)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        _give({option.name: ctx.params.pop(option.name) for option in self._global(ctx)})
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        if shared := self._global(ctx):
            names = ", ".join("/".join(option.opts) for option in shared)
            formatter.write_paragraph()
            formatter.write_text(
                f"Also the options of every command, which `scoped-retrieval --help` describes: {names}."
            )

    def _global(self, ctx: Any) -> list[Any]:
        """The options of the application, hidden in the help of each command."""
        options = ctx.find_root().command.params
        shared = [copy.copy(option) for option in options if option.expose_value and not option.is_eager]
        for option in shared:
            option.hidden = True
        return shared if ctx.parent else []


def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
    enter: str | None = typer.Option(None, "-C", metavar="DIR", help="Run in this folder."),
    corpus: str | None = typer.Option(None, "--corpus", metavar="DIR", help="Folder or URL of the corpus."),
    runs: str | None = typer.Option(None, "--runs", metavar="DIR", help="Folder or URL of the runs."),
    grants: str | None = typer.Option(None, "--grants", metavar="FILE", help="Grants file."),
    project: str | None = typer.Option(
        None, "-p", "--project", metavar="P", help="The project; default: your only one."
    ),
    configured: Annotated[
        list[str] | None,
        typer.Option(
            "-c", metavar="NAME=VALUE", help="A setting, for this command: -c lanes=lexical,exact. `doctor` lists them."
        ),
    ] = None,
    profile: str | None = typer.Option(None, "--profile", metavar="NAME", help="Use the settings of this profile."),
    adopt: bool = typer.Option(False, "--adopt", help="Trust the corpus and runs in this folder from now on."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: bool = typer.Option(False, "-q", "--quiet", help="Print no notes on standard error."),
) -> None:
    _give({name: value for name, value in locals().items() if name != "version"})
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("scoped-retrieval"))
        raise typer.Exit()


def _give(options: dict[str, Any]) -> None:
    """Add the global options that were given to those of the running command, and enter the folder of `-C`."""
    from ...nodes.errors import InputError

    found = GIVEN.get()
    for name, value in options.items():
        if value not in (None, False, [], ()):
            found[name] = [*found.get(name, ()), *value] if isinstance(value, list | tuple) else value
    if folder := GIVEN.get().pop("enter", None):
        try:
            os.chdir(Path(folder).expanduser())
        except (OSError, RuntimeError) as error:
            raise InputError.described("a folder", "none", f"-C {folder}") from error


PresetFlag = Annotated[
    Path | None, typer.Option("--preset", metavar="FILE", help="Request fields that bound every request: JSON or YAML.")
]
SetFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="A field of the request, e.g. denied_sources=external, time.as_of=2026-01-01T00:00:00Z; lists with `;`.",
    ),
]
_WRITER = {"corpus": "index", "runs": "run"}


def pairs_of(given: list[str] | None, flag: str = "--set") -> list[tuple[str, str]]:
    """The names and values of a flag such as `--set`."""
    from ...nodes.errors import InputError

    pairs = [pair.partition("=") for pair in given or ()]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise InputError.expected("NAME=VALUE", wrong[0], flag)
    return [(name, value) for name, _, value in pairs]


def fields_of(given: list[str] | None) -> dict[str, Any]:
    """The fields of a request and their values in `--set`; None for one without a value.

    Raises:
        InputError: a pair has another form, or a field is given twice.
    """
    from ...nodes.errors import InputError
    from ..requests.files import cell

    pairs = [(name.strip(), value.strip()) for name, value in pairs_of(given)]
    found = {name: cell(name, value) if value else None for name, value in pairs}
    if len(found) < len(pairs):
        raise InputError.described("each field once", "one twice", "--set")
    return found


def named(settings: Any, name: str) -> tuple[str, str]:
    """What an id means, a snapshot, a run or a model input, and the id itself for a name such as `@`.

    Raises:
        AccessError: there is no such snapshot that the principal may read.
    """
    from ..reading.across_runs import snapshot_named
    from ..runs.ids import is_snapshot

    name = snapshot_named(settings, name)
    return "snapshot" if is_snapshot(name) else "run" if name.startswith("run-") else "input", name


def settings_of(*stores: str, **flags: Any) -> Any:
    """The settings with the global options and the flags of a command, which reads or writes these stores.

    Raises:
        InputError: a setting is invalid, or a store is a file.
        StoreError: a store came with the folder, and the user did not adopt it.
    """
    from ...nodes.errors import InputError
    from ..config.opening import adopt, expect_known, expect_untracked
    from ..config.settings import load_settings

    shared = {name: given(name) for name in ("corpus", "runs", "grants", "project", "profile")}
    settings = load_settings(shared | flags, chosen=dict(pairs_of(given("configured"), "-c")))
    if settings.ignored:
        note(f"{settings.ignored} is not read: it is for a corpus and runs in its folder, and others are named")
    for name in stores:
        if settings[name].is_file():
            hint = f"--{name} names the folder that `{_WRITER[name]}` writes, not a file in it."
            raise InputError.described("a folder", "a file", f"{settings.origin(name)}: {settings[name]}", hint=hint)
        if given("adopt"):
            adopt(settings, name)
        else:
            expect_untracked(settings, name)
        expect_known(settings, name)
    return settings
