"""Calls that many threads make at once, answered together: `Grouped`.

Note: no caller waits for a group to fill. The first caller answers; concurrent callers
wait, and the next of them answers for all that wait. So a single caller loses no time, and the
more there are, the larger the groups. Who was answered leaves at once: with a lock that each must take to see its
answer, who asks again overtakes the others at it, and they wait through its next groups instead of joining them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


@dataclass(eq=False)
class _Call(Generic[Question, Answer]):
    """One caller in line, and what came of it."""

    asked: Question
    answer: Answer | Exception | None = None
    done: bool = False


class Grouped(Generic[Question, Answer]):
    """A function over many questions, called with one at a time by as many threads as there are.

    Args:
        answers: an answer or an error per question, in their order; never called by two threads at once. Each is its
            caller's when it is given. What it raises itself is for one question only: those that have no answer yet are
            then asked again one by one.
        most: questions in one group.
    """

    def __init__(self, answers: Callable[[Sequence[Question]], Iterable[Answer | Exception]], most: int) -> None:
        self._answers = answers
        self._most = most
        self._line: list[_Call[Question, Answer]] = []
        self._changed = threading.Condition()
        self._leader: object | None = None

    def __call__(self, asked: Question) -> Answer:
        """The answer to one question; raises its error."""
        call: _Call[Question, Answer] = _Call(asked)
        self._line.append(call)
        try:
            while self._leads(call, lambda: call.done):
                self._settle([one for one in list(self._line) if not one.done][: self._most])
                self._pass_on(call)
        finally:  # answered, or interrupted: then its thread must not be answered, and the others keep their places
            self._line.remove(call)
            self._pass_on(call)
        if isinstance(call.answer, Exception):
            raise call.answer
        return call.answer  # type: ignore[return-value]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no group is answered."""
        nobody = object()
        try:
            self._leads(nobody, lambda: False)
            yield
        finally:
            self._pass_on(nobody)

    def waiting(self) -> int:
        """How many callers wait, those being answered included."""
        return len(self._line)

    def _leads(self, one: object, done: Callable[[], bool]) -> bool:
        """Whether it is the turn of this one, once no other has it; not if it was answered in the meantime."""
        with self._changed:
            self._changed.wait_for(lambda: done() or self._leader is None)
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
        except Exception as error:  # whatever a group fails with: each call of it is made alone, and gets its own error
            if len(group) == 1:
                group[0].answer, group[0].done = error, True
            for call in group:
                if not call.done:
                    self._settle([call])
