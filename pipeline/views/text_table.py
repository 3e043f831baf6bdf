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


def text_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = 120, color: bool = False
) -> str:
    """The rows as text, newline at the end; absent values print as `-`, times in UTC to the second.

    `width` is in characters, None = the terminal's, `UNFOLDED` = what the cells need, each row one line.
    """
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = [_cell(value) for value in row]
        table.add_row(*(" ".join(cell.split()) for cell in cells) if width == UNFOLDED else cells)
    console = Console(width=width, force_terminal=color, no_color=not color, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return str(value)
