"""Why a contract refuses rows that it cannot reach: the second wall's verdict on named rows, for auditors.

Reads: the contract of a snapshot, stored rows. Gives: one verdict per row. It never enters a block or a snapshot; the
caller of this view must have a grant with `audit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.columns.keys import rank_within
from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.tables import CANDIDATES

__all__ = ["refusals", "refused_pairs"]


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
    at = np.arange(frame.evidence.num_rows) if rows is None else np.array(rows, dtype=np.int64)
    stored = frame.evidence.select(["evidence_id", "source_id", "path"]).take(pa.array(at))
    asked = contracts["request_id"].to_pylist() * len(at)
    judged = refused_pairs(contracts, bounds, frame, asked, at, plugins).to_pylist()
    return [row | verdict for row, verdict in zip(stored.to_pylist(), judged, strict=True)]


def refused_pairs(
    contracts: pa.Table,
    bounds: pa.Table,
    frame: Any,
    requests: Sequence[str],
    rows: NDArray[np.int64],
    plugins: Plugins = NO_PLUGINS,
) -> pa.Table:
    """The verdict of the contract of each request on the corresponding row, in order.

    Args:
        contracts: CONTRACTS.
        bounds: their rows of CONTRACT_BOUNDS.
        frame: a `CorpusFrame`; its projects may be any.
        requests: the request of each pair; no pair occurs twice.
        rows: the frame row of each pair.
        plugins: those of the run, whose gates also judge.

    Returns:
        Per pair: evidence_id, admitted, decided_by, reason_code.
    """
    from ..line.driver import build_driver

    order = np.lexsort((rows, np.asarray(requests, dtype=object).astype(str)))
    at, count = rows[order], len(rows)
    asked = pa.array(requests, pa.string()).take(pa.array(order))
    evidence = frame.evidence["evidence_id"].take(pa.array(at))
    candidates = CANDIDATES.build(
        {
            "request_id": asked,
            "evidence_id": evidence,
            "row": at,
            "placement": frame.row_index.placement_starts[at],
            "pool_rank": (rank_within(asked.dictionary_encode().indices.to_numpy()) + 1).astype(np.int32),
            "merge_score": np.zeros(count),
            "lanes": [[]] * count,
            "intents": [[]] * count,
            "bm25_raw": np.zeros(count),
            "semantic_raw": np.zeros(count),
            "symbol_raw": np.zeros(count),
            "withheld": np.zeros(count, dtype=bool),
        }
    )
    given = {"candidates": candidates, "contracts": contracts, "contract_bounds": bounds}
    inputs = {"evidence": frame.evidence, "placements": frame.placements, "plugins": plugins}
    verdicts = build_driver().execute(["verdicts"], inputs=inputs, overrides=given)["verdicts"]
    back = np.empty(count, dtype=np.int64)
    back[order] = np.arange(count)
    return verdicts.select(["evidence_id", "admitted", "decided_by", "reason_code"]).take(pa.array(back))
