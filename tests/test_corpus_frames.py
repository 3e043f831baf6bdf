"""The frames that a corpus caches: which stay, and that threads may ask for them at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Barrier, Thread

import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus import frame as frames
from scoped_retrieval.pipeline.corpus.frame import KeptFrames

NAMES = [f"p{number}" for number in range(12)]


ROWS = [{"text": name, "owner_project": name} for name in NAMES]
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
