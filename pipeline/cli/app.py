"""The Typer application and its entry point.

`main` is the only place that turns errors into exit codes: 2 for usage errors, otherwise the code of the error's class
(`nodes/errors.py`).

Paths that begin with `~` are expanded everywhere: the shell does not expand them in quotes and after `--out=`. A
parameter is a path by its type; the few that are a path or an id are expanded once they turn out to be a path.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from .options import Command, root
from .output import EXIT, GIVEN, note, print_error

COMMANDS = {
    "retrieval_commands": ("ask", "run"),
    "corpus_commands": ("index", "status", "doctor", "demo"),
    "evaluation_commands": ("eval", "tune"),
    "log_commands": ("log",),
    "verify_commands": ("verify", "gc", "erase", "leak-test"),
    "view_commands": ("show", "xray", "lineage", "diff", "what-if", "sql"),
    "contract_commands": ("contract", "why"),
    "policy_commands": ("policies", "grants"),
    "context_commands": ("context",),
    "serving_commands": ("serve", "connect"),
}
"""The modules of this package with their commands, functions or groups of the same names."""
USAGE = 2
"""The exit code of a usage or input error."""


def application(args: Sequence[str]) -> Any:
    """The application for these arguments: only the command that they begin with, else all. Typer builds every flag of
    every registered command, which takes longer than the imports of `--help`.
    """
    known = {command: module for module, commands in COMMANDS.items() for command in commands}
    return _application((args[0],) if args and args[0] in known else tuple(known))


@cache
def _application(names: tuple[str, ...]) -> Any:
    """These commands, built once in a process."""
    app = typer.Typer(
        name="scoped-retrieval",
        help="Retrieve evidence inside an access boundary and record what was shown. Start with `ask`.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback(invoke_without_command=True)(root)
    for module, commands in COMMANDS.items():
        for name in (name for name in commands if name in names):
            found = getattr(import_module(f".{module}", __package__), name.replace("-", "_"))
            if isinstance(found, typer.Typer):
                app.add_typer(found, name=name)
            else:
                app.command(name)(found)
    return typer.main.get_command(_completed(app))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. The console script passes it to the shell."""
    args = list(sys.argv[1:] if argv is None else argv)
    GIVEN.set({})
    as_json, name = "--json" in args, Path(sys.argv[0]).stem if argv is None else "scoped-retrieval"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(encoding="utf-8")  # a block is byte-identical on every platform
    try:
        code = int(application(args)(args=args, prog_name=name, standalone_mode=False) or 0)
        # Typer answers Ctrl-C with this code and an empty line.
        return print_error(KeyboardInterrupt(), as_json=as_json) if code == EXIT["interrupted"] else code
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 1
    except BrokenPipeError:
        # The reader closed our output, e.g. `| head`: print nothing more and flush nothing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        return print_error(interrupt, as_json=as_json)
    except Exception as error:  # the only place that turns errors into exit codes
        if type(error).__name__ == "Abort":
            return print_error(KeyboardInterrupt(), as_json=as_json)
        if hasattr(error, "format_message"):  # a usage error of Typer
            return _usage(error, as_json)
        if sys.flags.dev_mode:
            raise
        return print_error(error, as_json=as_json)


def _usage(error: Exception, as_json: bool) -> int:
    from ...nodes.errors import InputError

    if type(error).__name__ == "NoArgsIsHelpError":
        note(error.format_message())  # type: ignore[attr-defined]
        return USAGE
    context = getattr(error, "ctx", None)
    hint = f"`{context.command_path} --help` lists its arguments and options." if context else ""
    message = error.format_message()  # type: ignore[attr-defined]
    return print_error(InputError(message, hint=hint), as_json=as_json)


def _completed(app: typer.Typer) -> typer.Typer:
    """The application with global options after the names of all commands, and `~` expanded in their paths.

    Raises:
        InputError: when a command is called: the home folder is unknown.
    """
    for command in app.registered_commands:
        command.cls = Command
        if command.callback is not None:
            command.callback = _expanding(inspect.unwrap(command.callback))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _completed(group.typer_instance)
    return app


def _expanding(command: Callable[..., Any]) -> Callable[..., Any]:
    from ..storage.places import at_home

    def expanded(value: Any) -> Any:
        if isinstance(value, list):
            return [expanded(each) for each in value]
        return at_home(value, "") if isinstance(value, Path) else value

    @wraps(command)
    def called(**given: Any) -> Any:
        at_home(Path("~"), "HOME")  # libraries need one at their import
        return command(**{name: expanded(value) for name, value in given.items()})

    return called
