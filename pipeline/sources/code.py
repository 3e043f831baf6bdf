"""Code by definition: functions, classes, methods and, in JavaScript and TypeScript, `describe` and `it` blocks.

Gives: `outline_code`, `(Lines, splitter) -> Outline` for the languages of `grammars`, and `outline_plain_code` for every other one
(line windows, names by pattern). `section` is the qualified name (`Context.invoke`, `suite > test`), None at module level.

Note: `describe("createSession")` does not define `createSession`; a test block is named by its title, and a title of
one word names something else. Comments and decorators above a definition belong to it; a class is one chunk while it
is small and is split at its methods beyond that; a statement between definitions that is too short to be a chunk
(`else:`, a class line) joins the one that follows. Trees are only used for line numbers and names, so a file that does
not parse still gives chunks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from .grammars import grammar
from .lines import LINE_CHARACTERS, MAX_BYTES, TINY_BYTES, Chunk, Lines, Outline
from .statements import levels_of_tree

_SMALL_CLASS_LINES = 30
_SMALL_CLASS_BYTES = 1_600
_GROUP_BYTES = 1_200
_NAME_CHARACTERS = 120
_TRIES = 16
"""A stretch ends at the first, second, fourth, eighth or sixteenth place where it could end."""
_TESTERS = frozenset([b"describe", b"it", b"test", b"suite", b"context", b"bench"])
_SELF = frozenset([b"self", b"cls", b"this"])
_INSIDE = re.compile(rb"\s|[.()\[\]{}?&|,=:+*-]|$")
"""Begins a line that does not begin a statement at the margin."""
_COMMENT = re.compile(rb"\s*(?:#|//|/\*|\*|--)")
_OUTER = frozenset(
    ["decorated_definition", "export_statement", "lexical_declaration", "template_declaration", "variable_declaration"]
)
_PATHS = frozenset(["qualified_identifier", "scope_resolution", "user_type"])
"""Nodes of qualified names: `Cart::add` of C++, `Shop::Cart` of Ruby, `Shop.Cart` of Swift. All become `Cart.add`."""
_ARGUMENTS = re.compile(r"\s*<[^<>]*>")
_PATH_SEPARATOR = re.compile(r"\s*(?:::|\.)\s*")
_PLAIN_DEFINITION = re.compile(
    r"(?<![\w.])(?:func(?:tion)?|fn|def|class|struct|interface|enum|trait|type|module|namespace|object|record|protocol|message)"
    r"\s+(?:\([^()]*\)\s*)?([A-Za-z_][\w$]*)"
)
_PLAIN_CALL = re.compile(r"\b([A-Za-z_]\w*)\s?\(")
_KEYWORDS = frozenset([
    "if", "for", "while", "switch", "return", "catch", "sizeof", "fn", "def", "and", "or", "not", "in", "elif", "match",
])  # fmt: skip


@dataclass(slots=True)
class _Definition:
    kind: str
    name: str
    start: int
    end: int
    name_line: int
    bytes: tuple[int, int]
    owner: str
    """The owner, if it is part of the name or precedes it, instead of enclosing the definition."""
    qualified: str = ""
    children: list[_Definition] = field(default_factory=list)


def outline_code(lines: Lines, splitter: str) -> Outline:
    """The definitions of a file in order, with the names it defines and the names it refers to.

    A file is parsed in stretches, so that versions of a file share most of the work. A stretch begins at the margin below a
    blank line, and is the shortest of those tried that parses without an error. If there is none, the file is parsed as a
    whole. A definition that is longer than a chunk is parsed in stretches in the same way, each between its first lines and
    its last.
    """
    outline = Outline([], statements=(statements := list[int]()))
    parts = None if grammar(splitter).whole else _stretches(lines, splitter, 0, lines.count)
    for row, part in parts or [(0, _parsed(splitter, lines.data, errors=True))]:
        if part is None:
            return outline_plain_code(lines)
        outline.symbols += ((row + line, name) for line, name in part.symbols)
        outline.calls += ((row + line, name) for line, name in part.calls)
        statements += part.statements or ()
        for chunk in part.chunks:
            start, end = row + chunk.start, row + chunk.end
            before = outline.chunks[-1] if outline.chunks else None
            if before and before.loose and chunk.loose and before.section == chunk.section:
                before.end = end
            else:
                outline.chunks.append(Chunk(start, end, chunk.section, parent=chunk.parent, loose=chunk.loose))
    outline.chunks = _Layout(lines).joined(outline.chunks)
    return outline


def _stretches(
    lines: Lines, splitter: str, first: int, end: int, margin: int = 0, head: bytes = b"", tail: bytes = b""
) -> list[tuple[int, Outline]] | None:
    """The stretches of lines [first, end), which are indented by `margin`, each with its first line and its outline, parsed between
    `head` and `tail`, which the first and the last have as well; None if there are none.
    """
    found, start, tries, inside, raw = list[tuple[int, Outline]](), first, 0, head.count(b"\n"), lines.raw
    below = [line for line in range(first + 1, end) if not raw[line - 1].strip() and not raw[line][:margin].strip()]
    for line in [*(line for line in below if not _INSIDE.match(raw[line], margin)), end]:
        if (tries := tries + 1) & (tries - 1) and line < end:
            continue
        long = lines.size(start, line) > MAX_BYTES
        parts = _members(lines, splitter, start, line) if long and not margin else None
        if parts is None:
            own = inside if start > first else 0, None if line == end else inside + line - start
            if outline := _parsed(splitter, head + lines.text(start, line) + tail, inside, *own):
                parts = [(start - inside + own[0], outline)]
        if parts is not None:
            found += parts
            start, tries = line, 0
        elif tries >= _TRIES or long:
            return None
    return found if start == end else None


def _members(lines: Lines, splitter: str, start: int, end: int) -> list[tuple[int, Outline]] | None:
    """The stretches of a definition between the lines above its first indented one and those below the last."""
    inside = [line for line in range(start, end) if lines.indent(line) and not lines.blank(line)]
    if not inside:
        return None
    first, last = inside[0], inside[-1] + 1
    head, tail = lines.text(start, first), lines.text(last, end)
    return _stretches(lines, splitter, first, last, lines.indent(first), head, tail)


@lru_cache(maxsize=4096)
def _parsed(
    splitter: str, data: bytes, inside: int = 0, first: int = 0, end: int | None = None, errors: bool = False
) -> Outline | None:
    """The outline of lines [first, end) of code before short chunks are joined. None if it is none, or if it has an error and may have
    none; also if its first lines, as many as `inside`, should be the head of one definition and are not.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    rules, lines = grammar(splitter), Lines(data)
    root = rules.tree(data, errors)
    if root is None:
        return None
    defined, referred = [], []
    for captures in rules.matches(root):
        if "reference" in captures:
            referred += captures["reference"]
        else:
            defined.append(captures)
    definitions, symbols = _definitions(defined, data)
    if inside and not any(each.start < inside < each.end for each in definitions):
        return None
    names = [captures["name"][0] for captures in defined if "test" not in captures]
    starts, ends = {name.start_byte for name in names}, {name.end_byte for name in names}
    calls = {}
    for node in referred:
        name = data[node.start_byte : node.end_byte]
        of_definition = node.start_byte in starts or node.end_byte in ends
        if 0 < len(name) <= _NAME_CHARACTERS and name not in _SELF and not of_definition:
            calls[node.start_byte] = (node.start_point.row, name.decode("utf-8", "replace"))
    end = lines.count if end is None else end
    return Outline(
        [
            Chunk(low - first, high - first, chunk.section, parent=chunk.parent, loose=chunk.loose)
            for chunk in _Layout(lines, inside).of(definitions)
            for low, high in [(max(chunk.start, first), min(chunk.end, end))]
            if not all(lines.blank(line) for line in range(low, high))
        ],
        [(line - first, name) for line, name in sorted(symbols) if first <= line < end],
        [(line - first, name) for line, name in sorted(calls.values()) if first <= line < end],
        statements=levels_of_tree(lines, root, inside)[first:end],
    )


