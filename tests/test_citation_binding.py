"""Every label of a block leads to source, version, span and hash."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from selection_line import AS_OF, line


@pytest.mark.parametrize(
    ("row", "locator", "head"),
    [
        (
            {"path": "src/app.py", "line_start": 14, "section": "parse_user"},
            "src/app.py#14 (parse_user)",
            "src/app.py:14 parse_user",
        ),
        ({"path": "docs/a b.md", "line_start": 1}, "docs/a b.md#1", "docs/a b.md:1"),
        ({"path": None, "title": "Timeouts", "line_start": None, "byte_start": None}, "Timeouts", "Timeouts"),
        ({"path": None, "title": " ", "line_start": None, "byte_start": None}, "workspace:shop", "workspace:shop"),
        (
            {"path": "文档/说明.md", "line_start": 3, "section": "时间 > 默认"},
            "文档/说明.md#3 (时间 > 默认)",
            "文档/说明.md:3 默认",
        ),
    ],
)
def test_a_locator_names_path_line_and_section(row: dict[str, Any], locator: str, head: str) -> None:
    made = line([{"text": "x"} | row]).run()
    assert made["citations"]["locator"].to_pylist() == [locator]
    assert f"[code#1] {head}\n" in made["blocks"]["text"][0].as_py()


def test_hashes_are_those_of_the_stored_and_of_the_visible_text() -> None:
    (row,) = line([{"text": "alpha\n"}]).run()["citations"].to_pylist()
    assert row["text_sha256"] == hashlib.sha256(b"alpha\n").hexdigest()
    assert row["visible_sha256"] == hashlib.sha256(b"alpha").hexdigest()


def test_a_citation_says_when_its_text_was_taken_in_and_what_it_rests_on() -> None:
    taken = {"captured_time": AS_OF, "source_refs": ["sessions/s-1"]}
    (row,) = line([{"text": "alpha"} | taken]).run()["citations"].to_pylist()
    assert {name: row[name] for name in taken} == taken


def test_an_item_that_does_not_resolve_is_not_cited_and_not_rendered() -> None:
    nowhere = {"line_start": None, "byte_start": None, "version": None}
    rows = [{"text": "lost", "path": "a.py", **nowhere}, {"text": "found"}]
    loose = line(rows, requests={"r1": {"require_citation": False}}).run()
    assert sorted(loose["citations"]["resolves"].to_pylist()) == [False, True]
    strict = line(rows).run()
    assert strict["citations"]["resolves"].to_pylist() == [True]
    assert "lost" not in strict["blocks"]["text"][0].as_py()
