"""Plans: what runs is what Hamilton would run, once; a node that fails is named."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import pytest
from hamilton import ad_hoc_utils
from hamilton.driver import Builder
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError, SchemaError
from scoped_retrieval.nodes.schema import string, table
from scoped_retrieval.pipeline.line.planned_driver import PlannedDriver, failed_node

NAMES = table("names", key=["word"], order=["word"], doc="Names.", word=string("A name."))
RAN: list[str] = []


def left(start: int) -> int:
    RAN.append("left")
    return start + 1


def right(start: int, step: int = 10) -> int:
    RAN.append("right")
    return start + step


def both(left: int, right: int) -> int:
    RAN.append("both")
    return left * right


def beside(right: int) -> int:
    RAN.append("beside")
    return -right


def stepped(right: int, step: int) -> int:
    RAN.append("stepped")
    return right // step


def last(both: int, left: int) -> int:
    RAN.append("last")
    return both - left


def named(last: int) -> Annotated[pa.Table, NAMES]:
    return pa.table({"word": [str(last)]}) if last else pa.table({"other": [last]})


NODES = ("left", "right", "both", "beside", "stepped", "last")
MODULE = ad_hoc_utils.create_temporary_module(
    left, right, both, beside, stepped, last, named, module_name="a_small_graph"
)
PLANNED = PlannedDriver({}, MODULE)
HAMILTON = Builder().with_modules(MODULE).build()


def ran(driver: Any, wanted: list[str], **given: Any) -> tuple[dict[str, Any], list[str]]:
    RAN.clear()
    found = driver.execute(wanted, **given)
    return found, sorted(RAN)


@given(
    wanted=st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True),
    overrides=st.dictionaries(st.sampled_from(NODES), st.integers(0, 9), max_size=3),
    inputs=st.sampled_from([{}, {"step": 5}, {"start": 2}, {"start": 2, "step": 5}]),
)
def test_a_plan_runs_what_hamilton_runs_and_gives_the_same(
    wanted: list[str], overrides: dict[str, int], inputs: dict[str, int]
) -> None:
    try:
        expected = ran(HAMILTON, wanted, inputs=inputs, overrides=overrides)
    except Exception:  # whatever Hamilton calls it
        with pytest.raises(InputError, match=r"Expected a value of st(art|ep), got none - at inputs"):
            PLANNED.execute(wanted, inputs=inputs, overrides=overrides)
        return
    assert ran(PLANNED, wanted, inputs=inputs, overrides=overrides) == expected
    assert ran(PLANNED, wanted, inputs=inputs, overrides=overrides) == expected, "the second time from the same plan"


def test_an_output_that_is_not_the_declared_table_is_refused() -> None:
    assert PLANNED.execute(["named"], overrides={"last": 1})["named"].to_pylist() == [{"word": "1"}]
    with pytest.raises(SchemaError, match="Expected columns word, got other") as caught:
        PLANNED.execute(["named"], overrides={"last": 0})
    assert failed_node(caught.value) == "named"


def test_a_node_that_raises_leaves_its_name() -> None:
    with pytest.raises(TypeError) as caught:
        PLANNED.execute(["last"], overrides={"both": "text", "left": 1})
    assert failed_node(caught.value) == "last"
