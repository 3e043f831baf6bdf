"""Gates, lanes, score terms and readers are listed once, and everything that names them reads the one list."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scoped_retrieval.nodes.errors import SchemaError
from scoped_retrieval.nodes.lanes import LANE_NAMES
from scoped_retrieval.nodes.walls import gate_predicates
from scoped_retrieval.nodes.walls.gates import GATES
from scoped_retrieval.nodes.walls.segment_columns import SegmentColumns
from scoped_retrieval.pipeline.config.policies.tables import load_policies


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


def test_every_lane_is_used_by_a_rule_of_a_purpose():
    rules = load_policies().plan_rules
    used = {lane for lanes in rules["lanes"].to_pylist() for lane in lanes} | {"graph"}  # that of an effort
    missing = set(LANE_NAMES) - used
    assert not missing, f"name it under `lanes` of a rule in data/policies/purposes: {sorted(missing)}"


def test_declared_settings_load_nothing_of_the_data_stack():
    code = (
        "import sys, scoped_retrieval.pipeline.config.declared_settings; print({'numpy', 'pyarrow'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
