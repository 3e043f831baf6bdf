"""A block in the forms of two interfaces for models: search results and messages.

Reads: the block, its citations and its items. Gives: `block_form`. Each form contains the items of the block, in its
order, under the same labels; an empty block has no items.

Note: the budget applies to the block. The other forms have the same texts, with frames of different lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...nodes.vocabulary import Vocabulary

__all__ = ["BLOCK_FORMS", "block_form"]

BLOCK_FORMS = Vocabulary("form of a block", ("search-result", "openai"), {"search_result": "search-result"})
"""search-result: blocks of Anthropic's Messages API; openai: messages of a chat."""

Row = Mapping[str, Any]


def block_form(name: str, block: str | None, citations: Sequence[Row], context_block: Row) -> list[dict[str, Any]]:
    """The values of a form."""
    items = list(_items(citations, context_block)) if block else []
    if name == "openai":
        return [{"role": "user", "content": block}] if block else []
    return [_search_result(cited, item) for cited, item in items]


def _items(citations: Sequence[Row], context_block: Row) -> Sequence[tuple[Row, Row]]:
    """Each citation with its item, except those with an erased text."""
    shown = {item["citationId"]: item for item in context_block["items"]}
    return [
        (cited, shown[cited["label"]])
        for cited in citations
        if cited["label"] in shown and shown[cited["label"]]["text"] is not None
    ]


def _search_result(cited: Row, item: Row) -> dict[str, Any]:
    about = cited["section"] or cited["path"] or cited["source_id"]
    return {
        "type": "search_result",
        "source": cited["locator"] or cited["source_id"],
        "title": f"[{cited['label']}] {_line(about)} ({item['authority']} authority, {item['trust']})",
        "content": [{"type": "text", "text": item["text"]}],
        "citations": {"enabled": True},
    }


def _line(text: str) -> str:
    """The text on one line."""
    return " ".join(str(text).split())
