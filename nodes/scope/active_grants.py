"""The access that grants give each request: who may ask on whose behalf, the active grants, and the resulting bounds.

Reads requests and grants. Gives `ActiveGrants`, CONTRACT_BOUNDS, and the columns that contracts take from grants.
Rights are judged at `asked_at`: no other instant revives an expired grant or a removed principal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import OfTable
from ..columns.keys import constants, flat, positions, present, truth
from ..columns.list_columns import collected, contains, flattened, tidied
from ..columns.ragged import expand_ranges, starts_of
from ..tables import CONTRACT_BOUNDS
from ..vocabulary import LIFECYCLES


@dataclass(frozen=True)
class ActiveGrants:
    """Pairs (request, grant) that are active at `asked_at`, by request, then the grant's project and rule."""

    grants: pa.Table
    request: NDArray[np.int64]
    grant: NDArray[np.int64]
    own: NDArray[np.bool_]
    granted: NDArray[np.bool_]
    """Per request: a grant of its own project is active, for a principal that the caller may act for."""
    acting: NDArray[np.bool_]
    """Per request: the caller is its principal, or may act as it."""
    refused: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.string()))
    """Per request: the reason for refusing it, null where it is accepted."""

    def groups(self) -> pa.ListArray:
        """The principal's groups, per request."""
        pair, values = flattened(self.grants["groups"].take(pa.array(self.grant)))
        return collected(self.request[pair], values, len(self.granted))

    @cached_property
    def states(self) -> NDArray[np.bool_]:
        """The lifecycles that the grants of the own project allow, bool[requests, lifecycles]; all where none narrows
        them.
        """
        states = self.grants["states"].take(pa.array(self.grant))
        allowed = np.zeros((len(self.granted), len(LIFECYCLES.values)), dtype=bool)
        pair, lifecycle = lifecycle_pairs(states)
        allowed[self.request[pair[self.own[pair]]], lifecycle[self.own[pair]]] = True
        allowed[self.request[self.own & ~present(states)]] = True
        allowed[~self.granted] = True
        return allowed

    @property
    def narrowed(self) -> NDArray[np.bool_]:
        """Per request: its grants exclude some lifecycle."""
        return np.logical_not(np.all(self.states, axis=1))


def active_grants_of(requests: pa.Table, grants: pa.Table) -> ActiveGrants:
    """The active grants of each request; one with an empty list of sources or paths gives no access."""
    acting = _may_act(requests, grants)
    opening = _opening(grants)
    request, grant = opening.of(requests["principal"])
    held = opening.rows.select(["project", "own_project", "for_projects", "expires"]).take(pa.array(grant))
    asked = requests.select(["project", "asked_at"]).take(pa.array(request))
    same, among_own = truth(pc.equal(held["project"], asked["project"])), truth(held["own_project"])
    own = same & among_own
    usable = ~present(held["for_projects"]) | contains(held["for_projects"], asked["project"])
    usable = own | (~among_own & usable)
    valid = ~truth(pc.greater_equal(asked["asked_at"], held["expires"]))
    granted = acting & (np.bincount(request[own & valid], minlength=requests.num_rows) > 0)
    keep = valid & usable & granted[request]
    return ActiveGrants(opening.rows, request[keep], grant[keep], own[keep], granted, acting)


def acts_for_another(requests: pa.Table) -> NDArray[np.bool_]:
    """Which requests are made by one principal on behalf of another."""
    return truth(pc.not_equal(requests["asked_by"], requests["principal"]))


def _may_act(requests: pa.Table, grants: pa.Table) -> NDArray[np.bool_]:
    """Which requests are made by their principal, or by one with an `act_as` grant that is active at `asked_at`."""
    for_another = acts_for_another(requests)
    if not for_another.any():
        return ~for_another
    rights = _rights(grants)
    request, right = rights.of(_for_whom(requests["asked_by"], requests["principal"]))
    held, asked = rights.rows.take(pa.array(right)), requests.select(["project", "asked_at"]).take(pa.array(request))
    here = ~present(held["project"]) | truth(pc.equal(held["project"], asked["project"]))
    holds = here & ~truth(pc.greater_equal(asked["asked_at"], held["expires"]))
    return ~for_another | (np.bincount(request[holds], minlength=requests.num_rows) > 0)


