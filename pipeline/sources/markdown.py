"""Cuts Markdown and reStructuredText by heading.

Gives: `outline_markdown` and `outline_rst`, each `Lines -> Outline`: one chunk per section, `section` the heading path
`A > B`. Block structure is CommonMark's with tables (markdown-it-py, block rules only).

Note: a heading without text joins the following section, so that no chunk is a bare heading; front matter is metadata
(S1.28), see `headers`, and not part of any chunk, unless nothing follows it or it is not YAML; headings inside lists,
quotes and fences are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt

from .headers import front_matter
from .lines import LINE_CHARACTERS, Chunk, Lines, Outline
from .statements import levels_of_text

SECTION_CHARACTERS = 300
"""Maximum length of a heading path."""

_MARKUP = re.compile(
    r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])|<[^>]+>|[`*]{1,3}|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)"
)
_LINK = re.compile(
    r"\]\(\s*<?([^\s)>]+)"  # [text](target)
    r"|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)"  # [label]: target
    r"|\[\[([^\]|#\n]+)"  # [[wiki link]]
    r"|<((?:https?|mailto|ftp):[^>\s]+)>"
    r"|`[^`]*<([^>\s]+)>`_"  # reStructuredText `text <target>`_
    r"|(?<![\w(<\[\"'])(https?://[^\s<>\")\]]+)"
)
_RST_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")


def outline_markdown(lines: Lines) -> Outline:
    """The sections of a Markdown document with the type of each line's block, its links and its title."""
    source = [line.replace("\r", " ").replace("\0", " ") for line in lines.strings]
    source[0] = source[0].removeprefix("\ufeff")
    body, fields = front_matter("\n".join(source))
    title = stated.strip() if isinstance(stated := fields.get("title"), str) else None
    source[:body] = [""] * body
    types = ["paragraph"] * lines.count
    headings: list[tuple[int, int, int, str]] = []
    breaks: set[int] = set()
    whole: set[int] = set()
    tokens = _parser().parse("\n".join(source))
    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map[0], min(token.map[1], lines.count)
        if token.level == 0:
            breaks.add(start)
            if token.type == "heading_open":
                headings.append((start, end, int(token.tag[1:]), _plain(tokens[number + 1].content)))
            elif kind := _TYPES.get(token.type):
                types[start:end] = [kind] * (end - start)
            if token.type in ("fence", "table_open", "code_block"):
                whole.update(range(start + 1, end))
        elif token.type == "list_item_open" and token.level == 1:
            breaks.add(start)
        elif token.type in ("fence", "table_open"):
            whole.update(range(start + 1, end))
    outline = _by_heading(lines, headings, body, breaks, whole)
    outline.content_types = types
    outline.links = list(_links(source, [kind == "code" for kind in types]))
    outline.title, outline.start = outline.title or title or None, body
    return outline


def outline_rst(lines: Lines) -> Outline:
    """The sections of a reStructuredText document, with its links and its title."""
    source = lines.strings
    headings: list[tuple[int, int, int, str]] = []
    levels: list[str] = []
    line = 0
    while line < lines.count - 1:
        over = bool(_RST_ADORNMENT.match(source[line])) and line + 2 < lines.count
        title_at = line + 1 if over and source[line + 1].strip() and _same(source[line], source[line + 2]) else line
        title, under = source[title_at].removeprefix("\ufeff"), source[title_at + 1]
        known = _RST_ADORNMENT.match(under) is not None and len(under.rstrip()) >= min(len(title.rstrip()), 4)
        before_blank = (
            title_at > line or line == 0 or not source[line - 1].strip() or bool(headings and headings[-1][1] == line)
        )
        if (
            title.strip()
            and known
            and before_blank
            and not _RST_ADORNMENT.match(title)
            and (title_at > line or title[0] != " ")
        ):
            style = under[0] + ("^" if title_at > line else "")
            if style not in levels:
                levels.append(style)
            headings.append((line, title_at + 2, levels.index(style) + 1, _plain(title)))
            line = title_at + 2
        else:
            line += 1
    outline = _by_heading(lines, headings, 0, (), ())
    outline.links = list(_links(source, [False] * lines.count))
    return outline


_TYPES = {
    "table_open": "table",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "fence": "code",
    "code_block": "code",
}


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _by_heading(
    lines: Lines,
    headings: Sequence[tuple[int, int, int, str]],
    body: int,
    breaks: set[int] | tuple[()],
    whole: set[int] | tuple[()],
) -> Outline:
    """One chunk per heading `(start, end, level, text)`; lines before the first heading have no section."""
    chunks = []
    first = headings[0][0] if headings else lines.count
    if first > body:
        chunks.append(Chunk(body, first, None, breaks, whole))
    path: list[tuple[int, str]] = []
    pending: int | None = None
    for number, (start, content, level, text) in enumerate(headings):
        end = headings[number + 1][0] if number + 1 < len(headings) else lines.count
        path = [part for part in path if part[0] < level] + [(level, text)]
        bare = all(lines.blank(line) for line in range(min(content, end), end))
        if bare and number + 1 < len(headings):
            pending = start if pending is None else pending
            continue
        section = " > ".join(part for _, part in path if part)[:SECTION_CHARACTERS].rstrip()
        chunks.append(Chunk(start if pending is None else pending, end, section or None, breaks, whole))
        pending = None
    title = next((text for _, _, level, text in headings if level == 1 and text), None)
    statements = levels_of_text(lines)
    for start, content, _, _ in headings:
        # What a heading names is not parted from it.
        below = next((line for line in range(content, lines.count) if not lines.blank(line)), start)
        for line in range(start + 1, below + 1):
            statements[line] = 0
    return Outline(chunks, statements=statements, title=title[:SECTION_CHARACTERS] if title else None)


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(lambda match: match.group(1) or "", text[:LINE_CHARACTERS]).split())


def _links(source: Sequence[str], code: Sequence[bool]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source):
        if code[number] or not ("[" in line or "//" in line or "<" in line):
            continue
        for match in _LINK.finditer(line[:LINE_CHARACTERS]):
            target = next(group for group in match.groups() if group is not None)
            yield number, target.strip().rstrip(".,;:")


def _same(over: str, under: str) -> bool:
    return bool(_RST_ADORNMENT.match(under)) and over[0] == under[0]
