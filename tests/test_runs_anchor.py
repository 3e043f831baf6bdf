"""Who holds an old head of the log cannot be shown another run under it: no later line and no receipt replaces a file."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scoped_retrieval.nodes.errors import VerificationError
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.reading.reports import verified
from scoped_retrieval.pipeline.runs import Runs, compact, verify
from scoped_retrieval.pipeline.runs.files import sha256_of
from scoped_retrieval.pipeline.runs.parts import TEXTS
from written_runs import batch, file_of, head, live, log_again, part_of


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
    anchor, file = head(store), part_of(run, "candidate_record")
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
