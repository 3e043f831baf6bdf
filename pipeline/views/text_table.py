"""Plain tables for people: columns aligned, long cells folded, no escape codes unless asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["UNFOLDED", "text_table"]

UNFOLDED = 1_000_000
WHOLE = 40
"""Characters of the longest id that is never folded."""


def text_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = 120) -> str:
    """The rows as text, newline at the end; absent values print as `-`, times in UTC to the second.

    `width` is in characters, None = the terminal's, `UNFOLDED` = what the cells need, each row one line.
    """
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    body = [[_cell(value) for value in row] for row in rows]
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place == 0 and _is_whole([cells[0] for cells in body]))
    for cells in body:
        table.add_row(*(" ".join(cell.split()) for cell in cells) if width == UNFOLDED else cells)
    console = Console(width=width, force_terminal=False, no_color=True, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _is_whole(cells: Sequence[str]) -> bool:
    """Whether a column holds ids alone: folded, nobody could copy them. The first of a table stays whole."""
    return all(len(cell) <= WHOLE and not any(map(str.isspace, cell)) for cell in cells)


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return str(value)
