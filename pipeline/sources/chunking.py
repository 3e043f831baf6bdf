"""A document cut into chunks: Markdown by heading, code by definition, logs by failure, everything else by line windows.

Gives: `read_document(path, text) -> Document` and `chunk_document(path, text) -> chunks`. Chunks are contiguous and in
order: put together they are the document, byte for byte (blank lines belong to the chunk before them; a document of
blank lines only has no chunks). How a document is cut depends on its text and on `file_kind(path)` alone.

What one would otherwise get wrong: `byte_start` and `byte_end` count UTF-8 bytes of the whole document, byte order mark
and `\\r` included, and `line_end` is inclusive. A line longer than a chunk is cut inside; its pieces share the line number
and carry no symbols, calls or links.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .code import outline_code, outline_plain_code
from .file_kinds import FileKind, file_kind
from .lines import MAX_BYTES, Lines, Outline, Segment, cut, tidy
from .logs import outline_log
from .markdown import outline_markdown, outline_rst

__all__ = ["Chunk", "Document", "chunk_document", "read_document"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: `document[byte_start:byte_end] == text.encode()`; lines count from 1, `line_end` inclusive.

    `occurrence` is 0 for the first chunk of the document with this section and text, then 1, 2, ...
    """

    section: str | None
    content_type: str
    text: str
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int
    occurrence: int
    symbols: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The chunks of one document and its title, if it has a top heading."""

    title: str | None
    chunks: tuple[Chunk, ...]


def chunk_document(path: str, text: str) -> tuple[Chunk, ...]:
    """The chunks of a document in order. `path` only says what kind of file it is."""
    return read_document(path, text).chunks


def read_document(path: str, text: str) -> Document:
    """The document's title and chunks; no chunks if every line is blank. No text raises an error."""
    data = text.encode("utf-8")
    if not data.strip():
        return Document(None, ())
    kind = file_kind(path)
    lines = Lines(data)
    outline = _outline(lines, kind)
    return Document(outline.title, tuple(_chunks(lines, outline, kind)))


def _outline(lines: Lines, kind: FileKind) -> Outline:
    if kind.splitter == "markdown":
        return outline_markdown(lines)
    if kind.splitter == "rst":
        return outline_rst(lines)
    if kind.splitter == "log":
        return outline_log(lines)
    if kind.splitter != "lines":
        return outline_code(lines, kind.splitter)
    if kind.content_type == "code":
        return outline_plain_code(lines)
    return Outline([Segment(0, lines.count)])


def _chunks(lines: Lines, outline: Outline, kind: FileKind) -> list[Chunk]:
    names = [_ByLine(outline.symbols), _ByLine(outline.calls), _ByLine(outline.links)]
    seen: Counter[tuple[str | None, str]] = Counter()
    chunks = []
    for segment in tidy(lines, outline.segments):
        for start, end in cut(lines, segment):
            first, last = lines.line_at(start), lines.line_at(end - 1)
            text = lines.data[start:end].decode("utf-8")
            inside = start != lines.starts[first] or lines.size(first, first + 1) > MAX_BYTES
            symbols, calls, links = ((), (), ()) if inside else (each.between(first, last + 1) for each in names)
            key = (segment.section, text)
            chunks.append(
                Chunk(
                    segment.section,
                    segment.content_type or _content_type(lines, outline, kind, first, last + 1),
                    text,
                    first + 1,
                    last + 1,
                    start,
                    end,
                    seen[key],
                    symbols,
                    calls,
                    links,
                )
            )
            seen[key] += 1
    return chunks


def _content_type(lines: Lines, outline: Outline, kind: FileKind, start: int, end: int) -> str:
    """What most bytes of the lines are; the earlier word of the list wins a tie."""
    if outline.content_types is None:
        return kind.content_type
    sizes: dict[str, int] = dict.fromkeys(("paragraph", "list", "table", "code"), 0)
    for line in range(start, end):
        sizes[outline.content_types[line]] += len(lines.raw[line].strip())
    return max(sizes, key=lambda name: sizes[name])


class _ByLine:
    """Names by the line they stand on, looked up by a range of lines; each name once, in order of first appearance."""

    def __init__(self, found: Sequence[tuple[int, str]]) -> None:
        self.found = found
        self.at = [line for line, _ in found]

    def between(self, start: int, end: int) -> tuple[str, ...]:
        low, high = bisect_left(self.at, start), bisect_left(self.at, end)
        return tuple(dict.fromkeys(name for _, name in self.found[low:high]))
