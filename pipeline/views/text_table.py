"""Plain tables: for people, columns aligned, long cells folded if a width is given, no escape codes; for programs, CSV."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len

from .printed import in_utc, to_json

__all__ = ["csv_table", "text_table"]

WHOLE = 40
"""Length of the longest id that is never folded."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet interprets as a formula."""


def text_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None) -> str:
    """The rows as text, newline at the end; absent values print as `-`, times in UTC to the second.

    `width` is in characters; None = that of the cells, with each row on one line.
    """
    body = [[" ".join(_cell(value).split()) for value in row] for row in rows]
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *body, strict=True)]
    while width is not None and sum(widths) + 2 * len(widths) > width and max(widths) > WHOLE:
        widths[widths.index(max(widths))] -= 1
    rule = "\u2500" * (sum(widths) + 2 * max(len(widths) - 1, 0))
    lines = [title, ""] if title else []
    lines += [_line(columns, widths), f" {rule}" if rule else ""]
    for cells in body:
        folded = [[c] if cell_len(c) <= w else textwrap.wrap(c, w) for c, w in zip(cells, widths, strict=True)]
        lines += [_line(parts, widths) for parts in zip_longest(*folded, fillvalue="")]
    return "\n".join(line.rstrip() for line in [*lines, ""]) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " " + "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return in_utc(value).isoformat(timespec="seconds").replace("+00:00", "Z")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def csv_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The rows as CSV with a header: absent values are empty, lists and objects JSON, and no text begins like a
    formula.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_csv_cell, columns))
    writer.writerows(map(_csv_cell, row) for row in rows)
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    if value is None or type(value) in (int, float):
        return value
    plain = value if isinstance(value, str) else json.loads(to_json(value))
    if isinstance(plain, str):
        return f"'{plain}" if plain.startswith(_FORMULA) else plain
    return json.dumps(plain, ensure_ascii=False)
