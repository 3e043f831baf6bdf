"""The values that document 000 passes to a harness: the event, the observation, the citation map and the context block;
and the block as search results.

Every function reads the tables of one snapshot, so a replay returns the same as the retrieval. Names are the document's
own, in camel case; inside the project they are snake case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
from pydantic import AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

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


class _Part(BaseModel):
    """A part that is read from columns, and written under the document's names."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel), validate_by_name=True, defer_build=True
    )

    def written(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True)


class RetrievalEvent(_Part):
    """S0.83, for the event log of a harness: ids, the number of items in the block and a hash, no text."""

    type: Literal["retrieval.snapshot.created"] = "retrieval.snapshot.created"
    snapshot_id: str | None
    intent_id: str | None
    selected_count: int = Field(ge=0)
    visible_text_hash: str | None = Field(validation_alias="visible_sha256")
    block_ref: str | None


class CitedItem(_Part):
    """S0.101: the item behind a label of a block."""

    snapshot_item_id: str = Field(validation_alias="evidence_id")
    source_ref: str | None = Field(validation_alias="locator", description="null where its text was erased")
    visible_text_hash: str = Field(validation_alias="visible_sha256")
    authority: str
    evidence_kind: str


class RetrievalObservation(_Part):
    """S0.84, for a harness to hand on: the block, and the items behind its labels."""

    type: Literal["retrieval.observation"] = "retrieval.observation"
    snapshot_id: str | None
    block_ref: str | None
    context_block: str | None = Field(description="null where its text was erased")
    citation_map: dict[str, CitedItem]


class ContextItem(_Part):
    """One item of a block."""

    citation_id: str = Field(validation_alias="label")
    authority: str
    evidence_kind: str
    text: str | None = Field(validation_alias="visible_text")
    trust: Literal["instruction", "evidence", "untrusted-observation"]


class ContextBlock(_Part):
    """S0.69: a block as its items, for a harness that renders them itself."""

    title: str
    items: list[ContextItem]
    snapshot_id: str | None


def citation_map(citations: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """`CitedItem` of a block by label."""
    return {c["label"]: CitedItem.model_validate(c).written() for c in citations}


def event(snapshot: Row, items: int, intent_id: str | None) -> dict[str, Any]:
    """`RetrievalEvent` of a snapshot."""
    return RetrievalEvent.model_validate({**snapshot, "selected_count": items, "intent_id": intent_id}).written()


def observation(snapshot: Row, block: str | None, citations: Sequence[Row]) -> dict[str, Any]:
    """`RetrievalObservation` of a snapshot."""
    found = {**snapshot, "context_block": block, "citation_map": {c["label"]: c for c in citations}}
    return RetrievalObservation.model_validate(found).written()


def context_block(snapshot: Row, trimmed: pa.Table, citations: Sequence[Row]) -> dict[str, Any]:
    """`ContextBlock` of a snapshot."""
    cited = {citation["label"]: citation for citation in citations}
    items = trimmed.select(["label", "visible_text", "standing"]).to_pylist() if trimmed.num_rows else []
    shown = [{**cited[i["label"]], **i, "trust": TRUST[i["standing"]]} for i in items if i["label"] in cited]
    title = f"{HEADER}{snapshot['block_ref']}" if snapshot["block_ref"] else ""
    return ContextBlock.model_validate({**snapshot, "title": title, "items": shown}).written()


def search_results(citations: Sequence[Mapping[str, Any]], context_block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A block as search results of Anthropic's Messages API, which cites them itself: content blocks in the order of the
    items, under the same labels; an item with an erased text is left out. The budget applies to the block, whose frames
    have another length.
    """
    shown = {item["citationId"]: item for item in context_block["items"] if item["text"] is not None}
    found = []
    for cited in citations:
        if item := shown.get(cited["label"]):
            about = " ".join(str(cited["section"] or cited["path"] or cited["source_id"]).split())
            found.append(
                {
                    "type": "search_result",
                    "source": cited["locator"] or cited["source_id"],
                    "title": f"[{cited['label']}] {about} ({item['authority']} authority, {item['trust']})",
                    "content": [{"type": "text", "text": item["text"]}],
                    "citations": {"enabled": True},
                }
            )
    return found