def outline_plain_code(lines: Lines) -> Outline:
    """One chunk for the whole file, with names by pattern: for languages without a grammar, and for data."""
    outline = Outline([Chunk(0, lines.count)])
    breaks = set()
    for number, line in enumerate(lines.strings):
        text = line[:LINE_CHARACTERS]
        defined = {match.group(1) for match in _PLAIN_DEFINITION.finditer(text)}
        if defined and not text[:1].isspace():
            breaks.add(number)
        outline.symbols.extend((number, name) for name in sorted(defined - _KEYWORDS))
        called = {match.group(1) for match in _PLAIN_CALL.finditer(text)}
        outline.calls.extend((number, name) for name in sorted(called - defined - _KEYWORDS))
    outline.chunks[0].breaks = breaks
    return outline


def _definitions(
    matches: Sequence[Mapping[str, list[Node]]], data: bytes
) -> tuple[list[_Definition], list[tuple[int, str]]]:
    found: dict[tuple[int, int, int], _Definition] = {}
    constants: list[tuple[int, int, str]] = []
    for captures in matches:
        name_node = captures["name"][0]
        name = data[name_node.start_byte : name_node.end_byte].decode("utf-8", "replace")
        owner = ""
        if name_node.type in _PATHS:
            *parts, name = _PATH_SEPARATOR.split(_without_arguments(name))
            owner = ".".join(parts)
        if "constant" in captures:
            constants.append((name_node.start_byte, name_node.start_point.row, name))
            continue
        kind = next(kind for kind in ("class", "function", "test") if kind in captures)
        if kind == "test":
            tester = captures["tester"][0]
            if data[tester.start_byte : tester.end_byte].split(b".", 1)[0] not in _TESTERS:
                continue
            name = " ".join(name.strip("\"'`").split())
        if around := captures.get("owner"):
            owner = data[around[0].start_byte : around[0].end_byte].decode("utf-8", "replace")
        node = captures[kind][0]
        if node.type == "declaration" and node.parent is not None and node.parent.type == "compound_statement":
            continue  # `Lock lock(mutex);` in a C++ function is a variable that parses as a function declaration
        span = (node.start_byte, node.end_byte)
        outer = node
        while outer.parent is not None and outer.parent.type in _OUTER and outer.parent.named_children[-1] == outer:
            outer = outer.parent
        start, end = outer.start_point.row, outer.end_point.row + (outer.end_point.column > 0)
        found[*span, name_node.start_byte] = _Definition(
            kind, name[:_NAME_CHARACTERS], start, max(end, start + 1), name_node.start_point.row, span, owner
        )
    ordered = sorted(found.values(), key=lambda d: (d.bytes[0], -d.bytes[1]))
    top: list[_Definition] = []
    open_: list[_Definition] = []
    for definition in ordered:
        while open_ and (open_[-1].bytes[1] <= definition.bytes[0] or open_[-1].bytes == definition.bytes):
            open_.pop()
        parent = open_[-1] if open_ else None
        definition.qualified = _qualified(parent, definition)
        (parent.children if parent else top).append(definition)
        open_.append(definition)
    symbols: list[tuple[int, str]] = []
    for definition in ordered:
        if definition.kind == "test":
            names = [name for name in (definition.qualified, definition.name) if len(name.split()) > 1]
        else:
            names = [definition.qualified, _owned(definition), definition.name]
        symbols.extend((definition.name_line, name) for name in dict.fromkeys(names))
    for byte, line, name in constants:
        owner = next((d for d in reversed(ordered) if d.bytes[0] <= byte < d.bytes[1]), None)
        if owner is not None and owner.name == name and owner.name_line == line:
            continue  # `const f = () => {}` is a function that already has the name
        symbols.extend((line, each) for each in dict.fromkeys((f"{owner.qualified}.{name}" if owner else name, name)))
    return top, symbols


