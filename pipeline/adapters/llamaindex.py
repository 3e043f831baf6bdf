"""A LlamaIndex retriever (extra `llamaindex`): nodes with citation and snapshot id in their metadata.

Note: LlamaIndex puts all metadata into prompts by default; here only label, locator and standing are included.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from .items import IN_PROMPTS, items_of


class ScopedRetriever(BaseRetriever):
    """Answers a query with the items of one block, in the order of the block.

    Args:
        retriever: an open `Retriever`.
        fields: fields of every request, such as project, purpose and budget.
    """

    def __init__(self, retriever: Any, fields: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._scoped = retriever
        self._fields = dict(fields or {})
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._scoped.retrieve({**self._fields, "question": query_bundle.query_str})
        return [NodeWithScore(node=_node(item)) for item in items_of(found)]


def _node(item: Any) -> TextNode:
    kept_out = [name for name in item.metadata if name not in IN_PROMPTS]
    return TextNode(
        id_=item.evidence_id,
        text=item.text,
        metadata=dict(item.metadata),
        excluded_llm_metadata_keys=kept_out,
        excluded_embed_metadata_keys=list(item.metadata),
    )
