"""Batches concurrent calls from many threads: `Grouped`.

Note: no caller waits for a group to fill. The first caller answers; concurrent callers wait, and the next of them
answers for all that wait. So a single caller loses no time, and groups grow with the number of callers. An answered
caller returns at once: if it first had to acquire the lead, callers that ask again would overtake it there, and it
would wait through their groups instead of joining them. A caller whose time is up leaves, and no later group has its
question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..deadline import expect_time, seconds_left

Question = TypeVar("Question")
Answer = TypeVar("Answer")


@dataclass(eq=False)
class _Call(Generic[Question, Answer]):
    """One waiting caller and its result."""

    asked: Question
    answer: Answer | Exception | None = None
    done: bool = False


class Grouped(Generic[Question, Answer]):
    """A batch function that any number of threads call with one question at a time.

    Args:
        answers: an answer or an error per question, in their order; never called by two threads at once. If the
            function itself raises, the questions are asked again one by one.
        most: the largest number of questions in a group.
    """

    def __init__(self, answers: Callable[[Sequence[Question]], Iterable[Answer | Exception]], most: int) -> None:
        self._answers = answers
        self._most = most
        self._waiting: list[_Call[Question, Answer]] = []
        self._changed = threading.Condition()
        self._leader: object | None = None

    def __call__(self, asked: Question) -> Answer:
        """The answer to one question; raises its error."""
        call: _Call[Question, Answer] = _Call(asked)
        self._waiting.append(call)
        try:
            while self._leads(call, lambda: call.done):
                self._settle([one for one in list(self._waiting) if not one.done][: self._most])
                self._pass_on(call)
        finally:  # answered or interrupted: an interrupted call must not be answered; the others keep their places
            self._waiting.remove(call)
            self._pass_on(call)
        if isinstance(call.answer, Exception):
            raise call.answer
        return call.answer  # type: ignore[return-value]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude all groups for the duration of the block."""
        nobody = object()
        try:
            self._leads(nobody, lambda: False)
            yield
        finally:
            self._pass_on(nobody)

    def waiting(self) -> int:
        """The number of waiting callers, including those being answered."""
        return len(self._waiting)

    def _leads(self, one: object, done: Callable[[], bool]) -> bool:
        """Wait until no other caller leads; whether this one leads now, which it does not once it has been answered."""
        with self._changed:
            while not self._changed.wait_for(lambda: done() or self._leader is None, seconds_left()):
                expect_time()
            if not done():
                self._leader = one
            return self._leader is one

    def _pass_on(self, one: object) -> None:
        with self._changed:
            if self._leader is one:
                self._leader = None
                self._changed.notify_all()

    def _settle(self, group: Sequence[_Call[Question, Answer]]) -> None:
        try:
            for call, answer in zip(group, self._answers([call.asked for call in group]), strict=True):
                call.answer, call.done = answer, True
        except Exception as error:  # any failure of a group: each of its calls is repeated alone and gets its own error
            if len(group) == 1:
                group[0].answer, group[0].done = error, True
            for call in group:
                if not call.done:
                    self._settle([call])
