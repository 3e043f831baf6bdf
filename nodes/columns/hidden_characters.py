r"""Visible escapes for characters that control a terminal, or hide or reorder the text next to them.

Gives `escape`, `ESCAPED`, and the classes of characters `HIDDEN`, `JOINERS` and `SELECTORS`; `rendering` escapes
columns. An ESC before `[31m` is shown as the four characters `\x1b`. Tabs, line feeds, and returns before a line feed
stay. One zero-width joiner or non-joiner stays after a non-ASCII character, where Persian, Indic scripts and emoji need
it, and so does one variation selector, also after the digits of keycaps. No other zero-width characters stay: long runs
can carry hidden text.

Source: Unicode 15.1, general categories Cc, Cf, Zl and Zp and Default_Ignorable_Code_Point; UAX #9 for bidirectional
controls; CVE-2021-42574 for their effect on source code.
"""

from __future__ import annotations

import re

HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Soft hyphen, fillers, zero-width and bidirectional characters, line and paragraph separators, annotations, tags."""
JOINERS = "\u200c\u200d"
SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"
_CONTROLS = "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f"
_PUNCTUATION = "\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\\s"
_BEFORE_JOINERS = f"[^\\x00-\\x7f{HIDDEN}{JOINERS}{_PUNCTUATION}]"
_BEFORE_SELECTORS = f"[^\\x00-\\x22\\x24-\\x29\\x2b-\\x2f\\x3a-\\x7f{HIDDEN}{JOINERS}{SELECTORS}]"
ESCAPED = f"[{_CONTROLS}{HIDDEN}]|\\r(?!\\n)|(?<!{_BEFORE_JOINERS})[{JOINERS}]|(?<!{_BEFORE_SELECTORS})[{SELECTORS}]"
"""The characters that `escape` replaces, as a regular expression."""
_ESCAPED = re.compile(ESCAPED)


def escape(text: str) -> str:
    r"""The text with escapes such as `\x1b` and `\u202e` in place of invisible characters."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _ESCAPED.sub(lambda found: ascii(found[0])[1:-1], text)
