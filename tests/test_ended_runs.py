"""A run whose generation is gone: `resume` ends it with what was answered, and says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures
from retrieving import NOON, batch, digests, opened
from scoped_retrieval.nodes.errors import AccessError, StoreError
from scoped_retrieval.pipeline.asking.resuming import GONE
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.runs import Runs, verify
from scoped_retrieval.pipeline.sources.importing import normalize
from stored_corpus import manifest_at


def first_alone(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Iterator[int]:
    """An engine that is interrupted after its first shard."""
    yield from in_this_process(job, shards[:1], clock)
    raise KeyboardInterrupt


def interrupted(corpus: Corpus, store: Runs, rows: Sequence[dict[str, Any]]) -> str:
    """The id of a run of these rows, two to a shard, of which the first shard was answered."""
    with opened(corpus, runs=store, shard_requests=2) as retriever, pytest.raises(KeyboardInterrupt):
        retriever.run(rows, engine=first_alone)
    (run_id,) = store.unfinished()
    return run_id


def refused(corpus: Corpus, store: Runs, run_id: str, grants: Path, expected: str) -> None:
    """Over this corpus the run is not gone on with, with this message, and stays unfinished."""
    with opened(corpus, runs=store, grants=grants) as retriever, pytest.raises(StoreError, match=expected):
        retriever.run(resume=run_id)
    assert store.unfinished() == [run_id]


def goes_on(corpus: Corpus, store: Runs, run_id: str) -> None:
    """Over this corpus the run is gone on with to its last request."""
    with opened(corpus, runs=store) as retriever:
        assert retriever.run(resume=run_id).unanswered == 0


@pytest.fixture
def store(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "runs")


@pytest.fixture
def move_on(corpus: Corpus, evidence_rows: Callable[..., Any]) -> Callable[[], None]:
    """What makes another generation the only one."""

    def moved() -> None:
        corpus.publish(normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)[0], now=NOON)
        corpus.gc(1)

    return moved


def test_a_run_whose_generation_is_gone_is_ended_with_what_was_answered(
    corpus: Corpus, store: Runs, tmp_path: Path, move_on: Callable[[], None]
):
    with opened(corpus, runs=tmp_path / "whole", shard_requests=2) as retriever:
        whole = digests(Runs(tmp_path / "whole"), retriever.run(batch(4)).run_id)
    run_id = interrupted(corpus, store, [*batch(4), {"request_id": "unread", "project": "shop", "purpose": "dance"}])
    move_on()
    said: list[str] = []
    with opened(Corpus.open(corpus.path), runs=store, lanes=("lexical",)) as retriever:  # other settings: no matter
        summary = retriever.run(resume=run_id, say=said.append)
    assert len(said) == 1 and "ending the run without 3 requests" in said[0]
    assert (summary.run_id, summary.unanswered, summary.statuses["failed"]) == (run_id, 2, 3)
    rows = {row["request_id"]: row for row in store.open(run_id).table("snapshots", texts=True).to_pylist()}
    failed = [request_id for request_id, row in rows.items() if row["error"] == GONE]
    assert len(failed) == 2 and all(rows[request_id]["status"] == "failed" for request_id in failed)
    assert "dance" in rows["unread"]["error"]
    kept = digests(store, run_id)
    assert {name: kept[name] for name in whole if name not in failed} == {
        name: digest for name, digest in whole.items() if name not in failed
    }
    assert verify(store, run_id).status == "ok"
    assert (store.unfinished(), store.run_ids()) == ([], (run_id,))


def test_a_generation_that_stands_and_is_damaged_is_not_taken_for_gone_or_elsewhere(
    corpus: Corpus, store: Runs, evidence_rows: Callable[..., Any]
):
    run_id = interrupted(corpus, store, batch(4))
    before = corpus.generation
    corpus.publish(normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)[0], now=NOON)
    manifest_at(corpus.path, before).write_text("{")
    with opened(Corpus.open(corpus.path), runs=store) as retriever, pytest.raises(StoreError) as raised:
        retriever.run(resume=run_id)
    assert "got another" not in str(raised.value) and manifest_at(corpus.path, before).name in str(raised.value)
    assert store.unfinished() == [run_id]


@pytest.mark.parametrize(("asked", "unanswered"), [(6, 4), pytest.param(4, 2, id="at its last step")])
def test_an_end_that_was_broken_off_is_done_by_resuming_again(
    corpus: Corpus,
    store: Runs,
    move_on: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    asked: int,
    unanswered: int,
):
    run_id = interrupted(corpus, store, batch(asked))
    move_on()
    with opened(Corpus.open(corpus.path), runs=store) as retriever:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("scoped_retrieval.pipeline.asking.retriever.with_progress", after_one)
            retriever.run(resume=run_id)
        assert retriever.run(resume=run_id).unanswered == unanswered
    assert verify(store, run_id).status == "ok"


def after_one(done: Iterator[int], *_: object) -> Iterator[int]:
    yield next(done)
    raise KeyboardInterrupt


def test_nobody_ends_the_run_of_another(corpus: Corpus, store: Runs, move_on: Callable[[], None]):
    run_id = interrupted(corpus, store, batch(4))
    move_on()
    with opened(Corpus.open(corpus.path), runs=store, principal="bob") as retriever, pytest.raises(AccessError):
        retriever.run(resume=run_id)
    assert store.unfinished() == [run_id]


def test_another_corpus_in_the_folder_ends_no_run(
    corpus: Corpus, store: Runs, tmp_path: Path, evidence_rows: Callable[..., Any]
):
    run_id = interrupted(corpus, store, batch(4))
    shutil.move(tmp_path / "corpus", tmp_path / "away")
    other = Corpus.create(tmp_path / "corpus")
    for count in (20, 21, 22):
        rows = normalize(evidence_rows("shop", count), project="shop", principal="ana", now=NOON)[0]
        other.publish(rows, now=NOON)
    another = r"^Expected the corpus that the run began with, got another - at .*/corpus\n\nHint: restore the corpus"
    refused(other, store, run_id, tmp_path / "away" / "grants.yaml", another)
    shutil.rmtree(tmp_path / "corpus")
    shutil.move(tmp_path / "away", tmp_path / "corpus")
    goes_on(Corpus.open(tmp_path / "corpus"), store, run_id)


def test_an_older_copy_of_the_corpus_ends_no_run(
    corpus: Corpus, store: Runs, tmp_path: Path, evidence_rows: Callable[..., Any]
):
    shutil.copytree(tmp_path / "corpus", tmp_path / "copy")
    rows = normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)[0]
    corpus.publish(rows, now=NOON)
    run_id = interrupted(corpus, store, batch(4))
    shutil.move(tmp_path / "corpus", tmp_path / "away")
    shutil.move(tmp_path / "copy", tmp_path / "corpus")
    with opened(Corpus.open(tmp_path / "corpus"), runs=store) as retriever, pytest.raises(StoreError, match="another"):
        retriever.run(resume=run_id)
    assert store.unfinished() == [run_id]


def test_a_run_that_stops_because_its_generation_is_gone_says_that_resume_ends_it(
    corpus: Corpus, store: Runs, move_on: Callable[[], None]
):
    def failing(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Iterator[int]:
        yield from in_this_process(job, shards[:1], clock)
        move_on()
        raise StoreError("Expected one of the generations, got another - at corpus")

    with opened(corpus, runs=store, shard_requests=2) as retriever, pytest.raises(StoreError) as raised:
        retriever.run(batch(4), engine=failing)
    (run_id,) = store.unfinished()
    assert raised.value.hint == f"`run --resume {run_id}` ends it with what was answered: its generation is gone"


def test_the_command_ends_a_run_and_says_how_much_of_it_was_answered(shop: Path, capsys):
    rows = [{"request_id": name, "question": "default role", "purpose": "answer-question"} for name in "ab"]
    store, corpus = Runs(shop / ".scoped-retrieval/runs"), shop / ".scoped-retrieval/corpus"
    asking = Retriever.open(corpus, principal="ana", runs=store, shard_requests=1)
    with asking as retriever, pytest.raises(KeyboardInterrupt):
        retriever.run([row | {"project": "shop"} for row in rows], engine=first_alone)
    (run_id,) = store.unfinished()
    listed = f"unfinished: {run_id}; `run --resume {run_id}` completes the run\n"
    assert run("--adopt", "log", "--of", "runs", capsys=capsys)[2] == listed
    (shop / "shop/README.md").write_text("# shop\n\nAnother word.\n")
    assert run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    assert run("log", "--of", "runs", capsys=capsys)[2] == listed
    Corpus.open(corpus).gc()
    gone = f"unfinished: {run_id}; its generation is gone: `run --resume {run_id}` ends it with what was answered\n"
    assert run("log", "--of", "runs", capsys=capsys)[2] == gone
    corpus.rename(shop / "elsewhere")
    unknown = f"unfinished: {run_id}; `run --resume {run_id}` completes the run, or ends it if its generation is gone\n"
    assert run("log", "--of", "runs", capsys=capsys)[2] == unknown
    (shop / "elsewhere").rename(corpus)
    code, out, err = run("run", "--resume", run_id, "--json", capsys=capsys)
    assert (code, json.loads(out)["statuses"]) == (4, {"failed": 1, "ok": 1})
    assert f"ended: {run_id}; its generation is gone: 1 request was answered before, 1 failed\n" in err
    assert "ending the run without 1 request in 1 shard\n" in err
    assert not [line for line in err.splitlines() if line.startswith(("answered", "failed:"))]
    assert run("verify", run_id, capsys=capsys)[0] == 0
    assert run("log", "--of", "runs", capsys=capsys)[2] == ""
