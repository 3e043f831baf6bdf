"""Scope resolution: turns each request into a contract that defines what it may see, before anything is searched.

Reads requests, grants, purpose and role policies. Gives `reach` (the grants that hold), `contract_bounds` (the projects
a contract reaches), `contracts`, `contract_layers` (the effect of each layer) and `scope_groups` (requests whose rows
can be gated once).

Note: grants add up, everything else narrows. A row is readable if one grant that holds at `asked_at` covers it fully
and none of its grants in that project denies its path; the request and its purpose then only narrow. An omitted request
field does not narrow: without `branch`, `namespace` or `test_suite` the rows of all of them count. Contracts never read
the corpus, so a project that is absent, foreign or unknown is refused in the same words; and so is a principal that the
credential may not act as, whether it exists or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.digests import digests_by_request, table_digest
from .columns.kept import OfTable
from .columns.keys import constants, distinct_numbers, first_that_holds, flat, positions, present, truth
from .columns.list_columns import collected, flattened, tidied
from .errors import PolicyError
from .frames import MICROS_PER_DAY, OPEN_START, micros
from .schema import TIMESTAMP, Table
from .scope.active_grants import (
    ActiveGrants,
    active_grants_of,
    acts_for_another,
    bounds_of,
    leaves_some,
    lifecycle_pairs,
)
from .score_terms import terms_of_plugins
from .tables import (
    CONTRACT_BOUNDS,
    CONTRACT_LAYERS,
    CONTRACTS,
    GRANTS,
    SCOPE_GROUPS,
    ContractBounds,
    ContractLayers,
    Contracts,
    Grants,
    ModePresets,
    PurposePolicies,
    Requests,
    RolePolicies,
    ScopeGroups,
)
from .vocabulary import CITATION_STYLES, LIFECYCLES, WEIGHED_TERMS
from .walls.gate_predicates import CONTRACT_COLUMNS

NOTHING_GRANTED = "nothing_granted"
NO_SOURCE_ALLOWED = "no_source_allowed"
NO_PATH_ALLOWED = "no_path_allowed"
NO_AUTHORITY_ACCEPTED = "no_authority_accepted"
ACT_AS_NOT_GRANTED = "act_as_not_granted"

_COPIED = ("principal", "asked_by", "project", "namespace", "workspace_root", "branch", "test_suite", "session_id", "purpose", "as_of",
           "asked_at", "allow_stale_memory", "require_citation", "require_snapshot", "tokenizer", "recall_effort")  # fmt: skip
_COUNTS = ("max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens")  # fmt: skip
_CHOICES = ("merge_policy", "output_shape", "detail")
_OF_PURPOSE = ["version", "include_states", "withheld_k", "instruction_sources", "mask", *_COUNTS, *_CHOICES]
_PRESET = ("mode", "search_paths", "excluded_paths", "excluded_levels", "excluded_zones", "window_paths",
           "chunk_expansion", "exact_lookups", "citation_chaining", "include_deleted", "newest_first")  # fmt: skip
_CAPPED = ("lane_k", "pool_k", "max_items")
_GROWING = ("max_items", "max_items_per_source", "max_chars")
_MOST = float(np.iinfo(np.int32).max)
_NARROWING = ("namespace", "workspace_root", "branch", "test_suite", "allowed_sources", "denied_sources", "allowed_paths",
              "denied_paths", "include_after", "exclude_after", "window_days", "accepted_authority", "min_authority")  # fmt: skip
_BY_GRANTS = "project, groups, bounds"
_BY_MODE = ", ".join((*_PRESET[1:], *_CAPPED, "mode_lanes", "path_window_start"))
_BY_ROLE = "weights, vocabulary, forbidden_sources, citation_style, required_evidence, source_diversity"
_ROLE_CAPS = {"max_items": "max_selected_chunks", "max_items_per_source": "max_chunks_per_source"}
_OF_ROLE = ["role", "version", "allowed_sources", "forbidden_sources", "required_evidence", "citation_style",
            "require_source_diversity", *_ROLE_CAPS.values()]  # fmt: skip
_WEIGHTS = tuple(f"weight_{name}" for name in WEIGHED_TERMS)
_INSTANT = ("as_of", "window_start", "window_end")

_GROUP_COLUMNS = Table(
    "scope_group_columns",
    "What decides which rows a request may see, time apart.",
    key=("request_id",),
    order=("request_id",),
    persist=False,
    columns={name: CONTRACTS.columns[name] for name in ("request_id", *CONTRACT_COLUMNS)}
    | {name: replace(CONTRACTS.columns[name], nullable=True) for name in _INSTANT},
)
_FIRST_MICRO, _ALL_DAYS = -62_135_596_800_000_000, 4_000_000
"""0001-01-01, and more days than a calendar has: window starts stay printable."""


def reach(requests: Requests, grants: Grants, role_policies: RolePolicies) -> ActiveGrants:
    """The grants that hold for each request: positions in GRANTS and in the requests sorted by id; and the refusals."""
    requests = _ordered(requests)
    held = active_grants_of(requests, grants)
    return replace(
        held,
        refused=_denied_reason(
            requests, held, _role_of(requests, role_policies, ["allowed_sources"])["allowed_sources"]
        ),
    )


def contract_bounds(requests: Requests, reach: ActiveGrants) -> ContractBounds:
    """The projects each contract reaches, by request, project and grant; denied requests reach nothing.

    These are its own project's grants and those of other projects that requests of its project may use.
    """
    return bounds_of(_ordered(requests), reach, np.asarray(reach.refused.is_valid()))


def contracts(
    requests: Requests,
    reach: ActiveGrants,
    contract_bounds: ContractBounds,
    purpose_policies: PurposePolicies,
    mode_presets: ModePresets,
    role_policies: RolePolicies,
) -> Contracts:
    """The resolved contract of each request, by request id: a function of request, grants and policies alone.

    A request is denied if the credential may not act as its principal, if no grant of its own project holds at
    `asked_at`, or if one of its allow lists is empty. A budget or cap comes from the request, else from its mode, else
    from its purpose; a mode's count is never exceeded. Counts below zero read as zero. A role only narrows: its caps,
    allowed and forbidden sources apply in addition.
    """
    requests = _ordered(requests)
    # Presets are sorted by request id, like the requests now.
    preset, policy, role = mode_presets, _policy_of(requests, purpose_policies), _role_of(requests, role_policies)
    counts = _counts(requests, preset, policy, role)
    columns = {
        "request_id": requests["request_id"],
        "contract_id": [""] * requests.num_rows,
        "denied": present(reach.refused),
        "denied_reason": reach.refused,
        "groups": reach.groups(),
        "allowed_sources": tidied(requests["allowed_sources"], keep_null=True),
        "denied_sources": tidied(requests["denied_sources"], keep_null=False),
        "allowed_paths": tidied(requests["allowed_paths"], keep_null=True),
        "denied_paths": tidied(requests["denied_paths"], keep_null=False),
        "window_start": _window_start(requests),
        "window_end": requests["exclude_after"],
        "include_states": _include_states(requests, preset, policy, counts["max_unverified_items"], reach),
        "accepted_authority": tidied(requests["accepted_authority"], keep_null=True),
        "min_authority": np.fmax(_numbers(requests["min_authority"]), 0).astype(np.int32),
        "withheld_k": policy["withheld_k"],
        "instruction_sources": tidied(policy["instruction_sources"], keep_null=False),
        "required_evidence": _union(requests["required_evidence"], role["required_evidence"]),
        "mask": tidied(policy["mask"], keep_null=True),
        "mode_lanes": preset["lanes"],
        "path_window_start": _instants(_days_before(requests, preset["window_days"])),
        "role": role["role"],
        "role_sources": tidied(role["allowed_sources"], keep_null=True),
        "forbidden_sources": tidied(role["forbidden_sources"], keep_null=False),
        "source_diversity": truth(role["require_source_diversity"]),
        "citation_style": role["citation_style"].fill_null(CITATION_STYLES.values[0]),
    }
    columns |= {name: preset[name] for name in _PRESET}
    columns |= {name: requests[name] for name in (*_COPIED, *_weights_of(requests))}
    columns |= counts | {name: pc.coalesce(requests[name], policy[name]) for name in _CHOICES}
    table = CONTRACTS.build(columns)
    ids = flat(table["request_id"])
    digests = digests_by_request([(table, CONTRACTS), (contract_bounds, CONTRACT_BOUNDS)], ids)
    contract_ids = pa.array([digest.hex()[:16] for digest in digests], pa.string())
    position = CONTRACTS.schema.get_field_index("contract_id")
    return table.set_column(position, CONTRACTS.schema.field(position), contract_ids)


def contract_layers(
    requests: Requests,
    grants: Grants,
    reach: ActiveGrants,
    purpose_policies: PurposePolicies,
    mode_presets: ModePresets,
    role_policies: RolePolicies,
) -> ContractLayers:
    """The layers of each contract, by request id and ordinal, in the order of the list below.

    The layers `act_as`, `mode`, `role` and `preset` are present only for requests that use them.
    """
    requests = _ordered(requests)
    policy = _policy_of(requests, purpose_policies)
    role = _role_of(requests, role_policies)
    given = {name: present(requests[name]) for name in (*_NARROWING, *_COUNTS, *_CHOICES)}
    given["allow_stale_memory"] = truth(requests["allow_stale_memory"])
    given["weights"] = np.any([present(requests[name]) for name in _weights_of(requests)], axis=0)
    by_role = {"role_sources": present(role["allowed_sources"])}
    by_role |= {name: present(role[cap]) for name, cap in _ROLE_CAPS.items()}
    count = requests.num_rows
    everyone = np.ones(count, dtype=bool)
    granted_by, by_request = pa.repeat(_grants_version(grants), count), pa.repeat("request", count)
    by_purpose = {name: ~given[name] for name in (*_COUNTS, *_CHOICES)}
    by_grants = [(~reach.granted, "denied"), (reach.narrowed, f"{_BY_GRANTS}, include_states")]
    layers = [
        (
            "act_as",
            acts_for_another(requests),
            granted_by,
            first_that_holds([(~reach.acting, "denied")], "principal", count),
        ),
        ("grants", everyone, granted_by, first_that_holds(by_grants, _BY_GRANTS, count)),
        ("purpose", everyone, policy["version"], _names(by_purpose, "include_states, withheld_k")),
        ("mode", present(mode_presets["mode"]), mode_presets["version"], pa.repeat(_BY_MODE, count)),
        ("role", present(role["role"]), role["version"], _names(by_role, _BY_ROLE)),
        ("preset", present(requests["preset"]), requests["preset"], pa.repeat("bounds", count)),
        ("request", everyone, by_request, _names(given, "as_of")),
    ]
    return _stacked(requests["request_id"], layers)


def scope_groups(contracts: Contracts, contract_bounds: ContractBounds) -> ScopeGroups:
    """The scope group of each request, by request id: equal access and visibility bounds, equal number.

    Numbers follow the bounds' digests, not the order of requests, and mean nothing outside their shard: a single
    request has number 0. A request that names a work tree shares a group only with those of its `as_of` and window,
    because the texts that shadow committed ones must have been recorded by then.
    """
    ids = flat(contracts["request_id"])
    if len(ids) == 1:
        denied = contracts["denied"][0].as_py()
        return SCOPE_GROUPS.build({"request_id": ids, "scope_group": [-1 if denied else 0], "leader": [not denied]})
    rooted = contracts["workspace_root"].is_valid()
    table = contracts.select(list(_GROUP_COLUMNS.columns))
    for name in _INSTANT:
        index = table.schema.get_field_index(name)
        instant = pc.if_else(rooted, table[name], pa.scalar(None, TIMESTAMP))
        table = table.set_column(index, pa.field(name, TIMESTAMP), instant)
    keys = np.array(digests_by_request([(table, _GROUP_COLUMNS), (contract_bounds, CONTRACT_BOUNDS)], ids))
    open_ = ~np.asarray(contracts["denied"])
    group = np.full(len(keys), -1, dtype=np.int32)
    leader = np.zeros(len(keys), dtype=bool)
    _, first, group[open_] = np.unique(keys[open_], return_index=True, return_inverse=True)
    leader[np.flatnonzero(open_)[first]] = True
    return SCOPE_GROUPS.build({"request_id": ids, "scope_group": group, "leader": leader})


_grants_version = OfTable(lambda grants: table_digest(grants, GRANTS)[:16])

_Layer = tuple[str, NDArray[np.bool_], pa.Array | pa.ChunkedArray, pa.Array | pa.ChunkedArray]
"""Name, presence per request, version and effect per request."""


def _stacked(request_ids: pa.ChunkedArray, layers: Sequence[_Layer]) -> pa.Table:
    """CONTRACT_LAYERS of the layers in their order, for the requests that have them."""
    count = len(request_ids)
    held = np.stack([present for _, present, _, _ in layers], axis=1)
    request, layer = np.nonzero(held)
    at = pa.array(layer * count + request)
    return CONTRACT_LAYERS.build(
        {
            "request_id": request_ids.take(pa.array(request)),
            "ordinal": np.cumsum(held, axis=1)[request, layer].astype(np.int32),
            "layer": pa.array([name for name, *_ in layers]).take(pa.array(layer)),
            "version": pa.concat_arrays([flat(version) for _, _, version, _ in layers]).take(at),
            "effect": pa.concat_arrays([flat(effect) for *_, effect in layers]).take(at),
        }
    )


def _denied_reason(requests: pa.Table, reach: ActiveGrants, role_sources: pa.ChunkedArray) -> pa.Array:
    """The reason each contract is denied; null where it is not."""
    refusals = [
        (~reach.acting, ACT_AS_NOT_GRANTED),
        (~reach.granted, NOTHING_GRANTED),
        (~leaves_some(requests["allowed_sources"]), NO_SOURCE_ALLOWED),
        (~leaves_some(role_sources), NO_SOURCE_ALLOWED),
        (~leaves_some(requests["allowed_paths"]), NO_PATH_ALLOWED),
        (~leaves_some(requests["accepted_authority"]), NO_AUTHORITY_ACCEPTED),
    ]
    return first_that_holds(refusals, None, requests.num_rows)


def _include_states(
    requests: pa.Table, preset: pa.Table, policy: pa.Table, cap: NDArray[np.int32], reach: ActiveGrants
) -> pa.ListArray:
    """The purpose's lifecycles that cap, request, mode and grants allow; never `revoked`."""
    names = LIFECYCLES.values
    shown = np.zeros((requests.num_rows, len(names)), dtype=bool)
    shown[lifecycle_pairs(policy["include_states"])] = True
    shown &= reach.states
    shown[:, names.index("revoked")] = False
    shown[cap == 0, names.index("candidate")] = False
    fresh_only = ~truth(requests["allow_stale_memory"]) & ~truth(preset["include_deleted"])
    for outdated in ("deprecated", "expired"):
        shown[fresh_only, names.index(outdated)] = False
    request, state = np.nonzero(shown)
    offsets = np.searchsorted(request, np.arange(requests.num_rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), constants(names).take(pa.array(state)))


