"""The promises over generated worlds: each holds for every case, and fails for a planted fault.

The faults are in `test_planted_faults.py`; both files call the same `check_*` functions of `tests/support/promises.py`.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import FEWER, PROFILE
from promises import (
    asked,
    check_hard_budget,
    check_merge,
    check_non_interference,
    check_one_answer,
    check_replay,
    check_reports,
    expect_conservation,
    expect_contributions,
)
from worlds import BOUND, Row, World, foreign_rows, worlds


@settings(PROFILE)
@given(worlds(), st.lists(foreign_rows(), min_size=1, max_size=8))
def test_rows_outside_the_scope_change_nothing_the_caller_sees(world: World, planted: list[Row]) -> None:
    check_non_interference(world, planted)


REPORTED_NOW = (*BOUND, "future", "not yet valid")
"""What shuts nothing out of a report: it names no field, and is of today."""


@settings(FEWER)
@given(worlds(asked=1), st.lists(foreign_rows(but=REPORTED_NOW), min_size=1, max_size=8))
def test_rows_outside_the_scope_change_nothing_that_doctor_corpus_info_and_the_server_report(
    world: World, planted: list[Row]
) -> None:
    check_reports(world, planted)


HISTORY = ("superseded", "deleted")
"""What shuts nothing out of a review."""


@settings(FEWER)
@given(worlds(modes=("review",)), st.lists(foreign_rows(but=HISTORY), min_size=1, max_size=8))
def test_rows_outside_the_scope_change_nothing_a_review_sees(world: World, planted: list[Row]) -> None:
    check_non_interference(world, planted)


@settings(FEWER)
@given(worlds(), st.integers(1, 9), st.randoms(use_true_random=False), st.sampled_from([1, 2, 4]))
def test_a_request_has_one_answer_alone_and_in_any_batch(world: World, batch: int, order: object, threads: int) -> None:
    check_one_answer(world, batch=batch, order=order, threads=threads)


@settings(FEWER)
@given(worlds(), st.integers(1, 5))
def test_merging_segments_moves_no_answer(world: World, publications: int) -> None:
    check_merge(world, publications=publications)


@settings(FEWER)
@given(worlds())
def test_every_candidate_ends_in_exactly_one_decision_and_contributions_add_up_to_the_final_score(world: World) -> None:
    tables = asked(world)
    expect_conservation(tables)
    expect_contributions(tables)


@settings(FEWER)
@given(worlds(), st.integers(1, 300), st.integers(1, 1_500))
def test_the_block_never_exceeds_its_budget(world: World, max_tokens: int, max_chars: int) -> None:
    check_hard_budget(world, max_tokens=max_tokens, max_chars=max_chars)


@settings(FEWER)
@given(worlds(asked=4))
def test_a_run_replays_and_verifies_without_its_corpus(world: World) -> None:
    check_replay(world)
