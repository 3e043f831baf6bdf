"""A Haystack component (extra `haystack`): documents with citation and snapshot id in their metadata, and the block."""

# pyright: reportMissingImports=false, reportCallIssue=false, reportInvalidTypeForm=false
from __future__ import annotations

from typing import Any

from haystack import Document, component

from .items import items_of


@component
class ScopedRetriever:
    """Answers a query with the items of one block, in the order of the block.

    Args:
        retriever: an open `Retriever`.
        fields: fields of every request, such as project, purpose and budget.
    """

    def __init__(self, retriever: Any, fields: dict[str, Any] | None = None) -> None:
        self.retriever = retriever
        self.fields = dict(fields or {})

    @component.output_types(documents=list[Document], block=str, snapshot_id=str, status=str)
    def run(self, query: str) -> dict[str, Any]:
        """The documents, the block as an alternative to them in a prompt, the snapshot id and the status."""
        found = self.retriever.retrieve({**self.fields, "question": query})
        documents = [
            Document(id=item.evidence_id, content=item.text, meta=dict(item.metadata)) for item in items_of(found)
        ]
        return {
            "documents": documents,
            "block": found.block,
            "snapshot_id": found.snapshot_id or "",
            "status": found.status,
        }