def _weights_of(requests: pa.Table) -> tuple[str, ...]:
    """The columns of the requests' own weights, those of plugin terms last."""
    return (*_WEIGHTS, *terms_of_plugins(requests.column_names))


def _window_start(requests: pa.Table) -> pa.Array:
    """The later of `include_after` and `as_of` minus `window_days`."""
    back = _days_before(requests, requests["window_days"])
    return _instants(np.maximum(micros(requests["include_after"], OPEN_START), back))


def _days_before(requests: pa.Table, days: pa.ChunkedArray) -> NDArray[np.int64]:
    """`as_of` minus some days, in microseconds; `OPEN_START` where the days are null."""
    if days.null_count == len(days):
        return np.full(len(days), OPEN_START)
    length = np.clip(_numbers(days), 0, _ALL_DAYS)
    back = np.maximum(micros(requests["as_of"], 0) - np.nan_to_num(length) * MICROS_PER_DAY, _FIRST_MICRO)
    return np.where(np.isnan(length), OPEN_START, np.rint(back).astype(np.int64))


def _instants(micros: NDArray[np.int64]) -> pa.Array:
    """Microseconds as times, null where they are `OPEN_START`."""
    return pa.array(micros, mask=micros == OPEN_START).view(TIMESTAMP)


def _policy_of(requests: pa.Table, purpose_policies: pa.Table) -> pa.Table:
    """The policy of each request's purpose."""
    position = positions(requests["purpose"], purpose_policies["purpose"])
    if (position < 0).any():
        unknown = requests["purpose"].filter(pa.array(position < 0))[0].as_py()
        raise PolicyError.one_of(purpose_policies["purpose"].to_pylist(), unknown, "requests.purpose")
    return purpose_policies.select(_OF_PURPOSE).take(pa.array(position))


