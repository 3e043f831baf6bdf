"""Cuts documents into chunks: Markdown by heading, code by definition, all else by line windows.

Gives: `read_document(path, text) -> Document`. Its chunks are in order and
without a gap: except for front matter and masked secrets, their concatenation is the document, byte for byte (blank
lines belong to the chunk before them; a document of only blank lines has no chunks). Only behind a cut inside of a word
does a chunk repeat the end of the one before it, see `lines.cut`. How a document is cut depends only on
its text and `file_kind(path)`.

Secrets are found in the whole document and masked here, before anything is cut from it: neither a chunk nor a section
or symbol contains a part of one.

Note: `byte_start` and `byte_end` count UTF-8 bytes of the whole document, byte order mark
and `\\r` included (the mark is in no chunk), and `line_end` is inclusive. A line longer than a chunk is split; its pieces share the line number
and have no symbols, calls or links.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from ..redaction.masking import mask, masked_digest, secrets_in
from ..redaction.rules import Finding
from .code import outline_code, outline_plain_code
from .file_kinds import FileKind, file_kind
from .lines import LINE_CHARACTERS, MAX_BYTES, Chunk, Lines, Outline, cut, tidy
from .markdown import outline_markdown, outline_rst
from .parts import FORMATS, Part
from .statements import levels_of_text


class DocumentChunk(NamedTuple):
    """One chunk: `document[byte_start:byte_end] == text.encode()`, except for masked secrets; lines count from 1,
    `line_end` is inclusive.
    """

    section: str | None
    content_type: str
    text: str
    line_start: int
    line_end: int
    byte_start: int
    byte_end: int
    symbols: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    statements: tuple[int, ...] | None = None
    kind: FileKind | None = None
    """The kind of its part, if the file has parts."""

    def columns(self) -> dict[str, Any]:
        """Its columns in rows of evidence."""
        columns = self._asdict()
        del columns["kind"]
        return columns


@dataclass(frozen=True, slots=True)
class Document:
    """The chunks of one document, its title, if it has a top heading, and its version, `masked_digest` of its text."""

    title: str | None
    chunks: tuple[DocumentChunk, ...]
    version: str


def read_document(path: str, text: str) -> Document:
    """The document's title and chunks; no chunks if every line is blank. Never raises."""
    data = text.encode("utf-8")
    if not data.removeprefix(BOM_UTF8).strip():
        return Document(None, (), masked_digest(""))
    kind = file_kind(path)
    if kind.splitter in FORMATS:
        return _of_parts(FORMATS[kind.splitter](path, text))
    secrets = secrets_in(data)
    lines = Lines(_covered(data, secrets))
    outline = _outline(lines, kind)
    version = masked_digest(text, secrets)
    return Document(outline.title, tuple(_chunks(lines, outline, kind, data, secrets)), version)


def _of_parts(parts: Sequence[Part]) -> Document:
    """The chunks of the parts in order, as if each were a file; lines and bytes count in the parts joined."""
    title, chunks, versions, line, byte = None, [], [], 0, 0
    for part in parts:
        kind, document = file_kind(part.path), read_document(part.path, part.text)
        title = title or document.title
        versions.append(document.version)
        for chunk in document.chunks:
            section = " > ".join(name for name in (part.section, chunk.section) if name) or None
            first, last = (part.lines[at - 1] if part.lines else line + at for at in (chunk.line_start, chunk.line_end))
            start, end = byte + chunk.byte_start, byte + chunk.byte_end
            placed = chunk._replace(section=section, line_start=first, line_end=last, byte_start=start, byte_end=end)
            chunks.append(placed._replace(kind=kind))
        line += part.text.removesuffix("\n").count("\n") + 1
        byte += len(part.text.encode("utf-8"))
    return Document(title, tuple(chunks), masked_digest("\n".join(versions), ()))


def _covered(data: bytes, secrets: Sequence[Finding]) -> bytes:
    """The document with its secrets covered byte for byte, so that no name taken from it contains a part of one."""
    parts, at = [], 0
    for start, end, kind in secrets:
        mask = f"[REDACTED:{kind}]".encode()
        cover = re.sub(rb"[^\n]", b"*", data[start:end])
        parts += [data[at:start], mask.ljust(len(cover)) if len(mask) <= len(cover) == cover.count(b"*") else cover]
        at = end
    return b"".join([*parts, data[at:]])


