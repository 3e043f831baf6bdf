"""Scope resolution: turns each request into a contract that defines what it may see, before anything is searched.

Reads requests, grants, purpose and role policies. Gives `reach` (the grants that hold), `contract_bounds` (the projects
a contract reaches) and `contracts`.

Note: grants add up, everything else narrows. A row is readable if one grant that holds at `asked_at` covers it fully
and none of its grants in that project denies its path; the request and its purpose then only narrow. An omitted request
field does not narrow: without `branch`, `namespace` or `test_suite` the rows of all of them count. Contracts never read
the corpus, so a project that is absent, foreign or unknown is refused in the same words; and so is a principal that the
credential may not act as, whether it exists or not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .columns.kept import rows_by
from .errors import PolicyError
from .scope.active_grants import Reach, active_grants_of, bounds_of, distinct
from .scope.mode_choices import chosen
from .tables import (
    CONTRACTS,
    ContractBounds,
    Contracts,
    Grants,
    ModePolicies,
    PurposePolicies,
    Requests,
    RolePolicies,
)
from .vocabulary import CITATION_STYLES, LIFECYCLES

REFUSALS: Mapping[str, str] = {
    "act_as_not_granted": "You may not act as this principal, or it does not exist.",
    "nothing_granted": "No grant that holds now lets this principal ask in this project.",
    "no_source_allowed": "The request allows no source.",
    "no_path_allowed": "The request allows no path.",
    "no_authority_accepted": "The request accepts no class of source.",
}
"""The reasons to refuse a request, and each in words."""

_COUNTS = ("max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens")  # fmt: skip
_CHOICES = ("merge_policy", "output_shape")
_OF_PURPOSE = ("withheld_k", "graph_floor", "graph_iterations")
_PRESET = ("mode", "search_paths", "excluded_paths", "excluded_levels", "excluded_zones", "window_paths",
           "chunk_expansion", "exact_lookups", "citation_chaining", "include_deleted", "newest_first")  # fmt: skip
_CAPPED = ("lane_k", "pool_k", "max_items")
_GROWING = ("max_items", "max_items_per_source", "max_chars")
_MOST = int(np.iinfo(np.int32).max)
_ALLOWANCES, _DENIALS = ("allowed_sources", "allowed_paths", "accepted_authority"), ("denied_sources", "denied_paths")
_DECIDING = ["principal", "asked_by", "project", "asked_at", *_ALLOWANCES, "role"]
"""The columns of a request that decide whether it is refused."""
_ROLE_CAPS = {"max_items": "max_selected_chunks", "max_items_per_source": "max_chunks_per_source"}
_FIRST, _ALL_DAYS = datetime(1, 1, 1, tzinfo=UTC), 4_000_000
"""The first instant, and more days than a calendar has: window starts stay printable."""


def reach(requests: Requests, grants: Grants, role_policies: RolePolicies) -> list[Reach]:
    """The grants that hold for each request, by request id, and the refusals."""
    asked, roles = _ordered(requests).select(_DECIDING).to_pylist(), rows_by(role_policies, "role")
    held = zip(active_grants_of(asked, grants), asked, strict=True)
    return [reach._replace(refused=_refused(reach, request, roles)) for reach, request in held]


def contract_bounds(requests: Requests, reach: list[Reach]) -> ContractBounds:
    """The projects each contract reaches, by request, project and grant; denied requests reach nothing.

    These are its own project's grants and those of other projects that requests of its project may use.
    """
    return bounds_of(_ordered(requests), reach)


def contracts(
    requests: Requests,
    reach: list[Reach],
    purpose_policies: PurposePolicies,
    mode_policies: ModePolicies,
    role_policies: RolePolicies,
) -> Contracts:
    """The resolved contract of each request, by request id: a function of request, grants and policies alone.

    A request is denied if the credential may not act as its principal, if no grant of its own project holds at
    `asked_at`, or if one of its allow lists is empty. A budget or cap comes from the request, else from its mode, else
    from its purpose; a mode's count is never exceeded. Counts below zero read as zero. A role only narrows: its caps,
    allowed and forbidden sources apply in addition.
    """
    requests = _ordered(requests)
    layered = _layered(requests, purpose_policies, mode_policies, role_policies)
    rows = [
        layers.request  # most columns of a contract are those of its request
        | {"contract_id": "", "denied": of.refused is not None, "denied_reason": of.refused, "groups": of.groups}
        | _resolved(layers, of.states)
        for layers, of in zip(layered, reach, strict=True)
    ]
    table = CONTRACTS.from_rows(rows)
    position = CONTRACTS.schema.get_field_index("contract_id")
    return table.set_column(position, CONTRACTS.schema.field(position), _contract_ids(table, reach))


class _Layered(NamedTuple):
    """A request, and the rows of the policies that apply to it; `role` is empty where none does."""

    request: dict[str, Any]
    preset: dict[str, Any]
    policy: dict[str, Any]
    role: dict[str, Any]


def _layered(
    requests: pa.Table, purpose_policies: pa.Table, mode_policies: pa.Table, role_policies: pa.Table
) -> list[_Layered]:
    """Each request with its policies."""
    policies, roles = rows_by(purpose_policies, "purpose"), rows_by(role_policies, "role")
    modes, layered = rows_by(mode_policies, "mode"), list[_Layered]()
    for request in requests.to_pylist():
        if request["purpose"] not in policies:
            raise PolicyError.one_of(list(policies), request["purpose"], "requests.purpose")
        preset = chosen(request["mode"], request["variables"], modes)
        layered.append(_Layered(request, preset, policies[request["purpose"]], roles.get(request["role"]) or {}))
    return layered


def _resolved(layers: _Layered, allowed: set[str]) -> dict[str, Any]:
    """The columns of a contract that more than one layer decides; `allowed` are the lifecycles its grants show."""
    request, preset, policy, role = layers
    counts = _counts(*layers)
    return {
        **{name: preset[name] for name in _PRESET},
        "mode_lanes": preset["lanes"],
        "window_start": _window_start(request),
        "window_end": request["exclude_after"],
        "include_states": _include_states(layers, counts["max_unverified_items"], allowed),
        "min_authority": max(request["min_authority"] or 0, 0),
        **{name: policy[name] for name in _OF_PURPOSE},
        "instruction_sources": distinct(policy["instruction_sources"]) or [],
        "required_evidence": distinct([*(request["required_evidence"] or ()), *(role.get("required_evidence") or ())]),
        "mask": distinct(policy["mask"]),
        "path_window_start": _before(request["as_of"], preset["window_days"]),
        "role": role.get("role"),
        "role_sources": distinct(role.get("allowed_sources")),
        "forbidden_sources": distinct(role.get("forbidden_sources")) or [],
        "source_diversity": bool(role.get("require_source_diversity")),
        "citation_style": role.get("citation_style") or CITATION_STYLES.values[0],
        **{name: distinct(request[name]) for name in _ALLOWANCES},
        **{name: distinct(request[name]) or [] for name in _DENIALS},
        **{name: _or(request[name], policy[name]) for name in _CHOICES},
        **counts,
    }


def _contract_ids(contracts: pa.Table, reach: list[Reach]) -> pa.Array:
    """The first 16 hex digits of the SHA-256 of each contract and its bounds as JSON, ids and envelope apart."""
    texts = {
        place: _json([{name: row[name] for name in row if name != "rule_id"} for row in bounds])
        for place, bounds in {id(of.bounds): of.bounds for of in reach}.items()
    }
    digests = []
    for row, of in zip(
        contracts.drop_columns(["request_id", "contract_id", "asked_at"]).to_pylist(), reach, strict=True
    ):
        text = f"[{_json(row)}, {'[]' if row['denied'] else texts[id(of.bounds)]}]"
        digests.append(hashlib.sha256(text.encode()).hexdigest()[:16])
    return pa.array(digests, pa.string())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _refused(held: Reach, request: dict[str, Any], roles: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The reason to refuse a request: nothing is granted to it, or it allows nothing; None where it is accepted."""
    if not held.acting:
        return "act_as_not_granted"
    if not held.grants:
        return "nothing_granted"
    role = roles.get(request["role"]) or {}
    if [] in (request["allowed_sources"], role.get("allowed_sources")):
        return "no_source_allowed"
    if request["allowed_paths"] == []:
        return "no_path_allowed"
    return "no_authority_accepted" if request["accepted_authority"] == [] else None


