"""Compaction: interactive files become parts under a manifest, no digest changes, and what cannot be explained is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.runs import LiveRun, RunStore, compact, compacting, verify
from scoped_retrieval.pipeline.runs.log import Log
from scoped_retrieval.pipeline.runs.parts import PER_RUN
from scoped_retrieval.pipeline.runs.states import broken_off
from written_runs import LINEAGE, NOON, Maker, live, without_last_lines


def test_compacting_changes_no_row_and_no_digest(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables, 3)
    before = {name: run.stored(name) for name in run.tables()}
    compacted = compact(store, run.run_id)
    assert not (run.folder / "live").exists()
    assert {name: compacted.stored(name) for name in before} == before
    assert verify(store, run.run_id).ok
    assert compact(store, run.run_id).stored("snapshots").equals(before["snapshots"])


def states_of(store: RunStore, run_id: str) -> tuple[str, bool]:
    """What `verify` says of a run, and whether `runs` says that it was broken off."""
    return verify(store, run_id).status, broken_off(store, store.open(run_id), store.log.named("run"))


def test_a_changed_interactive_file_is_not_compacted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    file = run.folder / "live/000001.arrow.lz4"
    other = live(store, line_tables).folder / "live/000001.arrow.lz4"
    file.write_bytes(other.read_bytes())
    with pytest.raises(VerificationError, match="Expected the file that LOG names, got a changed one"):
        compact(store, run.run_id)
    assert not (run.folder / "manifest.json").exists()


def test_a_first_snapshot_without_its_line_is_left_and_its_graph_unchanged(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(LiveRun, "_confirm", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            live(store, line_tables)
    (run_id,) = store.folders()
    assert [(p.kind, p.part) for p in verify(store, run_id).problems] == [("left", "live/000001.arrow.lz4")]
    compact(store, run_id)
    assert verify(store, run_id).ok


def test_a_compaction_that_was_cut_off_is_done_by_the_next(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    assert states_of(store, run.run_id) == ("ok", False)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            compact(store, run.run_id)
    assert states_of(store, run.run_id) == ("crashed", True)
    told = verify(store, run.run_id).problems
    assert told and all(problem.detail.endswith("run `compact` to recover") for problem in told)
    assert compact(store, run.run_id).snapshots.num_rows == 2
    assert states_of(store, run.run_id) == ("ok", False)


def test_of_a_compaction_that_was_cut_off_at_its_parts_each_is_told_as_left(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    with monkeypatch.context() as patched:
        patched.setattr(compacting, "write_manifest", lambda *_, **__: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            compact(store, run.run_id)
    assert states_of(store, run.run_id) == ("crashed", True)
    told = verify(store, run.run_id).problems
    assert {problem.part.partition("/")[0] for problem in told} == {"tables", "texts"}
    assert all(problem.detail.endswith("run `compact` to recover") for problem in told)
    compact(store, run.run_id)
    assert states_of(store, run.run_id) == ("ok", False)


def test_a_snapshot_whose_line_was_lost_is_named_and_then_adopted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables, 3)
    before = run.snapshots
    without_last_lines(store, 2)
    adopted = (
        "LOG does not name it: a crash came between the file and its line; the next session, or `compact`, adopts it"
    )
    assert verify(store, run.run_id).status == "crashed"
    assert [(p.kind, p.part, p.detail) for p in verify(store, run.run_id).problems] == [
        ("left", "live/000002.arrow.lz4", adopted),
        ("left", "live/000003.arrow.lz4", adopted),
    ]
    assert compact(store, run.run_id).snapshots.equals(before)
    assert verify(store, run.run_id).ok
    assert [line.body.get("adopted", False) for line in store.log.lines()] == [False, True, True, False]


def test_a_session_whose_every_line_was_lost_is_adopted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    (tmp_path / "LOG").unlink()
    assert not verify(store, run.run_id).ok
    assert compact(store, run.run_id).snapshots.num_rows == 2
    assert states_of(store, run.run_id) == ("ok", False)


def test_a_file_that_no_loss_of_power_explains_is_not_adopted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables, 2)
    shutil.copy(run.folder / "live/000002.arrow.lz4", run.folder / "live/000001a.arrow.lz4")
    with pytest.raises(VerificationError, match="Expected the files of a session, got one out of order"):
        compact(store, run.run_id)
    (run.folder / "live/000001a.arrow.lz4").unlink()
    (run.folder / "live/000001.arrow.lz4").unlink()
    with pytest.raises(VerificationError, match="Expected the file that LOG names, got none - at live/000001"):
        compact(store, run.run_id)


def test_a_line_that_is_gone_from_between_others_is_no_loss_of_power(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables, 3)
    lines = store.log.lines()
    (tmp_path / "LOG").unlink()
    for line in (lines[0], lines[2]):
        store.log.append("live", run.run_id, **{name: line.body[name] for name in ("file", "sha256", "lineage_sha256")})
    with pytest.raises(VerificationError, match=r"got one out of order - at live/000002\.arrow\.lz4"):
        compact(store, run.run_id)
    assert len(store.log.lines()) == 2


def test_a_compaction_cut_off_before_its_line_is_not_an_unfinished_run(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run = live(store, line_tables)

    def cut(self: Log, kind: str, run_id: str, **_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Log, "append", cut)
        with pytest.raises(KeyboardInterrupt):
            compact(store, run.run_id)
    assert states_of(store, run.run_id) == ("crashed", True)
    assert (store.unfinished(), store.uncompacted()) == ([], [run.run_id])
    with pytest.raises(StoreError, match="Expected an unfinished batch run, got an interactive one"):
        store.resume(run.run_id)
    compact(store, run.run_id)
    assert (store.uncompacted(), states_of(store, run.run_id)) == ([], ("ok", False))


def test_the_settings_of_a_session_outlive_its_compaction(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    settings = {"bm25": "lucene k1=2.0 b=0.3", "principal": "ana"}
    inputs = {n: line_tables(1)[n] for n in PER_RUN}
    session = LiveRun(store, now=NOON, inputs=inputs, lineage=LINEAGE, settings=settings)
    session.write(line_tables(1, run_id=session.run_id))
    assert store.open(session.run_id).manifest["settings"] == settings
    assert compact(store, session.run_id).manifest["settings"] == settings


def test_a_run_without_its_first_snapshot_is_not_compacted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    (tmp_path / "LOG").unlink()
    (run.folder / "live/000001.arrow.lz4").unlink()
    with pytest.raises(VerificationError, match=r"got one out of order - at live/000002\.arrow\.lz4"):
        compact(store, run.run_id)
    assert not (run.folder / "manifest.json").exists()


def test_a_query_vector_outlives_compaction_whichever_snapshot_searched_by_it(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    for number, vectors in ((1, {}), (2, {"nothing to remark": np.array([3, 4], np.int16)}), (3, {})):
        session.write(line_tables(1, run_id=session.run_id, first=number), vectors)
    texts = compact(store, session.run_id).texts
    of_all = texts.filter(pc.equal(texts["text"], "nothing to remark"))
    assert of_all["vector"].to_pylist() == [[3, 4]]


def test_what_a_crash_left_of_a_longer_compaction_goes_with_the_next(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    part = run.folder / "texts/part-00007.parquet"
    part.parent.mkdir()
    part.write_bytes(b"half")
    compact(store, run.run_id)
    assert not part.exists()
    assert verify(store, run.run_id).ok
