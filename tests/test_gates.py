"""The list of gates: each is one object that has everything which belongs to it, and the second wall judges each of them."""

from __future__ import annotations

import inspect

import pytest
from scoped_retrieval.nodes.audit.decision_rules import REASON_CODES
from scoped_retrieval.nodes.tables import CONTRACTS, EVIDENCE
from scoped_retrieval.nodes.vocabulary import PLAIN_REASONS
from scoped_retrieval.nodes.walls import second_wall, second_wall_patterns
from scoped_retrieval.nodes.walls.gates import GATES, HIDING, NUMBER, Gate

CLASSES = ("access", "visibility", "time")


def test_access_gates_come_first_and_time_gates_last():
    classes = [gate.gate_class for gate in GATES]
    told = "list access gates, then visibility gates, then time gates in nodes/walls/gates/__init__.py"
    assert classes == sorted(classes, key=CLASSES.index), told
    assert [gate.number for gate in GATES] == list(range(1, len(GATES) + 1)) == list(NUMBER.values())


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_gate_has_everything_that_belongs_to_it(gate: Gate):
    lacking = [name for name in ("doc", "explain", "remedy", "canaries") if not getattr(gate, name)]
    assert not lacking, f"the gate {gate.name} lacks {', '.join(lacking)}"
    assert gate.reason_code in REASON_CODES and gate.reason_code not in PLAIN_REASONS, "declared once, by the gate"
    assert set(gate.columns) <= set(EVIDENCE.columns)
    assert set(gate.contract_columns) <= set(CONTRACTS.columns)
    assert (gate.stops is None) == (gate.gate_class == "time" or gate.name in ("project", "owner"))


def test_reasons_of_canaries_are_told_apart():
    reasons = [canary.reason for gate in GATES for canary in gate.canaries]
    assert len(reasons) == len(set(reasons))


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_the_second_wall_has_a_judgment_of_its_own(gate: Gate):
    source = inspect.getsource(second_wall)
    told = f"judge {gate.name} again in `_by_contract` or `_by_bound` of nodes/walls/second_wall.py"
    assert f'"{gate.name}"' in source, told
    for module in (source, inspect.getsource(second_wall_patterns)):
        assert "stops(" not in module.replace("place_stops(", "").replace("time_stops(", "")


def test_hidden_rows_are_those_that_were_declared_so():
    assert {"visibility", "safety"} == HIDING
