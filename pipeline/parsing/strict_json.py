"""JSON without repeated keys: of two values for one key, readers differ in which they use.

Gives `strict_json`, for JSON of any author: requests, events, configurations, exported files.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["RepeatedKeyError", "TooDeepError", "strict_json"]


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