def _without_arguments(name: str) -> str:
    """A qualified name without template arguments: `Cart<T>::add` is `Cart::add`, `Cart::operator<` stays."""
    scopes, sign, last = name.partition("operator")
    while (bare := _ARGUMENTS.sub("", scopes)) != scopes:
        scopes = bare
    return scopes + sign + last


def _owned(definition: _Definition) -> str:
    return f"{definition.owner}.{definition.name}"[-300:] if definition.owner else definition.name


def _qualified(parent: _Definition | None, definition: _Definition) -> str:
    if parent is None:
        return _owned(definition)
    separator = " > " if definition.kind == "test" else "."
    return f"{parent.qualified}{separator}{_owned(definition)}"[-300:]


class _Layout:
    """Lays definitions out as chunks; `section` of loose lines is the definition around them. One that has the line `inside`
    is divided.
    """

    def __init__(self, lines: Lines, inside: int = 0) -> None:
        self.lines = lines
        self.inside = inside
        self.chunks: list[Chunk] = []

    def of(self, definitions: Sequence[_Definition]) -> list[Chunk]:
        self._fill(definitions, 0, self.lines.count, None, 0)
        return self.chunks

    def joined(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks, short ones joined with their neighbors."""
        return self._group(self._join_loose(chunks))

    def _fill(self, definitions: Sequence[_Definition], start: int, end: int, around: str | None, depth: int) -> None:
        at = start
        for definition in definitions:
            if definition.start < at:
                # It begins on a line of the previous chunk: two definitions on one line.
                if definition.end > at and self.chunks:
                    self.chunks[-1].end = at = min(definition.end, end)
                continue
            first = self._with_comments(definition.start, at)
            if first > at:
                self._add(at, first, around, around, loose=True)
            self._place(definition, first, min(definition.end, end), around, depth)
            at = min(definition.end, end)
        if at < end:
            self._add(at, end, around, around, loose=True)

    def _place(self, definition: _Definition, start: int, end: int, around: str | None, depth: int) -> None:
        small = (
            self.lines.fits(start, end, _SMALL_CLASS_LINES, _SMALL_CLASS_BYTES)
            if definition.kind == "class"
            else self.lines.fits(start, end)
        )
        divided = definition.start < self.inside < definition.end
        if not divided and (small or not definition.children or depth > 20):
            self._add(start, end, definition.qualified, around)
        else:
            self._fill(
                [c for c in definition.children if c.start > definition.start],
                start,
                end,
                definition.qualified,
                depth + 1,
            )

    def _add(self, start: int, end: int, section: str | None, parent: str | None, loose: bool = False) -> None:
        if start < end:
            self.chunks.append(Chunk(start, end, section, parent=parent, loose=loose))

    def _with_comments(self, start: int, floor: int) -> int:
        while start > floor and _COMMENT.match(self.lines.raw[start - 1]):
            start -= 1
        return start

    def _tiny(self, chunk: Chunk) -> bool:
        return self.lines.size(chunk.start, chunk.end) < TINY_BYTES

    def _join_loose(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Short loose lines join the chunk after them, or at the end of a definition the one before."""
        joined: list[Chunk] = []
        for chunk in chunks:
            before = joined[-1] if joined else None
            if before is None or not self.lines.fits(before.start, chunk.end):
                joined.append(chunk)
            elif before.loose and self._tiny(before) and not chunk.loose and chunk.parent == before.section:
                chunk.section = before.section or chunk.section
                chunk.start = before.start
                joined[-1] = chunk
            elif chunk.loose and self._tiny(chunk) and chunk.section and before.parent == chunk.section:
                before.end = chunk.end
            else:
                joined.append(chunk)
        return joined

    def _group(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Adjacent short definitions become one chunk, named after the definition that contains them."""
        grouped: list[Chunk] = []
        last_tiny = False
        for chunk in chunks:
            tiny = self._tiny(chunk)
            before = grouped[-1] if grouped else None
            together = before is not None and last_tiny and tiny and before.parent == chunk.parent
            if together and before is not None and self.lines.size(before.start, chunk.end) <= _GROUP_BYTES:
                before.end = chunk.end
                before.section = before.section if before.section == chunk.section else chunk.parent
            else:
                grouped.append(chunk)
            last_tiny = tiny
        return grouped
