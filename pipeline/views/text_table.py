"""Plain tables: for people, columns aligned, long cells folded, no escape codes unless requested; for programs, CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from .printed import in_utc, to_json

__all__ = ["UNFOLDED", "csv_table", "text_table"]

UNFOLDED = 1_000_000
WHOLE = 40
"""Length of the longest id that is never folded."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet interprets as a formula."""


def text_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = 120) -> str:
    """The rows as text, newline at the end; absent values print as `-`, times in UTC to the second.

    `width` is in characters, None = the terminal's, `UNFOLDED` = that of the cells, with each row on one line.
    """
    body = [[_cell(value) for value in row] for row in rows]
    if width == UNFOLDED:
        return _unfolded(title, columns, [[" ".join(cell.split()) for cell in cells] for cells in body])
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place == 0 and _is_whole([cells[0] for cells in body]))
    for cells in body:
        table.add_row(*cells)
    console = Console(width=width, force_terminal=False, no_color=True, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _unfolded(title: str, columns: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """The same output as rich without a limit, in a hundredth of the time: its layout takes minutes for many rows."""
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *body, strict=True)]
    rule = "\u2500" * (sum(widths) + 2 * max(len(widths) - 1, 0))
    lines = [title] if title else []
    lines += ["", _line(columns, widths), f" {rule}" if rule else "", *(_line(cells, widths) for cells in body), ""]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " " + "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))


def _is_whole(cells: Sequence[str]) -> bool:
    """Whether a column has only ids, which could not be copied if folded. The first such column of a table is not
    folded.
    """
    return all(len(cell) <= WHOLE and not any(map(str.isspace, cell)) for cell in cells)


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return in_utc(value).isoformat(timespec="seconds").replace("+00:00", "Z")
    return str(value)


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
