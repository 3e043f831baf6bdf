"""Boundary gates, the first wall: decides which rows recall may score, before anything is scored.

Reads contracts with their bounds and the gate columns of EVIDENCE. Gives `reachable` per row group, the requests that read
the same rows with the same outcome; and per request `admissible` and `filter_ladder`.

Note: rows outside the segments a contract reaches are never opened, so the ladder starts with the rows of those
segments and its `project` and `owner` gates stop none; a count that depended on the other segments of the frame would
differ between a batch and a single request. A work tree's text shadows committed text of the same source and path only
where it is itself admissible: rows that a request may not see do not affect its result. What scopes show is cached with
the frame, by the columns that gates read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import sub
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.kept import OfTable
from .columns.keys import distinct_rows, flat, gathered, offsets_and_bytes, rows_of_runs
from .columns.ragged import expand_ranges, starts_of
from .frames import RowIndex, VectorIndex
from .plugins import NO_PLUGINS, Plugins
from .scope.selectors import SourcePairs, selected_pairs, source_pairs
from .tables import (
    ADMISSIBLE,
    FILTER_LADDER,
    REACHABLE,
    Admissible,
    ContractBounds,
    Contracts,
    Evidence,
    FilterLadder,
    Reachable,
    Segments,
)
from .walls.first_wall import CONTRACT_COLUMNS, columns_of_frame, first_stops
from .walls.gate import SegmentColumns
from .walls.gates import GATES, NUMBER
from .walls.time_gates import ContractClock, GroupRows, Moment, clocks, distinct_clocks, rows_of_groups, time_codes

_TIME = [gate.number for gate in GATES if gate.gate_class == "time"]
Codes = NDArray[np.int8]
Int = NDArray[np.int64]


def reachable(
    contracts: Contracts,
    contract_bounds: ContractBounds,
    evidence: Evidence,
    segments: Segments,
    row_index: RowIndex,
    plugins: Plugins = NO_PLUGINS,
) -> Reachable:
    """The rows that pass every access gate, by row group, with the visibility gate that withholds each.

    Requests that read the same rows with the same outcome share a group: branches that no row names separate requests but
    not rows. Numbers mean nothing outside their shard.
    """
    return _gated(_scopes_of(contracts, contract_bounds)[0], evidence, segments, row_index, plugins).reachable


class _Scope(NamedTuple):
    """What the gates read of a contract. The instant is read only for a work tree, whose texts shadow others by then."""

    contract: dict[str, Any]
    bounds: Sequence[dict[str, Any]]
    instant: tuple[int, ...] | None


class _Gated(NamedTuple):
    """The outcome of some scopes, and the row group of each."""

    reachable: pa.Table
    group: NDArray[np.int64]


@OfTable
def _scopes_of(contracts: pa.Table, contract_bounds: pa.Table) -> tuple[list[_Scope], NDArray[np.int64]]:
    """The distinct scopes of requests that are not denied, and the scope of each request; -1 = denied."""
    bounds = rows_of_runs(contract_bounds.drop_columns(["rule_id"]), "request_id")
    known: dict[tuple[str, int, tuple[int, ...] | None], int] = {}
    scopes, of_request, clock = list[_Scope](), list[int](), clocks(contracts)
    asked = contracts.select(["request_id", "denied", *CONTRACT_COLUMNS]).to_pylist()
    for contract, *instant in zip(asked, clock.as_of, clock.start, clock.end, strict=True):
        own = bounds.get(contract.pop("request_id"), ())
        if contract.pop("denied"):
            of_request.append(-1)
            continue
        scope = _Scope(contract, own, tuple(map(int, instant)) if contract["workspace_root"] is not None else None)
        of_request.append(known.setdefault((repr(contract), id(own), scope.instant), len(scopes)))
        if of_request[-1] == len(scopes):
            scopes.append(scope)
    return scopes, np.array(of_request, dtype=np.int64)


def _gated(
    scopes: Sequence[_Scope], evidence: pa.Table, segments: pa.Table, row_index: RowIndex, plugins: Plugins
) -> _Gated:
    def gate() -> _Gated:
        known: dict[tuple[tuple[int, bytes], ...], int] = {}
        group, found = list[int](), list[Sequence[NDArray[Any]]]()
        for scope in scopes:
            stops = _gate_stops(scope, evidence, segments, row_index, plugins)
            outcome = tuple((start, hashlib.sha256(codes.data).digest()) for start, codes in stops)
            group.append(known.setdefault(outcome, len(known)))
            if group[-1] == len(found):
                found.append(_reached(stops, plugins))
        rows, withheld, left = zip(*found, strict=True) if found else ((), (), ())
        reachable = REACHABLE.build(
            {"scope_group": range(len(found)), "rows": rows, "withheld_by": withheld, "left": left}, rows=len(found)
        )
        return _Gated(reachable, np.array(group, dtype=np.int64))

    return columns_of_frame(evidence).outcomes.get((repr(scopes), plugins.order), gate)


def _gate_stops(
    scope: _Scope, evidence: pa.Table, segments: pa.Table, row_index: RowIndex, plugins: Plugins = NO_PLUGINS
) -> list[tuple[int, Codes]]:
    """The first row of each segment that a scope reads, and the first gate other than time that stops each of its rows."""
    frame, parts = columns_of_frame(evidence), list[tuple[int, SegmentColumns, Codes]]()
    for span in _spans(segments):
        if opening := [bound for bound in scope.bounds if _opens(bound, span)]:
            start, segment = span["row_start"], frame.of(span["row_start"], span["row_end"])
            codes = first_stops(segment, scope.contract, opening)
            parts.append((start, segment, plugins.order.stopped(codes, evidence, start, scope.contract)))
    if scope.instant is not None:
        _shadow(parts, scope.contract["workspace_root"], scope.instant, row_index)
    return [(start, codes) for start, _, codes in parts]


def _reached(stops: Sequence[tuple[int, Codes]], plugins: Plugins) -> Sequence[NDArray[Any]]:
    """A scope's row of REACHABLE."""
    order, none = plugins.order, np.empty(0, dtype=np.int8)
    codes = np.concatenate([none, *(codes for _, codes in stops)])
    rows = expand_ranges(
        *(np.array(each, np.int64) for each in ([start for start, _ in stops], [len(c) for _, c in stops]))
    )
    passed = np.flatnonzero(order.passes_access(codes))
    stopped = np.bincount(codes, minlength=order.most + 1)[order.timeless]
    return rows[passed], codes[passed], len(codes) - starts_of(stopped)


