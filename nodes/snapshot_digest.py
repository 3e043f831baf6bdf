"""The snapshot digest: everything asked, decided and shown for one request, as one SHA-256.

The line computes it from its tables; `verify` computes it again from stored ones, where free text is already a hash.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from .digests import combined_digests, digests_by_request, table_digest
from .tables import (
    ADMISSIBLE,
    ANCHORS,
    BLOCKS,
    CANDIDATES,
    CITATIONS,
    CONDITIONS,
    CONTRACT_BOUNDS,
    CONTRACT_LAYERS,
    CONTRACTS,
    DECISIONS,
    FACT_CHECKS,
    FAILURES,
    FILTER_LADDER,
    HITS,
    PACKS,
    PROVENANCE,
    RANKED,
    REQUESTS,
    RERANK_WEIGHTS,
    SCORE_TERMS,
    SNAPSHOTS,
    SUB_QUERIES,
    TRIMMED,
    TRIMS,
    VERDICTS,
)

COVERED = (
    REQUESTS,
    FAILURES,
    CONTRACTS,
    CONTRACT_BOUNDS,
    CONTRACT_LAYERS,
    ANCHORS,
    SUB_QUERIES,
    ADMISSIBLE,
    FILTER_LADDER,
    HITS,
    CANDIDATES,
    VERDICTS,
    SCORE_TERMS,
    RERANK_WEIGHTS,
    RANKED,
    PACKS,
    FACT_CHECKS,
    TRIMMED,
    TRIMS,
    CITATIONS,
    BLOCKS,
    DECISIONS,
    CONDITIONS,
    SNAPSHOTS,
)
"""The tables with a row per request or more that a run stores; a snapshot digest covers each request's rows of them."""


def snapshot_digests(tables: Mapping[str, pa.Table], provenance: pa.Table, request_ids: pa.Array) -> list[str]:
    """The snapshot digest of each request, 64 hex digits, in the order of `request_ids`.

    `tables` maps the names of `COVERED` to tables of the line or to their stored forms. The envelope (ids of the
    capture, `asked_at`, frame rows) is in no digest.
    """
    parts = [(t.name, digests_by_request(tables[t.name], t, request_ids)) for t in COVERED]
    return combined_digests(parts, table_digest(provenance, PROVENANCE))
