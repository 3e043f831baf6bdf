"""Mode presets: what the mode of each request chooses inside the bounds, with the variables of its paths filled in.

Reads requests and mode policies. Gives `presets`, one row per request.

What one would get wrong: a preset opens nothing. Its paths, levels and zones become gates beside those of the grants, so
A(r) itself is narrower and every statistic is taken inside it; its counts cap what a lane and the block hold; what it
expands, looks up or chains comes in as hits that pass every gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from .errors import InputError
from .keys import flat
from .path_templates import filled, variable_values
from .tables import PRESETS, ModePolicies, Presets, Requests

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


def presets(requests: Requests, mode_policies: ModePolicies) -> Presets:
    """The preset of each request, by request id; each distinct pair of mode and variables is filled in once.

    Raises:
        InputError: a path needs a variable that the request does not give, or one that is no name.
    """
    requests = requests.sort_by("request_id")
    modes = flat(requests["mode"]).dictionary_encode(null_encoding="encode")
    given = flat(requests["variables"]).dictionary_encode(null_encoding="encode")
    pairs = np.stack([modes.indices.to_numpy(), given.indices.to_numpy()], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    names, texts = modes.dictionary.to_pylist(), given.dictionary.to_pylist()
    policies = {policy["mode"]: policy for policy in mode_policies.to_pylist()}
    rows = [_preset(names[mode], texts[text], policies) for mode, text in distinct.tolist()]
    resolved = PRESETS.from_rows([{"request_id": "", **row} for row in rows])
    table = resolved.take(pa.array(which.ravel()))
    return PRESETS.build({**{name: table[name] for name in PRESETS.columns}, "request_id": requests["request_id"]})


def _preset(mode: str | None, variables: str | None, policies: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if mode is None:
        return _NO_MODE
    if mode not in policies:
        raise InputError.one_of(policies, mode, "requests.mode")
    policy, values = policies[mode], variable_values(variables)
    included = zip(policy["include_paths"], policy["include_when"], strict=True)
    templates = [*policy["search_paths"], *(path for path, when in included if not when or values.get(when))]
    found: dict[str, Any] = {name: policy[name] for name in _CHOSEN}
    found |= {column: [] for column in _EXCLUSIONS.values()}
    for kind, value, unless in zip(*(policy[f"exclude_{part}"] for part in ("kinds", "values", "unless")), strict=True):
        if not (unless and values.get(unless)):
            found[_EXCLUSIONS[kind]].append(filled(value, values) if kind == "path" else value)
    return found | {
        "mode": mode,
        "pool_k": 2 * policy["lane_k"],
        "search_paths": sorted({filled(path, values) for path in templates}),
        "window_paths": sorted({filled(path, values) for path in policy["window_paths"]}),
    }
