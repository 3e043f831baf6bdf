"""Converters: one function per kind of value that a field of a request may have.

Each takes the value as written and its place, and returns the value of a column of REQUESTS.
Values of closed lists go through `nodes/vocabulary.py`. Messages name the place and never quote texts.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import re2

from ...nodes import vocabulary as v
from ...nodes.errors import InputError
from ...nodes.scope.selectors import AND
from ..config.declared_settings import WEIGHT_SETS
from ..parsing import values
from ..parsing.patterns import GLOBS, MAX_PATTERNS, path_glob
from ..progress import counted

Converter = Callable[[Any, str], Any]

MAX_NAME = 512
"""Longest id or name, in characters."""
MAX_REGEXES, MAX_PROGRAM = 16, 2_000
"""Regular expressions of a request, and the instructions that RE2 makes of one: of `\\pL+` 1,201."""
MAX_TEXT = 1_000_000
"""Longest question, error text, state or other free text of a request, in characters."""


def name(value: Any, at: str) -> str:
    """A short printable text: an id, a name, a path."""
    if not isinstance(value, str):
        raise InputError.of_kind("text", value, at)
    if not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        raise InputError(
            f"Expected 1 to {MAX_NAME} printable characters, got {counted(len(value), 'character')}", at=at
        )
    return value


def identifier(value: Any, at: str) -> str:
    """A name, or a whole number as one: a table of integers has `1` where CSV has text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else name(value, at)


def text(value: Any, at: str) -> str:
    """Free text of at most `MAX_TEXT` characters; messages state its type and length, never its content."""
    if not isinstance(value, str):
        raise InputError.of_kind("text", value, at)
    if len(value) > MAX_TEXT:
        hint = "index a long text as an artifact, and ask about it."
        raise InputError.described(f"at most {MAX_TEXT:,} characters", f"{len(value):,}", at, hint=hint)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"Expected Unicode text, got a lone surrogate at {error.start}", at=at) from None
    return value


def json_text(value: Any, at: str) -> str:
    """An object, as JSON text with sorted keys; text is kept unchanged."""
    if isinstance(value, str):
        return text(value, at)
    if not isinstance(value, (dict, list)):
        raise InputError.of_kind("an object or text", value, at)
    try:
        document = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError.of_kind("an object of JSON values", value, at) from None
    return text(document, at)


def names(value: Any, at: str) -> list[str]:
    """A list of at most `MAX_PATTERNS` names."""
    _expect_list(value, at)
    return [name(item, f"{at}[{index}]") for index, item in enumerate(value)]


def regexes(value: Any, at: str) -> list[str]:
    """A list of at most `MAX_REGEXES` regular expressions, RE2: it never backtracks, and its time grows with the size of its
    program, which is limited.
    """
    quiet, found = re2.Options(), names(value, at)
    quiet.log_errors = False
    if len(found) > MAX_REGEXES:
        raise InputError.described(f"at most {MAX_REGEXES} regular expressions", str(len(found)), at)
    for index, item in enumerate(found):
        try:
            size = re2.compile(item, quiet).programsize
        except re2.error as error:
            got = error.args[0].decode(errors="replace")
            raise InputError.described("a regular expression of RE2", got, f"{at}[{index}]") from None
        if size > MAX_PROGRAM:
            what = f"a regular expression of at most {MAX_PROGRAM:,} instructions"
            hint = "repetitions such as {1,500} count as often as they repeat"
            raise InputError.described(what, f"{size:,}", f"{at}[{index}]", hint=hint)
    return found


def patterns(value: Any, at: str) -> list[str]:
    """A list of at most `MAX_PATTERNS` patterns; a list in it names patterns that must all match."""
    _expect_list(value, at)
    products = [item if isinstance(item, (list, tuple)) and item else [item] for item in value]
    return [AND.join(sorted(set(names(product, f"{at}[{n}]")))) for n, product in enumerate(products)]


def selectors(value: Any, at: str) -> list[str]:
    """Patterns of sources, in NFC like the names of stored sources."""
    return [unicodedata.normalize("NFC", pattern) for pattern in patterns(value, at)]


def globs(value: Any, at: str) -> list[str]:
    """Patterns of paths. Syntax of other tools that has no effect here is refused: such a denial would deny nothing."""
    products = [pattern.split(AND) for pattern in patterns(value, at)]
    return [AND.join(_glob(part, f"{at}[{n}]") for part in product) for n, product in enumerate(products)]


def _glob(pattern: str, at: str) -> str:
    if "[REDACTED:" in pattern:
        return pattern  # a secret is refused on arrival, with its own message
    if (glob := path_glob(pattern)) is None:
        raise InputError.described("a glob such as src/keys/ or **/*.pem", "another form", at, hint=GLOBS)
    return glob


def single(convert: Callable[[Any, str], list[str]]) -> Converter:
    """The converter of a list in which each entry is one pattern."""
    return lambda value, at: convert(names(value, at), at)


def _expect_list(value: Any, at: str) -> None:
    if not isinstance(value, (list, tuple)):
        raise InputError.of_kind("a list of texts", value, at)
    if len(value) > MAX_PATTERNS:
        raise InputError.described(f"at most {MAX_PATTERNS:,} entries", f"{len(value):,}", at)


def some_of(vocabulary: v.Vocabulary) -> Converter:
    def convert(value: Any, at: str) -> list[str]:
        return [vocabulary.canonical(item, f"{at}[{i}]") for i, item in enumerate(names(value, at))]

    return convert


def whole(least: int) -> Converter:
    """A whole number of at least `least` that fits 32 bits."""
    return lambda value, at: values.whole(value, at, least)


def as_of(value: Any, at: str) -> datetime | str:
    """An instant, or `commit:SHA`, which the corpus resolves."""
    if isinstance(value, str) and value.startswith("commit:"):
        if not re.fullmatch(r"commit:[0-9a-fA-F]{7,64}", value):
            raise InputError.expected("commit:SHA with 7 to 64 hex digits", value, at)
        return value.lower()
    return values.instant(value, at)


def days(value: Any, at: str) -> float:
    """A duration in days, up to a hundred years."""
    found = values.days(value, at)
    if not 0 < found <= 36500:
        raise InputError.expected("a length of time such as 30d, 12h or 2w", value, at)
    return found


def weights(value: Any, at: str) -> dict[str, float]:
    """Weights by score term, 0 to 100 as in a purpose; or those of a named set. Which terms there are, depends on plugins."""
    given = WEIGHT_SETS.get(value, value) if isinstance(value, str) else value
    if isinstance(given, str):
        raise InputError.expected(f"an object or one of {', '.join(WEIGHT_SETS)}", given, at)
    if not isinstance(given, Mapping):
        raise InputError.of_kind("an object", given, at)
    weighed = sorted((str(term), weight) for term, weight in given.items() if weight is not None)
    return {term: values.number(weight, f"{at}.{term}", 0, 100) for term, weight in weighed}
