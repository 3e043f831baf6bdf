"""Lineage and x-ray: the same bytes for the same input, and nothing in a caller's view that only auditors may see."""

import re
from pathlib import Path

import pytest
from golden_file import expect_golden
from scoped_retrieval.nodes.audit.records import VIEWED
from scoped_retrieval.nodes.context_tables import CONTEXT_TABLES
from scoped_retrieval.nodes.schema import Table
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.runs.parts import PER_RUN, VIEWS
from scoped_retrieval.pipeline.views.text_table import text_table
from scoped_retrieval.pipeline.views.xray import caller_rows, render_text
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"
INTRODUCTION = """# Data dictionary

The tables that runs and records of inputs store, which `sql` queries. Made from `nodes/tables/` and `nodes/context_tables.py` by `make golden`; do not edit by hand. Times are UTC microseconds, intervals half-open, ranks
start at 1. *Caller* columns may reach the caller; all others are for auditors. *Text* columns are stored apart, by
SHA-256, under `texts/`. Columns outside digests are the envelope of a capture: ids, wall times, positions.

What a run has of its requests is stored in one table with a row per request, `record`: a column is named for the node that made
it, and has the row of its table for the request, as a struct, or the rows, as a list. The tables that say so are views of it.
"""

CONTEXT = """
# The context policy

The tables that are recorded with a projection.
"""


def data_dictionary() -> str:
    """Every stored table with its key, order and columns, in declared order."""
    line = "".join(_table_section(table) for table in (*VIEWS, *(TABLES[name] for name in PER_RUN)))
    context = "".join(_table_section(table) for table in CONTEXT_TABLES.values())
    return INTRODUCTION + line + CONTEXT + context


def _table_section(table: Table) -> str:
    home = " A view of `record`." if table.name in VIEWED else ""
    lines = [
        f"\n## `{table.name}`\n",
        f"{table.doc}{home}\n",
        f"Key: {_names(table.key)}. Order: {_names(table.order)}.\n",
        "| column | type | null | audience | what it is |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, column in table.columns.items():
        if not column.stored:
            continue
        marks = [column.audience]
        if column.free_text:
            marks.append("text")
        if not column.digest:
            marks.append("outside digests")
        doc = column.doc.replace("|", "\\|")
        lines.append(
            f"| `{name}` | {column.type} | {'yes' if column.nullable else 'no'} | {', '.join(marks)} | {doc} |"
        )
    return "\n".join(lines) + "\n"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@pytest.mark.golden
def test_the_xray_of_a_snapshot_reads_as_recorded():
    expect_golden(GOLDEN / "xray.txt", render_text(ROWS))


@pytest.mark.golden
def test_the_callers_xray_reads_as_recorded():
    expect_golden(GOLDEN / "xray_caller.txt", render_text(ROWS, audit=False))


def test_the_parts_of_a_score_add_up_to_it():
    of_plugin = {**ROWS["ranked"][0], "worth.share": 0.125, "final": 0.875}
    for ranked in (ROWS["ranked"][0], of_plugin):
        text = render_text(ROWS | {"ranked": [ranked]})
        whole, question, row = (float(each) for each in re.findall(r"(\d\.\d{4}) (?:=|question|row)", text))
        assert whole == pytest.approx(question + row) and whole == ranked["final"]


def test_an_item_has_the_words_that_it_shares_with_the_question_and_its_best_rank_in_each_lane():
    assert "words: fail; found by lexical (2), symbol (1)\n" in render_text(ROWS)
    assert "words: fail\n" in render_text(ROWS, audit=False), "ranks are among candidates"
    other = ROWS | {"requests": [ROWS["requests"][0] | {"question": "What is an auth.log for?"}]}
    assert "words: auth.log; found" in render_text(other)


def test_a_caller_is_told_of_no_access_gate_no_candidate_and_no_condition_for_auditors():
    hidden = ROWS["conditions"][0] | {"condition": "wall_disagreement", "audience": "audit"}
    rows = ROWS | {"conditions": [*ROWS["conditions"], hidden]}
    told = caller_rows(rows)
    assert [gate["gate"] for gate in told["filter_ladder"]] == ["visibility", "recorded"]
    assert told["decisions"] == told["candidates"] == told["ranked"] == []
    assert [condition["condition"] for condition in told["conditions"]] == ["lane_off"]
    assert "wall_disagreement" not in render_text(rows, audit=False)


@pytest.mark.golden
def test_the_data_dictionary_is_the_declared_tables():
    expect_golden(GOLDEN.parents[1] / "docs" / "data-dictionary.md", data_dictionary())


def test_a_table_is_folded_between_words_and_never_inside_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    name, words = "retr-snap-01k8n1ch68mm3njlvn-0001", "a question of several words"
    lines = text_table(["id", "question"], [[name, words]]).splitlines()
    assert any(name in line for line in lines) and max(map(len, lines)) < len(name) + len(words)


def test_columns_that_do_not_fit_stand_below_the_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    rows = [["one", "x" * 20, f"{'y' * 30} and more"], ["two", "-", "short"]]
    shown = text_table(["id", "place", "note"], rows).splitlines()
    assert [line.strip() for line in shown if line.startswith("    ")] == ["note", f"{'y' * 30} and", "more", "short"]
    assert max(map(len, shown)) <= 40
