"""The lineage that can be read whole: steps in order, and what passes between them."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited_runs import ASKED, audited, settings_of
from golden_file import expect_golden
from scoped_retrieval.nodes.errors import VerificationError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.reading.auditing.export import exported
from scoped_retrieval.pipeline.reading.reports import measured
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.views.lineage import drawn

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


@pytest.mark.golden
def test_the_overview_and_one_step_read_as_recorded():
    shown = (drawn(small(), "dot", of, rows={"a": 3}, seconds={"b": 0.25}).decode() for of in ("steps", "second"))
    expect_golden(GOLDEN / "overview.dot", "".join(shown))


def test_a_graph_that_was_changed_is_neither_drawn_nor_exported(tmp_path):
    world = audited(tmp_path)
    settings = settings_of(world.folder)
    batch = f"{world.run.replace('run-', 'retr-snap-')}-0001"
    with Retriever.open(settings["corpus"], principal="ana", grants=settings.grants_path, runs=settings["runs"]) as own:
        live = str(own.retrieve(ASKED).snapshot_id)
        for snapshot in (batch, live):
            file = Runs(settings["runs"]).shared(Runs(settings["runs"]).open(snapshot).lineage_sha256)
            written = file.read_bytes()
            file.write_text('{"nodes": [], "edges": []}', encoding="utf-8")
            for ask in (measured, exported):
                with pytest.raises(VerificationError, match="got a changed one"):
                    shown = ask(settings, snapshot)
                    shown[0].lineage  # noqa: B018 - what `lineage` draws
            file.write_bytes(written)
