"""A corpus that cannot be read ends what needs it, and becomes no answer: nothing is written about any request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_runs import ASKED, QUESTIONS, digests, handlers
from failing_store import FailingStore
from scoped_retrieval.nodes.errors import InputError, StoreError
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine
from scoped_retrieval.pipeline.engines.ray_engine import RayEngine
from scoped_retrieval.pipeline.engines.shards import in_this_process
from scoped_retrieval.pipeline.runs import Runs, verify
from scoped_retrieval.pipeline.storage.places import ObjectPlace, place_of
from small_corpus import Story

pytest.importorskip("fsspec", reason="needs the extra remote")

ROWS = [ASKED | {"question": question, "request_id": f"q{at}"} for at, question in enumerate(QUESTIONS[:4])]
NO_ANSWER = r"Expected the store to answer, got TimeoutError - at memory://.*/packs/"


@contextlib.contextmanager
def unread(story: Story, part: str) -> Iterator[None]:
    """While no object whose name has this in it can be read."""
    story.folder.fs.unread = part  # type: ignore[union-attr]  # the folder is at a FailingStore
    try:
        yield
    finally:
        story.folder.fs.unread = None  # type: ignore[union-attr]  # as above


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return handlers(FailingStore().at(tmp_path.name))  # type: ignore[arg-type]  # a story takes any place


def run(story: Story, runs: Path, **how: Any) -> Any:
    with story.open(runs=runs, shard_requests=2) as opened:
        return opened.run(**how)


def test_a_run_whose_corpus_does_not_answer_stays_unfinished_and_is_resumed(story: Story, tmp_path: Path):
    whole = run(story, tmp_path / "whole", requests=ROWS)
    with unread(story, "/packs/"), pytest.raises(StoreError, match=NO_ANSWER) as caught:
        run(story, tmp_path / "cut", requests=ROWS)
    store = Runs(tmp_path / "cut")
    (run_id,) = store.unfinished()
    assert caught.value.hint.endswith(f"what they permit; `run --resume {run_id}` completes the run")
    assert not list((store.path / run_id / "tables").glob("snapshots/*"))
    resumed = run(story, tmp_path / "cut", resume=run_id)
    assert digests(resumed) == digests(whole) and resumed.statuses == {"ok": 4}
    assert verify(store, run_id).ok


def test_an_answer_that_needs_a_corpus_that_does_not_answer_raises_and_has_no_snapshot(story: Story, tmp_path: Path):
    store = Runs(tmp_path / "runs")
    with story.open(runs=store) as retriever:
        with unread(story, "/packs/"), pytest.raises(StoreError, match=NO_ANSWER):
            retriever.retrieve(ROWS[0])
        assert not store.run_ids()
        found = retriever.retrieve(ROWS[0])  # under the same id: it was not used yet
        assert found.status == "ok" and found.snapshot_id
        assert verify(store, found.snapshot_id).ok


@pytest.mark.parametrize("takes", [True, False])
def test_a_request_whose_snapshot_may_stand_is_not_asked_again_under_its_id(tmp_path: Path, takes: bool):
    failing = FailingStore()
    story, store = handlers(tmp_path), Runs(failing.at(tmp_path.name))
    with story.open(runs=store) as retriever:
        assert retriever.retrieve(ROWS[0]).snapshot_id
        failing.puts, failing.takes, failing.silent = 1, takes, True  # the file, and then its line
        (told,) = (c for c in retriever.retrieve(ROWS[1]).conditions if c["condition"] == "snapshot_missing")
        assert "No space left on device - at memory://" in told["message"]
        failing.puts, failing.silent = None, False
        with pytest.raises(InputError, match="got one that was asked before - at q1"):
            retriever.retrieve(ROWS[1])
        assert (retriever.retrieve(ROWS[2]).snapshot_id or "").endswith("-0003")
    (run,) = store.list()
    assert not run.files and sorted(run.snapshots["request_id"].to_pylist()) == (
        ["q0", "q1", "q2"] if takes else ["q0", "q2"]
    )
    assert verify(store, run.run_id).ok


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("engine", ["one process", "two processes", "ray"])
def test_a_pack_that_went_ends_a_run_of_every_engine_and_once_it_is_back_the_run_is_resumed(
    s3: str, tmp_path: Path, engine: str, request: pytest.FixtureRequest
):
    place = place_of(f"{s3}/{tmp_path.name}")
    assert isinstance(place, ObjectPlace)
    story, runs = handlers(place), Runs(tmp_path / "runs")  # type: ignore[arg-type]  # a story takes any place
    files = [folder / "evidence.arrow" for folder in (place / "corpus/packs").iterdir()]
    packs = {file: file.read_bytes() for file in files if file.exists()}
    for pack in packs:
        pack.unlink()
    how: Any = {"one process": in_this_process, "two processes": ProcessEngine(2), "ray": RayEngine()}[engine]
    if engine == "ray":
        request.getfixturevalue("cluster")
    with pytest.raises(StoreError, match=r"Expected a pack, got none - at s3://") as caught:
        run(story, tmp_path / "runs", requests=ROWS, engine=how)
    (run_id,) = runs.unfinished()
    assert caught.value.hint.startswith("open the corpus again")
    assert caught.value.hint.endswith(f"`run --resume {run_id}` completes the run")
    for pack, data in packs.items():
        pack.write_bytes(data)
    assert run(story, tmp_path / "runs", resume=run_id, engine=how).statuses == {"ok": 4}
    assert verify(runs, run_id).ok