class _Shown:
    """A(r): what a row group shows at a moment."""

    def __init__(self, group: GroupRows, moment: Moment, evidence: pa.Table, index: RowIndex) -> None:
        by_id, lines, sources = group.once("shown", lambda: _by_id(group, evidence, index))
        codes = moment.stops[by_id]
        passed = codes == 0
        self._rows = group.rows[by_id[passed]]
        self.rows, self.length = len(self._rows), int(index.length[self._rows].sum())
        self._encoded: int | None = None
        _, data = offsets_and_bytes(lines.filter(pa.array(passed)))
        self.digest = hashlib.sha256(data.data).hexdigest()
        self.stopped: list[int] = np.bincount(codes, minlength=len(GATES) + 1)[_TIME].tolist()
        used = pa.array(np.unique(sources.codes[passed]))
        self._sources = source_pairs(*(column.take(used) for column in sources[1:]))

    def encoded(self, vectors: VectorIndex | None) -> int:
        """The number of rows that have a vector, counted once: a frame has the same vectors in every call."""
        if self._encoded is None:
            self._encoded = 0 if vectors is None else int(np.count_nonzero(vectors.encoded(self._rows)))
        return self._encoded

    def unmatched(self, selectors: Sequence[str] | None) -> list[str]:
        """The selectors that pick none of the sources."""
        return [one for one in selectors or () if not selected_pairs([one], self._sources).any()]


def _by_id(group: GroupRows, evidence: pa.Table, index: RowIndex) -> tuple[Int, pa.Array, SourcePairs]:
    """The places of the rows of a group that no visibility gate withholds, by id; their ids as lines, and their sources."""
    place = (~group.withheld).nonzero()[0]
    place = place[np.argsort(index.id_rank[group.rows[place]])]
    rows = group.rows[place]
    sources = source_pairs(*(gathered(evidence[name], rows) for name in ("origin_class", "source_id")))
    return place, _lines(gathered(evidence["evidence_id"], rows)), sources


