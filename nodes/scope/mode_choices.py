"""What one mode chooses for one set of variables: used by the node and, to refuse a request early, on arrival.

Reads a row of MODE_POLICIES and the variables of a request. Gives the columns of MODE_PRESETS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..columns.kept import OfTable
from ..errors import InputError
from .path_templates import filled, is_on, variable_values

_CHOSEN = ("lanes", "lane_k", "max_items", "window_days", "chunk_expansion", "exact_lookups", "citation_chaining",
           "include_deleted", "newest_first", "version")  # fmt: skip
_EXCLUSIONS = {"path": "excluded_paths", "level": "excluded_levels", "zone": "excluded_zones"}
_NO_MODE: dict[str, Any] = {
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
"""What a request without a mode gets: every path, and the line's own choices."""


policies_by_mode = OfTable[dict[str, dict[str, Any]]](lambda table: {row["mode"]: row for row in table.to_pylist()})
"""The rows of MODE_POLICIES by mode."""


def chosen(
    mode: str | None, variables: str | None, policies: Mapping[str, Mapping[str, Any]], at: str = "requests"
) -> dict[str, Any]:
    """The columns of MODE_PRESETS for a mode and the variables of a request (JSON); `policies` are rows of MODE_POLICIES.

    Raises:
        InputError: a path needs a variable that is not given, or one that is no name; `at` names the request.
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
