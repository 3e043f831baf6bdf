"""Calls made at once are answered together, each as if alone; who calls alone does not wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from scoped_retrieval.pipeline.asking.grouping import Grouped

QUESTIONS = [1, 2, 3, 4, 5]


def held(answers: Callable[[Sequence[int]], Iterable[int | Exception]], most: int = 100) -> tuple[list, list]:
    """The results of QUESTIONS that wait while question 0 is answered, and the groups that were made."""
    groups: list[list[int]] = []
    begun, full = threading.Event(), threading.Event()

    def noted(group: Sequence[int]) -> Iterable[int | Exception]:
        groups.append(list(group))
        if 0 in group:
            begun.set()
            assert full.wait(60)
            return [0]
        return answers(group)

    grouped = Grouped(noted, most)
    with ThreadPoolExecutor(len(QUESTIONS) + 1) as threads:
        first = threads.submit(grouped, 0)
        assert begun.wait(60)
        calls: list[Future[int]] = []
        for place, question in enumerate(QUESTIONS, start=1):
            calls.append(threads.submit(grouped, question))
            while grouped.waiting() <= place:
                os.sched_yield()
        full.set()
        assert first.result(60) == 0
        return [call.exception(60) or call.result(60) for call in calls], groups


def squares(group: Sequence[int]) -> list[int | Exception]:
    return [question * question for question in group]


def test_who_waits_while_another_is_answered_is_answered_in_one_group():
    assert held(squares) == ([1, 4, 9, 16, 25], [[0], QUESTIONS])


def test_a_group_that_breaks_is_asked_again_one_by_one():
    def no_three(group: Sequence[int]) -> list[int | Exception]:
        if 3 in group:
            raise ValueError("three")
        return list(group)

    found, groups = held(no_three)
    assert [type(one) for one in found] == [int, int, ValueError, int, int]
    assert groups == [[0], QUESTIONS, [1], [2], [3], [4], [5]]


def test_an_interrupt_of_who_answers_leaves_the_others_in_line():
    interrupted: list[int] = []

    def once(group: Sequence[int]) -> list[int | Exception]:
        if not interrupted:
            interrupted.append(1)
            raise KeyboardInterrupt
        return list(group)

    found, groups = held(once)
    assert sorted(type(one).__name__ for one in found) == ["KeyboardInterrupt", "int", "int", "int", "int"]
    (gone,) = [question for question, one in zip(QUESTIONS, found, strict=True) if isinstance(one, KeyboardInterrupt)]
    assert [len(group) for group in groups] == [1, 5, 4]
    assert gone not in groups[2]


def test_of_a_group_that_breaks_half_way_those_without_an_answer_are_asked_again():
    def no_three(group: Sequence[int]) -> Iterator[int | Exception]:
        for question in group:
            if question == 3:
                raise ValueError("three")
            yield question

    found, groups = held(no_three)
    assert [type(one) for one in found] == [int, int, ValueError, int, int]
    assert groups == [[0], QUESTIONS, [3], [4], [5]]
