"""The access and visibility gates of the first wall, as predicates over the columns of one segment.

Reads a segment's slice of EVIDENCE, one contract and the bounds that open its project. Gives per row the first gate
that stops it. Columns are read as codes once per segment and shared by every scope group that looks at it.

Null counts as least privileged: zone restricted, lifecycle candidate, visibility denied, authority 0; a null safety is
requires-review, which passes. A word that is none of its vocabulary reads as null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import OfTable
from ..columns.keys import flat, truth
from ..columns.list_columns import flattened
from ..scope.selectors import (
    SourcePairs,
    allows_pathless,
    denies_pathless,
    matching_paths,
    selected_pairs,
    source_pairs,
)
from ..vocabulary import LIFECYCLES, ZONES
from .gates import GATES, NUMBER

Mask = NDArray[np.bool_]
Codes = NDArray[np.int8]

LAST_ACCESS = max(gate.number for gate in GATES if gate.gate_class == "access")
LAST_VISIBILITY = max(gate.number for gate in GATES if gate.gate_class == "visibility")

ACCEPTED_ORIGINS = {
    "current-workspace": ("workspace",),
    "project-doc": ("project-doc", "team-standard", "decision-record"),
    "verified-memory": ("memory",),
    "session-event": ("session-event", "artifact"),
}
"""The origin classes behind each accepted class of S0.19. Standards and decision records are documents of the project,
artifacts belong to a session; preferences, structured records, external and remote text are in none. A memory counts
only while it is verified."""

COLUMNS = ("source_id", "origin_class", "path", "namespace", "workspace_root", "branch", "test_suite", "principals",
           "excluded_roles", "zone", "level", "declared_visibility", "authority", "lifecycle", "declared_safety",
           "owner_project", "owner_user")  # fmt: skip
"""The columns of EVIDENCE that these gates look at."""
CONTRACT_COLUMNS = ("principal", "groups", "namespace", "workspace_root", "branch", "test_suite", "allowed_sources",
                    "denied_sources", "role", "role_sources", "forbidden_sources", "allowed_paths", "denied_paths",
                    "search_paths", "excluded_paths", "excluded_levels", "excluded_zones", "include_states",
                    "accepted_authority", "min_authority")  # fmt: skip
"""The columns of CONTRACTS that they look at: what decides which rows a request may see, time apart."""


class SegmentColumns:
    """The gate columns of one segment, read on first use."""

    def __init__(self, evidence: pa.Table) -> None:
        self.rows = evidence.num_rows
        self._evidence = evidence

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        return flat(self._evidence[name])

    @cached_property
    def pairs(self) -> SourcePairs:
        return source_pairs(self.column("origin_class"), self.column("source_id"))

    @cached_property
    def paths(self) -> tuple[pa.Array, NDArray[np.int32]]:
        """The distinct paths, and the row's position among them; one past the end for a row without a path."""
        encoded = self.column("path").dictionary_encode()
        return encoded.dictionary, encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()

    @cached_property
    def origin_classes(self) -> list[str]:
        return self.pairs.origin_class.to_pylist()

    @cached_property
    def zone(self) -> Codes:
        return self._ranks("zone", ZONES.values, "restricted")

    @cached_property
    def lifecycle(self) -> Codes:
        return self._ranks("lifecycle", LIFECYCLES.values, "candidate")

    @cached_property
    def authority(self) -> NDArray[np.int32]:
        return self.column("authority").fill_null(0).to_numpy()

    @cached_property
    def hidden(self) -> Mask:
        return ~truth(pc.equal(self.column("declared_visibility"), "model-visible"))

    @cached_property
    def blocked(self) -> Mask:
        return truth(pc.equal(self.column("declared_safety"), "blocked"))

    @cached_property
    def named(self) -> dict[str, tuple[dict[str, int], Codes]]:
        """Positions of names and the row's position, -1 for null: of the columns a request narrows by one name."""
        coded = {}
        for name in ("namespace", "workspace_root", "branch", "test_suite"):
            column = self.column(name)
            if column.null_count < len(column):
                encoded = column.dictionary_encode()
                position = {value: index for index, value in enumerate(encoded.dictionary.to_pylist())}
                coded[name] = (position, encoded.indices.fill_null(-1).to_numpy())
        return coded

    @cached_property
    def files(self) -> pa.Array:
        """Owner, source and path of each row as one string, null where it has no path.

        The owner is in it: a file of one owner never shadows another's of the same name.
        """
        owner = self.column("owner_user").fill_null("")
        return pc.binary_join_element_wise(
            self.column("owner_project"), owner, self.column("source_id"), self.column("path"), "\0"
        )

    @cached_property
    def readers(self) -> tuple[NDArray[np.int64], pa.Array, Mask]:
        """Lists of principals taken apart: row and name of each entry, and which rows have a list."""
        column = self.column("principals")
        return *flattened(column), ~np.asarray(column.is_null())

    @cached_property
    def excluding(self) -> tuple[NDArray[np.int64], pa.Array]:
        """Lists of excluded roles taken apart: row and role of each entry."""
        return flattened(self.column("excluded_roles"))

    def _ranks(self, name: str, words: Sequence[str], null: str) -> Codes:
        ranks = pc.index_in(self.column(name), pa.array(words)).fill_null(words.index(null))
        return ranks.to_numpy().astype(np.int8)


