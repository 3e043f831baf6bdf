"""The driver: one wiring, checked tables, and a request that breaks breaks alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from edges import disagreements
from golden_file import expect_golden
from resolving import resolve_requests
from scoped_retrieval.nodes.blocks.token_counting import Counters
from scoped_retrieval.nodes.lanes import NO_VECTORS
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.tables import CAPTURES, FAILURES, REQUESTS, TABLES
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line.driver import Line, build_driver, outputs, run_line
from scoped_retrieval.pipeline.line.provenance import provenance
from scoped_retrieval.pipeline.runs.parts import PER_RUN, READABLE

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
GOLDEN = Path(__file__).parent / "golden" / "dataflow.txt"


@pytest.fixture
def line(corpus: Corpus) -> Line:
    policies, grants = load_policies(), load_grants(Path(corpus.path) / "grants.yaml")
    rests_on = provenance(
        generation=corpus.generation, policies=policies.digest, grants=grants.digest, encoder=None, settings={}
    )
    return Line(corpus, policies.inputs(), grants.table, rests_on)


def asked(*questions: str) -> tuple[pa.Table, pa.Table]:
    rows = [
        {"request_id": f"r{i}", "project": "shop", "purpose": "explain-code", "question": q}
        for i, q in enumerate(questions)
    ]
    requests, _ = resolve_requests(rows, principal="ana", asked_at=NOON)
    return requests, captures(requests["request_id"].to_pylist())


def captures(ids: list[str]) -> pa.Table:
    return CAPTURES.build({"request_id": ids, "snapshot_id": [f"s-{i}" for i in ids], "created_at": [NOON] * len(ids)})


def statuses(tables: dict[str, pa.Table]) -> dict[str, str]:
    return dict(
        zip(tables["snapshots"]["request_id"].to_pylist(), tables["snapshots"]["status"].to_pylist(), strict=True)
    )


@pytest.mark.golden
def test_the_wiring_is_the_golden_one():
    expect_golden(GOLDEN, "".join(f"{line}\n" for line in build_driver().dataflow()))


def test_neighbors_agree_on_the_table_between_them():
    assert disagreements(build_driver()) == []


def test_every_stored_table_has_a_node_or_comes_in_at_the_door():
    assert {table.name for table in READABLE} == {*outputs(), "requests", "failures", *PER_RUN}


def test_every_output_is_the_declared_table(line: Line):
    tables = run_line(*(requests := asked("default role", "what is role_3?"))[:1], FAILURES.empty(), requests[1], line)
    assert set(tables) == {*outputs(), "requests", "failures", "query_vectors", "record", "texts"}
    for name, table in tables.items():
        assert name not in TABLES or TABLES[name].check(table) is table
    assert statuses(tables) == {"r0": "ok", "r1": "ok"}


@dataclass(frozen=True)
class Fragile:
    """A token counter that cannot take one word."""

    word: str
    name: str = "fragile"
    additive: bool = False

    def count(self, texts: pa.Array) -> np.ndarray:
        if pc.any(pc.match_substring(texts, self.word)).as_py():
            raise RuntimeError(f"the text says {self.word}")
        return Counters().get("approx-bpe/1").count(texts)


def test_a_request_that_breaks_the_line_becomes_a_failed_snapshot_and_the_others_go_on(line: Line):
    requests, named = asked("role_1", "role_2", "role_3", "role_4")
    tokenizer = REQUESTS.schema.get_field_index("tokenizer")
    names = pa.array(["approx-bpe/1", "approx-bpe/1", "fragile", "approx-bpe/1"])
    requests = requests.set_column(tokenizer, REQUESTS.schema.field("tokenizer"), names)
    broken = replace(line, counters=Counters({"fragile": Fragile("guest")}))
    tables = run_line(requests, FAILURES.empty(), named, broken)
    assert statuses(tables) == {"r0": "ok", "r1": "ok", "r2": "failed", "r3": "ok"}
    (failure,) = tables["failures"].to_pylist()
    assert failure["request_id"] == "r2"
    assert failure["error"].startswith("Expected no error, got RuntimeError - in ")
    assert "guest" not in failure["error"]
    assert tables["blocks"].filter(pc.equal(tables["blocks"]["request_id"], "r2")).num_rows == 0


@dataclass(frozen=True)
class Broken(Bm25):
    def idf(self, *_: object, **__: object) -> None:  # type: ignore[override]  # a planted fault
        raise RuntimeError("no weights today")


def test_a_lane_that_breaks_is_left_out_and_the_answer_is_partial(line: Line):
    requests, named = asked("what is role_3?", "and role_4?")
    tables = run_line(requests, FAILURES.empty(), named, replace(line, bm25=Broken()))
    assert statuses(tables) == {"r0": "partial", "r1": "partial"}
    failed = [row for row in tables["conditions"].to_pylist() if row["condition"] == "lane_failed"]
    assert {(row["subject"], row["action"]) for row in failed} == {("lexical", "degrade")}
    assert tables["hits"].num_rows
    assert "lexical" not in tables["hits"]["lane"].to_pylist()


def test_a_lane_that_is_off_says_why(line: Line):
    requests, named = asked("default role")
    tables = run_line(requests, FAILURES.empty(), named, replace(line, lanes_off={"graph": "not yet"}))
    assert statuses(tables) == {"r0": "ok"}
    off = [row for row in tables["conditions"].to_pylist() if row["condition"] == "lane_off"]
    assert [(row["subject"], row["action"], row["message"]) for row in off] == [
        ("graph", "continue", "not yet"),
        ("semantic", "continue", NO_VECTORS),
    ]


def test_a_request_refused_at_the_door_has_a_snapshot(line: Line):
    failures = FAILURES.build({"request_id": ["row-1"], "error": ["Expected a purpose, got none"]})
    tables = run_line(REQUESTS.empty(), failures, captures(["row-1"]), line)
    (snapshot,) = tables["snapshots"].to_pylist()
    assert (snapshot["status"], snapshot["action"], snapshot["recalled"]) == ("failed", "block", 0)
    assert snapshot["error"] == "Expected a purpose, got none"
