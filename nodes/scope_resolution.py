"""Scope resolution: turns each request into a contract that says what it may see, before anything is searched.

Reads requests, grants, purpose and role policies. Gives `contracts`, `contract_bounds` (the projects a contract reaches),
`contract_layers` (what each layer did) and `scope_groups` (requests whose rows can be gated once).

What one would get wrong: grants add up, everything else narrows. A row is readable if one grant that holds at `asked_at`
covers it whole; the request and its purpose then only take away. A request field left out takes nothing away: without
`branch`, `namespace` or `test_suite` the rows of every one count. Contracts never look at the corpus, so a project that
is absent, another's or unknown is refused in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .digests import combined_digests, digests_by_request, table_digest
from .errors import PolicyError
from .frames import OPEN_START, expand_ranges, micros
from .keys import flat, rank_within
from .list_columns import collected, contains, flattened, tidied
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
    PurposePolicies,
    Requests,
    RolePolicies,
    ScopeGroups,
)
from .vocabulary import CITATION_STYLES, LIFECYCLES

NOTHING_GRANTED = "nothing_granted"
NO_SOURCE_ALLOWED = "no_source_allowed"

_COPIED = ("principal", "project", "namespace", "workspace_root", "branch", "test_suite", "session_id", "purpose", "as_of",
           "asked_at", "allow_stale_memory", "require_citation", "require_snapshot", "tokenizer", "recall_effort")  # fmt: skip
_COUNTS = ("max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens")  # fmt: skip
_CHOICES = ("merge_policy", "output_shape")
_NARROWING = ("namespace", "workspace_root", "branch", "test_suite", "allowed_sources", "denied_sources", "include_after",
              "exclude_after", "window_days", "accepted_authority", "min_authority")  # fmt: skip
_GROUPED = ("principal", "groups", "namespace", "workspace_root", "branch", "test_suite", "allowed_sources",
            "denied_sources", "include_states", "accepted_authority", "min_authority", "role", "role_sources",
            "forbidden_sources")  # fmt: skip
_ROLE_CAPS = {"max_items": "max_selected_chunks", "max_items_per_source": "max_chunks_per_source"}
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
_DAY = 86_400_000_000
_FIRST_MICRO, _ALL_DAYS = -62_135_596_800_000_000, 4_000_000
"""0001-01-01 and more days than a calendar has: window starts stay inside what can be printed."""


def contracts(
    requests: Requests, grants: Grants, purpose_policies: PurposePolicies, role_policies: RolePolicies
) -> Contracts:
    """The resolved contract of each request, by request id: a function of request, grants and policies alone.

    A request is denied if no grant of its own project holds at `asked_at`, or if it allows no source. Where it gives a
    budget or cap, that one counts, else its purpose's. Counts below zero read as zero. A role only narrows: its caps,
    allowed and forbidden sources come on top of the others'.
    """
    requests = _ordered(requests)
    reach = _reach(requests, grants)
    policy = _policy_of(requests, purpose_policies)
    role = _role_of(requests, role_policies)
    cap = _resolved("max_unverified_items", requests, policy)
    nothing_allowed = pc.equal(pc.list_value_length(requests["allowed_sources"]), 0).fill_null(False)
    denied = np.asarray(nothing_allowed) | ~reach.granted
    start, end = _window(requests)
    columns = {
        "request_id": requests["request_id"],
        "contract_id": [""] * requests.num_rows,
        "denied": denied,
        "denied_reason": pc.if_else(
            pa.array(reach.granted),
            pc.if_else(flat(nothing_allowed), NO_SOURCE_ALLOWED, pa.scalar(None, pa.string())),
            NOTHING_GRANTED,
        ),
        "groups": reach.groups(),
        "allowed_sources": tidied(requests["allowed_sources"], keep_null=True),
        "denied_sources": tidied(requests["denied_sources"], keep_null=False),
        "window_start": start,
        "window_end": end,
        "include_states": _include_states(requests, policy, cap, reach),
        "accepted_authority": tidied(requests["accepted_authority"], keep_null=True),
        "min_authority": pc.max_element_wise(requests["min_authority"].fill_null(0), pa.scalar(0, pa.int32())),
        "withheld_k": policy["withheld_k"],
        "instruction_sources": tidied(policy["instruction_sources"], keep_null=False),
        "required_evidence": _union(requests["required_evidence"], role["required_evidence"]),
        "role": role["role"],
        "role_sources": tidied(role["allowed_sources"], keep_null=True),
        "forbidden_sources": tidied(role["forbidden_sources"], keep_null=False),
        "source_diversity": role["require_source_diversity"].fill_null(False),
        "citation_style": role["citation_style"].fill_null(CITATION_STYLES.values[0]),
    }
    columns |= {name: requests[name] for name in _COPIED}
    columns |= {name: _resolved(name, requests, policy) for name in (*_COUNTS, *_CHOICES)}
    columns |= {name: pc.min_element_wise(columns[name], role[cap]) for name, cap in _ROLE_CAPS.items()}
    table = CONTRACTS.build(columns)
    ids = flat(table["request_id"])
    parts = [
        ("contract", digests_by_request(table, CONTRACTS, ids)),
        ("bounds", digests_by_request(_bounds(requests, grants, reach, denied), CONTRACT_BOUNDS, ids)),
    ]
    contract_ids = pa.array([digest[:16] for digest in combined_digests(parts, "contract")], pa.string())
    position = CONTRACTS.schema.get_field_index("contract_id")
    return table.set_column(position, CONTRACTS.schema.field(position), contract_ids)


def contract_bounds(requests: Requests, grants: Grants, contracts: Contracts) -> ContractBounds:
    """What each contract reaches, by request, project and grant; denied requests reach nothing.

    Its own project's grants, and those of other projects that requests of its project may use.
    """
    requests = _ordered(requests)
    return _bounds(requests, grants, _reach(requests, grants), np.asarray(contracts["denied"]))


def contract_layers(
    requests: Requests, grants: Grants, purpose_policies: PurposePolicies, role_policies: RolePolicies
) -> ContractLayers:
    """The layers of each contract, by request id and ordinal: grants, purpose, role where one applies, then request."""
    requests = _ordered(requests)
    reach, policy, role = (
        _reach(requests, grants),
        _policy_of(requests, purpose_policies),
        _role_of(requests, role_policies),
    )
    narrowed = pc.if_else(
        pa.array(reach.narrowed), "project, groups, bounds, include_states", "project, groups, bounds"
    )
    given = {name: requests[name].is_valid() for name in (*_NARROWING, *_COUNTS, *_CHOICES)}
    given["allow_stale_memory"] = requests["allow_stale_memory"]
    narrowing = {"role_sources": role["allowed_sources"].is_valid()}
    narrowing |= {name: role[cap].is_valid() for name, cap in _ROLE_CAPS.items()}
    effects = [
        pc.if_else(pa.array(reach.granted), narrowed, "denied"),
        _names({name: pc.invert(given[name]) for name in (*_COUNTS, *_CHOICES)}, "include_states, withheld_k"),
        _names(narrowing, "weights, vocabulary, forbidden_sources, citation_style, required_evidence"),
        _names(given, "as_of"),
    ]
    count = requests.num_rows
    versions = [
        pa.repeat(table_digest(grants, GRANTS)[:16], count),
        policy["version"],
        role["version"],
        pa.repeat("request", count),
    ]
    request, layer = np.nonzero(np.stack([np.asarray(version.is_valid()) for version in versions], axis=1))
    at = pa.array(layer * count + request)
    return CONTRACT_LAYERS.build(
        {
            "request_id": requests["request_id"].take(pa.array(request)),
            "ordinal": (rank_within(request) + 1).astype(np.int32),
            "layer": pa.array(["grants", "purpose", "role", "request"]).take(pa.array(layer)),
            "version": pa.concat_arrays([flat(version) for version in versions]).take(at),
            "effect": pa.concat_arrays([flat(effect) for effect in effects]).take(at),
        }
    )


def scope_groups(contracts: Contracts, contract_bounds: ContractBounds) -> ScopeGroups:
    """The scope group of each request, by request id: equal access and visibility bounds, equal number.

    Numbers follow the bounds' digests, not the order of requests. A request that names a work tree shares a group only
    with those of its `as_of` and window, because the texts that shadow committed ones must have been recorded by then.
    """
    ids = flat(contracts["request_id"])
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


@dataclass(frozen=True)
class _Reach:
    """Pairs (request, grant) that hold at `asked_at`, by request, then the grant's project and rule."""

    grants: pa.Table
    request: NDArray[np.int64]
    grant: NDArray[np.int64]
    own: NDArray[np.bool_]
    granted: NDArray[np.bool_]
    """Per request: a grant of its own project holds."""

    def groups(self) -> pa.ListArray:
        """The principal's groups, per request."""
        pair, values = flattened(self.grants["groups"].take(pa.array(self.grant)))
        return collected(self.request[pair], values, len(self.granted))

    @property
    def states(self) -> NDArray[np.bool_]:
        """The lifecycles that the grants of the own project allow, bool[requests, lifecycles]; all where none narrows."""
        states = self.grants["states"].take(pa.array(self.grant))
        allowed = np.zeros((len(self.granted), len(LIFECYCLES.values)), dtype=bool)
        pair, lifecycle = _lifecycles(states)
        allowed[self.request[pair[self.own[pair]]], lifecycle[self.own[pair]]] = True
        allowed[self.request[self.own & np.asarray(states.is_null())]] = True
        allowed[~self.granted] = True
        return allowed

    @property
    def narrowed(self) -> NDArray[np.bool_]:
        """Per request: its grants leave some lifecycle out."""
        return np.logical_not(np.all(self.states, axis=1))