class FrameColumns:
    """The gate columns of a frame by segment; each is opened once, for all requests that read the frame."""

    def __init__(self, evidence: pa.Table) -> None:
        self._columns = evidence.select(list(COLUMNS))
        self._opened: dict[tuple[int, int], SegmentColumns] = {}

    def of(self, start: int, end: int) -> SegmentColumns:
        """The columns of the segment from one row to another."""
        if (start, end) not in self._opened:
            self._opened[start, end] = SegmentColumns(self._columns.slice(start, end - start))
        return self._opened[start, end]


columns_of_frame = OfTable(FrameColumns)


def first_stops(segment: SegmentColumns, contract: Mapping[str, Any], bounds: Sequence[Mapping[str, Any]]) -> Codes:
    """The first access or visibility gate that stops each row, int8[rows]; 0 = none.

    `bounds` are those of CONTRACT_BOUNDS whose project and users open the segment, so the gates project and owner have
    passed. A row has got as far as the bound that takes it furthest. Shadowing by a work tree is not judged here.
    """
    shared = dict(_contract_stops(segment, contract))
    furthest = None
    for bound in bounds:
        stops = shared | dict(_bound_stops(segment, bound, shared))
        codes = np.zeros(segment.rows, dtype=np.int8)
        for number in sorted(stops, reverse=True):
            codes[stops[number]] = number
        furthest = codes if furthest is None else _further(furthest, codes)
    return np.zeros(segment.rows, dtype=np.int8) if furthest is None else furthest


def _further(one: Codes, other: Codes) -> Codes:
    """The later of two gates, row by row; 0, passing them all, is the furthest."""
    step = np.uint8(1)
    return (np.maximum(one.view(np.uint8) - step, other.view(np.uint8) - step) + step).view(np.int8)


