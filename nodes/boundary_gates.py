"""Boundary gates, the first wall: decides which rows recall may score, before anything is scored.

Reads contracts with their bounds and the gate columns of EVIDENCE. Gives `gated_rows`, `reachable` and `group_ladder` per
scope group, `scope_times` per group and instant, and per request `admissible` and `filter_ladder`.

What one would get wrong: rows outside the segments a contract reaches are never opened, so the ladder starts with the
rows of those segments and its gates project and owner stop none; a count that depended on what else the frame holds
would differ between a batch and a single request. And a work tree's text shadows committed text of the same source and
path only where it is itself admissible: what a request may not see changes nothing for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .frames import OPEN_END, OPEN_START, RowIndex, micros
from .gate_predicates import COLUMNS, LAST_ACCESS, LAST_VISIBILITY, SegmentColumns, first_stops
from .gates import GATES, NUMBER
from .item_texts import text_bytes
from .keys import flat, gathered
from .schema import TIMESTAMP
from .tables import (
    ADMISSIBLE,
    FILTER_LADDER,
    GATED_ROWS,
    GROUP_LADDER,
    REACHABLE,
    SCOPE_TIMES,
    Admissible,
    ContractBounds,
    Contracts,
    Evidence,
    FilterLadder,
    GatedRows,
    GroupLadder,
    Reachable,
    ScopeGroups,
    ScopeTimes,
    Segments,
)
from .time_gates import time_grid

_TIMELESS = [gate.number for gate in GATES if gate.gate_class != "time"]
_TIME = [gate.number for gate in GATES if gate.gate_class == "time"]
_PAIRS_AT_ONCE = 1 << 20
"""(instant, row) pairs judged together: about 60 MB."""


def gated_rows(
    contracts: Contracts,
    contract_bounds: ContractBounds,
    scope_groups: ScopeGroups,
    evidence: Evidence,
    segments: Segments,
    row_index: RowIndex,
) -> GatedRows:
    """Every row of the segments each scope group reads, by group and row, with the first gate, time apart, that stops it."""
    columns = evidence.select(list(COLUMNS))
    opened: dict[int, SegmentColumns] = {}
    spans = segments.select(["owner_project", "owner_user", "row_start", "row_end"]).to_pylist()
    groups, rows, stops = [], [], []
    for group, contract, bounds in _leaders(contracts, contract_bounds, scope_groups):
        parts = []
        for position, span in enumerate(spans):
            if not (opening := [bound for bound in bounds if _opens(bound, span)]):
                continue
            start, end = span["row_start"], span["row_end"]
            if position not in opened:
                opened[position] = SegmentColumns(columns.slice(start, end - start))
            parts.append((start, opened[position], first_stops(opened[position], contract, opening)))
        _shadow(parts, contract, row_index)
        for start, segment, codes in parts:
            groups.append(np.full(segment.rows, group, dtype=np.int32))
            rows.append(np.arange(start, start + segment.rows, dtype=np.int64))
            stops.append(codes.astype(np.int32))
    return GATED_ROWS.build(
        {
            "scope_group": _joined(groups, np.int32),
            "row": _joined(rows, np.int64),
            "stopped_by": _joined(stops, np.int32),
        }
    )


def reachable(gated_rows: GatedRows) -> Reachable:
    """The rows that pass every access gate, by scope group and row, with the visibility gate that withholds each."""
    stopped = gated_rows["stopped_by"].to_numpy()
    kept = gated_rows.filter(pa.array((stopped == 0) | (stopped > LAST_ACCESS)))
    return REACHABLE.build({"scope_group": kept["scope_group"], "row": kept["row"], "withheld_by": kept["stopped_by"]})


def group_ladder(gated_rows: GatedRows, scope_groups: ScopeGroups) -> GroupLadder:
    """Rows considered and admitted by each access and visibility gate, by scope group and gate."""
    count = _group_count(scope_groups)
    cell = gated_rows["scope_group"].to_numpy() * (LAST_VISIBILITY + 1) + gated_rows["stopped_by"].to_numpy()
    stopped = np.bincount(cell, minlength=count * (LAST_VISIBILITY + 1)).reshape(count, LAST_VISIBILITY + 1)
    admitted = stopped.sum(axis=1, keepdims=True) - np.cumsum(stopped[:, _TIMELESS], axis=1)
    return GROUP_LADDER.build(
        {
            "scope_group": np.repeat(np.arange(count, dtype=np.int32), len(_TIMELESS)),
            "gate": np.tile(np.array(_TIMELESS, dtype=np.int32), count),
            "considered": (admitted + stopped[:, _TIMELESS]).ravel(),
            "admitted": admitted.ravel(),
        }
    )


def scope_times(
    contracts: Contracts, scope_groups: ScopeGroups, reachable: Reachable, evidence: Evidence, row_index: RowIndex
) -> ScopeTimes:
    """Each distinct instant and window of a scope group, by group and instant, with the rows that pass every gate then.

    `row_digest` is over the whole ids, each with a line end after it, in order.
    """
    instants, _ = _instants(contracts, scope_groups)
    group, row, withheld = (reachable[name].to_numpy() for name in ("scope_group", "row", "withheld_by"))
    history = _history(contracts, scope_groups)
    row_bounds = np.searchsorted(group, np.arange(_group_count(scope_groups) + 1))
    rows, lengths, digests = (np.zeros(len(instants), np.int64), np.zeros(len(instants), np.int64), [])
    stopped = np.zeros((len(instants), len(_TIME)), dtype=np.int64)
    for number, positions in groupby(range(len(instants)), key=lambda i: instants[i, 0]):
        members = slice(row_bounds[number], row_bounds[number + 1])
        visible = row[members][withheld[members] == 0]
        visible = visible[np.argsort(row_index.id_rank[visible])]
        lines, length = _lines(gathered(evidence["evidence_id"], visible)), row_index.length[visible]
        for part in _chunks(list(positions), len(visible)):
            _, as_of, start, end = instants[part].T
            codes = time_grid(row_index, visible, as_of, start, end, np.full(len(part), history[number]))
            for position, code in zip(part, codes, strict=True):
                passed = code == 0
                rows[position] = np.count_nonzero(passed)
                lengths[position] = length[passed].sum()
                digests.append(hashlib.sha256(text_bytes(lines.filter(pa.array(passed)))[1].data).hexdigest())
                stopped[position] = np.bincount(code, minlength=len(GATES) + 1)[_TIME]
    return SCOPE_TIMES.build(
        {
            "scope_group": instants[:, 0],
            "as_of": _timestamps(instants[:, 1]),
            "window_start": _timestamps(instants[:, 2]),
            "window_end": _timestamps(instants[:, 3]),
            "rows": rows,
            "total_length": lengths,
            "row_digest": pa.array(digests, pa.string()),
            "stopped": pa.FixedSizeListArray.from_arrays(pa.array(stopped.ravel()), len(_TIME)),
        }
    )


def admissible(
    contracts: Contracts,
    scope_groups: ScopeGroups,
    scope_times: ScopeTimes,
    reachable: Reachable,
    segments: Segments,
) -> Admissible:
    """A(r) of each request as counts and a digest, by request id; a denied request has none."""
    _, moment = _instants(contracts, scope_groups)
    group = flat(scope_groups["scope_group"]).to_numpy()
    sizes = np.bincount(reachable["scope_group"].to_numpy(), minlength=_group_count(scope_groups))
    judged = pa.array(moment, mask=moment < 0)
    rows = scope_times["rows"].take(judged).fill_null(0).to_numpy()
    within = np.append(sizes, 0)[group]
    names = _segments_read(reachable, segments, len(sizes))
    nothing = hashlib.sha256(b"").hexdigest()
    return ADMISSIBLE.build(
        {
            "request_id": contracts["request_id"],
            "scope_group": group,
            "segments": names.take(pa.array(np.where(group < 0, len(sizes), group))),
            "rows": rows,
            "total_length": scope_times["total_length"].take(judged).fill_null(0),
            "withheld": within - rows,
            "row_digest": scope_times["row_digest"].take(judged).fill_null(nothing),
        }
    )


def filter_ladder(
    contracts: Contracts, scope_groups: ScopeGroups, scope_times: ScopeTimes, group_ladder: GroupLadder
) -> FilterLadder:
    """Rows considered and admitted by every gate, by request id and gate order; a denied request has no ladder."""
    _, moment = _instants(contracts, scope_groups)
    open_ = np.flatnonzero(moment >= 0)
    group = scope_groups["scope_group"].to_numpy()[open_]
    timeless = [group_ladder[n].to_numpy().reshape(-1, len(_TIMELESS))[group] for n in ("considered", "admitted")]
    stopped = flat(scope_times["stopped"]).flatten().to_numpy().reshape(-1, len(_TIME))[moment[open_]]
    after = timeless[1][:, -1:] - np.cumsum(stopped, axis=1)
    return FILTER_LADDER.build(
        {
            "request_id": contracts["request_id"].take(pa.array(np.repeat(open_, len(GATES)))),
            "ordinal": np.tile(np.arange(1, len(GATES) + 1, dtype=np.int32), len(open_)),
            "gate": [gate.name for gate in GATES] * len(open_),
            "gate_class": [gate.gate_class for gate in GATES] * len(open_),
            "considered": np.hstack([timeless[0], after + stopped]).ravel(),
            "admitted": np.hstack([timeless[1], after]).ravel(),
            "reason_code": [gate.reason_code for gate in GATES] * len(open_),
        }
    )


def _leaders(
    contracts: pa.Table, contract_bounds: pa.Table, scope_groups: pa.Table
) -> Iterator[tuple[int, dict[str, Any], list[dict[str, Any]]]]:
    """Each group's number, the contract that speaks for it and that contract's bounds, by number."""
    leading = scope_groups.filter(scope_groups["leader"]).sort_by("scope_group")
    ids = flat(leading["request_id"])
    leaders = contracts.take(pc.index_in(ids, flat(contracts["request_id"])))
    bounds = contract_bounds.filter(pc.is_in(contract_bounds["request_id"], ids)).to_pylist()
    by_request = {key: list(rows) for key, rows in groupby(bounds, key=lambda bound: bound["request_id"])}
    instants = [micros(leaders[n], null).tolist() for n, null in _INSTANT_COLUMNS]
    for number, contract, as_of, start, end in zip(
        leading["scope_group"].to_pylist(),
        leaders.drop_columns(["as_of", "asked_at", "window_start", "window_end"]).to_pylist(),
        *instants,
        strict=True,
    ):
        yield number, contract | {"instant": (as_of, start, end)}, by_request.get(contract["request_id"], [])


_INSTANT_COLUMNS = (("as_of", OPEN_START), ("window_start", OPEN_START), ("window_end", OPEN_END))


def _opens(bound: Mapping[str, Any], span: Mapping[str, Any]) -> bool:
    owner = span["owner_user"]
    return bound["project"] == span["owner_project"] and (owner is None or owner in bound["users"])


def _shadow(
    parts: list[tuple[int, SegmentColumns, NDArray[np.int8]]], contract: Mapping[str, Any], row_index: RowIndex
) -> None:
    """Mark committed rows whose source and path an admissible text of the contract's work tree takes."""
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
    """The distinct (group, as_of, window start, window end), sorted, and each request's position; -1 = denied."""
    group = scope_groups["scope_group"].to_numpy().astype(np.int64)
    table = np.column_stack([group, *(micros(contracts[name], null) for name, null in _INSTANT_COLUMNS)])
    moment = np.full(len(group), -1, dtype=np.int64)
    instants, moment[group >= 0] = np.unique(table[group >= 0], axis=0, return_inverse=True)
    return instants, moment


