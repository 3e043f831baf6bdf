"""Boundary gates, the first wall: decides which rows recall may score, before anything is scored.

Reads contracts with their bounds and the gate columns of EVIDENCE. Gives `gated_rows` per scope group; `row_groups`,
the groups with equal outcomes merged; `reachable` per row group, `scope_times` per row group and instant, and per
request `admissible` and `filter_ladder`.

Note: rows outside the segments a contract reaches are never opened, so the ladder starts with the rows of those
segments and its `project` and `owner` gates stop none; a count that depended on the other segments of the frame would
differ between a batch and a single request. A work tree's text shadows committed text of the same source and path only
where it is itself admissible: rows that a request may not see do not affect its result.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.array_bytes import offsets_and_bytes
from .columns.kept import OfTable
from .columns.keys import flat, gathered, positions
from .columns.ragged import starts_of
from .frames import OPEN_END, OPEN_START, RowIndex, micros
from .plugins import NO_PLUGINS, Plugins
from .schema import TIMESTAMP
from .scope.selectors import source_names, source_pairs, unmatched
from .tables import (
    ADMISSIBLE,
    FILTER_LADDER,
    GATED_ROWS,
    REACHABLE,
    SCOPE_GROUPS,
    SCOPE_TIMES,
    Admissible,
    ContractBounds,
    Contracts,
    Evidence,
    FilterLadder,
    GatedRows,
    Reachable,
    ScopeGroups,
    ScopeTimes,
    Segments,
)
from .walls.gate_predicates import (
    CONTRACT_COLUMNS,
    FrameColumns,
    columns_of_frame,
    first_stops,
)
from .walls.gates import GATES, NUMBER
from .walls.moments import Moments
from .walls.segment_columns import SegmentColumns
from .walls.time_gates import time_grid

_TIME = [gate.number for gate in GATES if gate.gate_class == "time"]
_NO_ROWS = np.empty(0, dtype=np.int8)


def gated_rows(
    contracts: Contracts,
    contract_bounds: ContractBounds,
    scope_groups: ScopeGroups,
    evidence: Evidence,
    segments: Segments,
    row_index: RowIndex,
    plugins: Plugins = NO_PLUGINS,
) -> GatedRows:
    """Every segment each scope group reads, by group and row, with the first gate other than time that stops each row.

    Outcomes are compared by SHA-256; of the groups with equal outcomes only the first lists them.
    """
    frame, asked = columns_of_frame(evidence), list(_leaders(contracts, contract_bounds, scope_groups))

    def gate() -> pa.Table:
        return _gated(frame, asked, evidence, segments, row_index, plugins)

    return frame.outcomes.get((repr(asked), plugins.order), gate)


def _gated(
    columns: FrameColumns,
    asked: Sequence[_Leader],
    evidence: pa.Table,
    segments: pa.Table,
    row_index: RowIndex,
    plugins: Plugins,
) -> pa.Table:
    spans = _spans(segments)
    first: dict[tuple[Any, ...], int] = {}
    groups, starts, same, lists = [], [], [], []
    for group, contract, bounds in asked:
        parts = []
        for span in spans:
            if not (opening := [bound for bound in bounds if _opens(bound, span)]):
                continue
            start, segment = span["row_start"], columns.of(span["row_start"], span["row_end"])
            codes = first_stops(segment, contract, opening)
            parts.append((start, segment, plugins.order.stopped(codes, evidence, start, contract)))
        _shadow(parts, contract, row_index)
        outcome = tuple((start, hashlib.sha256(codes).digest()) for start, _, codes in parts)
        alike = first.setdefault(outcome, group)
        for start, codes in [(start, codes) for start, _, codes in parts] or [(0, _NO_ROWS)]:
            groups.append(group)
            starts.append(start)
            same.append(alike)
            lists.append(codes if alike == group else _NO_ROWS)
    offsets = pa.array(starts_of(np.array([len(codes) for codes in lists], dtype=np.int64)))
    return GATED_ROWS.build(
        {
            "scope_group": np.array(groups, dtype=np.int32),
            "row_start": np.array(starts, dtype=np.int64),
            "same_as": np.array(same, dtype=np.int32),
            "stopped_by": pa.LargeListArray.from_arrays(offsets, pa.array(_joined(lists, np.int8))),
        }
    )


def row_groups(scope_groups: ScopeGroups, gated_rows: GatedRows) -> ScopeGroups:
    """The scope groups by request id, renumbered: groups that read the same rows with the same outcome are merged.

    For example, branches that no row names separate requests but not rows; the following steps then run once for all.
    """
    spoken, number = _row_groups(gated_rows)
    group = scope_groups["scope_group"].to_numpy()
    return SCOPE_GROUPS.build(
        {
            "request_id": scope_groups["request_id"],
            "scope_group": np.where(group >= 0, np.append(number, -1)[group], -1).astype(np.int32),
            "leader": np.asarray(scope_groups["leader"]) & np.isin(group, spoken),
        }
    )


def reachable(gated_rows: GatedRows, plugins: Plugins = NO_PLUGINS) -> Reachable:
    """The rows that pass every access gate, by row group and row, with the visibility gate that withholds each."""
    return _reachable(gated_rows, plugins)


@OfTable
def _reachable(gated_rows: pa.Table, plugins: Plugins) -> pa.Table:
    passes = plugins.order.passes_access
    count = int(sum(np.count_nonzero(passes(codes)) for _, _, codes in _listed(gated_rows)))
    group, row, withheld = (np.empty(count, dtype=dtype) for dtype in (np.int32, np.int64, np.int32))
    low = 0
    for number, start, codes in _listed(gated_rows):
        local = np.flatnonzero(passes(codes))
        part = slice(low, low + len(local))
        group[part], row[part], withheld[part] = number, local + start, codes[local]
        low += len(local)
    return REACHABLE.build({"scope_group": group, "row": row, "withheld_by": withheld})


@OfTable
def _timeless_ladder(gated_rows: pa.Table, plugins: Plugins) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows considered and admitted by each access and visibility gate: int64[row groups, gates]."""
    stopped = np.zeros((len(_row_groups(gated_rows)[0]), plugins.order.most + 1), dtype=np.int64)
    for number, _, codes in _listed(gated_rows):
        stopped[number] += np.bincount(codes, minlength=stopped.shape[1])
    by_gate = stopped[:, plugins.order.timeless]
    admitted = stopped.sum(axis=1, keepdims=True) - np.cumsum(by_gate, axis=1)
    return admitted + by_gate, admitted