def _contract_stops(segment: SegmentColumns, contract: Mapping[str, Any]) -> Iterator[tuple[int, Mask]]:
    """Gate by gate the rows it stops, where the contract alone decides; gates that stop none may be left out."""
    row, name, listed = segment.readers
    if listed.any():
        who = pa.array(sorted({contract["principal"], *contract["groups"]}))
        entitled = np.bincount(row[np.asarray(pc.is_in(name, who))], minlength=segment.rows) > 0
        yield NUMBER["principals"], listed & ~entitled
    if contract["denied_sources"]:
        yield NUMBER["source_deny"], selected_pairs(contract["denied_sources"], segment.pairs)[segment.pairs.codes]
    if contract["allowed_sources"] is not None or contract["role_sources"] is not None:
        picked = selected_pairs(contract["allowed_sources"], segment.pairs)
        picked &= selected_pairs(contract["role_sources"], segment.pairs)
        yield NUMBER["source_allow"], ~picked[segment.pairs.codes]
    if denied := [*contract["denied_paths"], *contract["excluded_paths"]]:
        yield NUMBER["path_deny"], _on_paths(segment, denied, pathless=denies_pathless(denied))
    if allowed := [contract[name] for name in ("allowed_paths", "search_paths") if contract[name] is not None]:
        lists = [_on_paths(segment, globs, pathless=allows_pathless(globs)) for globs in allowed]
        yield NUMBER["path_allow"], ~np.logical_and.reduce(lists)
    if contract["excluded_zones"]:
        yield NUMBER["zone"], ~_outside(segment.zone, ZONES.values, contract["excluded_zones"])
    if contract["excluded_levels"]:
        level = pc.utf8_lower(segment.column("level"))
        yield NUMBER["level"], truth(pc.is_in(level, pa.array(contract["excluded_levels"])))
    for column, gate in (("namespace", "namespace"), ("branch", "branch"), ("test_suite", "test_suite")):
        if column in segment.named and contract[column] is not None:
            position, codes = segment.named[column]
            yield NUMBER[gate], (codes >= 0) & (codes != position.get(contract[column], -1))
    if "workspace_root" in segment.named:
        position, codes = segment.named["workspace_root"]
        yield NUMBER["workspace"], (codes >= 0) & (codes != position.get(contract["workspace_root"], -1))
    yield NUMBER["visibility"], segment.hidden
    yield NUMBER["lifecycle"], _outside(segment.lifecycle, LIFECYCLES.values, contract["include_states"])
    yield NUMBER["safety"], segment.blocked
    if contract["forbidden_sources"]:
        yield NUMBER["role_source"], selected_pairs(contract["forbidden_sources"], segment.pairs)[segment.pairs.codes]
    if contract["role"] is not None:
        row, role = segment.excluding
        excluded = row[truth(pc.equal(role, contract["role"]))]
        yield NUMBER["role"], np.bincount(excluded, minlength=segment.rows) > 0
    if contract["accepted_authority"] is not None:
        yield NUMBER["accepted_authority"], _unaccepted(segment, contract["accepted_authority"])
    if contract["min_authority"] > 0:
        yield NUMBER["min_authority"], segment.authority < contract["min_authority"]


def _bound_stops(
    segment: SegmentColumns, bound: Mapping[str, Any], shared: Mapping[int, Mask]
) -> Iterator[tuple[int, Mask]]:
    """The same for what one grant bounds, on top of the contract's own stops."""
    highest = ZONES.values.index(bound["zone"]) if bound["zone"] in ZONES else -1
    limits = [("zone", segment.zone > highest)]
    if bound["sources"] is not None:
        limits.append(("source_allow", ~selected_pairs(bound["sources"], segment.pairs)[segment.pairs.codes]))
    if bound["paths"] is not None:
        limits.append(("path_allow", ~_on_paths(segment, bound["paths"], pathless=allows_pathless(bound["paths"]))))
    if denied := bound["denied_paths"]:
        limits.append(("path_deny", _on_paths(segment, denied, pathless=denies_pathless(denied))))
    for name, stopped in limits:
        gate = NUMBER[name]
        yield gate, stopped | shared[gate] if gate in shared else stopped
    if bound["states"] is not None:
        gate = NUMBER["lifecycle"]
        yield gate, shared[gate] | _outside(segment.lifecycle, LIFECYCLES.values, bound["states"])


def _on_paths(segment: SegmentColumns, globs: Sequence[str], *, pathless: bool) -> Mask:
    """Rows whose path matches one of the globs; `pathless` says whether rows without a path count as matching."""
    distinct, codes = segment.paths
    return np.append(matching_paths(distinct, globs), pathless)[codes]


def _outside(codes: Codes, words: Sequence[str], included: Collection[str]) -> Mask:
    """Rows whose word is none of those included."""
    return np.array([word not in included for word in words])[codes]


def _unaccepted(segment: SegmentColumns, accepted: Sequence[str]) -> Mask:
    origins = {origin for name in accepted for origin in ACCEPTED_ORIGINS.get(name, ())}
    stopped = np.array([origin not in origins for origin in segment.origin_classes], dtype=bool)
    memory = np.array([origin == "memory" for origin in segment.origin_classes], dtype=bool)
    unverified = segment.lifecycle != LIFECYCLES.values.index("verified")
    return stopped[segment.pairs.codes] | (memory[segment.pairs.codes] & unverified)
