"""JSON without repeated keys: of two values for one key, readers differ in which they use.

Gives `strict_json`, for JSON of any author (requests, events, configurations, exported files), and `json_text`, which
writes the values of a caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...nodes.errors import InputError
from .quoting import shown_key


def strict_json(text: str | bytes, at: str = "") -> Any:
    """The value of a JSON text, in UTF-8 if it is bytes; `at` names it in errors.

    Raises:
        InputError: it is not JSON, repeats a key in an object, or is nested too deeply.
    """
    try:
        return json.loads(text.decode() if isinstance(text, bytes) else text, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1}"
        raise InputError.described("UTF-8 text", got, at) from error
    except InputError as error:
        raise error.moved(at) from None
    except RecursionError as error:
        raise InputError.described("JSON", "too deep nesting", at) from error
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InputError.described("JSON", f"invalid JSON ({error.msg} at {line}column {error.colno})", at) from error
    except ValueError as error:
        raise InputError.described("JSON", "a number with too many digits", at) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        again = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise InputError.described("every field once", f"{shown_key(again)!r} again", "")
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
