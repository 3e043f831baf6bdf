"""`capabilities.md` names only what exists, and every capability of the five documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "tests" / "capabilities.md").read_text(encoding="utf-8")
COUNTS = {"S0": 129, "S1": 41, "S2": 47, "S3": 71, "S4": 18}


def named_and_missing() -> Iterator[str]:
    """Files, and tests as `file::name`, that the page names and the repository lacks."""
    for name in re.findall(r"`([^`\s]+\.py(?:::\w+)?)`", PAGE):
        file, _, test = name.partition("::")
        if not (ROOT / file).is_file() or (test and f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")):
            yield name


def test_every_file_and_test_on_the_page_exists():
    assert list(named_and_missing()) == []


def test_every_capability_has_a_row():
    wanted = {f"{document}.{number}" for document, count in COUNTS.items() for number in range(1, count + 1)}
    assert wanted == set(re.findall(r"^\| (S\d\.\d+) \|", PAGE, re.MULTILINE))