@dataclass(frozen=True)
class _ByKey:
    """Rows sorted by a key: those of `keys[i]` are `rows[starts[i]:starts[i + 1]]`."""

    rows: pa.Table
    keys: pa.Array
    starts: NDArray[np.int64]

    @classmethod
    def sorted(cls, rows: pa.Table, keys: pa.ChunkedArray | pa.Array) -> _ByKey:
        """Rows whose equal keys are adjacent."""
        encoded = flat(keys).dictionary_encode()
        return cls(rows, encoded.dictionary, starts_of(np.bincount(encoded.indices, minlength=len(encoded.dictionary))))

    def of(self, wanted: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every pair (place in `wanted`, row) of equal keys, in order."""
        at = positions(wanted, self.keys)
        known = (at >= 0).nonzero()[0]
        at = at[known]
        counts = self.starts[at + 1] - self.starts[at]
        return known.repeat(counts), expand_ranges(self.starts[at], counts)


def _opening_rows(grants: pa.Table) -> _ByKey:
    """The grants that give any access, by principal, then by project and rule."""
    opening = leaves_some(grants["sources"]) & leaves_some(grants["paths"])
    opening &= ~present(grants["act_as"]) & present(grants["project"])
    rows = grants.filter(pa.array(opening)).sort_by([(n, "ascending") for n in ("principal", "project", "rule_id")])
    return _ByKey.sorted(rows, rows["principal"])


def _act_as_rows(grants: pa.Table) -> _ByKey:
    """Who may ask on whose behalf, a row per pair, project and end, by the pair."""
    row, other = flattened(grants["act_as"])
    rights = grants.select(["principal", "project", "expires"]).take(pa.array(row))
    rights = rights.append_column("other", other).sort_by([("principal", "ascending"), ("other", "ascending")])
    return _ByKey.sorted(rights, _for_whom(rights["principal"], rights["other"]))


_opening, _rights = OfTable(_opening_rows), OfTable(_act_as_rows)


def _for_whom(who: pa.ChunkedArray, whom: pa.ChunkedArray) -> pa.ChunkedArray:
    """One key for the caller and the principal that it asks for."""
    return pc.binary_join_element_wise(pc.fill_null(who, ""), whom, "\0")


def leaves_some(lists: pa.ChunkedArray | pa.Array) -> NDArray[np.bool_]:
    """Which lists of allowances allow anything: all but the empty ones."""
    array = flat(lists)
    if array.null_count == len(array):
        return np.ones(len(array), dtype=bool)
    return ~truth(pc.equal(array.value_lengths(), 0))


def bounds_of(requests: pa.Table, reach: ActiveGrants, denied: NDArray[np.bool_]) -> pa.Table:
    """CONTRACT_BOUNDS of the requests that are not denied."""
    keep = ~denied[reach.request]
    names = ["project", "principal", "users", "sources", "paths", "denied_paths", "zone", "states", "rule_id"]
    request, held = reach.request[keep], reach.grants.select(names).take(pa.array(reach.grant[keep]))
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
    """The paths denied by any grant through which a request reaches a project: a denial applies to all of them."""
    project = flat(held["project"]).dictionary_encode().indices.to_numpy()
    _, place = np.unique(np.stack([request, project]), axis=1, return_inverse=True)
    pair, globs = flattened(held["denied_paths"])
    together = collected(place.ravel()[pair], globs, int(place.max(initial=-1)) + 1)
    return together.take(pa.array(place.ravel()))


def lifecycle_pairs(states: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row of each word in lists of lifecycles, and its place in the vocabulary."""
    rows, values = flattened(states)
    code = positions(values, constants(LIFECYCLES.values))
    return rows[code >= 0], code[code >= 0]
