"""The bench without peers and without a clock: turns, records, the page, and that our recall alone is the line's.

No time is asserted anywhere: what is measured is for people to read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path

import alternate
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import run as bench_run
from agreement import same_up_to_ties
from batch_part import shard_inputs
from bench_limits import LIMITS, limits_of
from bench_page import page
from bench_records import FIELDS, RESULTS, Row, append, latest, record
from bench_world import SCOPES, World, built_with, is_built, open_world
from options import Options
from ours import Scoped
from parts import PARTS
from rounds import Contestant, interleaved, turns
from scoped_retrieval.nodes.recall.recall_selection import Found
from scoped_retrieval.nodes.text.text_analysis import query_tokens
from scoped_retrieval.pipeline.asking.retrieval import RunSummary
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.line.driver import build_driver

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "benchmarks.md"
HERE = {
    "cores": 2, "load": 0.5, "versions": {"scoped-retrieval": "0.1.0", "peer": "1.0"}, "python": "3.11.7",
    "commit": "abc1234", "at": "2026-05-01T12:00:00+00:00", "command": "python tests/bench/run.py",
}  # fmt: skip


def row(**values: object) -> Row:
    """A row with a figure for everything that has one."""
    known = {
        "part": "lexical", "row": "lexical/whole", "what": "lexical batch", "unit": "queries/s", "ours": 1234.56,
        "value": 2.5, "value_unit": "x the fastest", "aim": "5x the fastest", "met": False,
        "systems": {"peer": 493.8}, "settings": {"ours": "k1 1.2", "peer": "its best"}, "precompute_seconds": 0.0123,
        "chunks": 100_000, "rounds": 5, "queries": {"ours": 1000, "peer": 200},
        "spread": {"ours": [1200.0, 1300.0], "peer": [480.0, 500.0]}, "notes": "40 answers compared",
    }  # fmt: skip
    return Row(**{**known, **values})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """2,000 rows under 109 owners."""
    return open_world(tmp_path_factory.mktemp("bench"), 2_000)


# --- turns -----------------------------------------------------------------------------------------------------------


def test_every_round_has_everybody_once_and_begins_with_the_next() -> None:
    assert turns(["a", "b", "c"], 4) == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]


def test_no_query_is_asked_in_two_rounds_and_everybody_gets_the_same() -> None:
    asked: dict[str, list[range]] = {"a": [], "b": []}
    ticks = count()

    def contestant(name: str) -> Contestant:
        return Contestant(name, lambda which: which, asked[name].append, "")

    timings = interleaved(
        [contestant("a"), contestant("b")], queries=40, rounds=3, seconds=1e9, clock=lambda: next(ticks)
    )
    rounds = asked["a"][-3:]
    assert rounds == [range(10, 20), range(20, 30), range(30, 40)]
    assert asked["b"][-3:] == rounds
    assert all(one.stop <= 10 for one in asked["a"][:-3])  # the warm-up
    assert {name: len(one.seconds) for name, one in timings.items()} == {"a": 3, "b": 3}


def test_a_slow_system_answers_fewer_queries_but_no_fewer_than_its_batch() -> None:
    now = [0.0]

    def spend(which: range) -> None:
        now[0] += len(which)  # a second per query

    slow = Contestant("slow", lambda which: which, spend, "")
    batch = Contestant("batch", lambda which: which, spend, "", least=50)
    bounded = Contestant("bounded", lambda which: which, spend, "", most=7)
    timings = interleaved([slow, batch, bounded], queries=400, rounds=3, seconds=20.0, clock=lambda: now[0])
    assert {name: one.queries for name, one in timings.items()} == {"slow": 20, "batch": 50, "bounded": 7}
    assert timings["slow"].rate == 1.0


# --- records and page ------------------------------------------------------------------------------------------------


def test_a_record_has_every_field_with_figures_of_four_digits() -> None:
    one = record(row(), HERE, 512)
    assert tuple(one) == FIELDS
    assert one["ours"] == 1235.0
    assert one["precompute_seconds"] == 0.0123
    assert one["spread"]["ours"] == [1200.0, 1300.0]
    assert json.loads(json.dumps(one)) == one


def test_the_newest_record_of_a_row_and_size_counts_and_other_lines_do_not(tmp_path: Path) -> None:
    path = tmp_path / "bench.jsonl"
    path.write_text('{"what": "something else", "requests": 10}\n', encoding="utf-8")
    sizes = [record(row(chunks=size, ours=ours), HERE, 1) for size, ours in ((10, 1.0), (20, 2.0), (10, 3.0))]
    append(sizes, path)
    assert [(one["chunks"], one["ours"]) for one in latest(path)] == [(10, 3.0), (20, 2.0)]


def test_every_recorded_row_has_the_fields_of_a_record() -> None:
    for one in latest(RESULTS):
        assert set(one) == set(FIELDS)


@pytest.mark.golden
def test_the_page_is_rendered_from_records() -> None:
    curve = {"curve": {"x": [1, 2], "x_label": "workers", "y": {"ours": [5.0, 9.0]}}}
    rows = [
        row(),
        row(row="lexical/one-owner", what="lexical batch, one owner", value=6.0, met=True, notes=""),
        row(
            part="scaling", row="scaling/workers", what="by workers", unit="requests/s", ours=9.0, value=1.8, systems={},
            value_unit="x from 1 to 2", aim="", met=None, settings={}, precompute_seconds=None, spread={}, extra=curve,
        ),
    ]  # fmt: skip
    found = page([record(one, HERE, 512) for one in rows])
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


def test_the_page_in_docs_is_made_from_the_records_that_stand() -> None:
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(latest(RESULTS))


def test_the_page_says_of_every_missed_aim_by_how_much_and_what_limits_it() -> None:
    missed = [one for one in latest(RESULTS) if one["met"] is False]
    assert {one["row"] for one in missed} <= LIMITS.keys()
    own = limits_of(
        [record(row(row="batch/writing", value=628.0, value_unit="us", aim="at most 300 us", met=False), HERE, 1)]
    )
    assert "628 us; the aim is at most 300 us. A request writes" in own
    assert limits_of([record(row(met=True), HERE, 1), record(row(met=None), HERE, 1)]) == ""


def test_the_page_opens_with_what_it_does_not_show() -> None:
    first = next(line for line in page([]).splitlines() if line.startswith("## "))
    assert first == "## What this page does not show"


# --- the runner ------------------------------------------------------------------------------------------------------


def test_the_command_on_record_names_no_path(tmp_path: Path) -> None:
    options, asked = bench_run.read_arguments(["--work", str(tmp_path), "--parts", "dense", "--chunks", "1000000"])
    assert asked.command == "python tests/bench/run.py --chunks 1000000 --parts dense"
    assert bench_run.command_of(Options(tmp_path), bench_run.DEFAULT) == "python tests/bench/run.py"
    assert options.work == tmp_path


def test_a_part_that_fails_keeps_its_rows_and_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        name = "broken"

        def rows(self, options: Options):
            yield row()
            raise RuntimeError("a peer is not what was expected")

    into = tmp_path / "rows.jsonl"
    with pytest.raises(RuntimeError):
        bench_run.measure(Broken(), Options(tmp_path), into, "command")  # type: ignore[arg-type]
    assert [one["row"] for one in bench_run.rows_in(into)] == ["lexical/whole"]
    assert not bench_run.finished(into)


def test_a_package_that_is_missing_is_named_with_what_brings_it(tmp_path: Path) -> None:
    log = tmp_path / "lexical.log"
    log.write_text("Traceback (most recent call last):\n  File\nModuleNotFoundError: No module named 'bm25s'\n")
    assert bench_run.why(log) == "no package bm25s is installed here: use `make bench`"
    log.write_text("RuntimeError: a peer is not what was expected\n")
    assert bench_run.why(log) == f"its output stands in {log}"


def test_every_part_names_a_function_that_exists() -> None:
    for part in PARTS.values():
        source = (ROOT / "tests" / "bench" / f"{part.module}.py").read_text(encoding="utf-8")
        assert f"def {part.function}(options: Options)" in source, part.name


# --- results ---------------------------------------------------------------------------------------------------------


def test_rows_of_equal_scores_may_stand_for_each_other_and_no_others() -> None:
    def ranked(rows: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(np.array(rows), np.array([3.0, 2.0, 1.0]))]

    assert same_up_to_ties(ranked([1, 2, 3]), ranked([1, 2, 4])) == 1
    with pytest.raises(AssertionError, match="Expected the same rows, got 2 others - at query 0"):
        same_up_to_ties(ranked([1, 2, 3]), ranked([1, 4, 3]))
    with pytest.raises(AssertionError, match="Expected 0 rows, got 3 - at query 0"):
        same_up_to_ties(ranked([1, 2, 3]), [(np.array([]), np.array([]))])


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


def test_a_corpus_of_other_code_is_built_again(tmp_path: Path) -> None:
    assert not is_built(tmp_path)
    for mark, built in ((built_with(), True), (f"{built_with()}\nnames", True), ("0" * 64, False), ("", False)):
        (tmp_path / "built").write_text(mark, encoding="utf-8")
        assert is_built(tmp_path) is built


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


def test_a_row_holds_plain_values_only() -> None:
    assert json.loads(json.dumps(asdict(row()))) == asdict(row())


# --- two checkouts ---------------------------------------------------------------------------------------------------


def test_workers_take_turns_and_the_first_rounds_do_not_count() -> None:
    asked: list[tuple[str, int]] = []

    def worker(name: str, seconds: float) -> Callable[[str, int], float]:
        def ask(kind: str, number: int) -> float:
            asked.append((name, number))
            return seconds + number

        return ask

    taken = alternate.in_turns([worker("old", 1.0), worker("new", 2.0)], "line/words", 2)
    assert [name for name, _ in asked] == ["new", "old", "old", "new", "new", "old", "old", "new"]
    assert taken == [[3.0, 4.0], [4.0, 5.0]]
    assert "+28.6 % (medians) +33.3 % (minima)" in alternate.line("line/words", *taken)


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
