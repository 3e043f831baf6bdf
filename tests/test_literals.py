"""Quoted texts are searched as they are written, inside the boundary: recall, rank and the lines that are shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from asking import answers, line_of
from recall_world import frame, line, names, rules
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.sources.importing import normalize
from worlds import NOW, Row, World

PLAN = rules({"lanes": ["exact"]})
RAISES = 'raise UsageFault(f"unknown command {name!r} for {app}")'


def found(question: str, *rows: dict[str, Any], **request: Any) -> list[str]:
    world = frame([{"name": row["text"]} | row for row in rows])
    return names(world, line(world, [{"question": question, **request}], plan=PLAN)["hits"], lane="exact")


@pytest.mark.parametrize(
    "question",
    [
        "Where is the error 'unknown command' produced?",
        'why do I get "unknown command 7"?',
        "what prints `unknown command {}`",
        "KeyError: unknown command 'push'",
        "MissingCommand: unknown command 'push'",
        "unknown command %s in 'unknown command %s'",
    ],
)
def test_a_quoted_text_finds_the_rows_that_have_it_whatever_its_values(question: str) -> None:
    others = ({"text": "an unknown flag of a command"}, {"text": "command unknown"}, {"text": "unknown  command"})
    assert found(question, {"text": RAISES}, *others) == [RAISES]


@pytest.mark.parametrize(
    "question", ["the users' own command isn't known", "unknown command", "is 'unknown' here?", "'7' and \"%s {}\""]
)
def test_words_that_nobody_quotes_are_no_literal(question: str) -> None:
    assert found(question, {"text": RAISES}, {"text": "own command isn 7"}) == []


@pytest.mark.parametrize("before", ["click.UsageError", "fatal", "Error"])
def test_a_declared_error_is_searched_without_the_word_before_it(before: str) -> None:
    assert found("why?", {"text": RAISES}, error_text=f"{before}: unknown command 'push'\n  at x") == [RAISES]


def test_a_regular_expression_finds_the_rows_with_a_line_that_it_matches() -> None:
    texts = [{"text": text} for text in (f"def f():\n{RAISES}", "raise it\nfor {app}", "a raise UsageFault(app})")]
    assert found("why?", *texts, regexes=[r"^raise \w+Fault\(.*app\}"]) == [texts[0]["text"]]


def _row(path: str, text: str, **columns: Any) -> Row:
    return {
        "source_id": "workspace:ours", "origin_class": "workspace", "evidence_kind": "code", "owner_project": "shop",
        "path": path, "text": text, "authority": 1, "lifecycle": "verified", "zone": "internal", "version": "v1",
        "recorded_time": NOW - timedelta(days=60), "declared_visibility": "model-visible", "line_start": 1,
        "line_end": 1 + text.count("\n"),
    } | columns  # fmt: skip


def _asked(folder: Path, rows: list[Row], **question: Any) -> tuple[str, list[Row]]:
    corpus = Corpus.create(folder)
    columns = dict.fromkeys(name for row in rows for name in row)
    schema = pa.schema([IMPORT_ROWS.schema.field(name) for name in columns])
    for project in dict.fromkeys(row["owner_project"] for row in rows):
        own = [row for row in rows if row["owner_project"] == project]
        normal, _ = normalize(pa.Table.from_pylist(own, schema=schema), project=project, principal="ana", now=NOW)
        corpus.publish(normal, now=NOW)
    (folder / "grants.yaml").write_text("principals: {ana: {projects: [shop]}}", encoding="utf-8")
    asked = {
        "request_id": "r", "project": "shop", "purpose": "answer-question", "time": {"as_of": NOW.isoformat()},
        "budget": {"max_tokens": 300},
    } | question  # fmt: skip
    told = answers(line_of(folder, World(rows=(), requests=(), encoder=False)), [asked])
    return told["blocks"]["text"].to_pylist()[0], told["ranked"].to_pylist()


@pytest.mark.parametrize(
    "question",
    [
        {"question": "Where is the error 'unknown command' produced?"},
        {"question": "which command is unknown, what error is produced by UsageFault?"},
        {"regexes": ["unknown command .* for"]},
    ],
)
def test_the_line_is_shown_first_and_rows_outside_change_nothing(question: dict[str, Any], tmp_path: Path) -> None:
    steps = "".join(f"    step_{n} = prepare(command, {n})\n" for n in range(60))
    words = "    report(unknown, command, usage, fault, produced=error)\n"
    rows = [
        _row("src/run.py", f"def run(command):\n{words}{steps}    {RAISES}\n{steps}"),
        *(_row(f"src/command_{n}.py", f"def unknown_{n}(command):\n    return error(command)\n") for n in range(5)),
    ]
    block, ranked = _asked(tmp_path / "own", rows, **question)
    assert RAISES in block.split("#2]")[0] and ("regexes" not in question or len(ranked) == 1)
    foreign = {"owner_project": "pay"}
    withheld = {"declared_visibility": "runtime-only"}
    planted = [_row(f"src/p{n}.py", RAISES, **shut) for n in range(3) for shut in (foreign, withheld)]
    assert _asked(tmp_path / "planted", [*rows, *planted], **question) == (block, ranked)
