"""Runs of a retriever: cut, resumed and replayed, with one answer to each request."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from retrieving import NOON, batch, digests, opened
from role_corpus import evidence_rows
from scoped_retrieval.nodes import audit_snapshot
from scoped_retrieval.nodes.errors import AccessError, ModelError, StoreError
from scoped_retrieval.nodes.tables import DECISIONS
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from scoped_retrieval.pipeline.runs.log import RunLog
from scoped_retrieval.pipeline.sources.importing import normalize
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart


def test_one_bad_row_becomes_a_failed_snapshot(corpus: Corpus, tmp_path: Path):
    store = Runs(tmp_path / "runs")
    with opened(corpus, runs=store) as retriever:
        summary = retriever.run([*batch(3), {"request_id": "bad", "purpose": "?", "question": "x", "project": "shop"}])
    assert summary.statuses["failed"] == 1
    assert summary.as_dict()["snapshots"] == 4
    run = store.open(summary.run_id)
    (bad,) = (row for row in run.table("snapshots", texts=True).to_pylist() if row["request_id"] == "bad")
    assert bad["error"].startswith("Expected one of fix-test")
    assert replay(store, bad["snapshot_id"]).block == ""
    assert verify(store, summary.run_id).ok


def test_an_interrupted_run_resumes_with_the_same_clock_and_generation(corpus: Corpus, tmp_path: Path):
    store = Runs(tmp_path / "runs")
    with opened(corpus, runs=store, shard_requests=2) as retriever:
        whole = digests(store, retriever.run([row | {"as_of": None} for row in batch(4)]).run_id)
        staged = retriever._staged([row | {"as_of": None} for row in batch(4)])
    normal, _ = normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)
    corpus.publish(normal, now=NOON)
    late = datetime(2025, 7, 1, tzinfo=UTC)
    with opened(Corpus.open(tmp_path / "corpus"), runs=store, clock=lambda: late) as retriever:
        before = retriever.retrieve("what does role_15 return?")
        summary = retriever.run(resume=staged.run_id)
        after = retriever.retrieve("what does role_15 return?")
    assert "guest15" in before.block, "only the new generation has role_15"
    assert after.tables["snapshots"]["snapshot_digest"].equals(before.tables["snapshots"]["snapshot_digest"])
    assert summary.run_id == staged.run_id
    assert digests(store, staged.run_id) == whole
    assert verify(store, staged.run_id).ok


def test_an_answer_before_any_row_says_so_whatever_rows_come_later(corpus: Corpus, tmp_path: Path):
    early = {"question": "what does role_5 return?", "time": {"as_of": "2020-01-01T00:00:00+01:00"}}
    bare = Corpus.create(tmp_path / "empty")
    said = {"condition": "no_strong_match", "message": "there is no row that may be shown as of 2019-12-31T23:00:00Z"}
    answers = []
    for one in (corpus, bare):
        with Retriever.open(
            one, principal="ana", grants=tmp_path / "corpus" / "grants.yaml", clock=lambda: NOON
        ) as retriever:
            answers.append(retriever.retrieve(early | {"project": "shop"}))
            answers.append(retriever.retrieve("what does role_5 return?"))
    before, now, before_nothing, nothing = (
        [{"condition": c["condition"], "message": c["message"]} for c in found.conditions] for found in answers
    )
    assert said in before
    assert before == before_nothing
    at_noon = f"there is no row that may be shown as of {NOON:%Y-%m-%dT%H:%M:%SZ}"
    assert {"condition": "no_strong_match", "message": at_noon} in nothing
    assert not any(c["message"].startswith("there is no row") for c in now)


def test_a_run_is_not_resumed_under_other_grants_or_by_another(corpus: Corpus, tmp_path: Path):
    store = Runs(tmp_path / "runs")
    with opened(corpus, runs=store) as retriever:
        staged = retriever._staged(batch(2))
    with opened(corpus, runs=store, principal="bob") as retriever, pytest.raises(AccessError):
        retriever.run(resume=staged.run_id)
    expected = pytest.raises(StoreError, match="Expected the settings that the run began with, got another")
    with opened(corpus, runs=store, lanes=("lexical",)) as retriever, expected:
        retriever.run(resume=staged.run_id)


def tokenizer_file(path: Path, pattern: str) -> None:
    """One token per piece between the matches of a pattern."""
    split = {"type": "Split", "pattern": {"String": pattern}, "behavior": "Isolated", "invert": False}
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], **parts, "pre_tokenizer": split, "model": model}))


def test_the_file_of_a_tokenizer_is_part_of_contract_digest_and_resume(corpus: Corpus, tmp_path: Path):
    pytest.importorskip("tokenizers", reason="needs the extra semantic")
    path, store, found = tmp_path / "tokenizer.json", Runs(tmp_path / "runs"), []
    asked = {"question": "role", "project": "shop", "purpose": "answer-question", "tokenizer": str(path)}
    for pattern in (" ", "e"):
        tokenizer_file(path, pattern)
        with opened(corpus, runs=store, tokenizers=[path]) as retriever:
            found.append(retriever.retrieve(asked).tables)
            staged = retriever._staged([asked])
    for table, column in (("contracts", "contract_id"), ("snapshots", "snapshot_digest")):
        assert found[0][table][column][0].as_py() != found[1][table][column][0].as_py(), table
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found[1]["blocks"]["tokenizer"].to_pylist() == [f"{path}@sha256:{sha256}"]
    tokenizer_file(path, "o")
    expected = pytest.raises(ModelError, match=f"Expected the tokenizer file with SHA-256 {sha256}, got ")
    with opened(corpus, runs=store, tokenizers=[path]) as retriever, expected:
        retriever.run(resume=staged.run_id)
    tokenizer_file(path, "e")
    with opened(corpus, runs=store, tokenizers=[path]) as retriever:
        retriever.run(resume=staged.run_id)
    assert verify(store, staged.run_id).ok


QUESTION = "what is the default role of guests"
SAYS = "the default role of sessions is guest\n"


class Forgetful:
    """DECISIONS of the requests b and c alone."""

    empty, check, annotation = DECISIONS.empty, DECISIONS.check, DECISIONS.annotation

    @staticmethod
    def build(columns: Any, **named: Any) -> pa.Table:
        found = DECISIONS.build(columns, **named)
        return found.filter(pc.is_in(found["request_id"], pa.array(["b", "c"])))


@pytest.mark.parametrize("required", [False, True])
def test_an_answer_whose_decisions_do_not_add_up_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, required: bool
):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    with story.open(runs=tmp_path / "runs") as retriever:
        before = retriever.retrieve(QUESTION, require_snapshot=required)
        with monkeypatch.context() as patched:
            patched.setattr(audit_snapshot, "DECISIONS", Forgetful)
            found = retriever.retrieve(QUESTION, require_snapshot=required)
        after = retriever.retrieve(QUESTION, require_snapshot=required)
    assert (found.status, found.action, found.block, found.block_ref, found.citations) == (
        "failed",
        "block",
        "",
        None,
        [],
    )
    (told,) = found.conditions
    assert told["condition"] == "request_failed"
    assert told["message"].startswith("Expected one decision for each of 1 candidates")
    assert found.tables["trimmed"].num_rows == found.tables["ranked"].num_rows == 0
    assert before.block == after.block != ""
    store = Runs(tmp_path / "runs")
    assert [replay(store, each.snapshot_id or "").status for each in (before, found, after)] == ["ok", "failed", "ok"]
    assert verify(store, found.snapshot_id or "").ok


def test_in_a_run_only_the_request_whose_decisions_do_not_add_up_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    asked = [
        {"request_id": name, "project": "shop", "question": QUESTION, "purpose": "answer-question"} for name in "abc"
    ]
    store = Runs(tmp_path / "runs")
    with story.open(runs=store) as retriever:
        sound = retriever.run(asked)
        monkeypatch.setattr(audit_snapshot, "DECISIONS", Forgetful)
        broken = retriever.run(asked)
    assert (sound.statuses, broken.statuses) == ({"ok": 3}, {"failed": 1, "ok": 2})
    before, after = (store.open(one.run_id).table("snapshots").to_pylist() for one in (sound, broken))
    assert [each["status"] for each in after] == ["failed", "ok", "ok"]
    assert [each["snapshot_digest"] for each in before][1:] == [each["snapshot_digest"] for each in after][1:]
    told = store.open(broken.run_id).texts["text"].to_pylist()
    assert [text for text in told if text.startswith("Expected one decision for each of 1 candidates")]
    assert verify(store, broken.run_id).ok
    assert [replay(store, each["snapshot_id"]).status for each in after] == ["failed", "ok", "ok"]


def test_no_block_leaves_over_a_log_that_was_changed(tmp_path: Path):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    retriever = story.open(runs=tmp_path / "runs")
    retriever.retrieve(QUESTION)
    log = tmp_path / "runs" / "LOG"
    log.write_bytes(log.read_bytes().replace(b'"number":1', b'"number":7'))
    found = retriever.retrieve(QUESTION)
    assert (found.action, found.block, found.snapshot_id) == ("block", "", None)
    assert "snapshot_missing" in {each["condition"] for each in found.conditions}


def test_a_full_disk_is_no_broken_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    monkeypatch.setattr(
        RunLog, "commit", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    found = story.open(runs=tmp_path / "runs").retrieve(QUESTION, require_snapshot=False)
    assert (found.status, found.action, bool(found.block)) == ("ok", "degrade", True)
    (told,) = (each for each in found.conditions if each["condition"] == "snapshot_missing")
    assert told["message"] == "Expected no error, got No space left on device"


def searched(store: Runs, run_id: str) -> list[bool]:
    """Whether the vector of the question is stored, for each time that the question is."""
    return [one["vector"] is not None for one in store.open(run_id).texts.to_pylist() if one["text"] == QUESTION]


def test_the_texts_that_the_semantic_lane_searched_for_keep_their_vectors(tmp_path: Path):
    story = Story(tmp_path, row("doc", "docs/roles.md", "guest sessions\n"), encoder=WordsByTheirStart())
    store = Runs(tmp_path / "runs")
    for effort, kept in (("none", False), (None, True)):
        with story.open(runs=store) as retriever:
            found = retriever.retrieve({"question": QUESTION, "recall_effort": effort} if effort else QUESTION)
            assert searched(store, found.snapshot_id or "") == [kept]
        assert searched(store, found.snapshot_id or "") == [kept]
