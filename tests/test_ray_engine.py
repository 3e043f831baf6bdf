"""Shards run as Ray tasks give what this process gives, whatever dies on the way; each door that stays shut says why.

One worker is killed and resumption tried; under TEST_PROFILE=full twenty on two nodes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dying_encoder
import pytest
import stand_in_encoder
from dying_encoder import DyingEncoder
from engine_runs import ASKED, asked, digests, handlers
from scoped_retrieval.nodes.errors import EngineError
from scoped_retrieval.pipeline.engines import ray_engine
from scoped_retrieval.pipeline.engines.ray_engine import RayEngine
from scoped_retrieval.pipeline.runs import Runs, verify
from small_corpus import Story

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time on one machine


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return handlers(tmp_path)


def test_shards_run_by_ray_give_the_digests_of_this_process_after_a_worker_died(story: Story, cluster: None):
    (story.folder / "met").mkdir()
    here = asked(story, "here")
    there = asked(story, "there", engine=RayEngine(), encoder=DyingEncoder(story.folder / "met", 1))
    assert len(list((story.folder / "met").iterdir())) == 1
    assert digests(there) == digests(here)
    assert there.statuses == {"ok": 6}
    assert not verify(Runs(story.folder / "there"), there.run_id).problems


def test_a_run_that_an_interrupt_cut_short_is_finished_by_either_engine(story: Story, cluster: None):
    whole = asked(story, "whole")

    def two_of_them(job, shards, clock):
        yield from RayEngine()(job, shards[:2], clock)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked(story, "cut", engine=two_of_them)
    (run_id,) = Runs(story.folder / "cut").unfinished()
    with story.open(runs=story.folder / "cut", shard_requests=1) as opened:
        rest = opened.run(resume=run_id, engine=RayEngine())
    assert digests(rest) == digests(whole)


def test_a_worker_of_another_version_is_refused(story: Story, cluster: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scoped_retrieval.pipeline.line.provenance.code_digest", lambda: "another")
    with pytest.raises(EngineError, match="Expected the version of scoped-retrieval that began the run"):
        asked(story, "runs", engine=RayEngine(), count=1)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_does_not_answer_is_an_error_before_a_run_is_begun(story: Story, address: str):
    (story.folder / "asked.jsonl").write_text(json.dumps(ASKED | {"question": "amber"}))
    where = f"--corpus corpus --grants grants.yaml --runs runs -c lanes=lexical -c engine=ray -c ray_address={address}"
    main = "import sys; from scoped_retrieval.pipeline.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", main, "run", "asked.jsonl", *where.split()]
    environment = os.environ | {"SCOPED_RETRIEVAL_PRINCIPAL": "ana"}
    done = subprocess.run(command, cwd=story.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == EngineError.exit_code, done.stderr
    said, _, hint = done.stderr.partition("\n\n")
    assert said.startswith("error: Expected a Ray cluster, got ") and said.endswith(f" - at {address}")
    assert "run --resume" not in hint
    assert not [*(story.folder / "runs").glob("run-*")]


def test_without_the_extra_the_error_says_how_to_install_it(story: Story, monkeypatch: pytest.MonkeyPatch):
    ray_engine._ray.cache_clear()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"install scoped-retrieval\[ray\]"):
        asked(story, "runs", engine=RayEngine(), count=1)


@pytest.mark.full
def test_twenty_workers_die_on_two_nodes_and_nothing_is_lost_or_doubled(tmp_path):
    from ray.cluster_utils import Cluster

    story = handlers(tmp_path)
    for module in (dying_encoder, stand_in_encoder):
        ray.cloudpickle.register_pickle_by_value(module)
    ray.shutdown()  # the cluster of other tests: a process is connected to one alone
    (story.folder / "met").mkdir()
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    try:
        nodes.add_node(num_cpus=2)
        here = asked(story, "here", count=21)
        engine = RayEngine(nodes.address)
        there = asked(story, "there", count=21, engine=engine, encoder=DyingEncoder(story.folder / "met", 20))
    finally:
        nodes.shutdown()
    assert len(list((story.folder / "met").iterdir())) == 20
    assert digests(there) == digests(here)
    assert there.statuses == {"ok": 21}
    assert not verify(Runs(story.folder / "there"), there.run_id).problems