def _reach(requests: pa.Table, grants: pa.Table) -> _Reach:
    grants = grants.sort_by([(name, "ascending") for name in ("principal", "project", "rule_id")])
    encoded = flat(grants["principal"]).dictionary_encode()
    ends = np.cumsum(np.bincount(encoded.indices.to_numpy(), minlength=len(encoded.dictionary)))
    starts = np.concatenate(([0], ends))
    who = pc.index_in(flat(requests["principal"]), encoded.dictionary).fill_null(-1).to_numpy()
    counts = np.where(who >= 0, starts[who + 1] - starts[who], 0) if len(ends) else np.zeros(len(who), np.int64)
    request = np.repeat(np.arange(len(who), dtype=np.int64), counts)
    grant = expand_ranges(starts[np.maximum(who, 0)].astype(np.int64), counts.astype(np.int64))
    held, asked = grants.take(pa.array(grant)), requests.select(["project", "asked_at"]).take(pa.array(request))
    same = np.asarray(pc.equal(held["project"], asked["project"]))
    own = same & np.asarray(held["own_project"])
    usable = np.asarray(held["for_projects"].is_null()) | contains(held["for_projects"], asked["project"])
    usable = own | (~np.asarray(held["own_project"]) & usable)
    valid = np.asarray(pc.less(asked["asked_at"], held["expires"]).fill_null(True))
    granted = np.bincount(request[own & valid], minlength=len(who)) > 0
    keep = valid & usable & granted[request]
    return _Reach(grants, request[keep], grant[keep], own[keep], granted)


