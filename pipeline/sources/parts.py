"""Files that hold several texts, or one in markup: the cells of a notebook, the pages of a PDF, the text of a web page.

Gives: `parts_of(path, text)`, the `Part`s of a file, each read as a file of its own kind; None for a plain text.

Note: the lines of a web page are those of the file; cells and pages, which citations name, count theirs one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

__all__ = ["PAGE_BREAK", "Part", "has_parts", "parts_of"]

PAGE_BREAK = "\f"
"""Ends a page in the text of a PDF."""
OUTPUT_CHARACTERS = 2_000
"""A longer text output of a cell is left out."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text read as the file `path`. `lines` are the lines of the whole file, from 1, that its lines come from."""

    text: str
    path: str
    section: str | None = None
    lines: Sequence[int] = ()


def parts_of(splitter: str, path: str, text: str) -> list[Part] | None:
    """The parts of a file by its splitter; None if it is one plain text."""
    read = _FORMATS.get(splitter)
    return None if read is None else read(path, text)


def has_parts(splitter: str) -> bool:
    """Whether files of this splitter are read by their parts."""
    return splitter in _FORMATS


def _cells(path: str, text: str) -> list[Part]:
    """The cells of a Jupyter notebook (nbformat 4): text, code in its language, and short text outputs."""
    try:
        notebook = json.loads(text)
        info = notebook.get("metadata", {}).get("language_info", {})
        code = str(info.get("file_extension") or f".{info.get('name', 'py')}")
        stem, parts = path.removesuffix(".ipynb"), list[Part]()
        for number, cell in enumerate(notebook["cells"], start=1):
            ending = {"markdown": ".md", "raw": ".txt"}.get(cell["cell_type"], code)
            parts.append(Part("".join(cell["source"]), stem + ending, f"cell {number}"))
            parts += [Part(shown, f"{stem}.log", f"cell {number} output") for shown in _outputs(cell)]
        return parts
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [Part(text, f"{path}.json")]


def _outputs(cell: dict[str, Any]) -> Iterator[str]:
    for output in cell.get("outputs", ()):
        data = output.get("data", output)
        shown = "".join(data.get("text/plain", data.get("text", "")))
        if output["output_type"] == "error":
            shown = f"{output.get('ename')}: {output.get('evalue')}"
        if len(shown) <= OUTPUT_CHARACTERS and not any(name.startswith("image/") for name in data):
            yield shown


def _pages(path: str, text: str) -> list[Part]:
    pages = text.removesuffix(PAGE_BREAK).split(PAGE_BREAK)
    return [Part(page, f"{path}.text", f"page {number}") for number, page in enumerate(pages, start=1)]


def _document(path: str, text: str) -> list[Part]:
    return [Part(text, f"{path}.md")]


def _web_page(path: str, text: str) -> list[Part]:
    """The visible text of a web page as Markdown, one line per block, with the line of the file that it begins on."""
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    page, root = _WebPage(), etree.fromstring(text.encode(), parser)
    for event, element in () if root is None else etree.iterwalk(root, events=("start", "end")):
        page.start(element) if event == "start" else page.end(element)
    page.end_block()
    return [Part("".join(f"{line}\n" for line in page.lines), f"{path}.md", None, page.numbers)]


_INLINE = frozenset(
    ["a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins", "kbd", "label", "mark", "q",
     "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"]
)  # fmt: skip
"""Every other element begins and ends a line."""
_UNSEEN = ("script", "style")
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


class _WebPage:
    """Collects the text of elements as lines of Markdown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self._words: list[str] = []
        self._mark = ""
        self._line = 1
        self._kept = False
        """Whether white space is kept: inside `pre`."""

    def start(self, element: Any) -> None:
        """Add the start of an element and its first text."""
        if element.tag not in _INLINE and not self._kept:
            self.end_block()
        self._mark = _HEADINGS.get(element.tag, "- " if element.tag == "li" else self._mark)
        if element.tag == "pre" and not self._kept:
            self._kept = True
            self._add("```")
        if element.tag == "a" and element.get("href"):
            self._words.append("[")
        elif element.tag == "img" and element.get("alt"):
            self._words.append(f" {element.get('alt')} ")
        if element.tag not in _UNSEEN:
            self._text(element.text, element.sourceline)

    def end(self, element: Any) -> None:
        """Add the end of an element and the text after it."""
        if element.tag == "pre":
            self.end_block()
            self._kept = False
            self._add("```")
        elif element.tag == "a" and element.get("href"):
            self._words.append(f"]({element.get('href').strip()})")
        elif element.tag not in _INLINE and not self._kept:
            self.end_block()
            self._mark = ""
        self._text(element.tail, self._line)

    def end_block(self) -> None:
        """Add the text since the last block as a line."""
        text = "".join(self._words)
        self._words = []
        if self._kept:
            self._add(text)
        elif text := " ".join(text.split()):
            if self._mark != "- ":
                self._add("")
            self._add(self._mark + text)
            self._mark = ""

    def _text(self, text: str | None, line: int) -> None:
        if not self._words:
            self._line = max(line, self._line)
        first, *others = (text or "").split("\n") if self._kept else [text or ""]
        self._words.append(first)
        for other in others:
            self.end_block()
            self._line += 1
            self._words.append(other)

    def _add(self, text: str) -> None:
        self.lines.append(text)
        self.numbers.append(self._line)


_FORMATS: dict[str, Callable[[str, str], list[Part]]] = {
    "notebook": _cells,
    "pages": _pages,
    "document": _document,
    "html": _web_page,
}
