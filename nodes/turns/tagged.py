"""Blocks in tags, `<name …> … </name>`: what programs put into a message beside the words of whoever speaks.

Gives `blocks_of`, the blocks of a text that lie in no other block, and `INLINE`, the tags that set words and hold no block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["INLINE", "Block", "blocks_of"]

INLINE = frozenset((
    "a", "abbr", "b", "big", "br", "cite", "code", "del", "em", "font", "hr", "i", "img", "ins", "kbd", "mark", "q", "s", "samp", "small", "span",
    "strong", "sub", "sup", "tt", "u", "var", "wbr",
))  # fmt: skip
"""Tags that set words in bold, as code and so on: what stands in them is said by whoever writes them."""
_TAG = re.compile(r"<(?P<ends>/?)(?P<name>[A-Za-z][\w.:-]*)(?P<more>(?:[\s/][^<>]*)?)>")


@dataclass(frozen=True)
class Block:
    """A block from the `<` of its first tag to behind the `>` of its last one."""

    name: str
    start: int
    end: int


def blocks_of(text: str) -> list[Block]:
    """The blocks of a text that lie in no other block, in their order. A tag that is not closed begins none; one that is closed twice
    ends with the second closing tag: what stands in a block does not end it.
    """
    open_: dict[str, list[int]] = {}
    last: dict[str, int] = {}
    found: list[Block] = []
    for tag in _TAG.finditer(text):
        name = tag["name"]
        begun = open_.setdefault(name, [])
        if not tag["ends"]:
            if tag["more"].endswith("/"):
                found.append(Block(name, tag.start(), tag.end()))
            else:
                begun.append(tag.start())
        elif begun:
            last[name] = len(found)
            found.append(Block(name, begun.pop(), tag.end()))
        elif name in last:
            found[last[name]] = replace(found[last[name]], end=tag.end())
    outer: list[Block] = []
    for block in sorted(found, key=lambda each: (each.start, -each.end)):
        if not outer or block.start >= outer[-1].end:
            outer.append(block)
    return outer
