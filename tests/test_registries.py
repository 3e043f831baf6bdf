"""Gates, lanes, score terms and readers are listed once, and everything that names them reads the one list."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scoped_retrieval.nodes import candidate_recall, vocabulary
from scoped_retrieval.nodes.errors import SchemaError
from scoped_retrieval.nodes.lanes import LANE_NAMES, LANES
from scoped_retrieval.nodes.score_terms import SCORED, TERMS
from scoped_retrieval.nodes.tables import CONTRACTS, EVIDENCE, PURPOSE_POLICIES, RANKED, RERANK_WEIGHTS, SCORE_TERMS
from scoped_retrieval.nodes.walls import gate_predicates
from scoped_retrieval.nodes.walls.gates import GATES
from scoped_retrieval.nodes.walls.segment_columns import SegmentColumns
from scoped_retrieval.pipeline.cli.app import application
from scoped_retrieval.pipeline.config.declared_settings import SETTINGS
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.config.weight_sets import WEIGHT_SETS
from scoped_retrieval.pipeline.evaluation.evaluate import Asking, lanes_on
from scoped_retrieval.pipeline.line import driver
from scoped_retrieval.pipeline.sources.records import READERS


def test_every_gate_has_a_name_of_its_own_and_reads_columns_that_there_are():
    assert len({gate.name for gate in GATES}) == len(GATES)
    for gate in GATES:
        assert set(gate.columns) <= set(EVIDENCE.columns), gate.name
        assert set(gate.contract_columns) <= set(CONTRACTS.columns), gate.name


@pytest.mark.parametrize(
    ("stops", "message"),
    [
        (lambda segment, _: segment.column("titel"), r"Expected no error, got KeyError - at mine\.stops \(.+, line \d+\)"),
        (lambda segment, _: segment.colum, r"Expected no error, got AttributeError - at mine\.stops \(.+, line \d+\)"),
        (lambda segment, _: np.zeros(segment.rows, np.int64), r"true or false for each of 2 rows, got int64\(2,\) - at mine\.stops"),
        (lambda segment, _: np.zeros(1, np.bool_), r"true or false for each of 2 rows, got bool\(1,\) - at mine\.stops"),
    ],
)  # fmt: skip
def test_a_fault_of_a_gate_names_the_gate_its_function_and_the_line(stops, message: str, monkeypatch):
    monkeypatch.setattr(gate_predicates, "GATES", (replace(GATES[-1], name="mine", stops=stops),))
    with pytest.raises(SchemaError, match=message):
        gate_predicates.stops_by_contract(SegmentColumns(pa.table({"title": ["a", "b"]})), {})


def test_every_lane_has_a_node_and_stands_in_settings_vocabulary_and_driver():
    assert all(hasattr(candidate_recall, f"{name}_hits") for name in LANE_NAMES)
    assert LANE_NAMES == driver.LANES == vocabulary.LANES.values == SETTINGS["lanes"].choices
    assert all(lane.doc and lane.recall is None for lane in LANES)


def test_every_lane_is_used_by_a_rule_of_a_purpose():
    rules = load_policies().plan_rules
    used = {lane for lanes in rules["lanes"].to_pylist() for lane in lanes} | {"graph"}  # that of an effort
    missing = set(LANE_NAMES) - used
    assert not missing, f"name it under `lanes` of a rule in data/policies/purposes: {sorted(missing)}"


def test_eval_asks_by_every_lane_that_there_is():
    assert lanes_on(Asking(Path(), semantic=True, effort="graph")) == LANES
    off = set(LANES) - set(lanes_on(Asking(Path(), semantic=False)))
    assert {lane.name for lane in off} == {"semantic", "graph"}


def test_tables_of_scores_have_a_column_for_every_term_and_no_other():
    names = [term.name for term in TERMS]
    assert [name for name in RERANK_WEIGHTS.columns if name != "request_id"] == names
    assert [name for name in RANKED.columns if name in names] == names
    assert [name for name in SCORE_TERMS.columns if name in names] == [term.name for term in SCORED]
    assert sorted(vocabulary.SCORE_TERMS) == sorted(names)


def test_every_term_but_a_role_s_is_weighed_by_purposes_and_weight_sets():
    weighed = [term.name for term in TERMS if term.family != "role"]
    assert [name.removeprefix("weight_") for name in PURPOSE_POLICIES.columns if name.startswith("weight_")] == weighed
    assert all(sorted(weights) == sorted(weighed) for weights in WEIGHT_SETS.values())


def test_the_shares_of_a_role_s_weight_add_up_to_it():
    shares: dict[str, float] = {}
    for term in TERMS:
        if term.share:
            shares[term.share[1]] = shares.get(term.share[1], 0.0) + term.share[0]
    assert shares == {"semantic": 1.0, "lexical": 1.0, "metadata": 1.0, "rerank": 1.0}


def test_declared_settings_load_nothing_of_the_data_stack():
    code = (
        "import sys, scoped_retrieval.pipeline.config.declared_settings; print({'numpy', 'pyarrow'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


def test_index_has_a_flag_for_every_reader_of_records_with_its_words():
    flags = {flag.name: flag.help for flag in application(["index"]).commands["index"].params}
    assert {reader.name: flags.get(reader.name) for reader in READERS} == {one.name: one.doc for one in READERS}
