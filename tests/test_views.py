"""Lineage and x-ray: the same bytes for the same input, and nothing in a caller's view that only auditors may see."""

import re
from pathlib import Path

import pytest
from data_dictionary import data_dictionary
from golden_file import expect_golden
from scoped_retrieval.pipeline.views.xray import render_text
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.golden
def test_the_xray_of_a_snapshot_reads_as_recorded():
    expect_golden(GOLDEN / "xray.txt", render_text(ROWS))


@pytest.mark.golden
def test_the_callers_xray_reads_as_recorded():
    expect_golden(GOLDEN / "xray_caller.txt", render_text(ROWS, audit=False))


def test_the_parts_of_a_score_add_up_to_it():
    text = render_text(ROWS)
    whole, question, row = (float(each) for each in re.findall(r"(\d\.\d{4}) (?:=|question|row)", text))
    assert whole == pytest.approx(question + row) and whole == ROWS["ranked"][0]["final"]


@pytest.mark.golden
def test_the_data_dictionary_is_the_declared_tables():
    expect_golden(GOLDEN.parents[1] / "docs" / "data-dictionary.md", data_dictionary())
