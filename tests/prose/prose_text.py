"""The prose of this repository as text with places: documentation, docstrings, messages and help; code is blanked out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CHANGELOG.md", "SECURITY.md", "docs")
PACKAGES = ("nodes", "pipeline")
_CODE = re.compile(r"```.*?^\s*```|``.*?``|`[^`\n]*`|\]\([^)\s]*\)|https?://\S+|<!--.*?-->", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"\{[^{}\s]*\}")


class Prose(NamedTuple):
    """A piece of text, with the file and line where it begins."""

    file: str
    line: int
    text: str


def everything() -> Iterator[Prose]:
    """Every page, docstring and message, in the order of files."""
    for name in PAGES:
        path = ROOT / name
        for page in [path] if path.is_file() else sorted(path.rglob("*.md")):
            yield Prose(page.relative_to(ROOT).as_posix(), 1, without_code(page.read_text(encoding="utf-8")))
    for package in PACKAGES:
        for source in sorted((ROOT / package).rglob("*.py")):
            yield from of_source(source.relative_to(ROOT).as_posix(), source.read_text(encoding="utf-8"))


def of_source(file: str, source: str) -> Iterator[Prose]:
    """Docstrings and every string with a space between letters: messages, help, descriptions of columns."""
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= set(node.values)
            text = "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
            yield from _prose(file, node.lineno, text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield from _prose(file, node.lineno, node.value)


def _prose(file: str, line: int, text: str) -> Iterator[Prose]:
    if re.search(r"[a-z,;:] [a-z]", text):
        yield Prose(file, line, without_code(text))


def without_code(text: str) -> str:
    """The text with code, links and fields replaced by as many spaces, so that places stay."""
    return _FIELD.sub(_blank, _CODE.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
