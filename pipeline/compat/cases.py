"""camelCase names accepted wherever document 004 writes them: arguments and methods."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["either_case", "snake"]

F = TypeVar("F", bound=Callable[..., Any])


def snake(word: str) -> str:
    """`taskText` as `task_text`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()


def either_case(function: F) -> F:
    """The function, taking its keyword arguments in snake_case or camelCase."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        named = {snake(name): value for name, value in kwargs.items()}
        if len(named) < len(kwargs):
            raise TypeError(f"{function.__name__}() got an argument under two names")
        return function(*args, **named)

    return cast(F, called)
