"""The output of every interface: JSON in one form, and one sanitizer, so that text of evidence and requests cannot
control a terminal.

Gives `to_json` and `json_document` for values, `printed` for text and pages, `html_text` for a piece of a page,
`visible` and `visible_json`, which sanitize. A control character, a bidirectional control or another character that
hides or reorders adjacent text is replaced by its escape. Line ends and tabs stay.

Note: files, pages and output to a pipe are sanitized, too, because they may be shown later. Programs use `--json`,
where the escapes are those of JSON and nothing is lost. Only a block stays byte-identical to the model's input: its
text was sanitized when it was rendered.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from ...nodes.columns.hidden_characters import HIDDEN, JOINERS, SELECTORS, escape
from ..storage.places import ObjectPlace

_ACTS_IN_JSON = re.compile(f"[\x7f-\x9f{HIDDEN}{JOINERS}{SELECTORS}]")
"""JSON itself escapes the others, and its own line ends are layout."""


def visible(text: str) -> str:
    r"""The text with escapes such as `\x1b` and `\u202e` in place of characters that act on a terminal."""
    return escape(text).replace("\r\n", "\n").replace("\r", r"\r")


def visible_json(document: str) -> str:
    r"""The same JSON value, with `\u001b` and the like for characters that act on a terminal."""
    return _ACTS_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], document)


def printed(text: str) -> str:
    """Text for any interface: sanitized, and ended by a line feed."""
    shown = visible(text)
    return shown if not shown or shown.endswith("\n") else shown + "\n"


def html_text(value: Any) -> str:
    """A value as text of a page: sanitized and escaped for HTML."""
    return html.escape(visible(str(value)))


def json_document(value: Any) -> str:
    """A value for any interface: JSON, sanitized, ended by a line feed."""
    return visible_json(to_json(value)) + "\n"


def to_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON with indent 2 and keys in order unless sorted; times as ISO 8601 in UTC, decimals as numbers, paths as text,
    bytes as hex.

    NaN and infinite numbers, for which JSON has no form, are null.
    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=sort_keys, default=_plain, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(finite, indent=2, ensure_ascii=False, sort_keys=sort_keys)
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate, as in a file name, stays an escape


def in_utc(value: datetime) -> datetime:
    """A time in UTC; one without a zone is taken as UTC, whatever the local time zone."""
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return in_utc(value).isoformat().replace("+00:00", "Z")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):  # the SQL type of a sum of whole numbers
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (Path, ObjectPlace, timedelta)):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"no JSON form for {type(value).__name__}")
