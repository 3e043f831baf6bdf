"""Why a contract refuses rows that it cannot reach: the second wall's verdict on named rows, for auditors.

Reads: the contract of a snapshot, stored rows. Gives: one verdict per row. It never enters a block or a snapshot; the
caller of this view must have a grant with `audit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.tables import CANDIDATES

__all__ = ["refusals"]


def refusals(
    contracts: pa.Table,
    bounds: pa.Table,
    frame: Any,
    rows: Sequence[int] | None = None,
    plugins: Plugins = NO_PLUGINS,
) -> list[dict[str, Any]]:
    """The verdict of one contract on rows of a frame, by default on every one, in frame order.

    Args:
        contracts: one row of CONTRACTS.
        bounds: its rows of CONTRACT_BOUNDS.
        frame: a `CorpusFrame`, of any projects.
        rows: frame rows, ascending.
        plugins: those of the run, whose gates also judge.

    Returns:
        Per row: evidence_id, source_id, path, admitted, decided_by, reason_code.
    """
    from ..line.driver import build_driver

    at = np.arange(frame.evidence.num_rows) if rows is None else np.array(rows, dtype=np.int64)
    stored, count = frame.evidence.select(["evidence_id", "source_id", "path"]).take(pa.array(at)), len(at)
    candidates = CANDIDATES.build(
        {
            "request_id": contracts["request_id"].to_pylist() * count,
            "evidence_id": stored["evidence_id"],
            "row": at,
            "placement": frame.row_index.placement_starts[at],
            "pool_rank": np.arange(1, count + 1, dtype=np.int32),
            "lanes": [[]] * count,
            "intents": [[]] * count,
            "withheld": np.zeros(count, dtype=bool),
            **dict.fromkeys(("merge_score", "bm25_raw", "semantic_raw", "symbol_raw"), np.zeros(count)),
        }
    )
    given = {"candidates": candidates, "contracts": contracts, "contract_bounds": bounds}
    inputs = {"evidence": frame.evidence, "placements": frame.placements, "plugins": plugins}
    verdicts = build_driver().execute(["verdicts"], inputs=inputs, overrides=given)["verdicts"]
    judged = verdicts.select(["admitted", "decided_by", "reason_code"]).to_pylist()
    return [row | verdict for row, verdict in zip(stored.to_pylist(), judged, strict=True)]
