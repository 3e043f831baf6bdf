"""Lines about how far something is: at each tenth at most, and none for what is soon done."""

from __future__ import annotations

import pytest
from scoped_retrieval.pipeline.progress import StepReporter


@pytest.mark.parametrize(
    ("total", "least", "told"),
    [
        (1, 1, []),
        (10, 1, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (25, 50, []),
    ],
)
def test_a_line_stands_at_each_tenth_and_not_at_the_end(total: int, least: int, told: list[int]):
    said: list[str] = []
    tell = StepReporter(said.append, "{:,} of {:,}", least=least)
    for done in range(total + 1):
        tell(done, total)
    assert said == [f"{done} of {total}" for done in told]
