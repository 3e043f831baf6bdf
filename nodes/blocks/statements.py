"""Where a text may be cut: between statements of code, paragraphs and list items of prose, as the importer found them.

Reads units of texts and the column `statements` of their rows. Gives `Cuts`.

Note: a row without that column, such as a log, may be cut before any line; and the parts of a long line are what nests
deepest, whatever the line is.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import gathered, run_lengths
from ..columns.list_columns import flattened
from ..columns.ragged import expand_ranges
from .item_texts import ItemTexts
from .line_units import Units

DULL = 127
"""The level of lines that answer nothing: imports and licences."""
PART = DULL - 1
"""The level of parts of a long line behind the first."""

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Cuts:
    """Where texts may begin and end; nothing is read until a text is cut."""

    def __init__(self, units: Units, texts: ItemTexts, items: Int) -> None:
        """`items` is the item of each text of `units`."""
        self._units, self._texts, self._items = units, texts, items
        self.first = units.first

    @cached_property
    def _of_lines(self) -> Int:
        """The level of the line of each unit, and 1 at the end."""
        units, count = self._units, len(self.first) - 1
        level = np.ones(int(self.first[-1]) + 1, dtype=np.int64)
        members = run_lengths(self._texts.first, len(self._texts.item))[self._items]
        text = np.arange(count).repeat(members)
        member = expand_ranges(self._texts.first[self._items], members)
        statements = gathered(self._texts.statements, self._texts.member_row[member])
        owner, levels = flattened(statements)
        lines = np.bincount(text[owner], minlength=count)
        of_unit = np.arange(count).repeat(self.first[1:] - self.first[:-1])
        line = units.line[:-1] - units.line[self.first[:-1]][of_unit]
        unread = np.bincount(of_unit, weights=line >= lines[of_unit], minlength=count) > 0
        unread[text[np.asarray(statements.is_null())]] = True
        known = ~unread[of_unit]
        starts = lines.cumsum() - lines
        level[:-1][known] = np.asarray(levels).astype(np.int64)[(starts[of_unit] + line)[known]]
        return level

    @property
    def dull(self) -> Bool:
        """The units that answer nothing."""
        return self._of_lines == DULL

    @cached_property
    def level(self) -> Int:
        """How deep the statement nests that begins with each unit, see EVIDENCE; the head of a text begins one."""
        level = self._of_lines.copy()
        level[:-1][self._units.part & (level[:-1] != DULL)] = PART
        level[self.first] = np.where(level[self.first] % DULL > 0, level[self.first], 1)
        return level

    @cached_property
    def begin(self) -> Bool:
        """Whether a text may begin with each unit."""
        return (self.level > 0) & (self.level < DULL)

    @cached_property
    def _places(self) -> Int:
        """Level and unit of each begin as one number, ascending, after -1."""
        unit = self.begin.nonzero()[0]
        return np.append(-1, np.sort(self.level[unit] * len(self.level) + unit))

    @cached_property
    def _stop(self) -> Int:
        """Where the block of the statement that begins with each unit ends."""
        stop = self.first[1:].repeat(self.first[1:] - self.first[:-1])
        levels = self.level.tolist()
        for first, last in pairwise(self.first.tolist()):
            open_: list[tuple[int, int]] = []
            for unit, level in enumerate(levels[first:last], first):
                if level in (0, DULL):
                    continue
                while open_ and open_[-1][0] > (level if level > 0 else -level - 1):
                    stop[open_.pop()[1]] = unit
                if level > 0:
                    open_.append((level, unit))
        return stop

    @cached_property
    def _inside(self) -> Int:
        """The last unit up to each that begins a statement, but not the first of its block: nothing ends with a header."""
        unit = (self.begin & (self.level != PART)).nonzero()[0]
        level = self.level[unit]
        place = np.full(len(self.begin), -1)
        place[unit[1:]] = np.where(level[1:] <= level[:-1], unit[1:], -1)
        return np.maximum.accumulate(place)

    def ends(self, begin: Int, limit: Int) -> Int:
        """The last unit up to each `limit` before which a text that begins at `begin` may end: after whole statements,
        else after the last one inside, else the limit.
        """
        stop, level = self._stop[begin], np.maximum(self.level[begin], 0) * len(self.level)
        place = self._places.searchsorted(level + np.minimum(stop, limit), "right") - 1
        whole = np.where(stop <= limit, stop, self._places[place] - level)
        inside = self._inside[limit]
        end = np.where(whole > begin, whole, np.where(inside > begin, inside, limit))
        solid = self._units.solid  # blank lines at the end are not shown
        return np.maximum(solid.searchsorted(solid[end]), np.minimum(begin + 1, end))
