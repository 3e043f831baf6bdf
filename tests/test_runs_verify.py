"""Verify finds every changed byte, every missing and every extra part, and tells erasure from tampering."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes.errors import InputError, StoreError, VerificationError
from scoped_retrieval.pipeline.runs import LiveRun, Run, RunStore, compact, compacting, erase_texts, replay, verify
from scoped_retrieval.pipeline.runs.files import files_below, read_parquet, sha256_of, write_json, write_parquet
from scoped_retrieval.pipeline.runs.log import START, WINDOW, Log
from scoped_retrieval.pipeline.runs.parts import PER_RUN, TEXTS
from written_runs import LINEAGE, NOON, Maker, batch, live


@pytest.fixture(params=[batch, live])
def run(request: pytest.FixtureRequest, tmp_path: Path, line_tables: Maker) -> Run:
    return request.param(RunStore(tmp_path), line_tables)


def test_an_untouched_run_is_as_it_was_written(run: Run):
    report = verify(RunStore(run.folder.parent), run.run_id)
    assert (report.status, report.problems, report.snapshots) == ("ok", (), 2)


def test_one_flipped_byte_anywhere_is_found_and_named(run: Run):
    store = RunStore(run.folder.parent)
    chosen = random.Random(7)
    parts = [*(f"{run.run_id}/{name}" for name in files_below(run.folder)), "LOG"]
    for name in parts:
        path = store.path / name
        data = path.read_bytes()
        for position in {0, len(data) - 1, chosen.randrange(len(data)), chosen.randrange(len(data))}:
            flipped = bytearray(data)
            flipped[position] ^= 1 << chosen.randrange(8)
            path.write_bytes(flipped)
            report = verify(store, run.run_id)
            assert not report.ok, (name, position)
            assert report.problems[0].part in name or "LOG" in (name, report.problems[0].part)
        path.write_bytes(data)
    assert verify(store, run.run_id).ok


def test_a_file_that_cannot_be_read_is_named(run: Run):
    store = RunStore(run.folder.parent)
    for name in ("live/000001.arrow.lz4",) if run.live else ("tables/decisions/part-00000.parquet", "lineage.json"):
        path = run.folder / name
        data = path.read_bytes()
        path.unlink()
        path.mkdir()
        report = verify(store, run.run_id)
        assert (report.status, report.problems[0].kind) == ("changed", "changed")
        assert (report.problems[0].part, report.problems[0].detail) == (name, "it cannot be read (Is a directory)")
        path.rmdir()
        path.write_bytes(data)
    assert verify(store, run.run_id).ok


def test_a_text_changed_by_someone_who_signs_the_files_anew_is_found(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    manifest = json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))
    (part,) = manifest["tables"]["texts"]["parts"]
    texts = read_parquet(run.folder / part["path"], TEXTS)
    changed = texts.set_column(1, TEXTS.field("text"), pc.utf8_swapcase(texts["text"]))
    part["sha256"] = write_parquet(run.folder / part["path"], changed)
    signed = write_json(run.folder / "manifest.json", manifest, sync=False)
    (tmp_path / "LOG").unlink()
    store.log.append("run", run.run_id, manifest_sha256=signed)
    found = verify(store, run.run_id).problems
    assert {(p.kind, p.detail) for p in found} == {("changed", "the text is not the one that was hashed")}
    assert {p.part for p in found} == {f"texts/{sha256}" for sha256 in texts["sha256"].to_pylist()}


def test_a_missing_and_an_extra_part_are_named(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    part = run.folder / "tables/decisions/part-00000.parquet"
    shutil.move(part, tmp_path / "aside")
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [
        ("missing", "tables/decisions/part-00000.parquet")
    ]
    shutil.move(tmp_path / "aside", part)
    (run.folder / "tables/decisions/part-00001.parquet").write_bytes(part.read_bytes())
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [
        ("extra", "tables/decisions/part-00001.parquet")
    ]


def test_a_log_that_lost_its_last_line_is_found(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    batch(store, line_tables)
    last = batch(store, line_tables)
    log = tmp_path / "LOG"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    assert [(p.kind, p.part) for p in verify(store, last.run_id).problems] == [("missing", "LOG")]


def test_a_log_rewritten_whole_does_not_hold_the_anchor(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    batch(store, line_tables)
    anchor = store.log.head()
    batch(store, line_tables)
    assert verify(store, run.run_id, anchor=anchor).ok
    (tmp_path / "LOG").unlink()
    store.log.append("run", run.run_id, manifest_sha256=sha256_of(run.folder / "manifest.json"))
    assert verify(store, run.run_id).ok
    assert verify(store, run.run_id, anchor=anchor).problems[0].detail == "the anchor is the hash of none of its lines"


def test_a_changed_line_is_told_with_what_to_do(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    for _ in range(2):
        batch(store, line_tables)
    first, second = (tmp_path / "LOG").read_bytes().splitlines(keepends=True)
    hint = r"\n\nHint: put LOG back from a copy of the runs folder; `verify` then says which runs hold$"
    for lines, message in (
        (
            (first, second.replace(b"manifest", b"Manifest")),
            "^Expected a line that matches its hash, got a changed one - at LOG:2",
        ),
        ((second, first), "^Expected line 1 to continue the chain, got another - at LOG:1"),
    ):
        (tmp_path / "LOG").write_bytes(b"".join(lines))
        with pytest.raises(VerificationError, match=message + hint):
            store.log.lines()


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    with (tmp_path / "LOG").open("ab") as log:
        log.write(b"0123 {half a li")
    assert verify(store, run.run_id).ok
    batch(store, line_tables)
    assert [line.sequence for line in store.log.lines()] == [1, 2]


def test_an_empty_log_starts_with_zeros(tmp_path: Path):
    assert RunStore(tmp_path).log.head() == START


def test_compacting_changes_no_row_and_no_digest(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables, 3)
    before = {name: run.stored(name) for name in run.tables()}
    compacted = compact(store, run.run_id)
    assert not (run.folder / "live").exists()
    assert {name: compacted.stored(name) for name in before} == before
    assert verify(store, run.run_id).ok
    assert compact(store, run.run_id).stored("snapshots").equals(before["snapshots"])


def test_a_changed_interactive_file_is_not_compacted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    file = run.folder / "live/000001.arrow.lz4"
    other = live(store, line_tables).folder / "live/000001.arrow.lz4"
    file.write_bytes(other.read_bytes())
    with pytest.raises(VerificationError, match="Expected the file that LOG names, got a changed one"):
        compact(store, run.run_id)
    assert not (run.folder / "manifest.json").exists()


def test_a_first_snapshot_without_its_line_is_extra_and_its_graph_unchanged(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(LiveRun, "_confirm", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            live(store, line_tables)
    (run_id,) = store.folders()
    assert [(p.kind, p.part) for p in verify(store, run_id).problems] == [("extra", "live/000001.arrow.lz4")]
    compact(store, run_id)
    assert verify(store, run_id).ok


def test_a_compaction_that_was_cut_off_is_done_by_the_next(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            compact(store, run.run_id)
    told = verify(store, run.run_id).problems
    assert told and all(problem.detail.endswith("`compact` ends it") for problem in told)
    assert compact(store, run.run_id).snapshots.num_rows == 2
    assert verify(store, run.run_id).ok


def test_of_a_compaction_that_was_cut_off_at_its_parts_each_is_told_as_left(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    with monkeypatch.context() as patched:
        patched.setattr(compacting, "write_manifest", lambda *_, **__: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            compact(store, run.run_id)
    told = verify(store, run.run_id).problems
    assert {problem.part.partition("/")[0] for problem in told} == {"tables", "texts"}
    assert all(problem.detail.endswith("`compact` ends it") for problem in told)
    compact(store, run.run_id)
    assert verify(store, run.run_id).ok


def test_a_snapshot_that_the_log_does_not_take_is_not_kept(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    (tmp_path / "LOG").mkdir()
    with pytest.raises(OSError, match="LOG"):
        session.write(line_tables(1, run_id=session.run_id))
    assert store.list() == []
    (tmp_path / "LOG").rmdir()
    session.write(line_tables(1, run_id=session.run_id))
    assert verify(store, session.run_id).ok


def test_an_erased_text_leaves_the_record_standing(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    block = run.table("blocks")["text"][0].as_py()
    assert erase_texts(store, run.run_id, [block], reason="asked by its owner") == 1
    report = verify(store, run.run_id)
    assert (report.status, report.erased) == ("erased", (block,))
    first, second = store.open(run.run_id).snapshots["snapshot_id"].to_pylist()
    assert (replay(store, first).status, replay(store, first).block) == ("erased", None)
    assert replay(store, second).status == "ok"
    with pytest.raises(InputError, match="Expected texts of this run"):
        erase_texts(store, run.run_id, [block], reason="again")


def test_a_text_that_vanished_without_a_receipt_is_tampering(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    (run.folder / "texts/part-00000.parquet").unlink()
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [("missing", "texts/part-00000.parquet")]


def without_last_lines(store: RunStore, count: int) -> None:
    """The log as a loss of power may leave it: lines that were not synced are gone."""
    log = store.path / "LOG"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-count]))


def test_a_log_takes_another_line_after_one_of_any_length(tmp_path: Path):
    log = RunStore(tmp_path).log
    for length in (10, 3 * WINDOW, WINDOW - 1, 5):
        log.append("erase", "run-x", reason="x" * length)
    with (tmp_path / "LOG").open("ab") as file:
        file.write(b"y" * 2 * WINDOW)
    log.append("erase", "run-x", reason="after a long line cut short")
    assert [line.sequence for line in log.lines()] == [1, 2, 3, 4, 5]


def test_an_erasure_of_every_text_leaves_a_short_line_and_a_receipt(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    every = run.texts["sha256"].to_pylist()
    assert erase_texts(store, run.run_id, every, reason="asked by its owner") == len(every)
    line = store.log.lines()[-1]
    assert (line.body["texts"], line.body["parts"]) == (len(every), 1)
    assert not any(sha256 in (tmp_path / "LOG").read_text() for sha256 in every)
    assert verify(store, run.run_id).erased == tuple(sorted(every))
    receipt = tmp_path / "receipts" / f"{line.body['receipt']}.json"
    whole = receipt.read_bytes()
    receipt.write_bytes(whole + b" ")
    assert "got a changed one - at receipts/" in verify(store, run.run_id).problems[0].detail
    receipt.unlink()
    assert "got none - at receipts/" in verify(store, run.run_id).problems[0].detail
    receipt.write_bytes(whole)
    assert verify(store, run.run_id).status == "erased"


def test_a_run_that_the_log_names_and_that_is_gone_is_missing(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    gone, kept = batch(store, line_tables), batch(store, line_tables)
    shutil.rmtree(gone.folder)
    report = verify(store, gone.run_id)
    assert (report.status, report.ok, report.problems[0].detail) == ("missing", False, "LOG names it")
    assert verify(store, kept.run_id).ok
    with pytest.raises(StoreError, match="Expected a run in this folder, got none"):
        verify(store, "run-000000000000000000")


def test_a_snapshot_whose_line_was_lost_is_named_and_then_adopted(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables, 3)
    before = run.snapshots
    without_last_lines(store, 2)
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [
        ("extra", "live/000002.arrow.lz4"),
        ("extra", "live/000003.arrow.lz4"),
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
    assert verify(store, run.run_id).ok


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


def test_a_snapshot_is_on_disk_with_its_name_before_it_is_given_out(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store, synced = RunStore(tmp_path), []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    run = live(store, line_tables, 1)
    names = ("live/000001.arrow.lz4", "live", "lineage.json", ".")
    file, folder, *others = ((run.folder / name).stat().st_ino for name in names)
    assert synced.count(file) == 1 and folder in synced[synced.index(file) :]
    assert {*others, tmp_path.stat().st_ino} <= set(synced), (
        "the graph, and the folders that list the run and its files"
    )


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
    assert (store.unfinished(), store.uncompacted()) == ([], [run.run_id])
    with pytest.raises(StoreError, match="Expected an unfinished batch run, got an interactive one"):
        store.resume(run.run_id)
    compact(store, run.run_id)
    assert (store.uncompacted(), verify(store, run.run_id).ok) == ([], True)


def test_the_settings_of_a_session_outlive_its_compaction(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    settings = {"bm25": "lucene k1=2.0 b=0.3", "principal": "ana"}
    inputs = {n: line_tables(1)[n] for n in PER_RUN}
    session = LiveRun(store, now=NOON, inputs=inputs, lineage=LINEAGE, settings=settings)
    session.write(line_tables(1, run_id=session.run_id))
    assert store.open(session.run_id).manifest["settings"] == settings
    assert compact(store, session.run_id).manifest["settings"] == settings
