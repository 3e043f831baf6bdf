"""Where a document may be cut: before which lines a statement, a paragraph or a list item begins, and how deep it nests.

Gives: `levels_of_tree` by the syntax tree of a file, `levels_of_text` by blank lines and indentation for every other
document. Both give a number per line:

    0    no cut: the line continues what is above it
    n    a statement begins here, n - 1 statements around it
   -n    no statement begins, but those of level n end here: a closing brace, `else`
  127    part of an import, a package clause or a licence, which answer nothing

Note: a block of statements is the root, or a node with several children that begin lines, and no tokens but its braces. So no list of
node types is needed, and a grammar that is added has statements, too.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from .lines import Lines

DULL = 127
_DEEPEST = 100
_BLOCK = frozenset(["{", "}", ";", "\n", "case", "default", ":", "do", "end"])
_TABLE, _FEW = _BLOCK | {",", "(", ")", "[", "]"}, 8
"""More parts than these, each on a line, are cut like statements: the entries of a table, not those of a call."""
_CALL = re.compile("argument|parameter")
_TEXT = re.compile(r"comment|string|heredoc|text")
_ANNOUNCES = re.compile(r"comment|attribute|decorator|annotation|modifier")
"""Nodes that belong to the statement after them."""
_IMPORT = re.compile(r"import|package_|use_declaration|using_directive|include")
_REQUIRE = re.compile(rb"(?:(?:\w+\s+)?(?:[\w$.]+|\{[^{}]*\})\s*=\s*)?require(?:_\w+)?[\s(]+['\"]")
"""An import by a call, in JavaScript, Lua, PHP and Ruby."""
_LICENCE = re.compile(rb"(?i)copyright|spdx-|licensed under")
_GOES_ON = re.compile(rb"\s*[.)\]}?&|,=:]")
_ITEM = re.compile(rb"\s*(?:[-*+#|>:@]|\d+[.)]|\.\. )")
"""A line that begins a list item, a heading, a row of a table, a directive or the description of a parameter."""
_PREFIX = re.compile(rb"^\s*(?:/{2,3}!?|\*+|#+|--)?")
_WORD = re.compile(rb"\w")


def levels_of_text(lines: Lines) -> list[int]:
    """The levels of a document without a grammar: 1 for what begins at the margin, 2 for what is indented."""
    levels, before = [], b""
    for number, line in enumerate(lines.raw):
        margin = lines.indent(number) == 0
        after = not before.strip() or (margin and before[:1].isspace())
        begins = bool(line.strip()) and (after or bool(_ITEM.match(line))) and not _GOES_ON.match(line)
        levels.append((1 if margin else 2) if begins else 0)
        before = line
    return levels


def levels_of_tree(lines: Lines, root: Node, inside: int = 0) -> list[int]:
    """The levels of a document by its syntax tree; only nodes of several lines are visited. From the line `inside` on are
    some of several statements.
    """
    levels, data = [0] * lines.count, lines.data
    first_bytes = {start + lines.indent(row) for row, start in enumerate(lines.starts[:-1])}
    open_: list[tuple[Node, int, bool]] = [(root, 1, inside > 0)]
    while open_:
        node, level, around = open_.pop()
        first, last = node.start_point.row, min(node.end_point.row, lines.count - 1)
        if _TEXT.search(node.type):
            for row in range(first + 1, last + 1):
                line = lines.raw[row]
                begins = not _WORD.search(lines.raw[row - 1]) or _ITEM.match(_PREFIX.sub(b"", line))
                if begins and _WORD.search(line):
                    levels[row] = levels[row] or level
            continue
        children = node.children
        statements = [child for child in children if child.start_byte in first_bytes and child.is_named]
        among = _TABLE if len(statements) > _FEW and not _CALL.search(node.type) else _BLOCK
        among_others = around and bool(statements) and statements[0].start_point.row >= inside
        block = node is root or (
            (len(statements) > 1 or among_others)
            and all(child.is_named or child.type in among or child.type.startswith("#") for child in children)
        )
        if block:
            _mark(lines, levels, statements, level)
        ends = children[-1] if children else node
        if (
            not ends.is_named
            and ends.type not in ")]"
            and ends.start_point.row > first
            and ends.start_byte in first_bytes
        ):
            levels[ends.start_point.row] = levels[ends.start_point.row] or -level
        inner, around = min(level + block, _DEEPEST), around and not (block and among_others)
        open_ += (
            (child, inner, around)
            for child in children
            if around or data.find(b"\n", child.start_byte, child.end_byte) >= 0
        )
    if inside:  # a comment above the first statement may be outside of its block
        first = next((row for row in range(inside, lines.count) if levels[row] > 0 or lines.blank(row)), inside)
        levels[inside], levels[first] = levels[first], levels[inside]
    return levels


def _mark(lines: Lines, levels: list[int], statements: list[Node], level: int) -> None:
    """Mark the statements of one block; comments and decorators belong to the statement right below them."""
    above, dull = -1, False
    for node in statements:
        row = node.start_point.row
        end = node.end_point.row - (node.end_point.column == 0)
        comment = "comment" in node.type
        dull = (
            (dull and row == above) or bool(_LICENCE.search(lines.data, node.start_byte, node.end_byte))
            if comment
            else bool(_IMPORT.search(node.type) or _REQUIRE.match(lines.data, node.start_byte, node.end_byte))
        )
        if dull:
            levels[row : end + 1] = [DULL] * (end + 1 - row)
        elif row != above and not _GOES_ON.match(lines.raw[row]):
            levels[row] = levels[row] or level
        above = end + 1 if _ANNOUNCES.search(node.type) else -1
