"""Verify finds every changed byte and part, and who holds an old head of the log is shown no other run under it."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from line_tables import line_tables
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.reading.reports import verified
from scoped_retrieval.pipeline.runs import Run, Runs, compact, packed, replay, verify
from scoped_retrieval.pipeline.runs.erasing import erase_texts
from scoped_retrieval.pipeline.runs.files import files_below, read_parquet, sha256_of, write_parquet
from scoped_retrieval.pipeline.runs.parts import TEXTS
from written_runs import batch, file_of, head, live, log_again, part_of, session_of


@pytest.fixture(params=[batch, live])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return request.param(Runs(tmp_path))


def test_an_untouched_run_is_as_it_was_written(run: Run):
    report = verify(run.store, run.run_id)
    assert (report.status, report.problems, report.snapshots) == ("ok", (), 2)


def test_one_flipped_byte_anywhere_is_found_and_named(run: Run):
    store = run.store
    chosen = random.Random(7)
    parts = [name for name in files_below(store.path) if not name.startswith(".")]
    assert len(parts) > 4
    for name in parts:
        path = store.path / name
        data = path.read_bytes()
        size = len(data) - (name == "LOG")  # the last line counts without its line break
        for position in {0, size - 1, chosen.randrange(size), chosen.randrange(size)}:
            flipped = bytearray(data)
            flipped[position] ^= 1 << chosen.randrange(8)
            path.write_bytes(flipped)
            report = verify(store, run.run_id)
            assert not report.ok, (name, position)
            assert report.problems[0].part in name or "LOG" in (name, report.problems[0].part)
        path.write_bytes(data)
    assert verify(store, run.run_id).ok


def test_a_file_that_cannot_be_read_is_named(run: Run):
    store = run.store
    for path in (file_of(run, 1) if run.files else part_of(run, "record"),):
        name = path.relative_to(run.store.path if run.files else run.folder).as_posix()
        data = path.read_bytes()
        path.unlink()
        path.mkdir()
        report = verify(store, run.run_id)
        assert (report.status, report.problems[0].kind) == ("changed", "changed")
        assert (report.problems[0].part, report.problems[0].detail) == (name, "it cannot be read (Is a directory)")
        path.rmdir()
        path.write_bytes(data)
    assert verify(store, run.run_id).ok


def test_a_text_changed_by_someone_who_signs_the_files_anew_is_found(tmp_path: Path):
    store = Runs(tmp_path)
    run = batch(store)
    path, bodies = part_of(run, "texts"), [dict(line.body) for line in store.log.lines()]
    texts = read_parquet(path, TEXTS)
    changed = texts.set_column(1, TEXTS.field("text"), pc.utf8_swapcase(texts["text"]))
    write_parquet(path, changed)
    bodies[1]["parts"][path.relative_to(run.folder).as_posix()] = sha256_of(path)
    log_again(store, *((body["kind"], body) for body in bodies))
    found = verify(store, run.run_id).problems
    assert {(p.kind, p.detail) for p in found} == {("changed", "Expected the text that was hashed, got another")}
    assert {p.part for p in found} == {f"texts/{sha256}" for sha256 in texts["sha256"].to_pylist()}


def test_a_missing_and_an_extra_part_are_named(tmp_path: Path):
    store = Runs(tmp_path)
    run = batch(store)
    part = part_of(run, "record")
    shutil.move(part, tmp_path / "aside")
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [
        ("missing", part.relative_to(run.folder).as_posix())
    ]
    shutil.move(tmp_path / "aside", part)
    (run.folder / "tables/record/part-00001.parquet").write_bytes(part.read_bytes())
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [
        ("extra", "tables/record/part-00001.parquet")
    ]


def test_a_log_rewritten_whole_does_not_hold_the_anchor(tmp_path: Path):
    store = Runs(tmp_path)
    run = batch(store)
    batch(store)
    anchor = head(store)
    batch(store)
    assert verify(store, run.run_id, anchor=anchor).ok
    log_again(store, *((line.body["kind"], dict(line.body)) for line in run.lines))
    assert verify(store, run.run_id).ok
    assert verify(store, run.run_id, anchor=anchor).problems[0].detail == "no line has the hash of the anchor"


def test_an_erased_text_leaves_the_record_standing(tmp_path: Path):
    store = Runs(tmp_path)
    run = batch(store)
    block = run.table("blocks")["text"][0].as_py()
    erase_texts(run, "00000", [block], "asked by its owner")
    report = verify(store, run.run_id)
    assert (report.status, report.erased) == ("erased", (block,))
    first, second = store.open(run.run_id).snapshots["snapshot_id"].to_pylist()
    assert (replay(store, first).status, replay(store, first).block) == ("erased", None)
    assert replay(store, second).status == "ok"
    lines = len(store.log.lines())
    erase_texts(run, "00000", [block], "again")
    assert len(store.log.lines()) == lines


def test_a_text_that_vanished_without_a_receipt_is_tampering(tmp_path: Path):
    store = Runs(tmp_path)
    run = batch(store)
    part_of(run, "texts").unlink()
    missing = part_of(run, "texts").relative_to(run.folder).as_posix()
    assert [(p.kind, p.part) for p in verify(store, run.run_id).problems] == [("missing", missing)]


def test_a_run_that_the_log_names_and_that_is_gone_is_missing(tmp_path: Path):
    store = Runs(tmp_path)
    gone, kept = batch(store), batch(store)
    shutil.rmtree(gone.folder)
    report = verify(store, gone.run_id)
    assert (report.status, report.ok, report.problems[0].detail) == ("missing", False, "LOG names it")
    assert verify(store, kept.run_id).ok
    with pytest.raises(StoreError, match="Expected a run in this folder, got none"):
        verify(store, "run-000000000000000000")


def test_a_snapshot_that_the_log_does_not_take_is_not_kept(tmp_path: Path):
    store = Runs(tmp_path)
    session = session_of(store)
    (tmp_path / "LOG").mkdir()
    with pytest.raises(OSError, match="LOG"):
        session.write(packed(line_tables(1, run_id=session.run_id)))
    (tmp_path / "LOG").rmdir()
    assert store.list() == []
    session.write(packed(line_tables(1, run_id=session.run_id)))
    assert verify(store, session.run_id).ok


def test_a_run_whose_line_is_gone_does_not_exist(tmp_path: Path):
    store = Runs(tmp_path)
    first, last = batch(store), batch(store)
    log = tmp_path / "LOG"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3]))
    assert [run.run_id for run in store.list()] == [first.run_id]
    with pytest.raises(StoreError):
        verify(store, last.run_id)


def test_an_anchor_does_not_vouch_for_a_snapshot_that_a_later_line_names(tmp_path: Path):
    store = Runs(tmp_path)
    run, other = live(store), live(store)
    anchor, body = head(store), store.log.lines()[0].body
    shutil.copy(file_of(other, 1), file_of(run, 1))
    assert verify(store, run.run_id, anchor=anchor).problems[0].part == f"live/{file_of(run, 1).name}"
    snapshots = [body["snapshots"][0] | {"sha256": sha256_of(file_of(run, 1))}]
    store.log.commit("live", {**body, "snapshots": snapshots})
    assert verify(store, run.run_id, anchor=anchor).status == "changed"
    with pytest.raises(VerificationError):
        compact(store, run.run_id)


def test_an_anchor_of_a_session_vouches_for_what_it_is_compacted_into(tmp_path: Path):
    store = Runs(tmp_path)
    run = live(store)
    anchor, lines = head(store), store.log.lines()
    compacted = compact(store, run.run_id)
    assert verify(store, run.run_id, anchor=anchor).ok
    ids, digests = (compacted.snapshots[name].to_pylist() for name in ("snapshot_id", "snapshot_digest"))
    assert [one["snapshot_digest"] for line in lines for one in line.body["snapshots"]] == digests
    other = [
        ("live", {**line.body, "snapshots": [line.body["snapshots"][0] | {"snapshot_digest": digests[0]}]})
        for line in lines
    ]
    log_again(store, *other, ("shard", dict(compacted.lines[-1].body)))
    assert [problem.part for problem in verify(store, run.run_id).problems] == [f"snapshots/{ids[1]}"]


@pytest.mark.parametrize("kind", ["erase", "shard"])
def test_a_receipt_accounts_for_erased_texts_and_no_other_file(tmp_path: Path, kind: str):
    store = Runs(tmp_path)
    run = batch(store)
    anchor, file = head(store), part_of(run, "record")
    parts = {file.relative_to(run.folder).as_posix(): sha256_of(file)}
    body = {"run_id": run.run_id, "shard": "00000", "texts": ["0" * 64], "parts": parts, "reason": "none"}
    store.log.commit(kind, body)
    assert verify(store, run.run_id, anchor=anchor).status == "changed"


def test_a_part_rewritten_under_a_receipt_holds_fewer_texts_and_none_that_is_new(tmp_path: Path):
    gone, *kept = batch(Runs(tmp_path / "first")).texts.to_pylist()
    smuggled = {"sha256": hashlib.sha256(b"never said").hexdigest(), "text": "never said", "vector": None}
    for number, (rows, fits) in enumerate(
        (
            (kept, True),
            ([*kept, smuggled], False),
            ([*kept[1:], smuggled], False),
            ([gone, *kept[1:]], False),
        )
    ):
        store = Runs(tmp_path / str(number))
        run = batch(store)
        part = part_of(run, "texts")
        part.unlink()
        pq.write_table(pa.Table.from_pylist(rows, schema=TEXTS), part.with_name("other.parquet"))
        parts = {"texts/other.parquet": sha256_of(part.with_name("other.parquet"))}
        body = {"run_id": run.run_id, "shard": "00000", "texts": [gone["sha256"]], "parts": parts, "reason": "none"}
        store.log.commit("erase", body)
        assert verify(store, run.run_id).status == ("erased" if fits else "changed")


def test_an_anchor_finds_that_every_run_is_gone(tmp_path: Path):
    store = Runs(tmp_path / "runs")
    run = batch(store)
    anchor = head(store)
    flags = {"runs": store.path, "corpus": tmp_path / "corpus", "principal": "ana"}
    write_starter_grants(tmp_path / "corpus/grants.yaml", "bob", "v1")
    with (tmp_path / "corpus/grants.yaml").open("a") as grants:
        grants.write("  ana: {projects: [v1, v2], audit: true}\n")
    settings = load_settings(flags, environ={}, user=tmp_path / "none.toml")
    assert verified(settings, anchor=anchor)["ok"]
    shutil.rmtree(run.folder)
    (tmp_path / "runs/LOG").unlink()
    assert verified(settings)["ok"]
    with pytest.raises(VerificationError, match="Expected the anchor in a log of runs visible to you"):
        verified(settings, anchor=anchor)
