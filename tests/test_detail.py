"""How much of each item is shown: its text, a passage of it, or its place; and which passage a cut keeps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.blocks.greedy_fit import PLACES
from scoped_retrieval.pipeline.sources.grammars import grammar
from scoped_retrieval.pipeline.sources.lines import Lines
from scoped_retrieval.pipeline.sources.statements import levels_of_tree
from selection_line import WEIGHTS, line

PLAIN = dict.fromkeys(WEIGHTS, 0.0) | {"semantic": 1.0}
"""Weights of a world in which the cosine is the score."""
FILE = "".join(f"value_{number} = compute({number}, other, more, words)\n" for number in range(60))


def files(count: int) -> list[dict[str, Any]]:
    return [
        {"text": f"# file {number}\n{FILE}", "path": f"src/{number}.py", "semantic_raw": 0.9 - 0.01 * number}
        for number in range(count)
    ]


def asked(term: str, weight: float = 1.0) -> tuple[str, float]:
    return term, weight


def run(rows: list[dict[str, Any]], *terms: tuple[str, float], **contract: Any) -> dict[str, pa.Table]:
    words = {("r1", term): weight for term, weight in terms}
    return line(rows, requests={"r1": contract}, weights=PLAIN, words=words).run()


def forms(made: dict[str, pa.Table]) -> list[str]:
    return made["trimmed"]["form"].to_pylist()


@pytest.mark.parametrize(("tokens", "texts"), [(1500, 4), (570, 1)])
def test_what_has_no_room_is_named_by_its_place(tokens: int, texts: int) -> None:
    made = run(files(9), max_tokens=tokens, max_chunk_tokens=400)
    assert forms(made) == ["excerpt"] * texts + ["reference"] * (made["trimmed"].num_rows - texts)
    assert len(forms(made)) >= texts + PLACES
    text = made["blocks"]["text"][0].as_py()
    for place in made["trimmed"].to_pylist()[texts:]:
        assert (place["visible_text"], place["line_start"], place["line_end"]) == ("", 1, 61)
        assert f"[{place['label']}] src/{place['position'] - 1}.py:1-61\n" in text
    assert {row["bound_by"] for row in made["trims"].to_pylist()[texts:]} == {"max_tokens"}


def test_nothing_is_cut_where_everything_fits() -> None:
    made = run(files(2), max_tokens=3000, max_chunk_tokens=2000)
    assert made["trims"]["bound_by"].null_count == made["trims"].num_rows
    assert forms(made) == ["full", "full"]


def test_a_passage_is_cited_by_the_lines_shown_and_a_place_by_all_of_its_own() -> None:
    made = run(files(9), asked("value_40"), max_tokens=1500)
    texts = {row["evidence_id"]: row["text"] for row in made["evidence"].to_pylist()}
    shown = {row["evidence_id"]: row["visible_text"] for row in made["trimmed"].to_pylist()}
    for cited in made["citations"].to_pylist():
        text = texts[cited["evidence_id"]]
        lines = text.splitlines()[cited["line_start"] - 1 : cited["line_end"]]
        part = text.encode()[cited["byte_start"] : cited["byte_end"]].decode()
        assert "\n".join(lines) == part.removesuffix("\n")
        assert part == shown[cited["evidence_id"]] or (part == text and not shown[cited["evidence_id"]])
    assert made["citations"].num_rows == made["trimmed"].num_rows


WITH_COOKIE = FILE + "def read_cookie(request):\n    return request.cookies['actor']\n" + FILE


def test_a_cut_keeps_the_passage_that_says_what_was_asked() -> None:
    rows = [{"text": WITH_COOKIE, "path": "a.py"}]
    head = run(rows, max_chunk_tokens=60)["trimmed"].to_pylist()[0]
    assert head["visible_text"].startswith("value_0")
    found = run(rows, asked("cooki"), asked("actor"), max_chunk_tokens=60)["trimmed"].to_pylist()[0]
    assert "def read_cookie(request):\n    return request.cookies['actor']" in found["visible_text"]
    assert found["line_start"] > 40


def test_the_rarer_word_counts_more() -> None:
    rows = [{"text": "common\n" * 3 + FILE + "rare\n" + FILE, "path": "a.py"}]
    made = run(rows, asked("common", 0.1), asked("rare", 5.0), max_chunk_tokens=60)
    assert "rare" in made["trimmed"]["visible_text"][0].as_py()


def test_the_second_item_of_a_file_comes_behind_the_first_of_good_files() -> None:
    chunks = [
        {"text": f"chunk {number}", "path": "a.py", "line_start": 10 * number + 1, "byte_start": 100 * number,
         "semantic_raw": 0.9 - 0.01 * number}
        for number in range(3)
    ]  # fmt: skip
    others = [
        {"text": f"file {number}", "path": f"{number}.py", "semantic_raw": score}
        for number, score in enumerate((0.8, 0.78, 0.4))
    ]
    made = run([*chunks, *others])
    assert made["trimmed"]["visible_text"].to_pylist() == [
        "chunk 0", "file 0", "file 1", "chunk 1", "chunk 2", "file 2",
    ]  # fmt: skip


BODY = "".join(f"        value_{number} = compute({number}, other, words)\n" for number in range(40))
CLASS = f"class Users:\n    def first(self):\n{BODY}\n    def last(self):\n{BODY}        return cookies\n"


def passage(text: str, *terms: str, language: str = "python") -> str:
    lines = Lines(text.encode())
    tree = grammar(language).tree(lines.data)
    assert tree is not None
    rows = [{"text": text, "path": "a.py", "statements": levels_of_tree(lines, tree)}]
    made = run(rows, *map(asked, terms), max_tokens=3000, max_chunk_tokens=120)
    return made["trimmed"]["visible_text"][0].as_py()


def test_a_passage_that_shows_a_signature_stays() -> None:
    text = f"{FILE}def read(ctx):\n    return cookies\n{FILE}"
    assert passage(text, "cooki").endswith("def read(ctx):\n    return cookies")


CALL = "response = send(\n    first,\n    second,\n    cookies=jar,\n)\n"


@pytest.mark.parametrize(
    ("text", "language"),
    [(f"{FILE}{CALL}{FILE}", "python"), (f"{FILE}/* about\n   cookies */\ncall()\n{FILE}", "javascript")],
)
def test_a_passage_is_of_whole_statements(text: str, language: str) -> None:
    shown = passage(text, "cooki", language=language)
    assert "cookies" in shown
    assert shown.count("(") == shown.count(")")
    assert shown.count("/*") == shown.count("*/")


def test_a_passage_is_a_run_of_one_block() -> None:
    text = f"{FILE}def first():\n{BODY}def last():\n    return cookies\n{FILE}".replace("        ", "    ")
    shown = passage(text, "cooki")
    assert "return cookies" in shown
    assert not shown.startswith(" ")


def test_a_heading_over_a_long_line_is_shown_with_it() -> None:
    text = "# Fields\n\n" + "fields: 1, 2, 3, 4, " * 40 + "\n\nMore.\n"
    rows = [{"text": text, "path": "a.md", "statements": [1, 0, 0, 0, 1]}]
    made = run(rows, asked("field"), max_tokens=3000, max_chunk_tokens=200)
    assert "fields: 1" in made["trimmed"]["visible_text"][0].as_py()