def _include_states(layers: _Layered, cap: int, allowed: set[str]) -> list[str]:
    """The purpose's lifecycles that cap, request, mode and grants allow; never `revoked`."""
    hidden = {"revoked"} | ({"candidate"} if cap == 0 else set())
    if not layers.request["allow_stale_memory"] and not layers.preset["include_deleted"]:
        hidden |= {"deprecated", "expired"}
    states = allowed.intersection(layers.policy["include_states"] or ()) - hidden
    return [name for name in LIFECYCLES.values if name in states]


def _window_start(request: dict[str, Any]) -> datetime | None:
    """The later of `include_after` and `as_of` minus `window_days`."""
    return max(
        filter(None, (_before(request["as_of"], request["window_days"]), request["include_after"])), default=None
    )


def _before(as_of: datetime, days: float | None) -> datetime | None:
    """An instant minus some days; None where there are none."""
    return None if days is None else as_of - min(timedelta(min(max(days, 0), _ALL_DAYS)), as_of - _FIRST)


def _counts(
    request: dict[str, Any], preset: dict[str, Any], policy: dict[str, Any], role: dict[str, Any]
) -> dict[str, int]:
    """The smaller of the counts of a request and its mode, else the purpose's; at most the role's caps.

    Unset limits of items and characters grow with the tokens: a request for twice the tokens of its purpose gets twice
    its items and characters.
    """
    found, grown = {}, max(_or(request["max_tokens"], 0), policy["max_tokens"]) / policy["max_tokens"]
    for name in _COUNTS:
        asked = [one[name] for one in ((request, preset) if name in _CAPPED else (request,)) if one[name] is not None]
        usual = min(int(policy[name] * (grown if name in _GROWING else 1.0)), _MOST)
        count = max(min(asked, default=usual), 0)
        cap = role.get(_ROLE_CAPS.get(name, ""))
        found[name] = count if cap is None else min(count, cap)
    return found


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _ordered(requests: pa.Table) -> pa.Table:
    return requests.sort_by("request_id") if requests.num_rows > 1 else requests
