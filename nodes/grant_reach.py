"""What grants open for each request: who may ask for whom, which grants hold, and the bounds they come to.

Reads requests and grants. Gives `Reach`, CONTRACT_BOUNDS, and the columns that contracts take from grants. Rights are
judged at `asked_at`: no other instant revives a grant that has expired, or a principal that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .frames import expand_ranges
from .keys import flat
from .list_columns import collected, contains, flattened, tidied
from .tables import CONTRACT_BOUNDS
from .vocabulary import LIFECYCLES


@dataclass(frozen=True)
class Reach:
    """Pairs (request, grant) that hold at `asked_at`, by request, then the grant's project and rule."""

    grants: pa.Table
    request: NDArray[np.int64]
    grant: NDArray[np.int64]
    own: NDArray[np.bool_]
    granted: NDArray[np.bool_]
    """Per request: a grant of its own project holds, for a principal that may be asked for."""
    acting: NDArray[np.bool_]
    """Per request: it is asked by its principal, or by one that may act as it."""
    refused: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.string()))
    """Per request: why nothing can be asked, null where something can."""

    def groups(self) -> pa.ListArray:
        """The principal's groups, per request."""
        pair, values = flattened(self.grants["groups"].take(pa.array(self.grant)))
        return collected(self.request[pair], values, len(self.granted))

    @property
    def states(self) -> NDArray[np.bool_]:
        """The lifecycles that the grants of the own project allow, bool[requests, lifecycles]; all where none narrows."""
        states = self.grants["states"].take(pa.array(self.grant))
        allowed = np.zeros((len(self.granted), len(LIFECYCLES.values)), dtype=bool)
        pair, lifecycle = lifecycle_pairs(states)
        allowed[self.request[pair[self.own[pair]]], lifecycle[self.own[pair]]] = True
        allowed[self.request[self.own & np.asarray(states.is_null())]] = True
        allowed[~self.granted] = True
        return allowed

    @property
    def narrowed(self) -> NDArray[np.bool_]:
        """Per request: its grants leave some lifecycle out."""
        return np.logical_not(np.all(self.states, axis=1))


def reach_of(requests: pa.Table, grants: pa.Table) -> Reach:
    """The grants that hold for each request; one whose list of sources or paths is empty opens nothing."""
    acting = _may_act(requests, grants)
    opening = pc.and_(leaves_some(grants["sources"]), leaves_some(grants["paths"]))
    grants = grants.filter(pc.and_(opening, pc.and_(grants["act_as"].is_null(), grants["project"].is_valid())))
    grants = grants.sort_by([(name, "ascending") for name in ("principal", "project", "rule_id")])
    request, grant = _pairs(requests["principal"], grants["principal"])
    held, asked = grants.take(pa.array(grant)), requests.select(["project", "asked_at"]).take(pa.array(request))
    same = np.asarray(pc.equal(held["project"], asked["project"]))
    own = same & np.asarray(held["own_project"])
    usable = np.asarray(held["for_projects"].is_null()) | contains(held["for_projects"], asked["project"])
    usable = own | (~np.asarray(held["own_project"]) & usable)
    valid = np.asarray(pc.less(asked["asked_at"], held["expires"]).fill_null(True))
    granted = acting & (np.bincount(request[own & valid], minlength=requests.num_rows) > 0)
    keep = valid & usable & granted[request]
    return Reach(grants, request[keep], grant[keep], own[keep], granted, acting)


def acts_for_another(requests: pa.Table) -> NDArray[np.bool_]:
    """Which requests somebody asks for another."""
    return np.asarray(pc.not_equal(requests["asked_by"], requests["principal"]).fill_null(False))


def _may_act(requests: pa.Table, grants: pa.Table) -> NDArray[np.bool_]:
    """Which requests are asked by their principal, or by one with an `act_as` grant that holds at `asked_at`."""
    lists = grants.filter(pc.greater(pc.list_value_length(grants["act_as"]), 0).fill_null(False))
    row, other = flattened(lists["act_as"])
    rights = lists.select(["principal", "project", "expires"]).take(pa.array(row))
    rights = rights.append_column("other", other).sort_by([("principal", "ascending"), ("other", "ascending")])
    names = [pc.binary_join_element_wise(pc.fill_null(table[who], ""), table[whom], "\0") for table, who, whom in
             ((requests, "asked_by", "principal"), (rights, "principal", "other"))]  # fmt: skip
    request, right = _pairs(*names)
    rights, asked = rights.take(pa.array(right)), requests.select(["project", "asked_at"]).take(pa.array(request))
    anywhere = rights["project"].is_null()
    here = pc.or_(anywhere, pc.equal(rights["project"], asked["project"]).fill_null(False))
    holds = pc.and_(here, pc.less(asked["asked_at"], rights["expires"]).fill_null(True))
    return ~acts_for_another(requests) | (np.bincount(request[np.asarray(holds)], minlength=requests.num_rows) > 0)


def _pairs(wanted: pa.ChunkedArray, keys: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every pair (row of `wanted`, row of `keys`) of equal values, in order; equal `keys` lie side by side."""
    encoded = flat(keys).dictionary_encode()
    ends = np.cumsum(np.bincount(encoded.indices.to_numpy(), minlength=len(encoded.dictionary)))
    starts = np.concatenate(([0], ends))
    at = pc.index_in(flat(wanted), encoded.dictionary).fill_null(-1).to_numpy()
    counts = np.where(at >= 0, starts[at + 1] - starts[at], 0) if len(ends) else np.zeros(len(at), np.int64)
    request = np.repeat(np.arange(len(at), dtype=np.int64), counts)
    return request, expand_ranges(starts[np.maximum(at, 0)].astype(np.int64), counts.astype(np.int64))


def leaves_some(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which lists of allowances allow anything: all but the empty ones."""
    return pc.not_equal(pc.list_value_length(lists), 0).fill_null(True)


def bounds_of(requests: pa.Table, reach: Reach, denied: NDArray[np.bool_]) -> pa.Table:
    """CONTRACT_BOUNDS of the requests that are not denied."""
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
            "paths": tidied(held["paths"], keep_null=True),
            "denied_paths": _denied_paths(request, held),
            "zone": held["zone"],
            "states": tidied(held["states"], keep_null=True),
            "rule_id": held["rule_id"],
        }
    )


def _denied_paths(request: NDArray[np.int64], held: pa.Table) -> pa.Array:
    """What any grant that a request reaches a project through denies there: a denial holds against all of them."""
    project = flat(held["project"]).dictionary_encode().indices.to_numpy()
    _, place = np.unique(np.stack([request, project]), axis=1, return_inverse=True)
    pair, globs = flattened(held["denied_paths"])
    together = collected(place.ravel()[pair], globs, int(place.max(initial=-1)) + 1)
    return together.take(pa.array(place.ravel()))


def lifecycle_pairs(states: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row of each word in lists of lifecycles, and its place in the vocabulary."""
    rows, values = flattened(states)
    code = pc.index_in(values, pa.array(LIFECYCLES.values)).fill_null(-1).to_numpy()
    return rows[code >= 0], code[code >= 0].astype(np.int64)
