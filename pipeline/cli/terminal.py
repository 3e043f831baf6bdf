"""The one sanitizer of everything that commands print: text of evidence and requests cannot act on a terminal.

Gives `visible` for text and `visible_json` for JSON. A control character, a bidirectional control or another character
that hides or reorders what stands beside it is printed as its escape. Line feeds and tabs stay.

Note: output that goes to a pipe or file is sanitized, too, because the file is looked at in a terminal later. What a
program reads, it reads with `--json`, where the escapes are those of JSON and nothing is lost.
"""

from __future__ import annotations

import json
import re

from ...nodes.columns.hidden_characters import HIDDEN, JOINERS, SELECTORS, escape

__all__ = ["visible", "visible_json"]

_ACTS_IN_JSON = re.compile(f"[\x7f-\x9f{HIDDEN}{JOINERS}{SELECTORS}]")
"""JSON escapes the rest itself, and its own line ends are layout."""


def visible(text: str) -> str:
    r"""The text with escapes such as `\x1b` and `\u202e` in the place of characters that act on a terminal."""
    return escape(text).replace("\r", r"\r")


def visible_json(document: str) -> str:
    r"""The same JSON value, with `\u001b` and the like for characters that act on a terminal."""
    return _ACTS_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], document)