def _role_of(requests: pa.Table, role_policies: pa.Table, names: Sequence[str] = _OF_ROLE) -> pa.Table:
    """The overlay of each request's role; a row of nulls where none applies."""
    overlays = role_policies.select(names)
    if requests["role"].null_count == requests.num_rows:
        return pa.table([pa.nulls(requests.num_rows, field.type) for field in overlays.schema], names)
    return overlays.take(pc.index_in(flat(requests["role"]), flat(role_policies["role"])))


def _union(*lists: pa.ChunkedArray) -> pa.ListArray:
    """The sorted union of the lists, row by row."""
    rows, values = zip(*(flattened(one) for one in lists), strict=True)
    return collected(np.concatenate(rows), pa.concat_arrays([flat(value) for value in values]), len(lists[0]))


def _counts(requests: pa.Table, preset: pa.Table, policy: pa.Table, role: pa.Table) -> dict[str, NDArray[np.int32]]:
    """The smaller of the counts of a request and its mode, else the purpose's; at most the role's caps.

    Unset limits of items and characters grow with the tokens: a request for twice the tokens of its purpose gets twice
    its items and characters.
    """
    found, tokens = {}, _numbers(policy["max_tokens"])
    grown = np.fmax(_numbers(requests["max_tokens"]), tokens) / tokens
    for name in _COUNTS:
        asked = _numbers(requests[name])
        chosen = np.fmin(asked, _numbers(preset[name])) if name in _CAPPED else asked
        usual = np.minimum(np.floor(_numbers(policy[name]) * (grown if name in _GROWING else 1.0)), _MOST)
        count = np.maximum(np.where(np.isnan(chosen), usual, chosen), 0)
        cap = _ROLE_CAPS.get(name)
        found[name] = (np.fmin(count, _numbers(role[cap])) if cap else count).astype(np.int32)
    return found


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column of int32 or float64 as float64, which represents both exactly; NaN where it is null."""
    return flat(column).to_numpy(zero_copy_only=False).astype(np.float64)


def _names(flags: Mapping[str, NDArray[np.bool_]], always: str) -> pa.Array:
    """The names whose flag is set, comma separated, per row; each distinct set is formatted once."""
    held = np.stack(list(flags.values()), axis=1)
    sets, code = distinct_numbers(held @ (1 << np.arange(len(flags))))
    spelled = [", ".join([always, *(n for i, n in enumerate(flags) if one >> i & 1)]) for one in sets.tolist()]
    return pa.array(spelled, pa.string()).take(pa.array(code))


def _ordered(requests: pa.Table) -> pa.Table:
    return requests.sort_by("request_id") if requests.num_rows > 1 else requests
