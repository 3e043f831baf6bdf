"""The tree-sitter grammars in use, with their queries for definitions, constants and references.

Gives: `grammar(splitter) -> Grammar` and `Grammar.tree(data)`. A language is one file in `data/grammars`: its query,
below lines with its grammar (`; grammar: MODULE.FUNCTION`), the files whose patterns precede its own (`; inherits: FILE
...`), `; parsed: whole` if a part of a file is not code by itself, and its name in the documentation if it is not the name of the file (`; language: C++`). Every grammar comes in
the wheel of its language; nothing is fetched. The `tags.scm` files of the wheels are made for jumping to a name and
lack patterns needed here (whole functions in C and C++, constructors in Java, structs in C#, all of Kotlin).

Note: error recovery in text of another language takes time quadratic in its length, in the parser and in queries over
the broken part. The limits here count steps, not seconds, so that the same text gives the same chunks on every machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

QUERIES = resources.files(f"{__name__.rpartition('.pipeline')[0]}.data") / "grammars"
"""The folder of the queries."""
_HEADER = re.compile(r"^; (grammar|inherits|parsed): (.+)$", re.MULTILINE)
_FREE_STEPS = 400
_BYTES_A_STEP = 40
_READ_BYTES = 1 << 16
"""The parser calls back about every 240 bytes of ordinary code; far more often means that the text is not code."""
_MOST_BYTES = {"haskell": 96_000, "kotlin": 48_000, "lua": 32_000, "scala": 24_000}
"""Splitters whose grammar recovers in quadratic time without reporting more steps; longer stretches are not parsed."""
_DEPTH = 500
"""Patterns do not match deeper in a tree, as queries inspect all ancestors of a node. Code is far less deep."""
_RUBBLE = 2_000
"""An error node with more children than this is not code of the language."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A parser and its query. A pattern captures a definition (`@class`, `@function`, `@constant`, or `@test` with its `@tester`), its
    `@name` and its `@owner` if that is not an enclosing definition; or the names that it refers to, `@reference`.
    """

    parser: Parser
    query: Query
    most_bytes: int | None = None
    whole: bool = False
    """Whether only whole files are code: parts of a template would be text."""

    def tree(self, data: bytes, errors: bool = True) -> Node | None:
        """The root of the syntax tree; None if the text is too far from the language to be worth the time, or has an error and
        may have none.
        """
        if self.most_bytes is not None and len(data) > self.most_bytes:
            return None
        left = _FREE_STEPS + len(data) // _BYTES_A_STEP

        def stop(_offset: int, broken: bool) -> bool:
            nonlocal left
            left -= 1
            return left < 0 or (broken and not errors)

        try:
            root = self.parser.parse(lambda at, _point: data[at : at + _READ_BYTES], progress_callback=stop).root_node
        except ValueError:  # stopped
            self.parser.reset()
            return None
        return None if root.has_error and (not errors or _is_rubble(root)) else root

    def matches(self, root: Node) -> list[dict[str, list[Node]]]:
        """The captures of each match of the query, in the order of the text."""
        from tree_sitter import QueryCursor

        cursor = QueryCursor(self.query)
        cursor.set_max_start_depth(_DEPTH)
        return [captures for _, captures in cursor.matches(root)]


def _declared() -> dict[str, tuple[str, str, tuple[str, ...], bool]]:
    found = {}
    for file in sorted(QUERIES.iterdir(), key=lambda file: file.name):
        if "grammar" in (header := dict(_HEADER.findall(file.read_text(encoding="utf-8")))):
            name, (module, _, function) = file.name.removesuffix(".scm"), header["grammar"].rpartition(".")
            found[name] = module, function, (*header.get("inherits", "").split(), name), "parsed" in header
    return found


_GRAMMARS = _declared()
"""By splitter: the module of its wheel, the function that returns the language, the files of its query, and whether only whole
files parse."""
SPLITTERS = frozenset(_GRAMMARS)
"""The languages cut by a grammar."""
WHEELS = tuple(sorted({module.replace("_", "-") for module, *_ in _GRAMMARS.values()}))
"""The distributions of the grammars."""


@cache
def grammar(splitter: str) -> Grammar:
    """The grammar of a splitter, one of `SPLITTERS`."""
    from tree_sitter import Language, Parser, Query  # imported only to cut a file: `ask` loads no parser

    module, function, names, whole = _GRAMMARS[splitter]
    language = Language(getattr(import_module(module), function)())
    query = Query(language, "\n".join(QUERIES.joinpath(f"{name}.scm").read_text(encoding="utf-8") for name in names))
    return Grammar(Parser(language), query, _MOST_BYTES.get(splitter), whole)


def _is_rubble(root: Node) -> bool:
    open_ = [root]
    while open_:
        node = open_.pop()
        if node.has_error:
            if node.is_error and node.child_count > _RUBBLE:
                return True
            open_.extend(node.children)
    return False