def _history(contracts: pa.Table, scope_groups: pa.Table) -> NDArray[np.bool_]:
    """Per scope group, whether superseded and deleted text passes."""
    leads = scope_groups["leader"].to_numpy()
    found = np.zeros(_group_count(scope_groups), dtype=bool)
    found[scope_groups["scope_group"].to_numpy()[leads]] = contracts["include_deleted"].to_numpy()[leads]
    return found


def _lines(ids: pa.ChunkedArray) -> pa.Array:
    """Each id with a line end."""
    return pc.binary_join_element_wise(
        flat(ids).cast(pa.large_string()), *(pa.scalar(t, pa.large_string()) for t in ("\n", ""))
    )


def _chunks(positions: list[int], rows: int) -> Iterator[list[int]]:
    step = max(1, _PAIRS_AT_ONCE // max(rows, 1))
    for start in range(0, len(positions), step):
        yield positions[start : start + step]


def _segments_read(reachable: pa.Table, segments: pa.Table, groups: int) -> pa.ListArray:
    """Ids of the segments with a reachable row, per group and in frame order; last, an empty list."""
    segment = np.searchsorted(segments["row_start"].to_numpy(), reachable["row"].to_numpy(), side="right") - 1
    count = max(segments.num_rows, 1)
    pair = np.unique(reachable["scope_group"].to_numpy().astype(np.int64) * count + segment)
    offsets = np.searchsorted(pair, np.arange(groups + 1) * count)
    offsets = pa.array(np.append(offsets, offsets[-1]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, flat(segments["segment_id"]).take(pa.array(pair % count)))


def _group_count(scope_groups: pa.Table) -> int:
    return int(scope_groups["scope_group"].to_numpy().max(initial=-1)) + 1


def _timestamps(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=(values == OPEN_START) | (values == OPEN_END)).cast(TIMESTAMP)


def _joined(arrays: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=dtype)
