"""A block in the forms for models and people: search results, messages, Markdown, plain text.

Reads: the block, its citations and its items. Gives: `block_form`. Each form contains the items of the block, in its
order, under the same labels; an empty block has no items.

Note: the budget applies to the block. The other forms have the same texts, with frames of different lengths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...nodes.rendering import CLOSING
from ...nodes.vocabulary import Vocabulary
from .printed import printed

__all__ = ["BLOCK_FORMS", "JSON_FORMS", "block_form"]

BLOCK_FORMS = Vocabulary(
    "form of a block", ("search-result", "openai", "block-markdown", "block-text"), {"search_result": "search-result"}
)
"""search-result: blocks of Anthropic's Messages API; openai: messages of a chat."""
JSON_FORMS = ("search-result", "openai")
_TICKS = re.compile("`+")

Row = Mapping[str, Any]


def block_form(name: str, block: str | None, citations: Sequence[Row], context_block: Row) -> tuple[Any, str]:
    """The values of a JSON form, else None, and the text of any other form."""
    items = list(_items(citations, context_block)) if block else []
    if name == "search-result":
        return [_search_result(cited, item) for cited, item in items], ""
    if name == "openai":
        return [{"role": "user", "content": block}] if block else [], ""
    if not items:
        return None, ""
    of_item = _markdown if name == "block-markdown" else _plain
    title = str(context_block["title"])
    head = f"## {title}" if name == "block-markdown" else title
    return None, printed("\n\n".join([head, *(of_item(cited, item) for cited, item in items), CLOSING]))


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


def _markdown(cited: Row, item: Row) -> str:
    """A heading and the text in a fence that is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(item["text"])), default=0))
    place = _line(cited["locator"] or cited["source_id"]).replace("`", "'")
    heading = f"### [{cited['label']}] `{place}`\n\n{item['authority']} authority, {item['trust']}"
    return f"{heading}\n\n{fence}text\n{item['text']}\n{fence}"


def _plain(cited: Row, item: Row) -> str:
    """A head line, then the text, indented so that it cannot be mistaken for a head line."""
    place = _line(cited["locator"] or cited["source_id"])
    head = f"[{cited['label']}] {place} ({item['authority']} authority, {item['trust']})"
    return "\n".join([head, *(f"    {line}" for line in item["text"].splitlines())])


def _line(text: str) -> str:
    """The text on one line."""
    return " ".join(str(text).split())
