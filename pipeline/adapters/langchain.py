"""A LangChain retriever (extra `langchain`): documents with citation and snapshot id in their metadata."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from .items import items_of


class ScopedRetriever(BaseRetriever):
    """Answers a query with the items of one block, in the order of the block."""

    retriever: Any = Field(description="an open `Retriever`")
    fields: dict[str, Any] = Field(
        default_factory=dict, description="fields of every request: project, purpose, budget"
    )

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self.retriever.retrieve({**self.fields, "question": query})
        return [
            Document(id=item.evidence_id, page_content=item.text, metadata=dict(item.metadata))
            for item in items_of(found)
        ]
