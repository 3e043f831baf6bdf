"""Every label of a block leads to source, version, span and hash."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
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


@pytest.mark.parametrize(("limit", "first"), [(400, 0), (12, 1)])
def test_the_locator_of_a_merged_item_names_the_first_line_shown_and_its_section(limit: int, first: int) -> None:
    document = {"path": "a.md", "version": "v1"}
    texts = ["above " * 12 + "\n", "best row\n", "below\n"]
    rows = [
        {"text": text, "section": section, "line_start": n + 1, "byte_start": len("".join(texts[:n])), **document}
        | {"semantic_raw": 0.9 if section == "Best" else 0.1}
        for n, (text, section) in enumerate(zip(texts, ["Above", "Best", "Below"], strict=True))
    ]
    made = line(rows, requests={"r1": {"max_chunk_tokens": 400}}, asks="above below").run("packs")
    contracts = made["contracts"].set_column(
        made["contracts"].column_names.index("max_chunk_tokens"), "max_chunk_tokens", pa.array([limit], pa.int32())
    )
    made = line(rows).run(contracts=contracts, packs=made["packs"])
    (cited,) = made["citations"].to_pylist()
    expected = ("a.md#1 (Above)", "a.md#2 (Best)")[first]
    assert (cited["locator"], cited["section"]) == (expected, expected[8:-1])
    assert f"[code#1] {('a.md:1-3 Above', 'a.md:2 Best')[first]}\n" in made["blocks"]["text"][0].as_py()
    shown = made["trimmed"]["visible_text"][0].as_py()
    whole = "".join(texts).splitlines()
    assert shown.splitlines() == whole[cited["line_start"] - 1 : cited["line_end"]]
