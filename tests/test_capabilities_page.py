"""The page of capabilities names only what exists, and every capability of five documents once or in part."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "tests" / "capabilities.md").read_text(encoding="utf-8")
COUNTS = {"S0": 129, "S1": 40, "S2": 42, "S3": 71, "S4": 18}
CAPABILITIES = [f"{document}.{number}" for document, count in COUNTS.items() for number in range(1, count + 1)]
MOST_WORDS = 12


def rows(heading: str) -> list[list[str]]:
    """The cells of each row of the table under a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@cache
def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_has_its_four_cells_and_few_words():
    for row in rows("Delivered"):
        assert len(row) == 4, row
        assert 0 < len(row[1].split()) <= MOST_WORDS, row


def test_every_module_and_test_on_the_page_exists():
    guarantees = [(row[0], *row) for row in rows("Integrity and privacy")]
    for id_, _, modules, tests in [*rows("Delivered"), *guarantees]:
        assert named(modules), id_
        assert named(tests), id_
        for module in named(modules):
            assert (ROOT / module).is_file(), (id_, module)
        for test in named(tests):
            file, _, name = test.partition("::")
            assert name.startswith("test_"), (id_, test)
            assert (ROOT / file).is_file(), (id_, test)
            assert name in functions(ROOT / file), (id_, test)


def test_every_capability_is_delivered_or_named_as_missing():
    delivered = [row[0] for row in rows("Delivered")]
    missing = [row[0] for row in rows("Not yet, or in part")]
    assert delivered == sorted(set(delivered), key=CAPABILITIES.index)
    assert missing == sorted(set(missing), key=CAPABILITIES.index)
    assert {*delivered, *missing} == set(CAPABILITIES)
