"""The values that document 000 passes to a harness: the event, the observation, the citation map and the context block.

Every function reads the tables of one snapshot, so a replay returns the same as the retrieval. Names are the document's
own, in camel case; inside the project they are snake case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...nodes.blocks.rendering import HEADER

TRUST = {
    "instruction": "instruction",
    "evidence": "evidence",
    "history": "evidence",
    "hint": "evidence",
    "untrusted": "untrusted-observation",
}
"""The names of standings in document 000."""

Row = Mapping[str, Any]


def citation_map(citations: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """S0.101: the items behind the labels of a block; `sourceRef` is null where a text was erased."""
    return {
        c["label"]: {
            "snapshotItemId": c["evidence_id"],
            "sourceRef": c["locator"],
            "visibleTextHash": c["visible_sha256"],
            "authority": c["authority"],
            "evidenceKind": c["evidence_kind"],
        }
        for c in citations
    }


def event(snapshot: Row, items: int, intent_id: str | None) -> dict[str, Any]:
    """S0.83, for the event log of a harness: ids, the number of items in the block and a hash, no text."""
    return {
        "type": "retrieval.snapshot.created",
        "snapshotId": snapshot["snapshot_id"],
        "intentId": intent_id,
        "selectedCount": items,
        "visibleTextHash": snapshot["visible_sha256"],
        "blockRef": snapshot["block_ref"],
    }


def observation(snapshot: Row, block: str | None, citations: Sequence[Row]) -> dict[str, Any]:
    """S0.84, for a harness to hand on: the block, null where its text was erased, and the items behind its labels."""
    return {
        "type": "retrieval.observation",
        "snapshotId": snapshot["snapshot_id"],
        "blockRef": snapshot["block_ref"],
        "contextBlock": block,
        "citationMap": citation_map(citations),
    }


def context_block(snapshot: Row, trimmed: pa.Table, citations: Sequence[Row]) -> dict[str, Any]:
    """S0.69: a block as its items, for a harness that renders them itself."""
    cited = {citation["label"]: citation for citation in citations}
    items = trimmed.select(["label", "visible_text", "standing"]).to_pylist() if trimmed.num_rows else []
    return {
        "title": f"{HEADER}{snapshot['block_ref']}" if snapshot["block_ref"] else "",
        "items": [
            {
                "citationId": item["label"],
                "authority": of["authority"],
                "evidenceKind": of["evidence_kind"],
                "text": item["visible_text"],
                "trust": TRUST[item["standing"]],
            }
            for item in items
            if (of := cited.get(item["label"]))
        ],
        "snapshotId": snapshot["snapshot_id"],
    }
