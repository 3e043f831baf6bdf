"""Time gates against a plain reference, over rows with any number of placements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.frames import OPEN_END, OPEN_START, RowIndex
from scoped_retrieval.nodes.schema import TIMESTAMP
from scoped_retrieval.nodes.walls.gates import NUMBER
from scoped_retrieval.nodes.walls.time_gates import ContractClock, GroupRows, time_codes
from wall_worlds import time_stop

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: int | None) -> datetime | None:
    return None if number is None else START + timedelta(days=number)


def micro(number: int | None, open_: int) -> int:
    return open_ if number is None else int(day(number).timestamp()) * 1_000_000


def index_of(rows: list[dict]) -> RowIndex:
    """A row index over rows of days: `placements` as (recorded, superseded, deleted)."""
    placed = [
        {"row": n, "recorded_time": day(r), "superseded_at": day(s), "deleted_at": day(d)}
        for n, row in enumerate(rows)
        for r, s, d in sorted(row["placements"], key=lambda p: p[0])
    ]
    times = {
        name: pa.array([day(row.get(name)) for row in rows], TIMESTAMP)
        for name in ("valid_from", "valid_until", "event_time")
    }
    evidence = pa.table(
        {
            "evidence_id": [f"{n:026d}" for n in range(len(rows))],
            "length": pa.array([1] * len(rows), pa.int32()),
            **times,
        }
    )
    schema = pa.schema(
        [("row", pa.int64()), *((n, TIMESTAMP) for n in ("recorded_time", "superseded_at", "deleted_at"))]
    )
    return RowIndex.of(evidence, pa.Table.from_pylist(placed, schema))


def clock_of(as_of: Any, start: Any, end: Any) -> ContractClock:
    return ContractClock(*map(np.array, (as_of, start, end)), np.zeros(len(as_of), bool))


def test_a_row_without_placements_was_never_recorded():
    codes, placement = time_codes(
        index_of([{"placements": []}]), np.array([0]), clock_of([5], [OPEN_START], [OPEN_END])
    )
    assert (codes.tolist(), placement.tolist()) == ([NUMBER["recorded"]], [-1])


days = st.integers(0, 8)
maybe = st.none() | days
placements = st.lists(st.tuples(days, maybe, maybe), max_size=5, unique_by=lambda p: p[0])
single = st.tuples(days, maybe, maybe).map(lambda p: [p])
fields = {"valid_from": maybe, "valid_until": maybe, "event_time": maybe}
histories = st.lists(st.fixed_dictionaries({"placements": placements} | fields), min_size=1, max_size=6)
snapshots = st.lists(st.fixed_dictionaries({"placements": single} | fields), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(histories | snapshots, st.lists(st.tuples(days, maybe, maybe), min_size=1, max_size=4))
def test_codes_and_placements_equal_the_reference(rows, instants):
    index = index_of(rows)
    row = np.tile(np.arange(len(rows)), len(instants))
    as_of, start, end = (
        np.array([micro(instant[at], open_) for instant in instants])
        for at, open_ in ((0, 0), (1, OPEN_START), (2, OPEN_END))
    )
    repeated = [np.repeat(times, len(rows)) for times in (as_of, start, end)]
    codes, placement = time_codes(index, row, clock_of(*repeated))
    expected = [time_stop(each, *instant) for instant in instants for each in rows]
    assert codes.tolist() == [code or 0 for code, _ in expected]
    assert [None if p < 0 else index.recorded[p] for p in placement] == [
        None if chosen is None else micro(chosen[0], 0) for _, chosen in expected
    ]
    for history in (np.zeros(len(instants), bool), np.arange(len(instants)) % 2 == 0):
        clock = ContractClock(as_of, start, end, history)
        number = np.arange(len(instants))
        passes, _ = clock.judge(index, number.repeat(len(rows)), row)
        shown = GroupRows(np.arange(len(rows)), np.zeros(len(rows), dtype=bool)).at(index, clock)
        assert np.concatenate([moment.open for moment in shown]).tolist() == passes.tolist()
        with_history = [_passes_as_history(each, *instant) for instant in instants for each in rows]
        allowed = history.repeat(len(rows)) & np.array(with_history)
        assert passes.tolist() == ((codes == 0) | allowed).tolist()


def _passes_as_history(row: dict, as_of: int, start: int | None, end: int | None) -> bool:
    """Whether a row passes if nothing had ended."""
    endless = [(recorded, None, None) for recorded, _, _ in row["placements"]]
    return time_stop(row | {"placements": endless}, as_of, start, end)[0] is None
