"""The worked example of document 003, round 9 (S3.61), as a golden file, and the wiring of the second line."""

from __future__ import annotations

from pathlib import Path

import pytest
from edges import disagreements
from golden_file import expect_golden
from scoped_retrieval.nodes.turns.words import EVENT_KINDS
from scoped_retrieval.pipeline.context.line import build_context_driver
from scoped_retrieval.pipeline.context.projections import demonstration

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.golden
def test_round_nine_reads_as_recorded():
    expect_golden(GOLDEN / "context-round-9.txt", demonstration().text())


@pytest.mark.golden
def test_the_ledger_of_round_nine_reads_as_recorded():
    rows = demonstration().decisions
    lines = [
        f"{row['source_id']}: {row['action']} ({row['mode']}), {row['reason']}, {row['tokens']} tokens\n"
        for row in rows
    ]
    expect_golden(GOLDEN / "context-round-9-ledger.txt", "".join(lines))


@pytest.mark.golden
def test_the_wiring_is_the_golden_one():
    expect_golden(GOLDEN / "context-dataflow.txt", "".join(f"{line}\n" for line in build_context_driver().dataflow()))


def test_neighbors_agree_on_the_table_between_them():
    assert disagreements(build_context_driver()) == []


def test_the_example_of_the_page_runs(capsys):
    page = (Path(__file__).parents[1] / "docs" / "context.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    exec(compile(code, "docs/context.md", "exec"), {})
    out = capsys.readouterr().out
    assert "- Key failure: src/a.test.ts:17 expected 3 received 2" in out and "'modelInputId': 'session/2'" in out


def test_the_page_lists_every_kind_of_event():
    page = (Path(__file__).parents[1] / "docs" / "context.md").read_text(encoding="utf-8")
    table = page.split("| kinds | what they set |")[1].split("\n\n")[0]
    assert {kind for kind in EVENT_KINDS.values if f"`{kind}`" not in table} == set()
