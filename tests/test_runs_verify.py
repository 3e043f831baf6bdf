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
from scoped_retrieval.pipeline.runs import LiveRun, Run, RunStore, erase_texts, replay, verify
from scoped_retrieval.pipeline.runs.files import files_below, read_parquet, sha256_of, write_json, write_parquet
from scoped_retrieval.pipeline.runs.log import START, WINDOW
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
    assert [(p.kind, p.part) for p in verify(store, last.run_id).problems] == [("left", "LOG")]
    assert verify(store, last.run_id).status == "crashed"


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
    assert verify(store, run.run_id, anchor=anchor).problems[0].detail == "no line has the hash of the anchor"


def test_a_changed_line_is_told_with_what_to_do(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    for _ in range(2):
        batch(store, line_tables)
    first, second = (tmp_path / "LOG").read_bytes().splitlines(keepends=True)
    hint = r"\n\nHint: restore LOG from a backup of the runs folder; `verify` then shows which runs are intact$"
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
