"""The items of one retrieval, as the texts and metadata that frameworks expect.

Gives: `items_of`. A text is the item's text in the block, without its fences; metadata are plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KEPT = (
    "label", "locator", "source_id", "path", "line_start", "line_end", "section", "version", "evidence_kind", "authority",
    "standing", "text_sha256", "visible_sha256",
)  # fmt: skip
"""Columns of a citation that are copied to the metadata."""
IN_PROMPTS = ("label", "locator", "standing")
"""Metadata to show to a model: enough to cite, and to tell evidence from untrusted text."""


@dataclass(frozen=True)
class Item:
    """One item of a block."""

    evidence_id: str
    text: str
    metadata: Mapping[str, Any]


def items_of(found: Any) -> Iterator[Item]:
    """The items of a retrieval in the order of its block; none if it was refused or nothing was found."""
    texts = {item["citationId"]: item["text"] for item in found.context_block["items"]} if found.block else {}
    common = {"snapshot_id": found.snapshot_id, "block_ref": found.block_ref, "status": found.status}
    for cited in found.citations:
        if texts.get(cited["label"]):  # a place has none
            known = {name: cited[name] for name in KEPT if cited[name] is not None}
            yield Item(
                cited["evidence_id"], texts[cited["label"]], {**common, "evidence_id": cited["evidence_id"], **known}
            )
