"""Rows in the order of several columns, whether those are sorted as one number or one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scoped_retrieval.nodes.columns import orders
from scoped_retrieval.nodes.columns.orders import order_by

LARGEST = 2**63 - 1


@pytest.fixture(scope="module", params=[0, orders.FEW_ROWS], autouse=True)
def few(request: pytest.FixtureRequest) -> Iterator[None]:
    """Many rows and few rows are put in the same order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "FEW_ROWS", request.param)
        yield


NUMBERS = st.sampled_from([0, 1, -1, 5, 2**30, 2**40, -(2**62), LARGEST, -LARGEST - 1])
SCORES = st.sampled_from([0.0, -0.0, 2.0**-30, -(2.0**-30), 3.5, 2.0**21, 1e-12, 0.1, 2.0**22, 1e300, float("-inf")])
VALUES = {np.int64: NUMBERS, np.int32: st.integers(-3, 3), np.bool_: st.booleans(), np.float64: SCORES}
ROWS = st.integers(0, 8)


@given(ROWS, st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4), st.data())
@example(3, [np.int64], None)
def test_rows_are_in_the_order_of_the_first_column_then_the_next(
    rows: int, kinds: list[type], data: st.DataObject | None
):
    columns = [
        np.array(data.draw(st.lists(VALUES[kind], min_size=rows, max_size=rows)) if data else [7] * rows, kind)
        for kind in kinds
    ]
    assert order_by(*columns).tolist() == sorted(range(rows), key=lambda row: [column[row] for column in columns])


def test_columns_that_fill_one_number_to_its_last_bit_keep_their_order():
    wide, narrow = np.array([2**62 - 1, 0, 2**62 - 1, 0]), np.array([1, 1, 0, 0])
    assert order_by(wide, narrow).tolist() == [3, 1, 2, 0]
    assert order_by(narrow, wide).tolist() == [3, 2, 1, 0]
    assert order_by(2 * wide, narrow).tolist() == [3, 1, 2, 0]
    half, rest = wide >> 22, wide >> 40
    assert order_by(half, rest, narrow).tolist() == [3, 1, 2, 0]
    assert order_by(narrow, narrow, half, rest).tolist() == [3, 2, 1, 0]
