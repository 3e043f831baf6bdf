"""Blocks in tags, `<name …> … </name>`: text that programs add to a message besides the words of its speaker.

Gives `blocks_of`, the outermost blocks of a text, `foreign_blocks`, those that are not the speaker's own words, and
`INLINE`, the tags that format words and do not enclose a block.

Note: people write prompts in tags as well. A few plain tags that name a part of a prompt (`<rules>`, `<instructions>`)
enclose the speaker's own words; any other tag, and one with attributes, encloses those of another author.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["INLINE", "Block", "blocks_of", "foreign_blocks"]

INLINE = frozenset((
    "a", "abbr", "b", "big", "br", "cite", "code", "del", "em", "font", "hr", "i", "img", "ins", "kbd", "mark", "q", "s", "samp", "small", "span",
    "strong", "sub", "sup", "tt", "u", "var", "wbr",
))  # fmt: skip
"""Tags that format words as bold, code and so on: their content is the writer's own words."""
_ASKING = frozenset((
    "constraints", "critical", "goal", "guidelines", "important", "instructions", "requirements", "restrictions", "rules", "task",
))  # fmt: skip
"""Tags that name a part of a prompt, as people write them; programs write such names with capitals or attributes."""
_DEPTH = 4
"""Tags of people that may be nested."""
_TAG = re.compile(r"<(?P<ends>/?)(?P<name>[A-Za-z][\w.:-]*)(?P<more>(?:[\s/][^<>]*)?)>")


@dataclass(frozen=True)
class Block:
    """A block from the `<` of its opening tag to the end of its closing tag."""

    name: str
    start: int
    end: int


def blocks_of(text: str) -> list[Block]:
    """The outermost blocks of a text, in order. A tag that is not closed begins none; a block with two closing tags
    ends with the second one, so that its content cannot end it.
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


def foreign_blocks(text: str) -> list[Block]:
    """The blocks that are not the speaker's own words, in order, also those inside blocks that name a part of a
    prompt.
    """
    found, parts = list[Block](), [(text, 0, 0)]
    while parts:
        part, offset, depth = parts.pop()
        for block in blocks_of(part):
            inside = block.start + len(f"<{block.name}>")
            if block.name in _ASKING and depth < _DEPTH and part[inside - 1] == ">":
                parts.append((part[inside : block.end], offset + inside, depth + 1))
            else:
                found.append(replace(block, start=block.start + offset, end=block.end + offset))
    return sorted(found, key=lambda each: each.start)