def _outline(lines: Lines, kind: FileKind) -> Outline:
    if outline := {"markdown": outline_markdown, "rst": outline_rst, "log": _outline_log}.get(kind.splitter):
        return outline(lines)
    if kind.splitter != "lines":
        return outline_code(lines, kind.splitter)
    if kind.content_type == "code":
        return outline_plain_code(lines)
    return Outline([Chunk(0, lines.count)])


_PLACE = re.compile(r"[\w@./\\+-]+\.\w{1,5}(?=:\d|\", line \d)")
"""A file with the number of a line."""


_FAILURE = re.compile(r"\b(?:FAIL(?:ED)?|panic\w*|Traceback|\w*(?:Error|Exception))\b")


def _outline_log(lines: Lines) -> Outline:
    """A chunk from each line after a blank one that says what failed, or from the next where it begins with a place and so
    ends a failure; with the files that its lines name.
    """
    source = [line[:LINE_CHARACTERS] for line in lines.strings]
    said = [n for n in range(1, lines.count) if not source[n - 1].strip() and _FAILURE.search(source[n])]
    starts = {n + bool(_PLACE.match(source[n])) for n in said} - {lines.count}
    links = [(number, path) for number, line in enumerate(source) for path in _PLACE.findall(line)]
    return Outline([Chunk(start, end) for start, end in pairwise([0, *sorted(starts), lines.count])], links=links)


def _chunks(
    lines: Lines, outline: Outline, kind: FileKind, data: bytes, secrets: Sequence[Finding]
) -> list[DocumentChunk]:
    names = [[*zip(*each, strict=True)] or [(), ()] for each in (outline.symbols, outline.calls, outline.links)]
    statements = outline.statements or levels_of_text(lines)
    log = kind.splitter == "log"
    mark = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    chunks = []
    pieces = [(chunk, *piece) for chunk in tidy(lines, outline) for piece in cut(lines, chunk, statements)]
    for chunk, start, end in pieces:
        first, last = lines.line_at(start), lines.line_at(end - 1)
        shown = max(start, mark)
        text = _text(data, secrets, shown, end)
        inside = start != lines.starts[first] or lines.size(first, first + 1) > MAX_BYTES
        symbols, calls, links = (
            ((), (), ()) if inside else (_names(each[0], each[1], first, last + 1) for each in names)
        )
        whole = not (log or inside) and text.removesuffix("\n").count("\n") == last - first
        chunks.append(
            DocumentChunk(
                chunk.section,
                _content_type(lines, outline, kind, first, last + 1),
                text,
                first + 1,
                last + 1,
                shown,
                end,
                symbols,
                calls,
                links,
                tuple(statements[first : last + 1]) if whole else None,
            )
        )
    return chunks


def _text(data: bytes, secrets: Sequence[Finding], start: int, end: int) -> str:
    """Bytes [start, end) of the document, with each secret or part of one replaced by its token."""
    inside = [
        (max(low, start) - start, min(high, end) - start, kind)
        for low, high, kind in secrets
        if low < end and high > start
    ]
    return mask(data[start:end], inside).decode("utf-8")


def _content_type(lines: Lines, outline: Outline, kind: FileKind, start: int, end: int) -> str:
    """The content type of most bytes of the lines; the earlier one in the list wins a tie."""
    if outline.content_types is None:
        return kind.content_type
    sizes: dict[str, int] = dict.fromkeys(("paragraph", "list", "table", "code"), 0)
    for line in range(start, end):
        sizes[outline.content_types[line]] += len(lines.raw[line].strip())
    return max(sizes, key=lambda name: sizes[name])


def _names(rows: Sequence[int], names: Sequence[str], start: int, end: int) -> tuple[str, ...]:
    """The names on lines [start, end), each once, in order of first appearance; `rows` are their lines."""
    return tuple(dict.fromkeys(names[bisect_left(rows, start) : bisect_left(rows, end)]))