def _bounds(requests: pa.Table, grants: pa.Table, reach: _Reach, denied: NDArray[np.bool_]) -> pa.Table:
    keep = ~denied[reach.request]
    request, held = reach.request[keep], reach.grants.take(pa.array(reach.grant[keep]))
    pair, users = flattened(held["users"])
    principals = flat(held["principal"])
    everyone = pa.concat_arrays([flat(users), principals])
    return CONTRACT_BOUNDS.build(
        {
            "request_id": requests["request_id"].take(pa.array(request)),
            "project": held["project"],
            "users": collected(np.concatenate([pair, np.arange(len(principals))]), everyone, len(principals)),
            "sources": tidied(held["sources"], keep_null=True),
            "zone": held["zone"],
            "states": tidied(held["states"], keep_null=True),
            "rule_id": held["rule_id"],
        }
    )


def _include_states(requests: pa.Table, policy: pa.Table, cap: pa.ChunkedArray, reach: _Reach) -> pa.ListArray:
    """The purpose's lifecycles that cap, request and grants leave; revoked is never one of them."""
    names = LIFECYCLES.values
    shown = np.zeros((requests.num_rows, len(names)), dtype=bool)
    shown[_lifecycles(policy["include_states"])] = True
    shown &= reach.states
    shown[:, names.index("revoked")] = False
    shown[np.asarray(pc.equal(cap, 0)), names.index("candidate")] = False
    fresh_only = ~np.asarray(requests["allow_stale_memory"])
    for outdated in ("deprecated", "expired"):
        shown[fresh_only, names.index(outdated)] = False
    request, state = np.nonzero(shown)
    offsets = np.searchsorted(request, np.arange(requests.num_rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(names).take(pa.array(state)))


def _lifecycles(states: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, values = flattened(states)
    code = pc.index_in(values, pa.array(LIFECYCLES.values)).fill_null(-1).to_numpy()
    return rows[code >= 0], code[code >= 0].astype(np.int64)


def _window(requests: pa.Table) -> tuple[pa.Array, pa.ChunkedArray]:
    """Start and end of each window; the later of `include_after` and `as_of` less `window_days` is the start."""
    days = np.clip(requests["window_days"].fill_null(np.nan).to_numpy(), 0, _ALL_DAYS)
    back = np.maximum(micros(requests["as_of"], 0) - np.nan_to_num(days) * _DAY, _FIRST_MICRO)
    back = np.where(np.isnan(days), OPEN_START, np.rint(back)).astype(np.int64)
    start = np.maximum(micros(requests["include_after"], OPEN_START), back)
    return pa.array(start, mask=start == OPEN_START).cast(TIMESTAMP), requests["exclude_after"]


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


def _names(flags: dict[str, pa.ChunkedArray], always: str) -> pa.Array:
    """The names whose flag is set, comma separated, per row."""
    named: Sequence[pa.Array] = [pc.if_else(flat(f), name, pa.scalar(None, pa.string())) for name, f in flags.items()]
    return pc.binary_join_element_wise(pa.repeat(always, len(named[0])), *named, ", ", null_handling="skip")


def _ordered(requests: pa.Table) -> pa.Table:
    return requests.sort_by("request_id")
