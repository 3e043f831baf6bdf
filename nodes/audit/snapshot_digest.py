"""The snapshot digest: everything asked, decided and shown for one request, as one SHA-256.

The line computes it from its tables; `verify` recomputes it from stored ones, where free text is already hashed.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..columns.digests import digests_by_request, table_digest
from ..columns.kept import OfTable
from ..tables import (
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
    ITEM_DETAILS,
    PACKS,
    PROVENANCE,
    RANKED,
    REQUESTS,
    RERANK_WEIGHTS,
    SCORE_TERMS,
    SESSION_EVENTS,
    SNAPSHOTS,
    STRUCTURED_FACTS,
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
    SESSION_EVENTS,
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
    STRUCTURED_FACTS,
    FACT_CHECKS,
    TRIMMED,
    TRIMS,
    CITATIONS,
    ITEM_DETAILS,
    BLOCKS,
    DECISIONS,
    CONDITIONS,
    SNAPSHOTS,
)
"""The stored tables with rows per request; a snapshot digest covers each request's rows in them."""


def snapshot_digests(tables: Mapping[str, pa.Table], provenance: pa.Table, request_ids: pa.Array) -> list[str]:
    """The snapshot digest of each request, 64 hex digits, in the order of `request_ids`.

    `tables` maps the names of `COVERED` to tables of the line or to their stored forms. The envelope (ids of the capture,
    `asked_at`, frame rows) is in no digest.
    """
    covered = [(tables[table.name], table) for table in COVERED]
    return [digest.hex() for digest in digests_by_request(covered, request_ids, _provenance_digest(provenance))]


_provenance_digest = OfTable(lambda provenance: table_digest(provenance, PROVENANCE))
