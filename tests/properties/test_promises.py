"""The promises of the README over generated worlds: each holds for every case, and fails for a planted fault.

The faults stand in `test_planted_faults.py`; both files call the same `check_*` functions.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from asking import alone, built, caller_view, together
from hypothesis import given
from hypothesis import strategies as st
from worlds import World, foreign_rows, worlds

from scoped_retrieval.nodes.token_counting import Counters
from scoped_retrieval.pipeline.runs import RunStore, replay, verify


def check_non_interference(world: World, planted: list[dict]) -> None:
    """Rows outside A(r) change nothing that the caller of r sees, byte for byte."""
    request = world.requests[0]
    with built(world.rows) as before, built([*world.rows, *planted]) as after:
        first = caller_view(alone(before, request), request["request_id"])
        second = caller_view(alone(after, request), request["request_id"])
    assert first == second


def check_one_answer(world: World, *, shard: int, reverse: bool) -> None:
    """A request has one snapshot digest: alone, in a batch, in any order, in any shard."""
    asked = list(reversed(world.requests)) if reverse else list(world.requests)
    with built(world.rows) as corpus:
        batch = together(corpus, asked, shard=shard)
        digests = dict(
            zip(batch["snapshots"]["request_id"].to_pylist(), batch["snapshots"]["snapshot_digest"].to_pylist(), strict=True)
        )
        for request in world.requests:
            single = alone(corpus, request)
            assert single["snapshots"]["snapshot_digest"].to_pylist() == [digests[request["request_id"]]]


def check_conservation(world: World) -> None:
    """Every candidate ends in exactly one decision row, and the counts add up."""
    with built(world.rows) as corpus:
        for request in world.requests:
            tables = alone(corpus, request)
            keys = tables["candidates"].select(["request_id", "evidence_id"]).to_pylist()
            decided = tables["decisions"].select(["request_id", "evidence_id"]).to_pylist()
            assert sorted(map(str, keys)) == sorted(map(str, decided))
            snapshot = tables["snapshots"].to_pylist()[0]
            assert snapshot["recalled"] == snapshot["selected"] + snapshot["hidden"] + snapshot["rejected"]
            selected = pc.sum(pc.equal(tables["decisions"]["outcome"], "selected")).as_py() or 0
            assert selected == snapshot["selected"]


def check_hard_budget(world: World, *, max_tokens: int, max_chars: int) -> None:
    """The rendered block never exceeds its limits, labels and fences included; what was cut is on record."""
    request = {**world.requests[0], "budget": {"max_tokens": max_tokens, "max_chars": max_chars}}
    with built(world.rows) as corpus:
        tables = alone(corpus, request)
    block = tables["blocks"].to_pylist()[0]
    counted = Counters().count(pa.array([block["text"]]), ["approx-bpe/1"], np.zeros(1, np.int64))
    assert counted[0] <= max_tokens
    assert len(block["text"]) <= max_chars
    assert block["tokens"] <= max_tokens
    labels = set(tables["citations"]["label"].to_pylist())
    assert labels == set(tables["trimmed"]["label"].to_pylist())
    assert all(f"[{label}]" in block["text"] for label in labels)


def check_contributions(world: World) -> None:
    """The contributions of every ranked row add up to its final score with ==."""
    with built(world.rows) as corpus:
        for request in world.requests:
            for row in alone(corpus, request)["ranked"].to_pylist():
                terms = ("semantic", "lexical", "anchor", "authority", "recency", "actionability", "diversity", "scope")
                assert sum(row[term] for term in terms) == row["final"]


@given(worlds(), st.lists(foreign_rows(), min_size=1, max_size=6))
def test_rows_outside_the_scope_change_nothing_the_caller_sees(world: World, planted: list[dict]) -> None:
    check_non_interference(world, planted)


@given(worlds(max_requests=6), st.integers(1, 4), st.booleans())
def test_a_request_has_one_answer_alone_and_in_any_batch(world: World, shard: int, reverse: bool) -> None:
    check_one_answer(world, shard=shard, reverse=reverse)


@given(worlds())
def test_every_candidate_ends_in_exactly_one_decision(world: World) -> None:
    check_conservation(world)


@given(worlds(), st.integers(1, 400), st.integers(1, 2_000))
def test_the_block_never_exceeds_its_budget(world: World, max_tokens: int, max_chars: int) -> None:
    check_hard_budget(world, max_tokens=max_tokens, max_chars=max_chars)


@given(worlds())
def test_contributions_add_up_to_the_final_score(world: World) -> None:
    check_contributions(world)


@given(worlds(max_rows=10, max_requests=2))
def test_a_run_replays_and_verifies_without_its_corpus(world: World) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        with built(world.rows) as corpus:
            tables = together(corpus, list(world.requests), shard=2, runs=runs)
        store = RunStore(runs)
        run = store.list()[0]
        assert verify(store, run.run_id).ok
        for row in tables["snapshots"].to_pylist():
            again = replay(store, row["snapshot_id"])
            assert again.snapshot["snapshot_digest"] == row["snapshot_digest"]
