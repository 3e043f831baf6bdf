"""JSON without repeated keys: of two values for one key, readers differ in which they use.

Gives `strict_json`, for JSON of any author (requests, events, configurations, exported files), and `json_text`, which
writes the values of a caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...nodes.errors import InputError

__all__ = ["RepeatedKeyError", "TooDeepError", "json_text", "strict_json"]


class RepeatedKeyError(ValueError):
    """A key is repeated in an object; `args[0]` is the key."""


class TooDeepError(ValueError):
    """The values are nested too deeply to be read."""


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        RepeatedKeyError: a key is repeated in an object.
        TooDeepError: it is nested too deeply.
        ValueError: it is not JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise TooDeepError("too deep nesting") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        raise RepeatedKeyError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return result


def _unknown(value: Any) -> Any:
    raise TypeError(type(value).__name__)


def json_text(
    value: Any,
    at: str,
    default: Callable[[Any], Any] = _unknown,
    *,
    sort_keys: bool = False,
    allow_nan: bool = False,
) -> str:
    """A value of a caller as JSON in one line. `default` converts values of other types; `allow_nan` allows NaN and infinity.

    Raises:
        InputError: it contains values that JSON lacks, such as bytes, dates and infinite numbers, a lone surrogate,
            which no file and no table can store, or itself.
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, sort_keys=sort_keys, allow_nan=allow_nan, default=default, separators=(",", ":")
        )
        text.encode()
        return text
    except TypeError as error:
        raise InputError.described("JSON values", str(error), at) from error
    except UnicodeEncodeError as error:
        raise InputError("Expected Unicode text, got a lone surrogate", at=at) from error
    except (ValueError, RecursionError) as error:
        cyclic = "Circular" in str(error) or isinstance(error, RecursionError)
        got = "a circular reference" if cyclic else "NaN or infinity" if "range" in str(error) else str(error)
        raise InputError.described("JSON values", got, at) from error
