"""Scope resolution: turns each request into a contract that says what it may see, before anything is searched.

Reads requests, grants, purpose and role policies. Gives `reach` (the grants that hold), `contract_bounds` (the projects a
contract reaches), `contracts`, `contract_layers` (what each layer did) and `scope_groups` (requests whose rows can be
gated once).

What one would get wrong: grants add up, everything else narrows. A row is readable if one grant that holds at `asked_at`
covers it whole and none of its grants in that project denies its path; the request and its purpose then only take away.
A request field left out takes nothing away: without `branch`, `namespace` or `test_suite` the rows of every one count.
Contracts never look at the corpus, so a project that is absent, another's or unknown is refused in the same words; and
so is a principal that the credential may not act as, whether there is one of that name or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .digests import combined_digests, digests_by_request, table_digest
from .errors import PolicyError
from .frames import MICROS_PER_DAY, OPEN_START, micros
from .grant_reach import Reach, acts_for_another, bounds_of, leaves_some, lifecycle_pairs, reach_of
from .keys import flat, positions
from .list_columns import collected, flattened, tidied
from .schema import TIMESTAMP, Table
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

NOTHING_GRANTED = "nothing_granted"
NO_SOURCE_ALLOWED = "no_source_allowed"
NO_PATH_ALLOWED = "no_path_allowed"
NO_AUTHORITY_ACCEPTED = "no_authority_accepted"
ACT_AS_NOT_GRANTED = "act_as_not_granted"

_COPIED = ("principal", "asked_by", "project", "namespace", "workspace_root", "branch", "test_suite", "session_id", "purpose", "as_of",
           "asked_at", "allow_stale_memory", "require_citation", "require_snapshot", "tokenizer", "recall_effort")  # fmt: skip
_COUNTS = ("max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens")  # fmt: skip
_CHOICES = ("merge_policy", "output_shape")
_PRESET = ("mode", "search_paths", "excluded_paths", "excluded_levels", "excluded_zones", "window_paths",
           "chunk_expansion", "exact_lookups", "citation_chaining", "include_deleted", "newest_first")  # fmt: skip
_CAPPED = ("lane_k", "pool_k", "max_items")
_NARROWING = ("namespace", "workspace_root", "branch", "test_suite", "allowed_sources", "denied_sources", "allowed_paths",
              "denied_paths", "include_after", "exclude_after", "window_days", "accepted_authority", "min_authority")  # fmt: skip
_GROUPED = ("principal", "groups", "namespace", "workspace_root", "branch", "test_suite", "allowed_sources",
            "denied_sources", "role", "role_sources", "forbidden_sources", "allowed_paths", "denied_paths", "search_paths",
            "excluded_paths", "excluded_levels", "excluded_zones", "include_states", "accepted_authority",
            "min_authority")  # fmt: skip
_BY_MODE = ", ".join((*_PRESET[1:], *_CAPPED, "mode_lanes", "path_window_start"))
_BY_ROLE = "weights, vocabulary, forbidden_sources, citation_style, required_evidence, source_diversity"
_ROLE_CAPS = {"max_items": "max_selected_chunks", "max_items_per_source": "max_chunks_per_source"}
_WEIGHTS = tuple(f"weight_{name}" for name in WEIGHED_TERMS)
_INSTANT = ("as_of", "window_start", "window_end")

_GROUP_COLUMNS = Table(
    "scope_group_columns",
    "What decides which rows a request may see, time apart.",
    key=("request_id",),
    order=("request_id",),
    persist=False,
    columns={name: CONTRACTS.columns[name] for name in ("request_id", *_GROUPED)}
    | {name: replace(CONTRACTS.columns[name], nullable=True) for name in _INSTANT},
)
_FIRST_MICRO, _ALL_DAYS = -62_135_596_800_000_000, 4_000_000
"""0001-01-01 and more days than a calendar has: window starts stay inside what can be printed."""


def reach(requests: Requests, grants: Grants, role_policies: RolePolicies) -> Reach:
    """The grants that hold for each request: places in GRANTS, and in the requests sorted by id; and who is refused."""
    requests = _ordered(requests)
    held = reach_of(requests, grants)
    return replace(held, refused=_denied_reason(requests, held, _role_of(requests, role_policies)))


def contract_bounds(requests: Requests, reach: Reach) -> ContractBounds:
    """What each contract reaches, by request, project and grant; denied requests reach nothing.

    Its own project's grants, and those of other projects that requests of its project may use.
    """
    return bounds_of(_ordered(requests), reach, np.asarray(reach.refused.is_valid()))


def contracts(
    requests: Requests,
    reach: Reach,
    contract_bounds: ContractBounds,
    purpose_policies: PurposePolicies,
    mode_presets: ModePresets,
    role_policies: RolePolicies,
) -> Contracts:
    """The resolved contract of each request, by request id: a function of request, grants and policies alone.

    A request is denied if the credential may not act as its principal, if no grant of its own project holds at
    `asked_at`, or if a list of what it allows is empty. Where it gives a budget or cap, that one counts, else its
    mode's, else its purpose's; a mode's count is never exceeded. Counts below zero read as zero. A role only narrows:
    its caps, allowed and forbidden sources come on top of the others'.
    """
    requests = _ordered(requests)
    preset, policy = _of_requests(mode_presets, requests), _policy_of(requests, purpose_policies)
    role = _role_of(requests, role_policies)
    cap = _resolved("max_unverified_items", requests, policy)
    start, end = _window(requests)
    columns = {
        "request_id": requests["request_id"],
        "contract_id": [""] * requests.num_rows,
        "denied": reach.refused.is_valid(),
        "denied_reason": reach.refused,
        "groups": reach.groups(),
        "allowed_sources": tidied(requests["allowed_sources"], keep_null=True),
        "denied_sources": tidied(requests["denied_sources"], keep_null=False),
        "allowed_paths": tidied(requests["allowed_paths"], keep_null=True),
        "denied_paths": tidied(requests["denied_paths"], keep_null=False),
        "window_start": start,
        "window_end": end,
        "include_states": _include_states(requests, preset, policy, cap, reach),
        "accepted_authority": tidied(requests["accepted_authority"], keep_null=True),
        "min_authority": pc.max_element_wise(requests["min_authority"].fill_null(0), pa.scalar(0, pa.int32())),
        "withheld_k": policy["withheld_k"],
        "instruction_sources": tidied(policy["instruction_sources"], keep_null=False),
        "required_evidence": _union(requests["required_evidence"], role["required_evidence"]),
        "mask": tidied(policy["mask"], keep_null=True),
        "mode_lanes": preset["lanes"],
        "path_window_start": _days_before(requests, preset["window_days"]),
        "role": role["role"],
        "role_sources": tidied(role["allowed_sources"], keep_null=True),
        "forbidden_sources": tidied(role["forbidden_sources"], keep_null=False),
        "source_diversity": role["require_source_diversity"].fill_null(False),
        "citation_style": role["citation_style"].fill_null(CITATION_STYLES.values[0]),
    }
    columns |= {name: preset[name] for name in _PRESET}
    columns |= {name: requests[name] for name in (*_COPIED, *_WEIGHTS)}
    columns |= {name: _resolved(name, requests, policy) for name in (*_COUNTS, *_CHOICES)}
    columns |= {name: _capped(name, requests, preset, policy) for name in _CAPPED}
    columns |= {name: pc.min_element_wise(columns[name], role[cap]) for name, cap in _ROLE_CAPS.items()}
    table = CONTRACTS.build(columns)
    ids = flat(table["request_id"])
    parts = [
        ("contract", digests_by_request(table, CONTRACTS, ids)),
        ("bounds", digests_by_request(contract_bounds, CONTRACT_BOUNDS, ids)),
    ]
    contract_ids = pa.array([digest[:16] for digest in combined_digests(parts, "contract")], pa.string())
    position = CONTRACTS.schema.get_field_index("contract_id")
    return table.set_column(position, CONTRACTS.schema.field(position), contract_ids)


def contract_layers(
    requests: Requests,
    grants: Grants,
    reach: Reach,
    purpose_policies: PurposePolicies,
    mode_presets: ModePresets,
    role_policies: RolePolicies,
) -> ContractLayers:
    """The layers of each contract, by request id and ordinal, in the order in which they stand below.

    The layers `act_as`, `mode`, `role` and `preset` stand only where a request has them.
    """
    requests = _ordered(requests)
    policy = _policy_of(requests, purpose_policies)
    mode, role = _of_requests(mode_presets, requests), _role_of(requests, role_policies)
    narrowed = pc.if_else(
        pa.array(reach.narrowed), "project, groups, bounds, include_states", "project, groups, bounds"
    )
    given = {name: requests[name].is_valid() for name in (*_NARROWING, *_COUNTS, *_CHOICES)}
    given["allow_stale_memory"] = requests["allow_stale_memory"]
    given["weights"] = pc.coalesce(*(requests[name] for name in _WEIGHTS)).is_valid()
    by_role = {"role_sources": role["allowed_sources"].is_valid()}
    by_role |= {name: role[cap].is_valid() for name, cap in _ROLE_CAPS.items()}
    count = requests.num_rows
    everyone = np.ones(count, dtype=bool)
    granted_by, said = pa.repeat(table_digest(grants, GRANTS)[:16], count), pa.repeat("request", count)
    by_purpose = {name: pc.invert(given[name]) for name in (*_COUNTS, *_CHOICES)}
    layers = [
        ("act_as", acts_for_another(requests), granted_by, pc.if_else(pa.array(reach.acting), "principal", "denied")),
        ("grants", everyone, granted_by, pc.if_else(pa.array(reach.granted), narrowed, "denied")),
        ("purpose", everyone, policy["version"], _names(by_purpose, "include_states, withheld_k")),
        ("mode", np.asarray(mode["mode"].is_valid()), mode["version"], pa.repeat(_BY_MODE, count)),
        ("role", np.asarray(role["role"].is_valid()), role["version"], _names(by_role, _BY_ROLE)),
        ("preset", np.asarray(requests["preset"].is_valid()), requests["preset"], pa.repeat("bounds", count)),
        ("request", everyone, said, _names(given, "as_of")),
    ]
    return _stacked(requests["request_id"], layers)


def scope_groups(contracts: Contracts, contract_bounds: ContractBounds) -> ScopeGroups:
    """The scope group of each request, by request id: equal access and visibility bounds, equal number.

    Numbers follow the bounds' digests, not the order of requests, and mean nothing outside their shard: a request that is
    alone has number 0. A request that names a work tree shares a group only
    with those of its `as_of` and window, because the texts that shadow committed ones must have been recorded by then.
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
    parts = [
        ("contract", digests_by_request(table, _GROUP_COLUMNS, ids)),
        ("bounds", digests_by_request(contract_bounds, CONTRACT_BOUNDS, ids)),
    ]
    keys = np.array(combined_digests(parts, "scope_group"), dtype="U64")
    open_ = ~np.asarray(contracts["denied"])
    group = np.full(len(keys), -1, dtype=np.int32)
    leader = np.zeros(len(keys), dtype=bool)
    _, first, group[open_] = np.unique(keys[open_], return_index=True, return_inverse=True)
    leader[np.flatnonzero(open_)[first]] = True
    return SCOPE_GROUPS.build({"request_id": ids, "scope_group": group, "leader": leader})


