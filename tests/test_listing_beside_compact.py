"""A listing that meets a run while it is compacted reads it again: no damaged run is reported where none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrieving import batch, opened
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.reading.across_runs import read_each
from scoped_retrieval.pipeline.reading.snapshots import readable_snapshots
from scoped_retrieval.pipeline.runs import Run, Runs
from scoped_retrieval.pipeline.runs.compacting import compact


def test_a_run_that_is_compacted_while_it_is_listed_is_read_again(corpus: Corpus, tmp_path: Path) -> None:
    session = opened(corpus, runs=tmp_path / "runs")
    session.retrieve(batch(1)[0])
    session.close(compacted=False)
    store = Runs(tmp_path / "runs", create=False)
    flags: dict[str, Any] = {"runs": tmp_path / "runs", "grants": tmp_path / "none.yaml", "principal": "ana"}
    settings = load_settings(flags, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
    calls: list[bool] = []

    def read(run: Run) -> list[dict[str, Any]]:
        calls.append(run.live)
        if run.live:
            compact(store, run.run_id)
        return readable_snapshots(settings, run)

    damaged = dict[str, str]()
    found = list(read_each(settings, store, read, damaged))
    assert calls == [True]
    assert damaged == {}
    assert [len(rows) for _, rows in found] == [1]