def scope_times(
    contracts: Contracts, row_groups: ScopeGroups, reachable: Reachable, evidence: Evidence, row_index: RowIndex
) -> ScopeTimes:
    """Each distinct instant and window of a row group, by group and instant, with the rows that pass every gate then.

    `row_digest` covers the full ids in order, each followed by a line feed.
    """
    instants, _ = _instants(contracts, row_groups)
    scopes = _visible(reachable, evidence, row_index)
    judged = [scopes[number].at(*moment) for number, *moment in instants.tolist()]
    named = contracts["allowed_sources"].null_count < contracts.num_rows
    return SCOPE_TIMES.build(
        {
            "scope_group": instants[:, 0],
            "as_of": _timestamps(instants[:, 1]),
            "window_start": _timestamps(instants[:, 2]),
            "window_end": _timestamps(instants[:, 3]),
            "include_deleted": instants[:, 4].astype(bool),
            "rows": [one.rows for one in judged],
            "total_length": [one.length for one in judged],
            "row_digest": [one.digest for one in judged],
            "stopped": pa.FixedSizeListArray.from_arrays([n for one in judged for n in one.stopped], len(_TIME)),
            "sources": [one.sources if named else [] for one in judged],
        },
        rows=len(judged),
    )


class _Moment:
    """What a row group shows at an instant."""

    def __init__(self, scope: _Visible, codes: NDArray[np.int8]) -> None:
        self._scope, self._passed = scope, codes == 0
        self.rows = int(np.count_nonzero(self._passed))
        self.length = int(scope.length[self._passed].sum())
        _, data = offsets_and_bytes(scope.lines.filter(pa.array(self._passed)))
        self.digest = hashlib.sha256(data.data).hexdigest()
        self.stopped: list[int] = np.bincount(codes, minlength=len(GATES) + 1)[_TIME].tolist()

    @cached_property
    def sources(self) -> list[str]:
        """The class and id of each source."""
        return source_names(self._scope.sources, np.flatnonzero(self._passed))


