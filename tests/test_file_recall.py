"""The file lane: whole files of source code, by what their admissible rows say together."""

from __future__ import annotations

from typing import Any

import pytest
from recall_world import frame, line, names, rules

PLAN = rules({"lanes": ["lexical", "file"], "kinds": ["code"]})


def row(name: str, path: str | None, text: str, **columns: Any) -> dict[str, Any]:
    return {"name": name, "path": path, "text": text, "section": name} | columns


def found(rows: list[dict[str, Any]], question: str, plan: Any = PLAN, **request: Any) -> list[str]:
    world = frame(rows)
    hits = line(world, [{"question": question, **request}], plan=plan)["hits"]
    return names(world, hits, lane="file", withheld=False)


def test_a_file_that_says_all_of_it_in_parts_beats_one_that_says_one_word_often() -> None:
    rows = [
        row("login", "src/session.py", "login"),
        row("token", "src/session.py", "token"),
        row("cache", "src/cache.py", "token token"),
        row("other", "src/other.py", "retry"),
    ]
    assert found(rows, "login token")[:2] == ["login", "token"] or found(rows, "login token")[:2] == ["token", "login"]
    assert set(found(rows, "login token")) == {"login", "token", "cache"}


def test_three_chunks_of_a_file_return_those_that_match_best() -> None:
    rows = [row(f"said {n}", "src/a.py", "token " * n + "retry " * (9 - n)) for n in range(6)]
    assert sorted(found([*rows, row("b", "src/b.py", "retry")], "token")) == ["said 3", "said 4", "said 5"]


@pytest.mark.parametrize(
    "columns", [{"document_type": "test"}, {"document_type": "config"}, {"generated": True}, {"path": None}, {"evidence_kind": "doc"}]
)  # fmt: skip
def test_what_is_no_source_never_returns(columns: dict[str, Any]) -> None:
    assert found([row("a", "src/a.py", "token"), row("b", "src/b.py", "token") | columns], "token") == ["a"]


def test_a_test_counts_in_how_rare_a_word_is() -> None:
    rows = [row("a", "src/a.py", "token"), row("b", "src/b.py", "login")]
    tests = [row(f"t{n}", f"tests/t{n}.py", "token", document_type="test") for n in range(5)]
    assert found(rows, "token login")[0] in ("a", "b")
    assert found([*rows, *tests], "token login") == ["b", "a"]
