"""Where a text without spaces may be cut.

Gives: `last_cut`, for chunks of documents and for the parts of long lines that a block shows.
"""

from __future__ import annotations

import re
import unicodedata

_SPACES, _NO_WORD = re.compile(r"\s+"), re.compile(r"\W+")
_JOINER = "\u200d"


def last_cut(text: str) -> tuple[int, bool]:
    """The last place inside of a text where it may be cut, 0 if there is none, and whether a word may end there.

    That is after white space, else after other characters that are no part of a word, else between two characters,
    but not before an accent, a vowel sign or a joiner, nor after a joiner.
    """
    for rule in (_SPACES, _NO_WORD):
        ends = [found.end() for found in rule.finditer(text)]
        if inside := [end for end in ends if end < len(text)]:
            return inside[-1], True
    at = len(text) - 1
    while at > 0 and (unicodedata.category(text[at])[0] in "MC" or text[at - 1] == _JOINER):
        at -= 1
    return max(at, 0), False
