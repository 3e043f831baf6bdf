"""The bench without peers and without a clock: rows and scores are the line's, and the page is made of the records.

No time is asserted anywhere: what is measured is for people to read.
"""

from __future__ import annotations

from pathlib import Path

import alternate
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from batch_part import shard_inputs
from bench_page import page
from bench_records import RESULTS, latest
from bench_world import SCOPES, World, open_world
from options import Options
from ours import Scoped
from scoped_retrieval.nodes.recall.recall_selection import Found
from scoped_retrieval.nodes.text.text_analysis import query_tokens
from scoped_retrieval.pipeline.asking.retrieval import RunSummary
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.line.driver import build_driver

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """2,000 rows under 109 owners."""
    return open_world(tmp_path_factory.mktemp("bench"), 2_000)


def test_the_page_in_docs_is_made_from_the_records_that_stand() -> None:
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(latest(RESULTS))


@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_is_the_same_rows_to_peers_as_to_us(world: World, name: str) -> None:
    scope = SCOPES[name]
    rows = scope.rows(world.order)
    assert rows.any()
    instants = [int(at.timestamp() * 1_000_000) for at in scope.times(5)]
    expected = [int(np.count_nonzero(rows & (world.order.recorded <= at))) for at in instants]
    assert world.scoped(scope, 5, 10).admissible == expected


def test_our_recall_alone_scores_as_the_line_does(world: World) -> None:
    question = world.order.evidence["text"][42].as_py().strip().splitlines()[-1]
    assert len(set(question.split())) < len(question.split()), "Expected words that come twice"
    project = world.order.evidence["owner_project"][42].as_py()
    with Retriever.open(
        world.path, principal="bench", grants=world.grants, lanes=("lexical",), encoder=None
    ) as retriever:
        tables = retriever.retrieve({"question": question, "project": project}).tables
    line = tables["hits"].filter(pc.invert(tables["hits"]["withheld"]))
    plan = tables["sub_queries"].to_pylist()
    assert line.num_rows
    scoped = Scoped(world.path, world.grants, [{"project": project}], 1_000)
    for one in plan:
        mine = line.filter(pc.equal(line["sub_query_id"], one["sub_query_id"]))
        terms = query_tokens(pa.array([one["query_text"]], pa.large_string())).to_pylist()
        alone = scoped.lexical(scoped.terms_batch(terms))
        ids = scoped.frame.evidence["evidence_id"].take(pa.array(alone.row)).to_pylist()
        scores = dict(zip(ids, alone.score.tolist(), strict=True))
        found = zip(mine["evidence_id"].to_pylist(), mine["score"].to_pylist(), strict=True)
        assert all(scores[evidence] == score for evidence, score in found)


def test_the_terms_that_peers_get_are_as_many_as_our_rows_are_long(world: World) -> None:
    assert np.diff(world.tokens.starts).tolist() == world.order.evidence["length"].to_pylist()


def test_plain_calls_in_the_order_of_the_plan_give_what_the_driver_gives(world: World, tmp_path: Path) -> None:
    (tmp_path / "corpus").symlink_to(world.path)
    inputs, given = shard_inputs(tmp_path, Options(tmp_path))
    driver = build_driver()
    known = {**inputs, **given}
    for call in driver.plan(("snapshots",), frozenset(known)):
        known[call.name] = call.function(**{need: known[need] for need in call.needs})
    assert known["snapshots"].num_rows
    assert known["snapshots"].equals(driver.execute(["snapshots"], inputs=inputs, overrides=given)["snapshots"])


@pytest.mark.parametrize("kind", ["lexical/one-owner", "line/words", "line/single"])
def test_a_round_does_the_work_of_its_row(
    kind: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alternate, "QUERIES", 8)
    monkeypatch.setattr(alternate, "SINGLE", 2)
    monkeypatch.setattr("bench_world.open_world", lambda *_, **__: world)
    rounds = alternate.Rounds(tmp_path, vectors=False)
    done = rounds.call(kind, 1)()
    if kind.startswith("lexical"):
        assert isinstance(done, Found)
        assert len(done.row)
        assert done.sub.max() < 8
    elif kind == "line/single":
        assert isinstance(done, list)
        assert len(done) == 2
    else:
        assert isinstance(done, RunSummary)
        assert sum(done.statuses.values()) == 8
