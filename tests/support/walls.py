"""Rows, requests and grants as both walls read them, and what each wall says of every row."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pyarrow as pa
from scoped_retrieval.nodes import boundary_gates
from scoped_retrieval.nodes.boundary_filtering import verdicts
from scoped_retrieval.nodes.frames import RowIndex
from scoped_retrieval.nodes.tables import (
    ADMISSIBLE,
    CANDIDATES,
    EVIDENCE,
    FILTER_LADDER,
    GRANTS,
    PLACEMENTS,
    REACHABLE,
    REQUESTS,
    SEGMENTS,
    VERDICTS,
)
from scoped_retrieval.nodes.walls.gates import GATES
from wall_worlds import DAY, GRANT, NOON, REQUEST, ROW, contract_bounds_of, contracts_of


def requests_of(*changes: dict) -> pa.Table:
    return REQUESTS.from_rows([REQUEST | {"request_id": f"r{n}"} | change for n, change in enumerate(changes)])


def grants_of(*changes: dict) -> pa.Table:
    return GRANTS.from_rows([GRANT | {"rule_id": f"grants[{n}]"} | change for n, change in enumerate(changes)])


def world_of(rows: list[dict], requests: list[dict], grants: list[dict], chunks: int = 99) -> SimpleNamespace:
    """A frame of rows under some requests and grants. Each row keeps its place in `rows` as `n`; segments are cut where
    the owner changes. A row has `placements` as (recorded, superseded, deleted), by default one of the day before.
    """
    digits = "0123456789abcdefghijklmnopqrstuv"
    ids = ["".join(digits[byte % 32] for byte in hashlib.sha256(b"%d" % n).digest()[:26]) for n in range(len(rows))]
    placed = sorted(
        (
            {**ROW, "evidence_id": ids[n], "placements": [(NOON - DAY, None, None)], **row, "n": n}
            for n, row in enumerate(rows)
        ),
        key=lambda row: (row["owner_project"], row.get("owner_user") or ""),
    )
    evidence = EVIDENCE.from_rows(placed)
    evidence = pa.concat_tables([evidence.slice(n, chunks) for n in range(0, len(placed), chunks)])
    placements = PLACEMENTS.from_rows(
        [
            {"row": n, "evidence_id": row["evidence_id"], "recorded_time": r, "superseded_at": s, "deleted_at": d}
            for n, row in enumerate(placed)
            for r, s, d in sorted(row["placements"], key=lambda placement: placement[0])
        ]
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
    asked, held = requests_of(*requests), grants_of(*grants)
    return SimpleNamespace(
        rows=placed, n=[row["n"] for row in placed], evidence=evidence, placements=placements, segments=segments,
        row_index=RowIndex.of(evidence, placements), contracts=contracts_of(asked, held),
        bounds=contract_bounds_of(asked, held),
    )  # fmt: skip


def wall(rows: list[dict], requests: list[dict], grants: list[dict], chunks: int = 99) -> SimpleNamespace:
    """A world with everything that the first wall gives, checked against its declarations."""
    of = world_of(rows, requests, grants, chunks)
    asked, read = (of.contracts, of.bounds), (of.evidence, of.segments, of.row_index)
    of.reachable = REACHABLE.check(boundary_gates.reachable(*asked, *read))
    of.admissible = ADMISSIBLE.check(boundary_gates.admissible(*asked, of.reachable, *read, None))
    of.ladder = FILTER_LADDER.check(boundary_gates.filter_ladder(of.admissible, of.reachable))
    return of


def stops(walled: SimpleNamespace, request: int = 0) -> dict[int, str | None]:
    """Per opened row, by its place in the test's list: the gate but for time that stops it for a request."""
    scopes, of_request = boundary_gates._scopes_of(walled.contracts, walled.bounds)
    frame = walled.evidence, walled.segments, walled.row_index
    found = boundary_gates._gate_stops(scopes[of_request[request]], *frame)
    every = [(start + n, int(code)) for start, codes in found for n, code in enumerate(codes)]
    return {walled.n[row]: GATES[code - 1].name if code else None for row, code in every}


def judged(world: SimpleNamespace) -> pa.Table:
    """The second wall's verdicts, every row of the corpus being a candidate of every request."""
    world.candidates = CANDIDATES.from_rows(
        [
            {"request_id": request, "evidence_id": row["evidence_id"], "row": at, "placement": 0, "pool_rank": at + 1,
             "merge_score": 0.0, "lanes": [], "intents": [], "bm25_raw": 0.0, "semantic_raw": 0.0, "symbol_raw": 0.0,
             "withheld": row.get("withheld", False)}
            for request in world.contracts["request_id"].to_pylist() for at, row in enumerate(world.rows)
        ]
    )  # fmt: skip
    return VERDICTS.check(verdicts(world.candidates, world.contracts, world.bounds, world.evidence, world.placements))


def seen(rows: list[dict], request: dict, grants: list[dict]) -> set[int]:
    """The places of the rows that a request may see, by contract and second wall alone."""
    world = world_of(rows, [request], grants)
    return {n for n, admitted in zip(world.n, judged(world)["admitted"].to_pylist(), strict=True) if admitted}
