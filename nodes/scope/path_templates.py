"""Path templates of modes (S1.2): globs with `{variables}`, filled in as literals.

A path of a mode begins at the root of the portfolio: `/decisions/` is the folder `decisions` of the indexed tree, so the
filled path loses the slash that stored paths do not have. `{current_venture}` and `{venture}` name the same variable.

A value is literal text of one segment: a `*` in it matches a star, and one with a `/` is refused, because it
would move the path to another level. So is one with a line end or another character that does not print, because these
separate lists of globs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ..errors import InputError

__all__ = ["filled", "is_on", "variable_values", "variables_in"]

_VARIABLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_WILD = re.compile(r"[*?\[]")
_PREFIX = "current_"
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""How a switch is written, in any case: variables of the command line and of CSV are text."""


def variables_in(template: str) -> list[str]:
    """The names of the variables in a template, in order."""
    return _VARIABLE.findall(template)


def filled(template: str, values: Mapping[str, str], at: str) -> str:
    """The glob of a template, relative to the root.

    Raises:
        InputError: a variable has no value; the message names it.
    """

    def literal(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise InputError(
                f"Expected a value for {{{name}}} of {template}, got none - at {at}.variables.{name}",
                hint=f"give `variables: {{{name}: ...}}` in the request or in SHO.json; given: {known}.",
            )
        return _WILD.sub(r"[\g<0>]", values[name])

    return _VARIABLE.sub(literal, template).removeprefix("/")


def is_on(name: str, values: Mapping[str, str], at: str, template: str = "") -> bool:
    """Whether a variable that a mode names as a condition (`when`, `unless`) holds; one that is not given does not.

    One that fills a path of its own entry, the `template`, holds when it is given; any other is a switch.

    Raises:
        InputError: the value is neither true nor false: what a mode excludes stays excluded.
    """
    if name not in values or name in variables_in(template):
        return name in values
    try:
        return _SWITCH[values[name].lower()]
    except KeyError:
        raise InputError.described(f"one of {', '.join(_SWITCH)}", "another text", f"{at}.variables.{name}") from None


def variable_values(text: str | None, at: str) -> dict[str, str]:
    """The variables of a request, from its JSON object, under both of their names.

    Raises:
        InputError: it is no object, or a value is not the name of one folder.
    """
    if text is None:
        return {}
    at = f"{at}.variables"
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.described("a JSON object of names", "text that is none", at) from error
    if not isinstance(given, dict):
        raise InputError.of_kind("a JSON object of names", given, at)
    values = {name: _segment(value, f"{at}.{name}") for name, value in given.items() if value not in (None, False)}
    twins = {_twin(name): value for name, value in values.items()}
    return twins | values


def _segment(value: object, at: str) -> str:
    """A value as the name of one folder; `true` is a switch, and numbers are written out."""
    if isinstance(value, bool):
        return "true"
    if isinstance(value, (int, float)):
        return str(value)
    if (
        not isinstance(value, str)
        or not value.strip()
        or not value.isprintable()
        or "/" in value
        or value in (".", "..")
    ):
        if isinstance(value, str):
            raise InputError.described("the name of one folder, without /", "text that is none", at)
        raise InputError.of_kind("the name of one folder, without /", value, at)
    return value


def _twin(name: str) -> str:
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else f"{_PREFIX}{name}"
