"""Sessions of many snapshots: checked, joined and compacted at a cost and in an order that their length does not spoil."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.runs import Run, RunStore, adopting, compact, compacting, verify
from scoped_retrieval.pipeline.runs import live_files as named_files
from scoped_retrieval.pipeline.runs.live_files import live_files
from written_runs import Maker, live


class Listed(list[str]):
    """Is not gone through for each of the files that LOG names: that takes a minute at a hundred thousand."""

    def __contains__(self, name: object) -> bool:
        raise AssertionError(f"gone through for {name}")


def test_checking_a_long_session_goes_through_its_files_once(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    for module in (adopting, compacting, sys.modules["scoped_retrieval.pipeline.runs.verify"]):
        monkeypatch.setattr(module, "live_files", lambda folder: Listed(live_files(folder)))
    assert verify(store, run.run_id).ok
    assert compact(store, run.run_id).snapshots.num_rows == 2


def test_an_interactive_run_is_joined_as_it_is_read_and_each_file_read_once(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    session = live(RunStore(tmp_path), line_tables, 5)
    module, read = sys.modules["scoped_retrieval.pipeline.runs.run"], list[str]()
    whole = module.read_live
    monkeypatch.setattr(module, "read_live", lambda path: read.append(path.name) or whole(path))
    monkeypatch.setattr(module, "JOINED", 2)
    run = Run(session.folder)
    tables = {name: run.stored(name) for name in ("snapshots", "candidates", "texts", "failures")}
    assert [
        table["request_id"].num_chunks for name, table in tables.items() if name in ("snapshots", "candidates")
    ] == [3, 3]
    assert tables["snapshots"]["request_id"].to_pylist() == [f"r{n:04d}" for n in range(1, 6)]
    assert (tables["failures"].num_rows, read) == (0, live_files(run.folder))
    assert not run._opened  # apart, the tables of a file take many times their rows


def test_a_session_of_a_million_is_in_order_and_its_last_file_adopted(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    first = 999_998

    def later(number: int) -> str:
        return f"{number + first - 1:06d}.arrow.lz4"

    monkeypatch.setattr(sys.modules["scoped_retrieval.pipeline.runs.live"], "live_file", later)
    monkeypatch.setattr(named_files, "names_of", lambda number: (later(number), later(number)))
    run = live(store, line_tables, 4)
    assert live_files(run.folder) == [later(number) for number in range(1, 5)]
    lines = (tmp_path / "LOG").read_bytes().splitlines(keepends=True)
    (tmp_path / "LOG").write_bytes(b"".join(lines[:-1]))
    assert compact(store, run.run_id).snapshots["request_id"].to_pylist() == ["r0001", "r0002", "r0003", "r0004"]
