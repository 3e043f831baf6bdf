"""Rows, requests and grants as the first wall reads them, and what it says of each row."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from scoped_retrieval.nodes import boundary_gates
from scoped_retrieval.nodes.frames import RowIndex
from scoped_retrieval.nodes.tables import (
    ADMISSIBLE,
    EVIDENCE,
    FILTER_LADDER,
    GATED_ROWS,
    GRANTS,
    PLACEMENTS,
    REACHABLE,
    REQUESTS,
    SCOPE_GROUPS,
    SEGMENTS,
)
from scoped_retrieval.nodes.walls.gates import GATES
from wall_worlds import (
    DAY,
    GRANT,
    MODES,
    NOON,
    REQUEST,
    ROW,
    contract_bounds_of,
    contracts_of,
    outcomes,
)

RECORDED = ROW | {"recorded": NOON - DAY, "superseded_at": None}


def id_of(name: str) -> str:
    digits = "0123456789abcdefghijklmnopqrstuv"
    return "".join(digits[byte % 32] for byte in hashlib.sha256(name.encode()).digest()[:26])


def frame_of(rows: list[dict], chunks: int = 1) -> SimpleNamespace:
    """A frame of rows; each row keeps its place in `rows` as `n`, segments are cut where the owner changes."""
    placed = sorted(
        ({**RECORDED, "evidence_id": id_of(f"e{n}"), **row, "n": n} for n, row in enumerate(rows)),
        key=lambda row: (row["owner_project"], row.get("owner_user") or ""),
    )
    evidence = EVIDENCE.from_rows(placed)
    if chunks > 1:
        evidence = pa.concat_tables([evidence.slice(n, chunks) for n in range(0, len(placed), chunks)])
    placements = PLACEMENTS.build(
        {
            "row": np.arange(len(placed)),
            "evidence_id": [row["evidence_id"] for row in placed],
            "recorded_time": [row["recorded"] for row in placed],
            "superseded_at": [row["superseded_at"] for row in placed],
        }
    )
    owners = [(row["owner_project"], row.get("owner_user")) for row in placed]
    starts = [n for n, owner in enumerate(owners) if n == 0 or owner != owners[n - 1]]
    segments = SEGMENTS.from_rows(
        [
            {"segment_id": f"s{owners[start]}", "owner_project": owners[start][0], "owner_user": owners[start][1],
             "row_start": start, "row_end": end}
            for start, end in zip(starts, [*starts[1:], len(placed)], strict=False)
        ]
    )  # fmt: skip
    return SimpleNamespace(
        evidence=evidence,
        segments=segments,
        row_index=RowIndex.of(evidence, placements),
        n=[row["n"] for row in placed],
    )


def wall(
    rows: list[dict], requests: list[dict], grants: list[dict], chunks: int = 1, modes: pa.Table = MODES
) -> SimpleNamespace:
    """Everything the first wall gives, checked against its declarations."""
    frame = frame_of(rows, chunks)
    asked = REQUESTS.from_rows([REQUEST | {"request_id": f"r{n}"} | change for n, change in enumerate(requests)])
    held = GRANTS.from_rows([GRANT | {"rule_id": f"grants[{n}]"} | change for n, change in enumerate(grants)])
    resolved = contracts_of(asked, held, modes)
    bounds = contract_bounds_of(asked, held)
    read = frame.evidence, frame.segments, frame.row_index
    groups = SCOPE_GROUPS.check(boundary_gates.row_groups(resolved, bounds, *read))
    gated = GATED_ROWS.check(boundary_gates.gated_rows(groups, resolved, bounds, *read))
    reach, shown = REACHABLE.check(boundary_gates.reachable(gated)), (frame.evidence, frame.row_index)
    return SimpleNamespace(
        frame=frame, contracts=resolved, bounds=bounds, groups=groups, gated=gated, reachable=reach,
        admissible=ADMISSIBLE.check(boundary_gates.admissible(resolved, groups, reach, *shown)),
        ladder=FILTER_LADDER.check(boundary_gates.filter_ladder(resolved, groups, reach, gated, *shown)),
    )  # fmt: skip


def stops(walled: SimpleNamespace, request: int = 0) -> dict[int, str | None]:
    """Per opened row, by its place in the test's list: the gate that stops it for a request."""
    group = walled.groups["scope_group"][request].as_py()
    found = {row: code for (of, row), code in outcomes(walled.gated).items() if of == group}
    return {walled.frame.n[row]: GATES[code - 1].name if code else None for row, code in found.items()}
