"""Files that hold several texts, or one in markup: the cells of a notebook, the pages of a PDF, the text of a web page.

Gives: `FORMATS`, by splitter what makes `Part`s of the path and text of a file, each read as a file of its own kind.

Note: the lines of a web page are those of the file; cells and pages, which citations name, count theirs one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

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


_INLINE = frozenset(
    ["a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins", "kbd", "label", "mark", "q",
     "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"]
)  # fmt: skip
"""Every other element begins and ends a line."""
_MARKS = {f"h{level}": "#" * level + " " for level in range(1, 7)} | {"li": "- "}


def _web_page(path: str, text: str) -> list[Part]:
    """The visible text of a web page as Markdown, one line per block, with the line of the file that it begins on."""
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    root, found = etree.fromstring(text.encode(), parser), list[tuple[int, str]]()
    words, mark, at = list[str](), "", 1

    def end_block() -> None:
        """Add the text since the last block as a line."""
        nonlocal mark
        if block := " ".join("".join(words).split()):
            found.extend((at, line) for line in ([] if mark == "- " else [""]) + [mark + block])
            mark = ""
        words.clear()

    walk = etree.iterwalk(etree.Element("html") if root is None else root, events=("start", "end"))
    for event, element in walk:
        tag, link = element.tag, element.get("href") if element.tag == "a" else None
        if tag not in _INLINE:
            end_block()
            mark = _MARKS.get(tag, mark) if event == "start" else ""
        if event == "end":
            words += [f"]({link.strip()})" if link else "", element.tail or ""]
        elif tag in ("pre", "script", "style"):
            walk.skip_subtree()
            if tag == "pre":
                code = "".join(element.itertext()).split("\n")
                last = element.sourceline + len(code) - 1
                found += zip(
                    [element.sourceline, *range(element.sourceline, last + 1), last], ["```", *code, "```"], strict=True
                )
                at = last
        else:
            at = at if words else max(at, element.sourceline or 0)
            alt = element.get("alt") if tag == "img" else None
            words += ["[" if link else "", f" {alt} " if alt else "", element.text or ""]
    end_block()
    return [Part("".join(f"{line}\n" for _, line in found), f"{path}.md", None, [number for number, _ in found])]


FORMATS: dict[str, Callable[[str, str], list[Part]]] = {
    "notebook": _cells,
    "pages": _pages,
    "document": _document,
    "html": _web_page,
}
"""The files of every other splitter are one plain text."""