_Layer = tuple[str, NDArray[np.bool_], pa.Array | pa.ChunkedArray, pa.Array | pa.ChunkedArray]
"""Name, which requests have it, its version and its effect per request."""


def _stacked(request_ids: pa.ChunkedArray, layers: Sequence[_Layer]) -> pa.Table:
    """CONTRACT_LAYERS of layers in their order, each where a request has it."""
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


def _denied_reason(requests: pa.Table, reach: Reach, role: pa.Table) -> pa.Array:
    """Why nothing can be asked under each contract, null where something can."""
    refusals = [
        (pa.array(~reach.acting), ACT_AS_NOT_GRANTED),
        (pa.array(~reach.granted), NOTHING_GRANTED),
        (pc.invert(leaves_some(requests["allowed_sources"])), NO_SOURCE_ALLOWED),
        (pc.invert(leaves_some(role["allowed_sources"])), NO_SOURCE_ALLOWED),
        (pc.invert(leaves_some(requests["allowed_paths"])), NO_PATH_ALLOWED),
        (pc.invert(leaves_some(requests["accepted_authority"])), NO_AUTHORITY_ACCEPTED),
    ]
    none = pa.scalar(None, pa.string())
    return pc.coalesce(*(pc.if_else(flat(refused), reason, none) for refused, reason in refusals))