class _Visible:
    """The rows of a row group that every gate but time admits, by id."""

    def __init__(self, rows: NDArray[np.int64], evidence: pa.Table, row_index: RowIndex) -> None:
        rows = rows[np.argsort(row_index.id_rank[rows])]
        self._rows, self._index, self.length = rows, row_index, row_index.length[rows]
        self.lines = _lines(gathered(evidence["evidence_id"], rows))
        self.sources = source_pairs(*(gathered(evidence[name], rows) for name in ("origin_class", "source_id")))
        self._moments: Moments[_Moment] = Moments(rows, row_index)

    def at(self, as_of: int, start: int, end: int, history: int) -> _Moment:
        """What passes under a clock; `history` is 1 where superseded and deleted text passes, else 0."""

        def judge() -> _Moment:
            clock = (np.array([bound]) for bound in (as_of, start, end))
            return _Moment(self, time_grid(self._index, self._rows, *clock, history=np.array([history == 1]))[0])

        return self._moments.at(as_of, start, end, history == 1, judge)


@OfTable
def _visible(reachable: pa.Table, evidence: pa.Table, row_index: RowIndex) -> dict[int, _Visible]:
    """The scope of each row group that has a reachable row."""
    group, row, withheld = (reachable[name].to_numpy() for name in ("scope_group", "row", "withheld_by"))
    bounds = np.searchsorted(group, np.arange(int(group.max(initial=-1)) + 2))
    parts = [(row[low:high][withheld[low:high] == 0]) for low, high in pairwise(bounds)]
    return defaultdict(
        lambda: _Visible(np.empty(0, np.int64), evidence, row_index),
        {number: _Visible(part, evidence, row_index) for number, part in enumerate(parts)},
    )


def admissible(
    contracts: Contracts,
    scope_groups: ScopeGroups,
    row_groups: ScopeGroups,
    scope_times: ScopeTimes,
    reachable: Reachable,
    segments: Segments,
) -> Admissible:
    """A(r) of each request as counts and a digest, by request id; a denied request has none."""
    _, moment = _instants(contracts, row_groups)
    group = flat(row_groups["scope_group"]).to_numpy()
    sizes = np.bincount(reachable["scope_group"].to_numpy(), minlength=_group_count(row_groups))
    judged = pa.array(moment, mask=moment < 0)
    rows = scope_times["rows"].take(judged).fill_null(0).to_numpy()
    within = np.append(sizes, 0)[group]
    names = _segments_read(reachable, segments, len(sizes))
    nothing = hashlib.sha256(b"").hexdigest()
    return ADMISSIBLE.build(
        {
            "request_id": contracts["request_id"],
            "scope_group": scope_groups["scope_group"],
            "segments": names.take(pa.array(np.where(group < 0, len(sizes), group))),
            "rows": rows,
            "total_length": scope_times["total_length"].take(judged).fill_null(0),
            "withheld": within - rows,
            "row_digest": scope_times["row_digest"].take(judged).fill_null(nothing),
            "unmatched_sources": unmatched(contracts["allowed_sources"], scope_times["sources"], moment),
        }
    )


