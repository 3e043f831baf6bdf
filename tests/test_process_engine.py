"""Shards run by several processes give what this process gives; none of them outlives the one that began them."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from dying_encoder import DyingEncoder
from engine_runs import ASKED, QUESTIONS, asked, digests, handlers
from scoped_retrieval.nodes.errors import EngineError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine, local_engine
from scoped_retrieval.pipeline.runs import Runs, verify
from scoped_retrieval.pipeline.sources.importing import normalize
from small_corpus import NOON, Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return handlers(tmp_path)


def test_shards_run_by_processes_give_the_digests_of_this_process(story: Story):
    here = asked(story, "here")
    there = asked(story, "there", engine=ProcessEngine(2))
    assert digests(here) == digests(there)
    assert not verify(Runs(story.folder / "there"), there.run_id).problems


def test_a_worker_that_dies_leaves_a_run_that_the_same_engine_resumes(story: Story):
    whole = asked(story, "whole")
    (story.folder / "met").mkdir()
    engine = ProcessEngine(2)
    with pytest.raises(EngineError, match="A worker process died - at run-") as raised:
        asked(story, "runs", engine=engine, encoder=DyingEncoder(story.folder / "met", 1))
    (run_id,) = Runs(story.folder / "runs").unfinished()
    assert f"`run --resume {run_id}` completes the run" in raised.value.hint
    with story.open(runs=story.folder / "runs", shard_requests=1) as opened:
        assert digests(opened.run(resume=run_id, engine=engine)) == digests(whole)


WAITING = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
import waiting_encoder
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine
from scoped_retrieval.pipeline.asking.retriever import Retriever

if __name__ == "__main__":
    folder = Path({folder!r})
    with Retriever.open(folder / "corpus", principal="ana", grants=folder / "grants.yaml", runs=folder / "runs",
                        encoder=waiting_encoder.Waiting(folder / "pipe"), shard_requests=1) as opened:
        opened.run({asked!r}, engine=ProcessEngine(2))
"""


def test_workers_end_with_the_process_that_began_them(story: Story):
    """Two workers wait in the encoder forever; only they and their parent hold the other end of the pipe."""
    os.mkfifo(story.folder / "pipe")
    script = story.folder / "script.py"
    asked_now = [ASKED | {"question": question} for question in QUESTIONS[:4]]
    script.write_text(WAITING.format(path=[one for one in sys.path if one], folder=str(story.folder), asked=asked_now))
    begun = os.open(story.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True) as parent:
        try:
            for _ in range(2):
                waiting = select.poll()
                waiting.register(begun, select.POLLIN)
                assert waiting.poll(240_000) and os.read(begun, 1) == b".", "both workers have begun"
            parent.kill()
            assert parent.communicate(timeout=60)[0] == b"", "it ends when the last process has closed it"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
            os.close(begun)


def test_a_corpus_of_rows_is_answered_by_several_processes_and_goes_with_its_last_reader(story: Story):
    rows, _ = normalize(
        pa.table({"source_id": ["doc:a"], "text": ["amber"]}), project="shop", principal="ana", now=NOON
    )
    corpus = Corpus.of_rows(rows, now=NOON)
    folder = corpus.path
    with Retriever.open(
        corpus, principal="ana", grants=story.folder / "grants.yaml", runs=story.folder / "runs", clock=lambda: NOON,
        shard_requests=1,
    ) as opened:  # fmt: skip
        many = [ASKED | {"question": question} for question in QUESTIONS]
        del corpus
        assert sum(opened.run(many, engine=local_engine(2)).statuses.values()) == len(many)
        assert folder.exists()
    del opened
    gc.collect()
    assert not folder.exists()
