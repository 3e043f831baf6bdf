"""Runs: nothing half-written is ever visible, and resuming does exactly the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from line_tables import line_tables
from scoped_retrieval.nodes.audit_snapshot import conditions
from scoped_retrieval.nodes.errors import InputError, StoreError, VerificationError
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.runs import (
    Runs,
    erase_evidence,
    replay,
)
from scoped_retrieval.pipeline.runs.files import files_below
from scoped_retrieval.pipeline.runs.ids import new_run_id, run_of, snapshot_id
from scoped_retrieval.pipeline.runs.log import RunLog
from scoped_retrieval.pipeline.runs.parts import problems_in, stored_whole
from written_runs import NOON, batch, file_of, live, staged

Tables = dict[str, pa.Table]


def as_given(run_id: str) -> Tables:
    """What the line gave for both shards."""
    shards = [line_tables(2, run_id=run_id), line_tables(2, run_id=run_id, first=3)]
    return {name: pa.concat_tables([shard[name] for shard in shards]) for name in shards[0]}


def test_a_finished_run_reads_back_what_the_line_gave(tmp_path: Path):
    run = batch(Runs(tmp_path), 2)
    expected = as_given(run.run_id)
    for name in ("requests", "decisions", "conditions", "trimmed", "blocks", "snapshots"):
        read = run.table(name, texts=True)
        assert read.equals(expected[name].select(read.column_names)), name
        assert all(
            TABLES[name].columns[lost].stored is False for lost in {*expected[name].column_names} - {*read.column_names}
        )
    assert run.statuses == {"ok": 4}
    assert files_below(run.folder) and not (run.folder / "stage").exists()


def test_no_free_text_stands_in_any_table(tmp_path: Path):
    run = batch(Runs(tmp_path), 2)
    for name, table in (next(run.in_pieces())[1] | {"texts": run.texts.select([])}).items():
        for row in table.to_pylist():
            assert not any(isinstance(v, str) and " of r0" in v for v in row.values()), name
    assert "block of r0001" in run.texts["text"].to_pylist()


def test_a_run_whose_line_is_missing_is_ended_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = Runs(tmp_path)
    begun = staged(store, 2)
    for shard in begun.pending():
        begun.write(shard, line_tables(2, run_id=begun.run_id, first=1 + 2 * shard))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunLog, "commit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        begun.finish()
    one, another = store.resume(begun.run_id), store.resume(begun.run_id)
    one.finish()
    another.finish()
    with pytest.raises(StoreError, match="got one that is finished"):
        store.resume(begun.run_id)
    assert [line.body["kind"] for line in store.log.lines()] == ["begin", "shard", "shard", "run"]


def test_resuming_repeats_no_finished_shard(tmp_path: Path):
    store = Runs(tmp_path)
    begun = staged(store, 2)
    begun.write(0, line_tables(2, run_id=begun.run_id))
    assert store.resume(begun.run_id).pending() == [1]


def changed_by(table: pa.Table, **by: int) -> pa.Table:
    """A table whose numbers are so much greater."""
    for name, more in by.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pc.add(table[name], pa.scalar(more, table[name].type)))
    return table


def test_a_record_that_does_not_add_up_is_found():
    tables = line_tables(2)
    stored = stored_whole(tables)
    texts, rows, snapshots = stored.pop("texts"), stored["record"], stored["snapshots"]
    del stored["timings"]

    def found(stored: dict[str, pa.Table]) -> set[str]:
        return {problem.part for problem in problems_in(stored, texts, tables["provenance"], ())}

    assert found(stored) == set()
    first, *others = rows.to_pylist()
    for wrong in (
        {"snapshots": changed_by(snapshots, selected_rows=1)},
        {"snapshots": changed_by(snapshots, rejected=1, recalled=1)},
        {"record": pa.Table.from_pylist([first | {"candidates": first["candidates"][1:]}, *others], rows.schema)},
    ):
        assert "decisions" in found(stored | wrong)
    for wrong in (pa.concat_tables([rows, rows.slice(0, 1)]), rows.slice(1)):
        assert "record" in found(stored | {"record": wrong})


@pytest.mark.parametrize(
    "rows", [lambda t: t.slice(1), lambda t: pa.concat_tables([t, t.slice(0, 1)])], ids=["few", "many"]
)
def test_a_candidate_without_one_decision_is_not_recorded(rows: Callable[[pa.Table], pa.Table]):
    tables = line_tables(2)
    names = [name for name in conditions.__annotations__ if name != "return"]
    with pytest.raises(VerificationError):
        conditions(**{name: tables[name] for name in names} | {"decisions": rows(tables["decisions"])})


def test_ids_are_in_order_of_time_and_lead_to_their_run():
    early, late = new_run_id(NOON), new_run_id(NOON.replace(hour=13))
    assert early < late
    assert run_of(snapshot_id(early, 7)) == early
    assert snapshot_id(early, 7).endswith("-0007")
    with pytest.raises(InputError, match="Expected a snapshot id such as retr-snap-<token>-0007, got 'x'"):
        run_of("x")


@pytest.mark.parametrize(
    "was, now", [(b"trimmed", b"trimmee"), (b"evidence_id", b"evidence_ie"), (b"lane", b"\xffane")]
)
def test_an_interactive_file_with_another_name_in_it_is_damaged(tmp_path: Path, was: bytes, now: bytes):
    store = Runs(tmp_path)
    run = live(store)
    file = file_of(run, 1)
    with pa.CompressedInputStream(pa.BufferReader(file.read_bytes()), "lz4") as stream:
        file.write_bytes(pa.compress(stream.read().replace(was, now), "lz4", asbytes=True))
    with pytest.raises(StoreError, match=r"^Expected a whole snapshot, got a damaged one - at live/"):
        store.open(run.run_id).stored("candidates")
    assert erase_evidence(store, ["any"], reason="asked by its owner").unreadable == [run.run_id]


def test_an_unknown_snapshot_is_an_error(tmp_path: Path):
    store = Runs(tmp_path)
    run = batch(store, 2)
    with pytest.raises(StoreError, match="Expected a snapshot of run-"):
        replay(store, snapshot_id(run.run_id, 9))
    with pytest.raises(StoreError, match="Expected a run in this folder, got none"):
        replay(store, "retr-snap-000000000000000000-0001")
