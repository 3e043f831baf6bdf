"""Compaction: interactive files become parts under a manifest, no digest changes, and what was changed is refused."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.errors import BusyError, StoreError
from scoped_retrieval.pipeline.runs import Runs, RunTakenError, compact, compacting, packed, verify
from scoped_retrieval.pipeline.storage import chain
from written_runs import Maker, file_of, live, session_of


def test_compacting_changes_no_row_and_no_digest(tmp_path: Path, line_tables: Maker):
    store = Runs(tmp_path)
    run = live(store, line_tables, 3)
    (before,), texts = run.shards(), {*run.texts["text"].to_pylist()}
    del before["texts"]
    compacted = compact(store, run.run_id)
    assert [*(tmp_path / "live").iterdir()] == []
    assert {name: compacted.stored(name) for name in before} == before
    assert {*compacted.texts["text"].to_pylist()} == texts
    assert verify(store, run.run_id).ok
    assert compact(store, run.run_id).stored("snapshots").equals(before["snapshots"])


def test_an_interactive_file_is_smaller_than_its_texts(line_tables: Maker):
    tables = line_tables(1)
    tables["requests"] = tables["requests"].set_column(
        tables["requests"].schema.get_field_index("question"),
        tables["requests"].schema.field("question"),
        pa.array(["what is the role? " * 10_000], pa.large_string()),
    )
    assert len(packed(tables).data) < 100_000


@pytest.mark.parametrize("change", [lambda file: file.write_bytes(b"other"), Path.unlink])
def test_a_changed_or_missing_interactive_file_is_not_compacted(tmp_path: Path, line_tables: Maker, change):
    store = Runs(tmp_path)
    run = live(store, line_tables)
    change(file_of(run, 1))
    with pytest.raises(StoreError):
        compact(store, run.run_id)
    assert verify(store, run.run_id).status == "changed"
    assert store.uncompacted() == [run.run_id]


def test_a_closed_run_is_read_as_before_and_takes_no_more(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = Runs(tmp_path)
    session = session_of(store, line_tables)
    session.write([packed(line_tables(1, run_id=session.run_id))])
    with monkeypatch.context() as patched, pytest.raises(OSError, match="gone"):
        patched.setattr(compacting, "manifest", lambda *_, **__: (_ for _ in ()).throw(OSError("gone")))
        compact(store, session.run_id)
    assert verify(store, session.run_id).ok
    with pytest.raises(RunTakenError):
        session.write([packed(line_tables(1, run_id=session.run_id, first=2))])
    assert compact(store, session.run_id).snapshots.num_rows == 1
    assert verify(store, session.run_id).ok


def test_the_settings_of_a_session_outlive_its_compaction(tmp_path: Path, line_tables: Maker):
    store = Runs(tmp_path)
    settings = {"bm25": "k1=2.0 b=0.3", "principal": "ana"}
    session = session_of(store, line_tables, settings)
    session.write([packed(line_tables(1, run_id=session.run_id))])
    assert store.open(session.run_id).manifest["settings"] == settings
    assert compact(store, session.run_id).manifest["settings"] == settings
    assert store.starter_of(session.run_id) == "ana"


def test_no_erasure_comes_between_what_a_compaction_reads_and_what_it_writes(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    run, refused, write = live(Runs(tmp_path), line_tables), list[bool](), compacting.write_parts
    monkeypatch.setattr(chain, "WAIT_SECONDS", 0.0)

    def another() -> None:
        with pytest.raises(BusyError), Runs(tmp_path).log.writing():
            refused.append(False)
        refused.append(True)

    def written(*given, **options):
        other = Thread(target=another)
        other.start()
        other.join()
        return write(*given, **options)

    monkeypatch.setattr(compacting, "write_parts", written)
    compact(run.store, run.run_id)
    assert refused and all(refused)
