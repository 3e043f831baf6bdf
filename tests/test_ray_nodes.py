"""Twenty workers die on a cluster of two nodes, under TEST_PROFILE=full, and a run is what one process makes of it."""

from __future__ import annotations

import dying_encoder
import pytest
import stand_in_encoder
from dying_encoder import DyingEncoder
from engine_runs import asked, digests, handlers
from scoped_retrieval.pipeline.engines.ray_engine import RayEngine
from scoped_retrieval.pipeline.runs import Runs, verify

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time on one machine


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
