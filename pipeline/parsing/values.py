"""Numbers, flags, times and objects as people and programs write them: one parser for each, shared by settings, YAML,
requests and JSON lines.

Gives: `whole`, `number`, `flag`, `instant`, `authority_rank`, `days` and `mapping`. Each takes a value and its place, and returns the parsed
value. A message shows the value if `quoting` permits.

Note: in Python, `True` is a number, and NaN is within no bounds. Neither is accepted as a number here.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import AUTHORITY
from .quoting import canonical, shown

INT32_MAX = 2**31 - 1
_DURATION = re.compile(r"(?:last_)?(?P<number>\d{1,5}(?:\.\d+)?)[ _]?(?P<unit>h|hours?|d|days?|w|weeks?)")
TIME = "a time with an offset, such as 2025-06-01T12:00:00Z"
"""The expected form of an instant."""
YEARS = "a time from year 1 to 9999 in UTC"
"""The expected range of an instant with an offset."""


def whole(value: Any, at: str, least: int = 0, most: float = INT32_MAX) -> int:
    """A whole number within bounds; `2.0` is accepted, as some programs write 2 that way.

    Raises:
        InputError: it is not one, or is out of bounds.
    """
    found = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise InputError.expected(f"a whole number{_bounds(least, most)}", _got(value, at), at)
    return found


def number(value: Any, at: str, least: float = -math.inf, most: float = math.inf) -> float:
    """A finite number within bounds.

    Raises:
        InputError: it is not one, or is out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InputError.expected(f"a number{_bounds(least, most)}", _got(value, at), at)
    if abs(value) > sys.float_info.max:
        raise InputError.expected("a finite number", _got(value, at), at)
    return float(value)


def flag(value: Any, at: str) -> bool:
    """True or false.

    Raises:
        InputError: any other value.
    """
    if not isinstance(value, bool):
        raise InputError.expected("true or false", shown(value, at), at)
    return value


def instant(value: Any, at: str, *, dates: bool = False, milliseconds: bool = False) -> datetime:
    """An instant in UTC from a time or ISO 8601 text with an offset; without one it is ambiguous.

    Args:
        dates: also accept a date, as midnight in UTC.
        milliseconds: also accept a number, as milliseconds since 1970 (C19).

    Raises:
        InputError: it is none of these, or is out of range for a table.
    """
    try:
        if milliseconds and isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    except (ValueError, OverflowError, OSError) as error:
        raise InputError.expected(TIME, shown(value, at), at) from error
    if not isinstance(moment, datetime):
        raise InputError.expected(TIME, shown(value, at), at)
    if moment.utcoffset() is None:
        if dates and isinstance(value, str) and len(value.strip()) == 10:
            return moment.replace(tzinfo=UTC)
        raise InputError.expected(TIME, shown(value, at), at, hint="add Z for UTC, or an offset such as +02:00")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InputError.expected(YEARS, shown(value, at), at) from error


def authority_rank(value: Any, at: str) -> int:
    """A rank of authority, 0 to 3, from a rank or a word of its vocabulary: `low`, `medium`, `high`, ...

    Raises:
        InputError: any other value.
    """
    word = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return AUTHORITY.values.index(canonical(AUTHORITY, word, at))


def days(value: Any, at: str) -> float:
    """Days as a number, or a duration such as `12h`, `30d`, `4w` or `last_30_days`.

    Raises:
        InputError: any other value.
    """
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        return float(match["number"]) * {"h": 1 / 24, "d": 1, "w": 7}[match["unit"][0]]
    if isinstance(value, str):
        raise InputError.expected("days, or a duration such as 12h, 30d, 4w or last_30_days", shown(value, at), at)
    return number(value, at)


def mapping(value: Any, at: str) -> Mapping[str, Any]:
    """An object.

    Raises:
        InputError: any other value.
    """
    if not isinstance(value, Mapping):
        raise InputError.of_kind("an object", value, at)
    return value


def _got(value: Any, at: str) -> Any:
    """Where a number is expected, a number is never a secret, whatever its name, as in `max_tokens`."""
    return value if isinstance(value, (int, float)) else shown(value, at)


def _bounds(least: float, most: float) -> str:
    if most == math.inf:
        return "" if least == -math.inf else f" from {_figure(least)}"
    return f" from {_figure(least)} to {_figure(most)}"


def _figure(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
