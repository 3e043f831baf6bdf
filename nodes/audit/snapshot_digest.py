"""The snapshot digest: everything asked, decided and shown for one request, as one SHA-256.

The line computes it from its tables; `verify` recomputes it from stored ones, where free text is already hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..columns.digests import combined_digests, digests_by_request, table_digest
from ..columns.kept import OfTable
from ..columns.keys import first_of_runs, flat
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
    REQUEST_DIGESTS,
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


def digests_of_requests(tables: Mapping[str, pa.Table], request_ids: pa.Array) -> pa.Table:
    """REQUEST_DIGESTS of the given tables of `COVERED`, by table and request; missing tables have no rows."""
    given = sorted((table for table in COVERED if table.name in tables), key=lambda table: table.name)
    found = [digests_by_request(tables[table.name], table, request_ids) for table in given]
    count = len(request_ids)
    return REQUEST_DIGESTS.build(
        {
            "table": pa.array([table.name for table in given], pa.string()).take(
                pa.array(np.repeat(np.arange(len(given)), count))
            ),
            "request_id": pa.concat_arrays([flat(request_ids)] * len(given)) if given else [],
            "digest": [digest.hex() for digests in found for digest in digests],
        }
    )


def digests_known(digests: pa.Table | None) -> Mapping[str, Mapping[str, bytes]]:
    """The digests of REQUEST_DIGESTS by table, then by request; read-only."""
    return {} if digests is None else _digests_by_table(digests)


def _by_table(digests: pa.Table) -> dict[str, dict[str, bytes]]:
    # One entry per request and table, not per row of a table; SHA-256 takes Python's bytes, one request at a time.
    tables, requests = flat(digests["table"]).dictionary_encode(), digests["request_id"].to_pylist()
    data = bytes.fromhex("".join(digests["digest"].to_pylist()))
    given = [data[at : at + 32] for at in range(0, len(data), 32)]
    codes, names = np.asarray(tables.indices), tables.dictionary.to_pylist()
    found: dict[str, dict[str, bytes]] = {}
    for low, high in pairwise([*first_of_runs(codes).tolist(), len(codes)]):
        found.setdefault(names[codes[low]], {}).update(zip(requests[low:high], given[low:high], strict=True))
    return found


_digests_by_table = OfTable(_by_table)
"""Used by the snapshots and by the run that stores their tables."""


def snapshot_digests(
    tables: Mapping[str, pa.Table], provenance: pa.Table, request_ids: pa.Array, known: pa.Table | None = None
) -> list[str]:
    """The snapshot digest of each request, 64 hex digits, in the order of `request_ids`.

    `tables` maps the names of `COVERED` to tables of the line or to their stored forms; those whose digests are `known`
    may be omitted. The envelope (ids of the capture, `asked_at`, frame rows) is in no digest.
    """
    # One id per request, not per row of a table: known digests are looked up by it in a dict.
    given, names = digests_known(known), request_ids.to_pylist()
    parts = [
        (table.name, [given[table.name][name] for name in names])
        if table.name in given
        else (table.name, digests_by_request(tables[table.name], table, request_ids))
        for table in COVERED
    ]
    return combined_digests(parts, _provenance_digest(provenance))


_provenance_digest = OfTable(lambda provenance: table_digest(provenance, PROVENANCE))
