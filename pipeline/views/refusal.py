"""Why a contract refuses rows that it cannot reach: the second wall's verdict on named rows, for auditors.

Reads: the contract of a snapshot, stored rows. Gives: one verdict per row. Nothing of it enters a block or a snapshot;
the caller of this view has to hold a grant with `audit`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...nodes.tables import CANDIDATES

__all__ = ["refusals"]


def refusals(contracts: pa.Table, bounds: pa.Table, frame: Any) -> list[dict[str, Any]]:
    """The verdict of one contract on every row of a frame, in frame order.

    Args:
        contracts: one row of CONTRACTS.
        bounds: its rows of CONTRACT_BOUNDS.
        frame: a `CorpusFrame`, of any projects.

    Returns:
        Per row: evidence_id, source_id, path, admitted, decided_by, reason_code.
    """
    from ..driver import build_driver

    rows = frame.evidence.num_rows
    starts = frame.row_index.placement_starts[:-1]
    candidates = CANDIDATES.build(
        {
            "request_id": pa.repeat(contracts["request_id"][0], rows),
            "evidence_id": frame.evidence["evidence_id"],
            "row": np.arange(rows),
            "placement": starts,
            "pool_rank": np.arange(1, rows + 1, dtype=np.int32),
            "merge_score": np.zeros(rows),
            "lanes": [[]] * rows,
            "intents": [[]] * rows,
            "bm25_raw": np.zeros(rows),
            "semantic_raw": np.zeros(rows),
            "symbol_raw": np.zeros(rows),
            "withheld": np.zeros(rows, dtype=bool),
        }
    )
    given = {"candidates": candidates, "contracts": contracts, "contract_bounds": bounds}
    inputs = {"evidence": frame.evidence, "placements": frame.placements}
    verdicts = build_driver().execute(["verdicts"], inputs=inputs, overrides=given)["verdicts"]
    columns = ("evidence_id", "admitted", "decided_by", "reason_code")
    found = {row["evidence_id"]: row for row in verdicts.select(list(columns)).to_pylist()}
    stored = frame.evidence.select(["evidence_id", "source_id", "path"]).to_pylist()
    return [row | found[row["evidence_id"]] for row in stored]