def _include_states(
    requests: pa.Table, preset: pa.Table, policy: pa.Table, cap: pa.ChunkedArray, reach: Reach
) -> pa.ListArray:
    """The purpose's lifecycles that cap, request, mode and grants leave; revoked is never one of them."""
    names = LIFECYCLES.values
    shown = np.zeros((requests.num_rows, len(names)), dtype=bool)
    shown[lifecycle_pairs(policy["include_states"])] = True
    shown &= reach.states
    shown[:, names.index("revoked")] = False
    shown[np.asarray(pc.equal(cap, 0)), names.index("candidate")] = False
    fresh_only = ~np.asarray(requests["allow_stale_memory"]) & ~np.asarray(preset["include_deleted"])
    for outdated in ("deprecated", "expired"):
        shown[fresh_only, names.index(outdated)] = False
    request, state = np.nonzero(shown)
    offsets = np.searchsorted(request, np.arange(requests.num_rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names).take(pa.array(state)))


def _window(requests: pa.Table) -> tuple[pa.Array, pa.ChunkedArray]:
    """Start and end of each window; the later of `include_after` and `as_of` less `window_days` is the start."""
    back = micros(_days_before(requests, requests["window_days"]), OPEN_START)
    start = np.maximum(micros(requests["include_after"], OPEN_START), back)
    return pa.array(start, mask=start == OPEN_START).cast(TIMESTAMP), requests["exclude_after"]


