"""The lineage that can be read whole: steps in order, what passes between them, pages without scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from audited_runs import ASKED, audited, settings_of
from golden_file import expect_golden
from scoped_retrieval.nodes.errors import VerificationError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.reading.auditing.export import exported
from scoped_retrieval.pipeline.reading.reports import measured, report_of
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.views.drawing import drawn
from scoped_retrieval.pipeline.views.lineage import current_lineage
from scoped_retrieval.pipeline.views.overview import COLUMNS, overview_dot, overview_svg
from scoped_retrieval.pipeline.views.steps import passed, steps_of

GOLDEN = Path(__file__).parent / "golden"


def small():
    """Four steps in a line, of which the third also feeds the second."""
    made = {"a": [], "b": ["a"], "b2": ["c"], "c": ["b"], "d": ["b2", "a"]}
    homes = {"a": "first", "b": "second", "b2": "second", "c": "third", "d": "fourth"}
    nodes = [
        {"name": n, "kind": "node", "step": homes[n], "doc": f"Table <{n}>.", "table": n, "tags": {}, "version": None,
         "columns": [{"name": "request_id", "type": "string"}, {"name": f"{n}_score", "type": "double"}]}
        for n in made
    ]  # fmt: skip
    return {"nodes": nodes, "edges": sorted([s, t] for t, sources in made.items() for s in sources)}


def test_steps_come_in_the_order_of_the_line_with_rows_and_time():
    steps = steps_of(small(), {"a": 3, "b": 2, "b2": 1}, {"b": 0.25, "b2": 0.5})
    assert [step.name for step in steps] == ["first", "third", "second", "fourth"]
    assert [step.rows for step in steps] == [3, None, 3, None]
    assert [step.seconds for step in steps] == [None, None, 0.75, None]
    assert [node.name for node in steps[2].nodes] == ["b", "b2"]


def test_the_overview_wraps_to_a_page_and_names_every_step_of_the_line():
    steps = steps_of(current_lineage())
    picture = overview_svg(steps)
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', picture).groups())
    assert width < 1100
    assert height < 200 * -(-len(steps) // COLUMNS)
    assert all(step.title in picture for step in steps)
    assert sum(one.back for one in passed(steps)) == 1  # feedback ranks with first scores
    assert all(f'"{step.name}" [label=' in overview_dot(steps) for step in steps)


@pytest.mark.golden
def test_the_overview_reads_as_recorded():
    steps = steps_of(small(), {"a": 3}, {"b": 0.25})
    expect_golden(GOLDEN / "overview.svg", overview_svg(steps) + "\n")
    expect_golden(GOLDEN / "overview.dot", overview_dot(steps))


def test_the_page_has_every_node_and_column_no_script_and_no_address():
    page = drawn(current_lineage(), "html", title="The dataflow").decode()
    for node in current_lineage()["nodes"]:
        if node["kind"] == "node":
            assert node["name"] in page
            assert all(column["name"] in page for column in node["columns"])
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', page) == []
    assert set(re.findall(r'<a href="#(step-[a-z_]+)"', page)) <= set(re.findall(r'id="(step-[a-z_]+)"', page))
    assert "Table &lt;a&gt;" in drawn(small(), "html", title="t").decode()
    assert drawn(small(), "html", title="<b>").decode().count("<b>") == 0


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("lineage"))


def test_a_graph_that_was_changed_is_neither_drawn_nor_exported(world):
    settings = settings_of(world.folder)
    batch = f"{world.run.replace('run-', 'retr-snap-')}-0001"
    with Retriever.open(settings["corpus"], principal="ana", grants=settings.grants_path, runs=settings["runs"]) as own:
        live = str(own.retrieve(ASKED).snapshot_id)
        for snapshot in (batch, live):
            file = Runs(settings["runs"]).shared(Runs(settings["runs"]).open(snapshot).lineage_sha256)
            written = file.read_bytes()
            file.write_text('{"nodes": [], "edges": []}', encoding="utf-8")
            for ask in (report_of, measured, exported):
                with pytest.raises(VerificationError, match="got a changed one"):
                    shown = ask(settings, snapshot)
                    shown[0].lineage  # noqa: B018 - what `lineage` draws
            file.write_bytes(written)
