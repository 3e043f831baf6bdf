"""Outlines of code begin at the signature of the definition that the passage is part of.

Reads units of texts and the passages that a cut would keep. Gives `from_signatures`, the passages that are kept.

Note: the last definition before a line is not always the one around it. The one around it is indented less. Signatures
are recognized by their form, in the row that was ranked: where a long definition was cut into rows, only the first of
them has one, and the head of an item names the definition of the others.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import first_of_runs, last_of_runs
from ..columns.ragged import expand_ranges
from .line_units import Units
from .passages import reach

__all__ = ["from_signatures"]

_WORDS = r"(?:export|default|declare|public|private|protected|internal|static|async|abstract|final|override|virtual|inline|pub(?:\([a-z]+\))?|extern|readonly)"
_KINDS = r"(?:def|class|fn|func|fun|function\*?|interface|enum|struct|trait|impl|type|namespace|module|object|record|protocol)"
DEFINITION = "|".join(
    (
        rf"^\s*(?:{_WORDS}\s+)*{_KINDS}\b[ \t*(]+[\w$(]",
        r"^\s*(?:export\s+)?(?:const|let|var)\s+[\w$]+[^=]*=\s*(?:async\s*)?(?:function\b|<|\(?[\w$,\s:{}\[\]|?.]*\)?[^;]*=>|\($)",
        r"^\s*(?:describe|it|test|suite|context|bench)(?:\.\w+)*\(",
        r"^\s*(?:[\w$<>\[\].?*&:]+\s+)*[\w$#~:]+\s*(?:<[^>]*>)?\([^;]*\)\s*(?:const\s*|throws [\w., ]+|(?::|->)\s*[^;=]+)?\{\s*$",
    )
)
"""A line that begins a definition, in the most common languages; a method in a brace language is recognized by the text
after its name."""
STATEMENT = r"^\s*(?:if|for|foreach|while|switch|catch|return|else|elif|with|try|do|match|throw|yield|await|new|super|using|lock)\b"
_ABOVE = r"^\s*(?:#|//|/?\*|@|--|\[)"
"""A line above a definition that may belong to it: a comment, a decorator."""
_CLOSER = r"^\s*[)\]}]"

Int = NDArray[np.int64]


def from_signatures(
    units: Units, window: tuple[Int, Int], bounds: tuple[Int, Int], limits: tuple[Int, Int]
) -> tuple[Int, Int]:
    """The units [first, end) kept of each item.

    Args:
        units: of every item.
        window: the units that would be kept, [first, last + 1).
        bounds: the units that may be kept, from the row that was ranked on.
        limits: the tokens of an outline, and the maximum cost of one line of it.
    """
    (start, end), (opening, closing) = window, bounds
    opening = np.minimum(opening, start)
    inside = np.zeros(len(units.start), dtype=bool)
    inside[expand_ranges(opening, closing - opening)] = True
    at = inside.nonzero()[0]
    if not len(at):
        return start, end
    lines = units.every.take(pa.array(at))
    indent = np.zeros(len(units.start), dtype=np.int64)
    indent[at] = np.asarray(pc.binary_length(lines)) - np.asarray(pc.binary_length(pc.utf8_ltrim_whitespace(lines)))
    defining = _matching(lines, DEFINITION).nonzero()[0]
    definition = at[defining[~_matching(lines.take(pa.array(defining)), STATEMENT)]]
    first = np.minimum(units.solid.searchsorted(units.solid[start], "right") - 1, np.maximum(end - 1, start))
    low, high = definition.searchsorted(opening), definition.searchsorted(closing)
    item, found = np.arange(len(start)).repeat(high - low), definition[expand_ranges(low, high - low)]
    # A line that closes a signature of several lines is indented like its first.
    closed = np.zeros(len(units.start), dtype=bool)
    closed[at] = _matching(lines, _CLOSER)
    around = (found < first[item]) & (indent[found] < indent[first[item]] + closed[first[item]])
    beside = (found >= first[item]) & (indent[found] <= indent[first[item]])
    above = np.zeros(len(units.start), dtype=bool)
    above[at] = _matching(lines, _ABOVE)
    owned = above[first[item]] | (found == first[item]) | (indent[found] < indent[first[item]])
    below = beside & (found >= end[item]) & above[first[item]]
    shown = np.zeros(len(start), dtype=bool)
    shown[item[beside & owned & (found < end[item])]] = True
    moved = np.full(len(start), -1, dtype=np.int64)
    next_, last = (np.flatnonzero(chosen & ~shown[item]) for chosen in (below, around))
    next_, last = next_[first_of_runs(item[next_])], last[last_of_runs(item[last])]
    moved[item[next_]] = found[next_]
    moved[item[last]] = found[last]
    start = np.where(moved >= 0, moved, start)
    return start, np.where(moved >= 0, reach(units, start, closing, *limits), end)


def _matching(lines: pa.Array, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(lines, pattern=pattern))
