"""The choices of one mode for one set of variables: used by the node and, to refuse a request early, on arrival.

Reads a row of MODE_POLICIES and the variables of a request. Gives what the mode chooses.

Note: a mode grants no access. The gates apply its paths, levels and zones in addition to those of grants and request, so
A(r) itself is narrower and every statistic is computed inside it.

A path of a mode begins at the root of the portfolio (S1.2): `/decisions/` is the folder `decisions` of the indexed
tree, so the filled path loses the leading slash, which stored paths do not have. `{current_venture}` and `{venture}`
name the same variable. A value is literal text of one segment: a `*` in it matches a star, and one with a `/` is
refused, because it would move the path to another level. So is one with a line break or another non-printable
character, because these separate lists of globs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import InputError

_CHOSEN = ("lanes", "lane_k", "max_items", "window_days", "chunk_expansion", "exact_lookups", "citation_chaining",
           "include_deleted", "newest_first", "version")  # fmt: skip
_EXCLUSIONS = {"path": "excluded_paths", "level": "excluded_levels", "zone": "excluded_zones"}
_NO_MODE: dict[str, Any] = {
    **dict.fromkeys(("mode", "version", "lane_k", "pool_k", "max_items", "window_days")),
    "search_paths": None,
    "excluded_paths": [],
    "excluded_levels": [],
    "excluded_zones": [],
    "window_paths": [],
    "lanes": [],
    "chunk_expansion": True,
    "exact_lookups": False,
    "citation_chaining": False,
    "include_deleted": False,
    "newest_first": False,
}
"""The choices for a request without a mode: every path, and the defaults of the line."""


def chosen(
    mode: str | None, variables: str | None, policies: Mapping[str, Mapping[str, Any]], at: str = "requests"
) -> dict[str, Any]:
    """What a mode chooses for the variables of a request (JSON), by field; `policies` are rows of MODE_POLICIES by mode.

    Raises:
        InputError: a path needs a variable that is missing or not a valid name; `at` names the request.
    """
    if mode is None:
        return _NO_MODE
    if mode not in policies:
        raise InputError.one_of(policies, mode, f"{at}.mode")
    policy, values = policies[mode], variable_values(variables, at)
    included = zip(policy["include_paths"], policy["include_when"], strict=True)
    templates = [
        *policy["search_paths"],
        *(path for path, when in included if not when or is_on(when, values, at, path)),
    ]
    found: dict[str, Any] = {name: policy[name] for name in _CHOSEN}
    found |= {column: [] for column in _EXCLUSIONS.values()}
    for kind, value, unless in zip(*(policy[f"exclude_{part}"] for part in ("kinds", "values", "unless")), strict=True):
        if not (unless and is_on(unless, values, at, value)):
            found[_EXCLUSIONS[kind]].append(filled(value, values, at) if kind == "path" else value)
    return found | {
        "mode": mode,
        "pool_k": 2 * policy["lane_k"],
        "search_paths": sorted({filled(path, values, at) for path in templates}),
        "window_paths": sorted({filled(path, values, at) for path in policy["window_paths"]}),
    }


_VARIABLE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_WILD = re.compile(r"[*?\[]")
_PREFIX = "current_"
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""The spellings of a switch, in any case: variables from the command line and from CSV are text."""


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
    """Whether a variable that a mode names as a condition (`when`, `unless`) is true; a missing one is false.

    One that fills a path of its own entry, the `template`, is true when present; any other is a switch.

    Raises:
        InputError: the value is neither true nor false, so that the exclusions of a mode are never dropped.
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
        InputError: it is not an object, or a value is not the name of one folder.
    """
    if text is None:
        return {}
    at = f"{at}.variables"
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.described("a JSON object of names", "other text", at) from error
    if not isinstance(given, dict):
        raise InputError.of_kind("a JSON object of names", given, at)
    values = {name: _segment(value, f"{at}.{name}") for name, value in given.items() if value not in (None, False)}
    twins = {_twin(name): value for name, value in values.items()}
    return twins | values


def _segment(value: object, at: str) -> str:
    """A value as the name of one folder; `true` is a switch, and numbers become text."""
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
            raise InputError.described("the name of one folder, without /", "other text", at)
        raise InputError.of_kind("the name of one folder, without /", value, at)
    return value


def _twin(name: str) -> str:
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else f"{_PREFIX}{name}"