def filter_ladder(
    contracts: Contracts,
    row_groups: ScopeGroups,
    scope_times: ScopeTimes,
    gated_rows: GatedRows,
    plugins: Plugins = NO_PLUGINS,
) -> FilterLadder:
    """Rows considered and admitted by every gate, by request id and gate order; a denied request has no ladder."""
    gates = plugins.order.gates
    _, moment = _instants(contracts, row_groups)
    open_ = np.flatnonzero(moment >= 0)
    group = row_groups["scope_group"].to_numpy()[open_]
    timeless = [counts[group] for counts in _timeless_ladder(gated_rows, plugins)]
    stopped = flat(scope_times["stopped"]).flatten().to_numpy().reshape(-1, len(_TIME))[moment[open_]]
    after = timeless[1][:, -1:] - np.cumsum(stopped, axis=1)
    return FILTER_LADDER.build(
        {
            "request_id": contracts["request_id"].take(pa.array(np.repeat(open_, len(gates)))),
            "ordinal": np.tile(np.arange(1, len(gates) + 1, dtype=np.int32), len(open_)),
            "gate": [gate.name for gate in gates] * len(open_),
            "gate_class": [gate.gate_class for gate in gates] * len(open_),
            "considered": np.hstack([timeless[0], after + stopped]).ravel(),
            "admitted": np.hstack([timeless[1], after]).ravel(),
            "reason_code": [gate.reason_code for gate in gates] * len(open_),
        }
    )


_Leader: TypeAlias = "tuple[int, dict[str, Any], list[dict[str, Any]]]"
"""The number of a scope group, the columns that its gates read of its leading contract, and that contract's bounds."""


def _leaders(contracts: pa.Table, contract_bounds: pa.Table, scope_groups: pa.Table) -> Iterator[_Leader]:
    """Each group by number. The instant is read only for a work tree, whose texts shadow others by then."""
    leading = scope_groups.filter(scope_groups["leader"]).sort_by("scope_group")
    ids = flat(leading["request_id"])
    names = [*CONTRACT_COLUMNS, *(name for name, _ in _INSTANT_COLUMNS)]
    leaders = contracts.select(names).take(pa.array(positions(ids, contracts["request_id"])))
    bounds = contract_bounds.filter(pc.is_in(contract_bounds["request_id"], ids)).to_pylist()
    by_request = {key: list(rows) for key, rows in groupby(bounds, key=lambda bound: bound.pop("request_id"))}
    instants = zip(*(micros(leaders[name], null).tolist() for name, null in _INSTANT_COLUMNS), strict=True)
    asked = leaders.select(CONTRACT_COLUMNS).to_pylist()
    for number, name, contract, instant in zip(
        leading["scope_group"].to_pylist(), ids.to_pylist(), asked, instants, strict=True
    ):
        clock = {} if contract["workspace_root"] is None else {"instant": instant}
        yield number, contract | clock, by_request.get(name, [])


_spans = OfTable(lambda segments: segments.select(["owner_project", "owner_user", "row_start", "row_end"]).to_pylist())
_INSTANT_COLUMNS = (("as_of", OPEN_START), ("window_start", OPEN_START), ("window_end", OPEN_END))


def _opens(bound: Mapping[str, Any], span: Mapping[str, Any]) -> bool:
    owner = span["owner_user"]
    return bound["project"] == span["owner_project"] and (owner is None or owner in bound["users"])


