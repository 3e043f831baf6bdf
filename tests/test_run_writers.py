"""Two who write one run: compacting, resuming and erasing while its session or its batch goes on loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.runs import Runs, compact, erase_evidence, erasing, replay, verify
from scoped_retrieval.pipeline.runs.files import files_below
from scoped_retrieval.pipeline.runs.ids import run_named
from scoped_retrieval.pipeline.runs.log import RunLog
from small_corpus import Story, row

QUESTION = "what is the default role of guests"
SAYS = "the default role of sessions is guest\n"
ROWS = [{"request_id": name, "question": QUESTION, "purpose": "answer-question"} for name in "abc"]


@pytest.fixture
def retriever(tmp_path: Path) -> Retriever:
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    return story.open(runs=tmp_path / "runs", shard_requests=1)


@pytest.fixture
def store(tmp_path: Path, retriever: Retriever) -> Runs:
    return Runs(tmp_path / "runs")


def statuses(store: Runs) -> dict[str, str]:
    return {run_id: verify(store, run_id).status for run_id in store.run_ids()}


def test_a_session_whose_run_was_compacted_goes_on(retriever: Retriever, store: Runs):
    first = retriever.retrieve(QUESTION)
    compact(store, str(first.snapshot_id))
    found = [first, retriever.retrieve(QUESTION), retriever.retrieve(QUESTION)]
    assert [one.block for one in found] == [first.block] * 3
    assert [replay(store, str(one.snapshot_id)).block for one in found] == [first.block] * 3
    assert list(statuses(store).values()) == ["ok"]
    assert store.open(str(found[2].snapshot_id)).snapshots.num_rows == 3


def test_an_erasure_ends_a_run_that_is_being_written(retriever: Retriever, store: Runs):
    ids = retriever.corpus.frame().evidence["evidence_id"].to_pylist()
    staged = retriever._staged(ROWS)
    shards = in_this_process(ShardJob(staged, retriever._session.line), staged.pending(), retriever._session.clock)
    next(shards)
    done = erase_evidence(store, ids, reason="asked by its owner")
    assert (done.discarded, done.texts) == ([staged.run_id], 0)
    with pytest.raises(StoreError):
        next(shards)
    assert (store.run_ids(), store.unfinished(), [*files_below(staged.folder)]) == ((), [], [])


def test_an_erasure_finds_what_a_session_adds_before_its_run_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    story = Story(
        tmp_path, row("doc", "docs/roles.md", SAYS), row("doc", "docs/fees.md", "visitors pay a fee of ten\n")
    )
    retriever, store = story.open(runs=tmp_path / "runs"), Runs(tmp_path / "runs")
    first, whole = retriever.retrieve(QUESTION, budget={"max_items": 1}), erasing.compact

    def answered_first(given: Runs, run_id: str) -> object:
        retriever.retrieve("which fee do visitors pay", budget={"max_items": 1})
        return whole(given, run_id)

    monkeypatch.setattr(erasing, "compact", answered_first)
    erase_evidence(store, retriever.corpus.frame().evidence["evidence_id"].to_pylist(), reason="asked by its owner")
    run = store.open(str(first.snapshot_id))
    assert run.snapshots.num_rows == 2
    assert not [text for text in run.texts["text"].to_pylist() if "a fee of ten" in text or "sessions is guest" in text]


@pytest.mark.parametrize("stands", [True, False])
def test_an_interrupt_at_the_line_of_a_snapshot_leaves_it_whole_or_not_there(
    retriever: Retriever, store: Runs, monkeypatch: pytest.MonkeyPatch, stands: bool
):
    whole = RunLog.commit

    def interrupted(self: RunLog, *given: Any) -> Any:
        if stands:
            whole(self, *given)
        raise KeyboardInterrupt

    retriever.retrieve(QUESTION)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RunLog, "commit", interrupted)
        retriever.retrieve(QUESTION)
    found = retriever.retrieve(QUESTION)  # in another run: the first may have the snapshot
    second = run_named(str(found.snapshot_id))
    (first,) = {*store.run_ids()} - {second}
    retriever.close()
    assert [verify(store, run_id).problems for run_id in (first, second)] == [(), ()]
    assert store.open(first).snapshots.num_rows == (2 if stands else 1)