def _days_before(requests: pa.Table, days: pa.ChunkedArray) -> pa.Array:
    """`as_of` less some days; null where they are."""
    length = np.clip(days.fill_null(np.nan).to_numpy(), 0, _ALL_DAYS)
    back = np.maximum(micros(requests["as_of"], 0) - np.nan_to_num(length) * MICROS_PER_DAY, _FIRST_MICRO)
    return pa.array(np.rint(back).astype(np.int64), mask=np.isnan(length)).cast(TIMESTAMP)


def _policy_of(requests: pa.Table, purpose_policies: pa.Table) -> pa.Table:
    """The policy row of each request's purpose."""
    position = pc.index_in(flat(requests["purpose"]), flat(purpose_policies["purpose"]))
    if position.null_count:
        unknown = requests["purpose"].filter(position.is_null())[0].as_py()
        raise PolicyError.one_of(purpose_policies["purpose"].to_pylist(), unknown, "requests.purpose")
    return purpose_policies.take(position)


def _role_of(requests: pa.Table, role_policies: pa.Table) -> pa.Table:
    """The overlay of each request's role; a row of nulls where none applies."""
    return role_policies.take(pc.index_in(flat(requests["role"]), flat(role_policies["role"])))


def _union(*lists: pa.ChunkedArray) -> pa.ListArray:
    """Row by row every value of the lists, sorted."""
    rows, values = zip(*(flattened(one) for one in lists), strict=True)
    return collected(np.concatenate(rows), pa.concat_arrays([flat(value) for value in values]), len(lists[0]))


def _resolved(name: str, requests: pa.Table, policy: pa.Table) -> pa.ChunkedArray:
    """The request's value, else the purpose's."""
    value = pc.coalesce(requests[name], flat(policy[name]))
    return pc.max_element_wise(value, pa.scalar(0, pa.int32())) if name in _COUNTS else value


def _capped(name: str, requests: pa.Table, preset: pa.Table, policy: pa.Table) -> pa.ChunkedArray:
    """The smaller of what the request and its mode say, else the purpose's."""
    chosen = pc.min_element_wise(requests[name], preset[name])
    return pc.max_element_wise(pc.coalesce(chosen, flat(policy[name])), pa.scalar(0, pa.int32()))


def _names(flags: dict[str, pa.ChunkedArray], always: str) -> pa.Array:
    """The names whose flag is set, comma separated, per row."""
    named: Sequence[pa.Array] = [pc.if_else(flat(f), name, pa.scalar(None, pa.string())) for name, f in flags.items()]
    return pc.binary_join_element_wise(pa.repeat(always, len(named[0])), *named, ", ", null_handling="skip")


def _of_requests(table: pa.Table, requests: pa.Table) -> pa.Table:
    """The row of each request."""
    return table.take(pa.array(positions(requests["request_id"], table["request_id"])))


def _ordered(requests: pa.Table) -> pa.Table:
    return requests.sort_by("request_id") if requests.num_rows > 1 else requests
