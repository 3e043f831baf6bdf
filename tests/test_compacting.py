"""Compaction: interactive files become parts under a manifest, no digest changes, and what was changed is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from line_tables import line_tables
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.runs import Runs, compact, packed, replay, verify, writing
from scoped_retrieval.pipeline.runs.files import files_below
from written_runs import file_of, live, session_of


def test_compacting_changes_no_row_and_no_digest(tmp_path: Path):
    store = Runs(tmp_path)
    run = live(store, 3)
    ((_, before),), texts = run.in_pieces(), {*run.texts["text"].to_pylist()}
    del before["texts"]
    compacted = compact(store, run.run_id)
    assert [*(tmp_path / "live").iterdir()] == []
    assert {name: compacted.stored(name) for name in before} == before
    assert {*compacted.texts["text"].to_pylist()} == texts
    assert verify(store, run.run_id).ok
    assert compact(store, run.run_id).stored("snapshots").equals(before["snapshots"])


def test_an_interactive_file_is_smaller_than_its_texts():
    tables = line_tables(1)
    tables["requests"] = tables["requests"].set_column(
        tables["requests"].schema.get_field_index("question"),
        tables["requests"].schema.field("question"),
        pa.array(["what is the role? " * 10_000], pa.large_string()),
    )
    assert len(packed(tables).data) < 100_000


@pytest.mark.parametrize("change", [lambda file: file.write_bytes(b"other"), Path.unlink])
def test_a_changed_or_missing_interactive_file_is_not_compacted(tmp_path: Path, change):
    store = Runs(tmp_path)
    run = live(store)
    change(file_of(run, 1))
    with pytest.raises(StoreError):
        compact(store, run.run_id)
    assert verify(store, run.run_id).status == "changed"
    assert store.open(run.run_id).files == run.files


def test_a_changed_line_of_another_run_hinders_no_compaction(tmp_path: Path):
    store = Runs(tmp_path)
    mine, _, _ = (live(store, 1) for _ in range(3))
    log = tmp_path / "LOG"
    first, other, *rest = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([first, other.replace(b'"live"', b'"LIVE"'), *rest]))
    assert compact(store, mine.run_id).files == {}


def test_a_session_goes_on_in_a_run_that_is_compacted(tmp_path: Path):
    store = Runs(tmp_path)
    session = session_of(store)
    for number in (1, 2, 3):
        session.write(packed(line_tables(1, run_id=session.run_id, first=number)))
        run = store.open(session.run_id)
        assert run.snapshots.num_rows == number
        if number < 3:
            compact(store, session.run_id)
    assert ([*run.shards], len(run.files)) == (["00000", "00001"], 1)
    assert [replay(run, name).status for name in run.kept] == ["ok"] * 3
    assert verify(store, session.run_id).ok


def test_the_settings_of_a_session_outlive_its_compaction(tmp_path: Path):
    store = Runs(tmp_path)
    settings = {"bm25": "k1=2.0 b=0.3", "principal": "ana"}
    session = session_of(store, settings)
    session.write(packed(line_tables(1, run_id=session.run_id)))
    assert store.open(session.run_id).settings == settings
    assert compact(store, session.run_id).settings == settings
    assert store.starter_of(session.run_id) == "ana"


@pytest.mark.parametrize("act", [compact, lambda store, _: store.sweep()], ids=["compacted", "swept"])
def test_a_compaction_that_another_writer_overtakes_writes_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act
):
    run, sync, done = live(Runs(tmp_path)), writing.sync_all, list[bool]()

    def synced(*given):
        if not done:
            done.append(True)
            act(Runs(tmp_path), run.run_id)
        sync(*given)

    monkeypatch.setattr(writing, "sync_all", synced)
    compacted = compact(run.store, run.run_id)
    named = {path for parts in compacted.shards.values() for path in parts}
    assert {*files_below(compacted.folder)} == named
    assert verify(run.store, run.run_id).ok
