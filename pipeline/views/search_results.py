"""A block as search results of Anthropic's Messages API, which cites them itself.

Reads: the citations and items of an answer. Gives: `search_results`, the items in the order of the block, under the same
labels; an item with an erased text is left out.

Note: the budget applies to the block. Search results have the same texts, with frames of another length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["search_results"]


def search_results(citations: Sequence[Mapping[str, Any]], context_block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Content blocks of type `search_result`."""
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
