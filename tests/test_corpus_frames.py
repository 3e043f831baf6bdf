"""The frames that a corpus caches: which stay, and that threads may ask for them at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Barrier, Thread

import numpy as np
import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.nodes.frames import LISTS_KEPT
from scoped_retrieval.pipeline.corpus import Corpus, CorpusFrame
from scoped_retrieval.pipeline.corpus import frame as frames
from scoped_retrieval.pipeline.corpus.frame import KeptFrames

NAMES = [f"p{number}" for number in range(12)]


ROWS = [{"text": name, "owner_project": name} for name in NAMES]
SCOPE = (np.array([0]), np.array([0]))
"""The one row of a frame, and its one segment."""


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A row for each of `NAMES`."""
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows(*map(dict, ROWS)), now=day(1))
    return corpus


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_small_frames_stay_at_hand_and_large_ones_make_room(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FEWEST_KEPT", 2)
    for rows_kept, stays in ((3, True), (2, False)):
        monkeypatch.setattr(frames, "ROWS_KEPT", rows_kept)
        view = corpus.view()
        first, last = view.frame(["p0"]), [view.frame([name]) for name in ("p1", "p2")][-1]
        assert (view.frame(["p0"]) is first, view.frame(["p2"]) is last) == (stays, True)


@pytest.mark.usefixtures("many_switches")
def test_threads_may_ask_for_frames_at_once(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FEWEST_KEPT", 2)
    monkeypatch.setattr(frames, "MOST_KEPT", 4)
    opened = {name: corpus.frame([name]) for name in NAMES}
    kept, start, wrong = KeptFrames(), Barrier(8), []

    def ask(seed: int) -> None:
        chance = Random(seed)
        start.wait()
        try:
            for _ in range(2_000):
                name = chance.choice(NAMES)
                assert kept.get((name,), lambda _, name=name: opened[name]) is opened[name]
        except Exception as error:  # a thread's own errors end nowhere
            wrong.append(error)

    threads = [Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_that_open_a_frame_at_once_share_one(corpus: Corpus) -> None:
    kept, both, found = KeptFrames(), Barrier(2, timeout=60), []

    def opened(_: object) -> CorpusFrame:
        both.wait()
        return corpus.view().frame(["p0"])

    threads = [Thread(target=lambda: found.append(kept.get(("p0",), opened))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is kept.get(("p0",), opened)


def test_every_view_keeps_frames_of_its_own(corpus: Corpus) -> None:
    view = corpus.view()
    other = view.view()
    assert other.generation == view.generation
    assert other.frame(["p0"]) is not view.frame(["p0"])


def test_the_lists_that_all_frames_keep_together_have_one_bound(corpus: Corpus) -> None:
    for either in (corpus, Corpus.of_rows(import_rows(*map(dict, ROWS)), now=day(1))):
        kept = [either.frame([name]).postings.whole_scopes for name in ("p0", "p1", "p2")]
        for lists, value in zip(kept, "abc", strict=True):
            lists.put(SCOPE, value, LISTS_KEPT // 2)
        assert [lists.get(SCOPE) for lists in kept] == [None, "b", "c"]


def test_the_lists_of_frames_that_are_used_in_turn_stay(corpus: Corpus) -> None:
    for value in "ab":
        corpus.frame([f"p{'ab'.index(value)}"]).postings.whole_scopes.put(SCOPE, value, LISTS_KEPT // 2)
    for _ in range(2):
        assert [corpus.frame([name]).postings.whole_scopes.get(SCOPE) for name in ("p0", "p1")] == ["a", "b"]


def test_the_lists_of_a_frame_go_with_it(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FEWEST_KEPT", 1)
    monkeypatch.setattr(frames, "MOST_KEPT", 1)
    first = corpus.frame(["p0"])
    first.postings.whole_scopes.put(SCOPE, "a", 1)
    assert len(first.postings.whole_scopes) == 1
    corpus.frame(["p1"])
    assert len(first.postings.whole_scopes) == 0
