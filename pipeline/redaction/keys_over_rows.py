"""Private keys whose lines are separate rows: a log read line by line, the events of a session.

Reads: the texts of one document's rows, in order. Gives: the parts of each that belong to a key. A key begins with its
fence or with the header of its material, continues while rows contain material, and ends with its fence or with a short
row of otherwise the same form. One row in between may have none. Only the material of a row is masked: its time and
other text stay.

Note: `private_keys` does the same inside one text, where the closing fence is searched at any distance. Rows of one
source may be unrelated, so here a fence counts only next to material.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .private_keys import begins_key
from .rules import BARE_KEY, KEY_FENCE

__all__ = ["MATERIAL", "MAY_BEGIN_KEY", "keys_over_rows"]

MATERIAL = re.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
"""The material in a line of a key."""
MAY_BEGIN_KEY = rf"PRIVATE KEY|{BARE_KEY.pattern.replace('(?<![A-Za-z0-9+/])', '')}"
"""The pattern of rows where a key begins or ends."""
_NUMBER = re.compile(r"[0-9]+")
_REST = r"[A-Za-z0-9+/]{1,76}(?:=[A-Za-z0-9+/]{4}|={0,2})"

Span = tuple[int, int]


def keys_over_rows(texts: Sequence[str], begins: Iterable[int]) -> list[list[Span]]:
    """Per row, the spans of key material in characters, ascending; `begins` are the rows that match `MAY_BEGIN_KEY`."""
    found: list[list[Span]] = [[] for _ in texts]
    for row in begins:
        text = texts[row]
        for fence in KEY_FENCE.finditer(text):
            if fence["edge"] == "END" and not found[row] and not (row and found[row - 1]):
                _follow(texts, row - 1, -1, found)
            elif fence["edge"] == "BEGIN" and "ENCRYPTED" not in "".join(texts[row : row + 4]):
                _follow(texts, row + 1, 1, found)
        if not found[row] and any(begins_key(match[0]) for match in BARE_KEY.finditer(text)):
            _follow(texts, row, 1, found)
    return found


def _follow(texts: Sequence[str], row: int, step: int, found: list[list[Span]]) -> None:
    """Mark the material of consecutive rows with material, forward or backward from `row`."""
    gap, like = 0, None
    short = step < 0
    while 0 <= row < len(texts) and gap < 2:
        text = texts[row]
        spans = [match.span() for match in MATERIAL.finditer(text)]
        if spans:
            found[row], gap, like = spans, 0, _around(text, spans)
        elif step > 0 and like is not None and (rest := like.fullmatch(text)):
            found[row] = [rest.span("rest")]
            return
        elif short and (rest := re.search(rf"(?<![A-Za-z0-9+/=-])(?P<rest>{_REST})\s*$", text)):
            found[row], short = [rest.span("rest")], False
        elif step > 0 and KEY_FENCE.search(text):
            return
        else:
            gap += 1
        row += step


def _around(text: str, spans: Sequence[Span]) -> re.Pattern[str]:
    """A pattern for a row like this one with short material; numbers, such as its time, may differ."""
    before, after = (_NUMBER.sub("[0-9]+", re.escape(part)) for part in (text[: spans[0][0]], text[spans[-1][1] :]))
    return re.compile(f"{before}(?P<rest>{_REST}){after}")
