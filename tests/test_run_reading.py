"""One snapshot is read from its own files: nothing else in its run costs time or prevents it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.audit.records import COVERED, snapshot_digests
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.runs import Run, Runs, replay, verify
from scoped_retrieval.pipeline.runs.live import _bytes_of, read_tables
from small_corpus import Story, row
from written_runs import file_of, log_again

QUESTION = "what is the default role of guests"
SAYS = "the default role of sessions is guest\n"


@pytest.fixture
def batch(tmp_path: Path) -> Run:
    """Three requests in three shards."""
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    with story.open(runs=tmp_path / "runs", shard_requests=1) as retriever:
        rows = [{"request_id": name, "question": QUESTION, "purpose": "answer-question"} for name in "abc"]
        summary = retriever.run(rows)
    return Runs(tmp_path / "runs").open(summary.run_id)


@pytest.fixture
def session(tmp_path: Path) -> Run:
    """Three interactive snapshots."""
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    retriever = story.open(runs=tmp_path / "runs")
    found = [retriever.retrieve(QUESTION) for _ in range(3)]
    return Runs(tmp_path / "runs").open(str(found[0].snapshot_id))


def shard_parts(run: Run, shard: str) -> list[Path]:
    return [Path(str(run.folder / path)) for path in run.shards[shard]]


def ids(run: Run) -> list[str]:
    return run.snapshots["snapshot_id"].to_pylist()


def test_damage_in_one_shard_keeps_no_other_snapshot_back(batch: Run):
    store, (first, _, last) = batch.store, ids(batch)
    for path in shard_parts(batch, "00000"):
        path.write_bytes(b"no parquet")
    assert replay(store, last).status == "ok"
    with pytest.raises(StoreError, match=r"Expected a whole part, got a damaged one"):
        replay(store, first)


def test_damage_in_one_interactive_file_keeps_no_other_snapshot_back(session: Run):
    store, (first, second, third) = session.store, ids(session)
    file_of(session, 2).write_bytes(b"no arrow")
    assert [replay(store, one).status for one in (first, third)] == ["ok", "ok"]
    with pytest.raises(
        StoreError, match=r"Expected a whole snapshot, got a damaged one - at live/[0-9a-f]{64}.arrow.lz4"
    ):
        replay(store, second)


def forge(run: Run, table: str, column: str, value: str) -> None:
    """Rewrite the first interactive file with another value in every row of a column, and the log with its hash."""
    lines = run.store.log.lines()
    before = lines[0].body["snapshots"][0]["sha256"]
    path = file_of(run, 1).with_name(f"{before}.arrow.lz4")
    tables = read_tables(path, before)
    rows, place = tables[table], tables[table].column_names.index(column)
    tables[table] = rows.set_column(
        place, rows.schema.field(place), pa.array([value] * rows.num_rows, rows[column].type)
    )
    data = _bytes_of(tables)
    sha256 = hashlib.sha256(data).hexdigest()
    path.with_name(f"{sha256}.arrow.lz4").write_bytes(data)
    changed = lines[0].body["snapshots"][0] | {"sha256": sha256}
    first = ("live", {**lines[0].body, "snapshots": [changed]})
    log_again(run.store, first, *((line.body["kind"], dict(line.body)) for line in lines[1:]))


@pytest.mark.parametrize(("table", "column"), [("texts", "text"), ("candidate_record", "decisions.reason_text")])
def test_nobody_is_shown_a_record_that_was_changed(session: Run, table: str, column: str):
    first, second, _ = ids(session)
    forge(session, table, column, "what is the root password")
    run = session.store.open(first)
    with pytest.raises(VerificationError, match=r"Expected the (snapshot digest to follow|text that was hashed)"):
        replay(run, first)
    assert replay(run, second).request["question"] == QUESTION


def test_a_block_that_is_not_the_one_that_was_hashed_is_not_shown_whatever_its_record_adds_up_to(session: Run):
    first, *_ = ids(session)
    forge(session, "snapshots", "visible_sha256", "0" * 64)
    run = session.store.open(first)
    stored = {t.name: run.table(t.name, snapshot_id=first).combine_chunks() for t in COVERED}
    (digest,) = snapshot_digests(stored, run.provenance, pa.array([run.request_of(first)]))
    forge(session, "snapshots", "snapshot_digest", digest)
    with pytest.raises(VerificationError, match=r"^Expected the block that was hashed, got another - at retr-snap-"):
        replay(session.store, first)
    told = {problem.detail for problem in verify(session.store, session.run_id).problems}
    assert "Expected the block that was hashed, got another" in told


def test_a_question_that_was_changed_is_not_listed(session: Run):
    forge(session, "texts", "text", "what is the root password")
    run = session.store.open(session.run_id)
    with pytest.raises(
        VerificationError, match=r"Expected the text that was hashed, got another - at requests\.question"
    ):
        run.table("requests", texts=True)
