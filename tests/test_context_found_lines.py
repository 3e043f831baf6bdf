"""Matches of searches whose lines an event of the input shows: they are in the input once, and `why` says where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from context_session import Session, item, modes, projected, reasons, snapshot
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.reasons import why

FOUND = tuple({"path": f"src/m{n}.ts", "line": n + 1, "text": f"needle({n})"} for n in range(30))


def printed(template: str, matches: Sequence[Mapping[str, Any]] = FOUND) -> str:
    return "\n".join(template.format(**match) for match in matches)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (printed("{path}:{line}:{text}"), 30),
        (printed("./{path}:{line}:    {text}  "), 30),
        (printed("{path}:{line}-{text}"), 30),
        (printed("/home/ann/shop/{path}:{line}:{text}"), 30),
        (printed("{path}:{line}:5:  {text}"), 30),
        (printed("\x1b[1m{path}\x1b[m\x1b[K:{line}:{text}"), 30),
        (printed("{path}:{line}:{text}", FOUND[:4]), 4),
        (printed("{path}:{line}:{text} // more"), 0),
        (printed("{path}:9{line}:{text}"), 0),
        (printed("other/{path}:{line}:{text}"), 0),
        ("30 matches", 0),
        (None, 0),
    ],
)
def test_a_match_whose_line_the_observation_shows_is_neither_repeated_nor_called_not_shown(
    text: str | None, shown: int
):
    session = Session()
    session.add("search.result", turn=1, query="needle", matches=[*FOUND], **({"text": text} if text else {}))
    seen = projected(session)
    rows = [seen.decision(f"match:e1:{n + 1}") for n in range(30)]
    carried = [row for row in rows if row["reason_code"] == "shown_in_tail"]
    assert len(carried) == shown
    for row in carried:
        assert (row["action"], row["tokens"], row["decided_by"], row["original_ref"]) == (
            "reference",
            0,
            None,
            "event:e1",
        )
    assert ("References, to be opened on demand:" in seen.text()) == (shown < 30)
    assert "Evidence:" not in seen.text()
    assert seen.text().count("open src/m") == min(30 - shown, 12), "the others take the places of references"


def test_a_match_is_referenced_again_where_the_observation_lost_its_line():
    session = Session()
    session.add("search.result", turn=1, query="needle", matches=[*FOUND], text=printed("{path}:{line}:{text}"))
    small = projected(session, budget={"maxTokens": 330, "reservedOutputTokens": 0})
    assert modes(small)["event:e1"] in ("reference", "none")
    assert "shown_in_tail" not in reasons(small).values()
    assert "open src/m0.ts:1" in small.text()
    long = printed("{path}:{line}:{text}") + "\nx" * 9_000
    session.add("search.result", turn=2, query="needle", matches=[*FOUND], text=long)
    cut = projected(session)
    assert modes(cut)["event:e2"] == "excerpt"
    beginning = [n for n in range(30) if f"| src/m{n}.ts:{n + 1}:needle({n})\n" in cut.text()]
    assert beginning
    told = [n for n in range(30) if reasons(cut)[f"match:e2:{n + 1}"] == "shown_in_tail"]
    assert told == beginning
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    later = projected(session)
    assert "shown_in_tail" not in reasons(later).values(), "the tail has one line on each search"


def test_matches_that_an_observation_shows_leave_their_places_to_what_nothing_shows():
    session = Session()
    session.add("search.result", turn=1, query="needle", matches=[*FOUND], text=printed("{path}:{line}:{text}"))
    more = [{"path": f"lib/n{n}.ts", "line": 1, "text": "needle"} for n in range(5)]
    session.add("search.result", turn=1, query="needles", matches=more)
    seen = projected(session)
    assert [modes(seen)[f"match:e2:{n + 1}"] for n in range(5)] == ["reference"] * 5
    assert seen.text().count(": open lib/n") == 5 and ": open src/m" not in seen.text()


def test_why_says_where_the_line_of_a_match_is():
    session = Session()
    session.add("search.result", turn=1, query="needle", matches=[*FOUND], text=printed("{path}:{line}:{text}"))
    seen = projected(session)
    for asked in ("src/m3.ts", "src/m29.ts", "match:e1:30", "src/m29.ts:30"):
        found = why(seen, asked)
        assert found["layer"] is None, asked
        assert found["answer"] == "it is in the input (reference): its text is in an event of this input, event:e1"
    assert why(seen, "src/m29.ts:30:needle(29)")["answer"].startswith("it is in the input (full)")


def test_a_place_that_two_searches_found_is_named_once():
    session = Session("Fix src/near.ts.")
    for turn, near in ((1, "throw one"), (2, "throw one"), (3, "throw two")):
        found = [
            {"path": "lib/a.ts", "line": 3, "text": f"retry {turn}"},
            {"path": "lib/a.ts", "line": 4},
            {"path": "lib/b.ts"},
            {"path": "src/near.ts", "line": 9, "text": near},
        ]
        session.add("search.result", turn=turn, query=f"q{turn}", matches=found)
    session.failing("src/near.ts:9 error", turn=4)
    seen = projected(session)
    for place in ("lib/a.ts:3", "lib/a.ts:4", "lib/b.ts"):
        assert seen.text().count(f"- {place}: open") == 1, place
    assert [seen.text().count(words) for words in ("| throw one", "| throw two")] == [1, 1], (
        "another text is another line"
    )
    told = reasons(seen)
    assert [told[f"match:e{n}:1"] for n in (1, 2, 3)] == ["on_demand", "duplicate", "duplicate"]
    assert [told[f"match:e{n}:4"] for n in (1, 2, 3)] == ["failing_stack", "duplicate", "failing_stack"]
    for asked, source in (
        ("match:e2:1", "match:e1:1"),
        ("match:e3:2", "match:e1:2"),
        ("match:e3:3", "match:e1:3"),
        ("lib/a.ts:3", "match:e1:1"),
    ):
        found = why(seen, asked)
        assert (found["source_id"], found["layer"]) == (source, "ordering_not_ranked"), asked
    assert why(seen, "match:e2:4")["layer"] is None


@pytest.mark.parametrize(("paths", "said"), [(["a.md"], "1 match: a.md"), (["a.md", "b.md"], "2 matches: a.md, b.md")])
def test_the_tail_counts_what_a_search_found(paths: list[str], said: str):
    session = Session()
    session.add("search.result", turn=1, query="q", matches=[{"path": path, "line": 1} for path in paths])
    session.add("command.finished", turn=2, command="ls", exitCode=0, stdout="x")
    assert f"search result, q: {said}" in projected(session).text()


BELOW = "src/a.py\n3:def retry(limit):\n9:    retry(3)\n\nsrc/b.py\n1:from a import retry"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (BELOW, True),
        (BELOW.replace("src/", "src\\\\").replace("\\\\", "\\"), True),
        (BELOW.replace("src/a.py", "/home/me/shop/src/a.py"), True),
        ("src/a.py:def retry(limit):\nsrc/b.py:from a import retry", True),
        (BELOW.replace("3:def", "4:def"), False),
        (BELOW.replace("src/a.py", "src/a.pyi"), False),
        ("src/b.py\n3:def retry(limit):\n\nsrc/a.py\n9:    retry(3)", False),
        ("src/a.py:def retry(limit, more):", False),
        ("src/a.py", False),
    ],
)
def test_why_finds_the_line_of_a_match_in_other_forms_that_searches_print(text: str, shown: bool):
    session = Session()
    session.add(
        "search.result",
        turn=1,
        query="retry",
        matches=[{"path": "src/a.py", "line": 3, "text": "def retry(limit):"}],
        text=text,
    )
    seen = projected(session)
    assert reasons(seen)["match:e1:1"] == "on_demand", "the reference gives the line"
    for asked in ("src/a.py:3", "src/a.py", "match:e1:1"):
        found = why(seen, asked)
        assert found["layer"] == (None if shown else "ordering_not_ranked"), (asked, found)
        assert (found["answer"] == "it is in the input: event:e1 shows its line") == shown
        assert (found["omitted_for"] is None) == shown


def test_an_edit_that_names_a_file_is_not_its_content():
    session = Session()
    session.add("file.read", turn=1, path="src/parser.py", text="def add(a, b):\n    return a + b + 1\n")
    session.add("file.modified", turn=2, path="src/parser.py", summary="fix add")
    seen = projected(session)
    found = why(seen, "src/parser.py")
    assert found["answer"] == (
        "left out: the file was modified after this was seen; event:e2 in the input is about the file, without its content"
    )
    assert [row["source_id"] for row in found["sources"]] == ["event:e1", "event:e2"]
    assert why(seen, "event:e2")["answer"].startswith("it is in the input (full)")
    session.add("file.read", turn=3, path="src/parser.py", text="def add(a, b):\n    return a + b\n")
    assert why(projected(session), "src/parser.py")["answer"].startswith("it is in the input (full)")


def test_a_match_that_a_gate_refused_says_that_its_line_is_there():
    session = Session()
    found = [{"path": "src/a.ts", "line": 1, "text": "needle"}, {"path": "dist/b.js", "line": 2, "text": "needle"}]
    session.add("search.result", turn=1, query="x", matches=found, text=printed("{path}:{line}:{text}", found))
    seen = projected(session)
    assert reasons(seen)["match:e1:2"] == "generated_file"
    assert why(seen, "dist/b.js")["answer"].endswith("; its line is in the observation that found it")


READ = "import os\n\ndef retry(limit):\n    pass\n"


@pytest.mark.parametrize(
    ("read", "match", "shown"),
    [
        ({"text": READ}, {"line": 3, "text": "def retry(limit):"}, True),
        ({"text": READ}, {"line": 3, "text": "  def retry(limit):  "}, True),
        ({"text": READ}, {"line": 3}, True),
        ({"text": READ}, {}, True),
        ({"text": READ, "lineStart": 40, "lineEnd": 43}, {"line": 42, "text": "def retry(limit):"}, True),
        ({"text": READ, "lineStart": 40, "lineEnd": 43}, {"line": 3, "text": "def retry(limit):"}, False),
        ({"text": READ, "lineStart": 40, "lineEnd": 43}, {}, False),
        ({"text": READ}, {"line": 3, "text": "def retry(most):"}, False),
        ({"text": READ}, {"line": 4, "text": "def retry(limit):"}, False),
        ({"text": READ, "path": "src/b.py"}, {"line": 3, "text": "def retry(limit):"}, False),
        ({"text": READ + "x = 1\n" * 9_000}, {"line": 3, "text": "def retry(limit):"}, False),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_a_match_in_a_file_that_is_shown_in_full_is_no_reference(
    read: Mapping[str, Any], match: Mapping[str, Any], shown: bool, later: bool
):
    session = Session("Find the limit.")
    session.add("search.result", turn=1, query="retry", matches=[{"path": "src/a.py", **match}])
    session.add("file.read", turn=2, **{"path": "src/a.py", **read})
    if later:
        session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    seen = projected(session)
    row = seen.decision("match:e1:1")
    assert (row["reason_code"] == "shown_in_tail") == shown
    assert ("References, to be opened on demand:" in seen.text()) == (not shown)
    if shown:
        assert (row["original_ref"], row["tokens"]) == ("event:e2", 0)


def test_a_match_is_referenced_again_where_the_file_did_not_fit():
    session = Session("Find the limit.")
    session.add(
        "search.result", turn=1, query="retry", matches=[{"path": "src/a.py", "line": 3, "text": "def retry(limit):"}]
    )
    session.add("file.read", turn=2, path="src/a.py", text=READ + "x = 1\n" * 300)
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    assert reasons(projected(session))["match:e1:1"] == "shown_in_tail"
    small = projected(session, budget={"maxTokens": 500, "reservedOutputTokens": 0})
    assert modes(small)["event:e2"] in ("reference", "none")
    assert reasons(small)["match:e1:1"] == "on_demand" and ": open src/a.py:3\n" in small.text()


def test_why_finds_words_that_another_source_shows():
    session = Session()
    found = [{"path": "src/a.py", "line": 3, "text": "def retry(limit):"}]
    session.add("search.result", turn=1, query="q", matches=found, text=printed("{path}:{line}:{text}", found))
    answer = why(projected(session), "def retry(limit):")
    assert (answer["layer"], answer["answer"]) == (None, "it is in the input (full): result of the last tool calls")
    old = Session()
    old.add("permission.denied", turn=1, tool="Bash", command="rm -rf build", text="no")
    for number in range(60):
        old.add("command.finished", turn=2 + number, command=f"ls {number}", exitCode=0, stdout="x")
    answer = why(projected(old), "rm -rf build", events=read_events(old.events))
    assert "state:observed" in [row["source_id"] for row in answer["sources"]]
    assert answer["answer"].startswith("it is in the input (full)")


def test_why_says_of_a_copy_what_became_of_the_other_item():
    big = "line of text here\n" * 200
    snapshots = [snapshot(item(f"c#{n}", "a.py", big, evidence_id="E1"), name=f"S{n}", ref=f"b{n}") for n in range(2)]
    session = Session()
    for n in range(2):
        session.add("retrieval.snapshot.created", turn=1, snapshotId=f"S{n}")
    for budget, layer in (({"maxTokens": 600, "reservedOutputTokens": 0}, "budget_cut"), ({"maxTokens": 20_000}, None)):
        seen = projected(session, snapshots=snapshots, budget=budget)
        copy = next(id_ for id_, code in reasons(seen).items() if code == "duplicate")
        assert (
            seen.decision(copy)["reason"]
            == "another source has the same evidence or says the same, and its row says what became of it"
        )
        assert why(seen, copy)["layer"] == layer and why(seen, copy)["sources"][0]["source_id"] != copy
