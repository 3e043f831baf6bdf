"""The lineage that can be read whole: steps in order, what passes between them, pages without scripts."""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime
from pathlib import Path

import pytest
from audited_runs import ASKED, SAYS, audited, settings_of
from command_line import run as command
from golden_file import expect_golden
from scoped_retrieval.nodes.errors import InputError, VerificationError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.reading.auditing.export import exported
from scoped_retrieval.pipeline.reading.reports import measured, report_of
from scoped_retrieval.pipeline.runs import RunStore
from scoped_retrieval.pipeline.views.drawing import FORMATS, drawn
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


def test_what_goes_back_is_marked_and_what_a_chain_passes_on_is_left_out():
    found = [(one.source, one.target, one.nodes, one.back) for one in passed(steps_of(small()))]
    assert found == [
        ("first", "second", ("a",), False),
        ("third", "second", ("c",), False),
        ("second", "third", ("b",), True),
        ("second", "fourth", ("b2",), False),
    ]


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


def test_a_step_is_drawn_with_columns_on_its_edges_and_an_unknown_one_is_named():
    dot = drawn(small(), "dot", "second", title="t", rows={"b": 2}, seconds={"b": 0.25}).decode()
    assert '"a" -> "b" [label="a_score"];' in dot
    assert "2 rows, 250 ms" in dot
    assert '"d"' not in dot
    for form in FORMATS:
        with pytest.raises(
            InputError, match="Expected one of steps, all, first, third, second, fourth, got 'fifth' - at --of"
        ):
            drawn(small(), form, "fifth", title="t")


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("lineage"))


def test_a_graph_that_was_changed_is_neither_drawn_nor_exported(world):
    settings = settings_of(world.folder)
    batch = f"{world.run.replace('run-', 'retr-snap-')}-0001"
    with Retriever.open(settings["corpus"], principal="ana", grants=settings.grants_path, runs=settings["runs"]) as own:
        live = str(own.retrieve(ASKED).snapshot_id)
        for snapshot in (batch, live):
            file = RunStore(settings["runs"]).shared(RunStore(settings["runs"]).open(snapshot).lineage_sha256)
            written = file.read_bytes()
            file.write_text('{"nodes": [], "edges": []}', encoding="utf-8")
            for ask in (report_of, measured, exported):
                with pytest.raises(VerificationError, match="got a changed one"):
                    shown = ask(settings, snapshot)
                    shown[0].lineage  # noqa: B018 - what `lineage` draws
            file.write_bytes(written)


def test_a_run_is_an_openlineage_event_without_content(world, monkeypatch, capsys):
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = [
        "--runs",
        str(world.folder / "runs"),
        "--grants",
        str(world.folder / "grants.yaml"),
        "--format",
        "openlineage",
    ]
    code, out, err = command("lineage", world.run, *flags, capsys=capsys)
    assert code == 0, err
    event = json.loads(out)
    assert (event["eventType"], event["job"]["name"]) == ("COMPLETE", "line")
    uuid.UUID(event["run"]["runId"])
    datetime.fromisoformat(event["eventTime"])
    written = {one["name"].rpartition("/")[2]: one for one in event["outputs"]}
    assert written["snapshots"]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert {"name": "request_id", "type": "string"} in written["hits"]["facets"]["schema"]["fields"]
    assert all(
        facet["_schemaURL"] and facet["_producer"] for one in event["outputs"] for facet in one["facets"].values()
    )
    assert SAYS not in out
    assert "src/retry.py" not in out
    assert json.loads(command("lineage", world.run, *flags, capsys=capsys)[1]) == event
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert command("lineage", world.run, *flags, capsys=capsys)[0] == 3
    code, _, err = command("lineage", "--format", "openlineage", capsys=capsys)
    assert code == 2
    assert "Expected a run, got none - at RUN" in err