def _shadow(
    parts: list[tuple[int, SegmentColumns, NDArray[np.int8]]], contract: Mapping[str, Any], row_index: RowIndex
) -> None:
    """Mark committed rows whose source and path also occur in an admissible text of the contract's work tree."""
    root = contract["workspace_root"]
    if root is None:
        return
    taken = []
    for start, segment, codes in parts:
        if "workspace_root" not in segment.named:
            continue
        position, named = segment.named["workspace_root"]
        local = np.flatnonzero((codes == 0) & (named == position.get(root, -2)))
        instant = [np.array([moment]) for moment in contract["instant"]]
        local = local[time_grid(row_index, local + start, *instant)[0] == 0]
        taken.append(segment.files.take(pa.array(local)).drop_null())
    if not sum(map(len, taken)):
        return
    gate, shadows = NUMBER["workspace"], pa.concat_arrays(taken)
    for _, segment, codes in parts:
        committed = np.asarray(segment.column("workspace_root").is_null())
        hit = committed & np.asarray(pc.is_in(segment.files, shadows)) & ((codes == 0) | (codes > gate))
        codes[hit] = gate


def _instants(contracts: pa.Table, scope_groups: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct (group, as_of, window start, window end, history), sorted, and each request's place; -1 = denied.

    History is 1 where superseded and deleted text passes, else 0.
    """
    group = scope_groups["scope_group"].to_numpy().tolist()
    clock = [micros(contracts[name], null).tolist() for name, null in _INSTANT_COLUMNS]
    of = [*zip(group, *clock, np.asarray(contracts["include_deleted"]).astype(np.int64).tolist(), strict=True)]
    distinct = sorted({one for one in of if one[0] >= 0})
    place = {one: number for number, one in enumerate(distinct)}
    columns = len(_INSTANT_COLUMNS) + 2
    return np.array(distinct, np.int64).reshape(-1, columns), np.array([place.get(one, -1) for one in of], np.int64)


def _lines(ids: pa.ChunkedArray) -> pa.Array:
    """Each id followed by a line feed."""
    return pc.binary_join_element_wise(
        flat(ids).cast(pa.large_string()), *(pa.scalar(t, pa.large_string()) for t in ("\n", ""))
    )


def _segments_read(reachable: pa.Table, segments: pa.Table, groups: int) -> pa.ListArray:
    """Ids of the segments with a reachable row, per group and in frame order, followed by one empty list."""
    starts, ends = segments["row_start"].to_numpy(), segments["row_end"].to_numpy()
    row = reachable["row"].to_numpy()
    bounds = np.searchsorted(reachable["scope_group"].to_numpy(), np.arange(groups + 1))
    held = []
    for low, high in pairwise(bounds):
        own = row[low:high]
        held.append(np.flatnonzero(np.searchsorted(own, starts) < np.searchsorted(own, ends)))
    offsets = starts_of(np.array([*(len(part) for part in held), 0], dtype=np.int64)).astype(np.int32)
    ids = flat(segments["segment_id"]).take(pa.array(_joined(held, np.int64)))
    return pa.ListArray.from_arrays(pa.array(offsets), ids)


def _row_groups(gated_rows: pa.Table) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The groups that list rows, ascending, and the row group of every scope group as a position among them."""
    group, same = gated_rows["scope_group"].to_numpy(), gated_rows["same_as"].to_numpy()
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return np.unique(same[first], return_inverse=True)


def _listed(gated_rows: pa.Table) -> Iterator[tuple[int, int, NDArray[np.int8]]]:
    """Row group, first row and outcome of every listed segment."""
    spoken, _ = _row_groups(gated_rows)
    group, start = gated_rows["scope_group"].to_numpy(), gated_rows["row_start"].to_numpy()
    lists = flat(gated_rows["stopped_by"])
    codes, offsets = lists.values.to_numpy(), lists.offsets.to_numpy()
    for place in np.flatnonzero(np.diff(offsets)):
        number = int(np.searchsorted(spoken, group[place]))
        yield number, int(start[place]), codes[offsets[place] : offsets[place + 1]]


def _group_count(scope_groups: pa.Table) -> int:
    return int(scope_groups["scope_group"].to_numpy().max(initial=-1)) + 1


def _timestamps(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=(values == OPEN_START) | (values == OPEN_END)).view(TIMESTAMP)


def _joined(arrays: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=dtype)
