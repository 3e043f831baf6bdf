"""The retriever: one answer everywhere, durable before it leaves, replayed without the corpus."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from retrieving import NOON, batch, digests, opened
from role_corpus import evidence_rows
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.asking.session import PendingRequest
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import LiveRun, Runs, verify
from scoped_retrieval.pipeline.sources.importing import normalize


def test_a_question_gets_a_block_with_citations(corpus: Corpus, tmp_path: Path):
    with opened(corpus, runs=tmp_path / "runs") as retriever:
        found = retriever.retrieve("what does role_3 return?", purpose="explain-code")
        assert (found.status, found.action) == ("ok", "continue")
        assert "guest3" in found.block
        labels = [c["label"] for c in found.citations]
        assert all(f"[{label}]" in found.block for label in labels)
        assert found.observation["citationMap"].keys() == set(labels)
        assert found.observation["snapshotId"] == found.event["snapshotId"] == found.snapshot_id
        assert found.event["selectedCount"] >= len(labels)
        assert verify(Runs(tmp_path / "runs"), found.snapshot_id).ok
    assert verify(Runs(tmp_path / "runs"), found.snapshot_id).ok


def test_no_id_of_the_capture_stands_in_the_block(corpus: Corpus, tmp_path: Path):
    with opened(corpus, runs=tmp_path / "runs") as retriever:
        first, second = (retriever.retrieve("what does role_3 return?") for _ in range(2))
    assert first.block == second.block
    assert first.snapshot_id != second.snapshot_id
    assert first.snapshot_id not in first.block
    assert first.tables["snapshots"]["snapshot_digest"].equals(second.tables["snapshots"]["snapshot_digest"])


def test_what_threads_ask_at_once_is_answered_in_one_pass_as_if_asked_alone(corpus: Corpus, tmp_path: Path):
    asked = batch(9)
    passes: list[int] = []
    begun, full = threading.Event(), threading.Event()

    def clock() -> datetime:  # read once per pass; the first one waits until the others are queued
        passes.append(1)
        if len(passes) == 1:
            begun.set()
            assert full.wait(60)
        return NOON

    wrong = {"request_id": "wrong", "question": "x", "purpose": "?", "project": "shop"}
    again = {**asked[0], "question": "and again?"}
    with opened(corpus, runs=tmp_path / "grouped", clock=clock) as retriever, ThreadPoolExecutor(11) as threads:
        calls = [threads.submit(retriever.retrieve, asked[0])]
        assert begun.wait(60)
        calls += [threads.submit(retriever.retrieve, row) for row in (*asked[1:], wrong, again)]
        while retriever._grouped.waiting() < len(calls):
            os.sched_yield()
        full.set()
        errors = [str(call.exception(60)) for call in calls[-2:]]
        found = {call.result(60).request_id: call.result(60) for call in calls[:-2]}
    assert len(passes) == 2
    assert "Expected one of fix-test" in errors[0]
    assert "got one that was asked before - at r000" in errors[1]
    with opened(corpus, runs=tmp_path / "alone") as retriever:
        alone = [retriever.retrieve(row) for row in asked]
    for one in alone:
        other = found[one.request_id]
        assert other.block == one.block and other.conditions == one.conditions and other.citations == one.citations
        assert other.tables.keys() == one.tables.keys()
        assert verify(Runs(tmp_path / "grouped"), other.snapshot_id).ok
    stores = [Runs(tmp_path / name) for name in ("grouped", "alone")]
    assert digests(stores[0], stores[0].run_ids()[0]) == digests(stores[1], stores[1].run_ids()[0])


def test_where_the_snapshots_of_a_group_are_not_written_each_answer_says_so_and_the_next_has_its_own(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = [PendingRequest(row, 0.0) for row in batch(4)]
    write, written = LiveRun.write, []

    def first_fails(self: LiveRun, *snapshots: Any) -> None:
        written.append(1)
        if len(written) == 1:
            raise OSError(28, "No space left on device")
        write(self, *snapshots)

    monkeypatch.setattr(LiveRun, "write", first_fails)
    with opened(corpus, runs=tmp_path / "runs") as retriever:
        found = [[one for one in retriever._session.answers(rows) if not isinstance(one, Exception)] for _ in range(2)]
    assert [one.request_id for one in found[1]] == ["r000", "r001", "r002", "r003"]
    assert [one.snapshot_id is None for group in found for one in group] == [True] * 4 + [False] * 4
    store = Runs(tmp_path / "runs")
    assert sorted(digests(store, store.run_ids()[0])) == ["r000", "r001", "r002", "r003"]
    assert verify(store, store.run_ids()[0]).ok


def test_a_project_that_is_not_granted_and_one_that_does_not_exist_read_alike(corpus: Corpus):
    foreign, unknown = (opened(corpus).retrieve("default role", project=p) for p in ("pay", "nowhere"))
    assert foreign.status == unknown.status == "denied"
    for name in ("action", "block", "block_ref", "conditions", "citations"):
        assert getattr(foreign, name) == getattr(unknown, name), name


def test_no_block_leaves_if_its_snapshot_was_not_written(corpus: Corpus, tmp_path: Path):
    with opened(corpus, runs=tmp_path / "runs") as retriever:
        assert retriever.retrieve("default role").block
        shutil.rmtree(tmp_path / "runs")
        (tmp_path / "runs").write_text("in the way")
        found = retriever.retrieve("default role again")
        assert (found.status, found.action, found.block, found.citations) == ("failed", "block", "", [])
        assert "snapshot_missing" in {c["condition"] for c in found.conditions}
        assert found.observation["contextBlock"] == ""
        lenient = retriever.retrieve("default role once more", require_snapshot=False)
        assert lenient.block and lenient.snapshot_id is None and lenient.action == "degrade"
        retriever._session.live = None
    assert opened(corpus).retrieve("default role", require_snapshot=True).block == ""


def test_as_of_a_commit_is_resolved_for_those_who_may_ask(corpus: Corpus):
    sha = f"{3:040x}"
    found = opened(corpus).retrieve("default role", as_of=f"commit:{sha}")
    request = found.tables["requests"].to_pylist()[0]
    assert request["as_of"] == datetime(2025, 5, 28, 12, tzinfo=UTC)
    for project in ("pay", "nowhere"):
        with pytest.raises(InputError, match="Expected a commit that this project's corpus knows"):
            opened(corpus).retrieve("default role", as_of=f"commit:{sha}", project=project)


def test_a_retriever_stays_at_the_generation_that_it_opened(corpus: Corpus, tmp_path: Path):
    with opened(corpus, runs=tmp_path / "runs") as before:
        asked = [before.retrieve("what does role_15 return?", request_id="a")]
        normal, _ = normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)
        corpus.append(normal, now=NOON)
        asked.append(before.retrieve("what does role_15 return?", request_id="b"))
    first, second = (found.tables["snapshots"]["snapshot_digest"][0].as_py() for found in asked)
    assert first == second
    assert before.corpus.generation != corpus.generation
    assert "guest15" not in asked[1].block and "guest15" in opened(corpus).retrieve("what does role_15 return?").block
