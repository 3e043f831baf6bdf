"""Who holds an old head of the log cannot be shown another run under it: no later line and no receipt replaces a file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.reading.verification import verified
from scoped_retrieval.pipeline.runs import RunStore, compact, erase_texts, log, verify
from scoped_retrieval.pipeline.runs.files import sha256_of
from scoped_retrieval.pipeline.runs.ids import snapshot_id
from scoped_retrieval.pipeline.runs.parts import TEXTS
from written_runs import Maker, batch, live


def forge(path: Path, change: Callable[[dict], None]) -> str:
    """Change a JSON file of a run as a user with write access can; its new SHA-256."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document, sort_keys=True, indent=1) + "\n")
    return sha256_of(path)


def test_an_anchor_does_not_vouch_for_a_manifest_that_a_later_line_names(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    anchor = store.log.head()
    sha256 = forge(run.folder / "manifest.json", lambda manifest: manifest.update(created_at="1999-01-01T00:00:00"))
    store.log.append("run", run.run_id, manifest_sha256=sha256)
    report = verify(store, run.run_id, anchor=anchor)
    assert [(p.kind, p.part) for p in report.problems] == [("changed", "LOG")]
    assert report.problems[0].detail == f"Expected one line for manifest.json of {run.run_id}, got two - at LOG:2"


@pytest.mark.parametrize(
    ("number", "change"), [(1, {"manifest_sha256": "f" * 64}), (2, {"sequence": 7}), (3, {"sequence": 7})]
)
def test_a_line_that_was_written_anew_with_a_hash_that_fits_it_breaks_the_chain(
    tmp_path: Path, number: int, change: dict[str, object]
):
    log = RunStore(tmp_path).log
    for run in ("run-x", "run-y", "run-z"):
        log.append("run", run, manifest_sha256="0" * 64)
    lines = (tmp_path / "LOG").read_bytes().splitlines()
    body = json.loads(lines[number - 1].partition(b" ")[2]) | change
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    lines[number - 1] = hashlib.sha256(text).hexdigest().encode() + b" " + text
    (tmp_path / "LOG").write_bytes(b"\n".join(lines) + b"\n")
    broken = number + 1 if "manifest_sha256" in change else number
    with pytest.raises(
        VerificationError, match=rf"^Expected line {broken} to continue the chain, got another - at LOG:"
    ):
        RunStore(tmp_path).log.lines()


def test_an_anchor_does_not_vouch_for_a_snapshot_that_a_later_line_names(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run, other = live(store, line_tables), live(store, line_tables)
    anchor, first = store.log.head(), store.log.lines()[0]
    file = run.folder / "live/000001.arrow.lz4"
    shutil.copy(other.folder / "live/000001.arrow.lz4", file)
    assert verify(store, run.run_id, anchor=anchor).problems[0].part == "live/000001.arrow.lz4"
    body = {"file": file.name, "sha256": sha256_of(file), "lineage_sha256": first.body["lineage_sha256"]}
    store.log.append("live", run.run_id, **body)
    report = verify(store, run.run_id, anchor=anchor)
    assert [(p.kind, p.part) for p in report.problems] == [("changed", "LOG")]
    with pytest.raises(VerificationError, match=r"Expected one line for 000001\.arrow\.lz4 of run-"):
        compact(store, run.run_id)


def test_an_anchor_of_a_session_vouches_for_what_it_is_compacted_into(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    anchor, lines = store.log.head(), store.log.lines()
    compacted = compact(store, run.run_id)
    assert verify(store, run.run_id, anchor=anchor).ok
    digests = compacted.snapshots["snapshot_digest"].to_pylist()
    assert [line.body["snapshot_digest"] for line in lines] == digests
    (tmp_path / "LOG").unlink()
    for line in lines:
        body = {name: line.body[name] for name in ("file", "sha256", "lineage_sha256")}
        store.log.append("live", run.run_id, **body, snapshot_digest=digests[0])
    store.log.append("run", run.run_id, manifest_sha256=sha256_of(run.folder / "manifest.json"))
    (problem,) = verify(store, run.run_id).problems
    assert (problem.part, problem.detail) == (
        f"snapshots/{snapshot_id(run.run_id, 2)}",
        "its digest is not the one in LOG",
    )


def test_a_manifest_that_tells_of_more_rows_than_there_are_is_found(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    sha256 = forge(
        run.folder / "manifest.json", lambda manifest: manifest["tables"]["decisions"]["parts"][0].update(rows=7)
    )
    (tmp_path / "LOG").unlink()
    store.log.append("run", run.run_id, manifest_sha256=sha256)
    (problem,) = verify(store, run.run_id).problems
    assert (problem.part, problem.detail) == (
        "tables/decisions/part-00000.parquet",
        "it has 6 rows, the manifest says 7",
    )


def test_a_manifest_that_names_other_files_of_its_session_than_the_log_is_not_its_own(
    tmp_path: Path, line_tables: Maker
):
    store = RunStore(tmp_path)
    run = compact(store, live(store, line_tables).run_id)
    lines = store.log.lines()
    sha256 = forge(run.folder / "manifest.json", lambda manifest: manifest["compacted_from"][1].update(sha256="0" * 64))
    (tmp_path / "LOG").unlink()
    for line in lines[:-1]:
        body = {name: line.body[name] for name in ("file", "sha256", "lineage_sha256", "snapshot_digest")}
        store.log.append("live", run.run_id, **body)
    store.log.append("run", run.run_id, manifest_sha256=sha256)
    (problem,) = verify(store, run.run_id).problems
    assert (problem.part, problem.detail) == (
        "manifest.json",
        "live/000002.arrow.lz4 is not the file that LOG names",
    )


def test_a_run_that_the_log_says_was_compacted_is_not_read_from_interactive_files(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    shutil.copytree(run.folder / "live", tmp_path / "aside")
    compact(store, run.run_id)
    (run.folder / "manifest.json").unlink()
    shutil.move(tmp_path / "aside", run.folder / "live")
    problems = verify(store, run.run_id).problems
    assert [(p.kind, p.part) for p in problems] == [("missing", "manifest.json")]


@pytest.mark.parametrize(("texts", "file", "message"), [
    (["0" * 64], "lineage.json", "Expected a receipt that names parts of texts, got lineage.json"),
    (["0" * 64], "manifest.json", "Expected a receipt that names parts of texts, got manifest.json"),
    (["0" * 64], "tables/decisions/part-00000.parquet", "Expected a receipt that names parts of texts, got tables/"),
    ([], "texts/part-00000.parquet", "Expected a receipt that names erased texts, got one without any"),
])  # fmt: skip
def test_a_receipt_accounts_for_erased_texts_and_no_other_file(
    tmp_path: Path, line_tables: Maker, texts: list[str], file: str, message: str
):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    anchor = store.log.head()
    receipt = {"run_id": run.run_id, "texts": texts, "parts": {file: sha256_of(run.folder / file)}}
    data = json.dumps(receipt).encode()
    name = hashlib.sha256(data).hexdigest()
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts" / f"{name}.json").write_bytes(data)
    store.log.append("erase", run.run_id, receipt=name, texts=len(texts), parts=1, reason="none")
    report = verify(store, run.run_id, anchor=anchor)
    assert report.status == "changed"
    assert message in report.problems[0].detail


def test_a_receipt_of_another_run_accounts_for_nothing(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    erased, run = batch(store, line_tables), batch(store, line_tables)
    erase_texts(store, erased.run_id, erased.texts["sha256"].to_pylist()[:1], reason="asked by its owner")
    body = store.log.lines()[-1].body
    store.log.append("erase", run.run_id, **{k: body[k] for k in ("receipt", "texts", "parts", "reason")})
    assert "got one of another run" in verify(store, run.run_id).problems[0].detail


def test_a_part_rewritten_under_a_receipt_holds_fewer_texts_and_none_that_is_new(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    part = run.folder / "texts/part-00000.parquet"
    gone, *kept = run.texts.to_pylist()
    smuggled = {"sha256": hashlib.sha256(b"never said").hexdigest(), "text": "never said", "vector": None}
    for rows, message in (
        (kept, None),
        ([*kept, smuggled], "none is missing"),
        ([*kept[1:], smuggled], "no table refers to it"),
        ([gone, *kept[1:]], "a receipt says that it was erased"),
    ):
        pq.write_table(pa.Table.from_pylist(rows, schema=TEXTS), part)
        parts = {"texts/part-00000.parquet": sha256_of(part)}
        data = json.dumps({"run_id": run.run_id, "texts": [gone["sha256"]], "parts": parts}).encode()
        name = hashlib.sha256(data).hexdigest()
        (tmp_path / "receipts").mkdir(exist_ok=True)
        (tmp_path / "receipts" / f"{name}.json").write_bytes(data)
        store.log.append("erase", run.run_id, receipt=name, texts=1, parts=1, reason="none")
        details = [problem.detail for problem in verify(store, run.run_id).problems]
        assert not details if message is None else any(message in detail for detail in details)


def test_a_line_that_was_not_made_durable_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = RunStore(tmp_path).log
    for lines in (0, 1):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(StoreError, match="No space left on device"):
                log.append("run", "run-x", manifest_sha256="0")
        assert len(log.lines()) == lines
        log.append("run", "run-x", manifest_sha256="0")


def test_an_anchor_finds_that_every_run_is_gone(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path / "runs")
    run = batch(store, line_tables)
    anchor = store.log.head()
    flags = {"runs": store.path, "corpus": tmp_path / "corpus", "principal": "ana"}
    write_starter_grants(tmp_path / "corpus/grants.yaml", "bob", "v1")
    with (tmp_path / "corpus/grants.yaml").open("a") as grants:
        grants.write("  ana: {projects: [v1, v2], audit: true}\n")
    settings = load_settings(flags, environ={}, user=tmp_path / "none.toml")
    assert verified(settings, anchor=anchor)["ok"]
    shutil.rmtree(run.folder)
    (store.path / "LOG").unlink()
    assert verified(settings)["ok"]
    with pytest.raises(VerificationError, match="Expected the anchor in a log of runs visible to you"):
        verified(settings, anchor=anchor)


def test_a_line_is_checked_once_and_again_where_it_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    book, checked = log.log_at(tmp_path), []
    parse = log._parse
    for number in range(3):
        book.append("run", f"run-{number}", manifest_sha256="")
    monkeypatch.setattr(log, "_parse", lambda raw, number: checked.append(number) or parse(raw, number))
    assert [line.sequence for line in book.lines()] == checked == [1, 2, 3]
    checked.clear()
    book.append("run", "run-3", manifest_sha256="")
    checked.clear()
    book.lines().clear()  # the caller's own
    assert ([line.sequence for line in book.lines()], checked) == ([1, 2, 3, 4], [4])
    (tmp_path / "LOG").write_bytes((tmp_path / "LOG").read_bytes().replace(b"run-1", b"run-9"))
    with pytest.raises(VerificationError, match="a line that matches its hash, got a changed one - at LOG:2"):
        book.lines()
    (tmp_path / "LOG").unlink()
    assert book.lines() == []
