"""The one sanitizer of everything that commands print: text of evidence and requests cannot act on a terminal.

Gives `visible` for text and `visible_json` for JSON. A control character, a bidirectional control or another character
that hides or reorders what stands beside it is printed as its escape. Line ends and tabs stay.

Note: output that goes to a pipe or file is sanitized, too, because the file is looked at in a terminal later. What a
program reads, it reads with `--json`, where the escapes are those of JSON and nothing is lost.
"""

from __future__ import annotations

import json
import re

__all__ = ["visible", "visible_json"]

_HIDES = "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Soft hyphen, zero-width and bidirectional characters, line and paragraph separators, annotations and tags."""
_ACTS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDES}]")
_ACTS_IN_JSON = re.compile(f"[\x7f-\x9f{_HIDES}]")
"""JSON escapes the rest itself, and its own line ends are layout."""


def visible(text: str) -> str:
    r"""The text with escapes such as `\x1b` and `\u202e` in the place of characters that act on a terminal."""
    return _ACTS.sub(lambda found: ascii(found[0])[1:-1], text)


def visible_json(document: str) -> str:
    r"""The same JSON value, with `\u001b` and the like for characters that act on a terminal."""
    return _ACTS_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], document)
