"""Paths that begin with `~`, for every command: the shell leaves them as they are in quotes and behind `--out=`.

Gives: `with_home_paths`, which has the commands of an application get the path that is meant. A parameter is a path by its
type; the few that are a path or an id expand it where they find it is a path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

import typer

__all__ = ["with_home_paths"]


def with_home_paths(app: typer.Typer) -> typer.Typer:
    """The application, whose commands and groups get paths under the home that `~` means.

    Raises:
        InputError: as a command is called: no user has the home that is meant.
    """
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _expanding(inspect.unwrap(command.callback))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            with_home_paths(group.typer_instance)
    return app


def _expanding(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def expanded(*args: Any, **given: Any) -> Any:
        return command(*args, **{name: _expanded(command, name, value) for name, value in given.items()})

    return expanded


def _expanded(command: Callable[..., Any], name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_expanded(command, name, each) for each in value]
    if not isinstance(value, Path) or not str(value).startswith("~"):
        return value
    from ..storage.places import at_home

    return at_home(value, _as_typed(command, name))


def _as_typed(command: Callable[..., Any], name: str) -> str:
    """A parameter as its user knows it: the flag, or the name of the argument in the help."""
    (declared,) = get_type_hints(command, include_extras=True)[name].__metadata__
    if isinstance(declared, typer.models.ArgumentInfo):
        return declared.metavar or name.upper()
    return next(iter(declared.param_decls or ()), f"--{name.replace('_', '-')}")