def admissible(
    contracts: Contracts,
    contract_bounds: ContractBounds,
    reachable: Reachable,
    evidence: Evidence,
    segments: Segments,
    row_index: RowIndex,
    vectors: VectorIndex | None,
    plugins: Plugins = NO_PLUGINS,
) -> Admissible:
    """The row group and A(r) of each request, as counts and a digest, by request id; a denied request has none.

    `row_digest` covers the full ids in order, each followed by a line feed.
    """
    scopes, of_request = _scopes_of(contracts, contract_bounds)
    number = np.append(_gated(scopes, evidence, segments, row_index, plugins).group, -1)[of_request]
    groups = [*rows_of_groups(reachable), GroupRows(np.empty(0, dtype=np.int64), np.empty(0, dtype=bool))]
    clock, of_clock = distinct_clocks(contracts)
    first, which = distinct_rows(number, of_clock)
    known = []
    for at in first.tolist():
        group = groups[number[at]]
        (moment,) = group.at(row_index, clock.some(of_clock[[at]]))
        known.append((group, moment.once("shown", partial(_Shown, group, moment, evidence, row_index))))
    found = [known[one] for one in which.tolist()]
    asked = zip(found, number.tolist(), contracts["allowed_sources"].to_pylist(), strict=True)
    return ADMISSIBLE.build(
        {
            "request_id": contracts["request_id"],
            "scope_group": number,
            "rows": [shown.rows for _, shown in found],
            "encoded": [shown.encoded(vectors) for _, shown in found],
            "total_length": [shown.length for _, shown in found],
            "withheld": [len(group.rows) - shown.rows for group, shown in found],
            "stopped": [shown.stopped for _, shown in found],
            "row_digest": [shown.digest for _, shown in found],
            "unmatched_sources": [
                shown.unmatched(selectors) if group >= 0 else [] for (_, shown), group, selectors in asked
            ],
        }
    )


def filter_ladder(admissible: Admissible, reachable: Reachable, plugins: Plugins = NO_PLUGINS) -> FilterLadder:
    """Rows considered and admitted by every gate, by request id and gate order; a denied request has no ladder."""
    gates, left = plugins.order.gates, reachable["left"].to_pylist()
    considered, admitted, of_request = list[int](), list[int](), list[int]()
    moments = zip(admissible["scope_group"].to_pylist(), admissible["stopped"].to_pylist(), strict=True)
    for at, (group, stopped) in enumerate(moments):
        if group >= 0:
            of_request += [at] * len(gates)
            before, later = left[group], [*accumulate(stopped, sub, initial=left[group][-1])]
            considered += before[:-1] + later[:-1]
            admitted += before[1:] + later[1:]
    times = len(of_request) // len(gates)
    return FILTER_LADDER.build(
        {
            "request_id": admissible["request_id"].take(pa.array(of_request, pa.int64())),
            "ordinal": [*range(1, len(gates) + 1)] * times,
            "considered": considered,
            "admitted": admitted,
            "gate": [gate.name for gate in gates] * times,
            "gate_class": [gate.gate_class for gate in gates] * times,
            "reason_code": [gate.reason_code for gate in gates] * times,
        },
        rows=len(of_request),
    )


_spans = OfTable(lambda segments: segments.select(["owner_project", "owner_user", "row_start", "row_end"]).to_pylist())


def _opens(bound: Mapping[str, Any], span: Mapping[str, Any]) -> bool:
    owner = span["owner_user"]
    return bound["project"] == span["owner_project"] and (owner is None or owner in bound["users"])


def _shadow(
    parts: list[tuple[int, SegmentColumns, Codes]], root: str, instant: tuple[int, ...], row_index: RowIndex
) -> None:
    """Mark committed rows whose source and path also occur in an admissible text of the contract's work tree."""
    as_of, since, until = (np.array([one]) for one in instant)
    taken, clock = [], ContractClock(as_of, since, until, np.array([False]))
    for start, segment, codes in parts:
        of_tree = segment.where("workspace_root", lambda named: named == root)
        if of_tree is None:
            continue
        local = np.flatnonzero((codes == 0) & of_tree)
        local = local[time_codes(row_index, local + start, clock)[0] == 0]
        taken.append(segment.files.take(pa.array(local)).drop_null())
    if not sum(map(len, taken)):
        return
    gate, shadows = NUMBER["workspace"], pa.concat_arrays(taken)
    for _, segment, codes in parts:
        committed = np.asarray(segment.column("workspace_root").is_null())
        hit = committed & np.asarray(pc.is_in(segment.files, shadows)) & ((codes == 0) | (codes > gate))
        codes[hit] = gate


def _lines(ids: pa.ChunkedArray) -> pa.Array:
    """Each id followed by a line feed."""
    return pc.binary_join_element_wise(
        flat(ids).cast(pa.large_string()), *(pa.scalar(t, pa.large_string()) for t in ("\n", ""))
    )
