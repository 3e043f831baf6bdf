"""Which rows a request may see, by contract and second wall alone: for laws about contracts."""

from __future__ import annotations

import pyarrow as pa
from scoped_retrieval.nodes.boundary_filtering import verdicts
from scoped_retrieval.nodes.tables import CANDIDATES, EVIDENCE, GRANTS, PLACEMENTS, REQUESTS
from wall_worlds import DAY, GRANT, NOON, REQUEST, ROW, contract_bounds_of, contracts_of


def requests_of(*changes: dict) -> pa.Table:
    return REQUESTS.from_rows([REQUEST | {"request_id": f"r{n}"} | change for n, change in enumerate(changes)])


def grants_of(*changes: dict) -> pa.Table:
    return GRANTS.from_rows([GRANT | {"rule_id": f"grants[{n}]"} | change for n, change in enumerate(changes)])


def seen(rows: list[dict], request: dict, grants: list[dict]) -> set[int]:
    """The places of the rows that a request may see, each recorded two days ago unless it says otherwise."""
    full = [ROW | {"evidence_id": f"e{n}"} | row for n, row in enumerate(rows)]
    evidence = EVIDENCE.from_rows(full)
    recorded = [row.get("recorded", NOON - 2 * DAY) for row in full]
    placements = PLACEMENTS.from_rows(
        [{"row": n, "evidence_id": f"e{n}", "recorded_time": at} for n, at in enumerate(recorded)]
    )
    asked, held = requests_of(request), grants_of(*grants)
    resolved = contracts_of(asked, held)
    candidates = CANDIDATES.from_rows(
        [
            {"request_id": "r0", "evidence_id": f"e{n}", "row": n, "placement": 0, "pool_rank": n + 1, "merge_score": 0.0,
             "lanes": [], "intents": [], "bm25_raw": 0.0, "semantic_raw": 0.0, "symbol_raw": 0.0, "withheld": False}
            for n in range(len(rows))
        ]
    )  # fmt: skip
    judged = verdicts(candidates, resolved, contract_bounds_of(asked, held), evidence, placements)
    return {n for n, admitted in enumerate(judged["admitted"].to_pylist()) if admitted}
