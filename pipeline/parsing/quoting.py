"""Limits what a message shows of a user's file: its keys, and values that are words or numbers.

Gives `shown`, a value for `got Y`, `canonical`, a word of a closed list or an error, `shown_key` for places,
`shown_keys` for unexpected keys, `shown_problem` for the message of a parser, and `shown_row`, an object with its texts
replaced. A user may have named the wrong file, and even a key may be a secret: texts are shown as their length, and
secrets that the redaction rules recognize as "a secret".

Note: a detector does not recognize the start of a secret. So a text is shown in full or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...nodes.errors import kind_of
from ..progress import counted

if TYPE_CHECKING:
    from ...nodes.vocabulary import Vocabulary

LONGEST = 40
"""Maximum length of a word that is shown."""
_TIME = re.compile(r"[0-9][0-9TZ:.+ -]*")
_QUOTED = re.compile(r"'[^']{4,}'|\"[^\"]{4,}\"")


class _Instead(str):
    """The kind of a value, which replaces it in a message without quotes."""

    __repr__ = str.__str__


def shown(value: Any, at: str = "") -> Any:
    """The value if a message may quote it; otherwise a placeholder that prints only its type. `at` is where the value was
    given, such as `requests[0].question`.
    """
    if isinstance(value, (Mapping, list, tuple)):
        return _Instead(f"{kind_of(value)} of {len(value)}")
    if value is None or isinstance(value, bool):
        return value
    from ..redaction.rules import is_telling

    if is_telling(re.split(r"[.:\s]", at)[-1]):
        return _Instead(kind_of(value))
    if not isinstance(value, str):
        return value
    if len(value) > LONGEST or (any(c.isspace() for c in value) and not _TIME.fullmatch(value)):
        return _Instead(f"text of {counted(len(value), 'character')}")
    return _Instead("a secret") if _is_secret(value) else value


def canonical(vocabulary: Vocabulary, value: Any, at: str) -> str:
    """`vocabulary.canonical` of a value in a file: the error for another word quotes it as `shown` does."""
    known = isinstance(value, str) and (value in vocabulary or value in vocabulary.aliases)
    return vocabulary.canonical(value if known else shown(value, at), at)


def shown_key(key: str) -> str:
    """A key if a message may quote it, else its length."""
    if len(key) > LONGEST or not key.isprintable() or _is_secret(key):
        return f"<key of {counted(len(key), 'character')}>"
    return key


def shown_keys(keys: Iterable[str]) -> str:
    """Several keys in quotes, for a message."""
    return ", ".join(repr(shown_key(key)) for key in keys)


def _is_secret(text: str) -> bool:
    from ..redaction.masking import redact_text  # imported here: most commands need no detector

    return redact_text(text) != text


def shown_problem(problem: str) -> str:
    """The message of a parser, without quoted text."""
    return _QUOTED.sub("...", problem)


def shown_row(row: Mapping[Any, Any], at: str = "") -> dict[Any, Any]:
    """The object with every key and text that no message may quote replaced; other values stay."""
    return {shown_key(key) if isinstance(key, str) else key: _replaced(value, str(key)) for key, value in row.items()}


def _replaced(value: Any, at: str) -> Any:
    if isinstance(value, Mapping):
        return shown_row(value, at)
    if isinstance(value, list):
        return [_replaced(item, at) for item in value]
    return str(shown(value, at)) if isinstance(value, str) else value
