"""A run that was interrupted, and the generation that it pinned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from retrieving import NOON, batch, opened
from role_corpus import evidence_rows
from scoped_retrieval.nodes.errors import StoreError
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


@pytest.fixture
def store(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "runs")


@pytest.fixture
def move_on(corpus: Corpus) -> Callable[[], None]:
    """What makes another generation the only one."""

    def moved() -> None:
        corpus.publish(normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)[0], now=NOON)
        corpus.gc(1)

    return moved


def test_a_run_whose_generation_is_gone_is_not_resumed_and_can_be_discarded(
    corpus: Corpus, store: Runs, move_on: Callable[[], None]
):
    run_id = interrupted(corpus, store, batch(4))
    move_on()
    with (
        opened(Corpus.open(corpus.path), runs=store) as retriever,
        pytest.raises(StoreError, match=r"^Expected one of the generations") as raised,
    ):
        retriever.run(resume=run_id)
    assert raised.value.hint.endswith(f"`gc --discard {run_id}`")
    store.discard(run_id)
    assert (store.unfinished(), [*store.path.glob("run-*")]) == ([], [])


def test_a_run_of_which_every_request_is_answered_is_finished_without_its_generation(
    corpus: Corpus, store: Runs, move_on: Callable[[], None]
):
    run_id = interrupted(corpus, store, batch(2))
    move_on()
    with opened(Corpus.open(corpus.path), runs=store, lanes=("lexical",)) as retriever:  # other settings: no matter
        assert retriever.run(resume=run_id).snapshots == 2
    assert verify(store, run_id).status == "ok"


def test_a_run_at_a_damaged_generation_stays_unfinished(corpus: Corpus, store: Runs):
    run_id = interrupted(corpus, store, batch(4))
    before = corpus.generation
    corpus.publish(normalize(evidence_rows("shop", 20), project="shop", principal="ana", now=NOON)[0], now=NOON)
    manifest_at(corpus.path, before).write_text("{")
    with opened(Corpus.open(corpus.path), runs=store) as retriever, pytest.raises(StoreError) as raised:
        retriever.run(resume=run_id)
    assert "got another" not in str(raised.value) and manifest_at(corpus.path, before).name in str(raised.value)
    assert store.unfinished() == [run_id]
