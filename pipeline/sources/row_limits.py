"""The limits of imported rows: what is outside of them is refused by name before anything is stored.

Gives: `check_limits` and the limits. Sources: years 1 to 9999 are what ISO 8601 and Python's `datetime` can write.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import truth
from ...nodes.errors import InputError
from .column_types import Where

__all__ = ["MAX_ENTRIES", "MAX_TEXT", "YEARS", "check_limits"]

MAX_TEXT = 4_000_000
"""Most characters of the text of one row."""
MAX_ENTRIES = 10_000
"""Most entries of one list of a row: symbols, links, tags and the like."""
YEARS = "an instant from year 1 to 9999 in UTC"
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and last microsecond of these years since 1970."""


def check_limits(columns: Mapping[str, pa.Array], where: Where) -> None:
    """Refuse the first row that is outside of a limit.

    Raises:
        InputError: names the row, the column and the limit.
    """
    too_long = np.asarray(pc.fill_null(pc.greater(pc.utf8_length(columns["text"]), MAX_TEXT), False))
    _refuse(too_long, f"at most {MAX_TEXT:,} characters", "more", "text", where, "divide it into several rows")
    for name, column in columns.items():
        if pa.types.is_timestamp(column.type):
            instants = column.cast(pa.int64())
            outside = truth(pc.or_(pc.less(instants, _FIRST), pc.greater(instants, _LAST)))
            _refuse(outside, YEARS, "another", name, where)
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            many = truth(pc.greater(pc.list_value_length(column), MAX_ENTRIES))
            _refuse(many, f"at most {MAX_ENTRIES:,} entries", "more", name, where)
    for unit, least in (("line", 1), ("byte", 0)):
        start, end = columns[f"{unit}_start"], columns[f"{unit}_end"]
        for name, column in ((f"{unit}_start", start), (f"{unit}_end", end)):
            _refuse(truth(pc.less(column, least)), f"{least} or more", "less", name, where)
        _refuse(truth(pc.less(end, start)), f"{unit}_start or more", "less", f"{unit}_end", where)


def _refuse(wrong: NDArray[np.bool_], expected: str, got: str, name: str, where: Where, hint: str = "") -> None:
    if wrong.any():
        raise InputError.described(expected, got, f"{where(int(wrong.argmax()))}.{name}", hint=hint)
