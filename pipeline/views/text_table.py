"""Values and tables as text: for people, columns aligned, long cells folded, no escape codes; for programs, CSV."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from shutil import get_terminal_size
from typing import Any

from .printed import in_utc, to_json, visible

_BELOW = {
    "initial_indent": "    ", "subsequent_indent": "    ", "break_long_words": False, "break_on_hyphens": False,
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that a spreadsheet interprets as a formula."""


def text_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> str:
    """The rows as text, as wide as the terminal, elsewhere 80 characters, newline at the end; absent values print as `-`,
    times in UTC to the second. The widest cells are folded between words, and last columns that do not fit beside the
    others are printed below them: an id stays whole, and a line is longer only for one.
    """
    from rich.cells import cell_len, set_cell_size

    body = [[visible(" ".join(_words(value).split()) or "-") for value in row] for row in rows]
    columns, width = [visible(name) for name in columns], get_terminal_size().columns
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *body, strict=True)]
    words = [max(map(cell_len, " ".join(cells).split())) for cells in zip(columns, *body, strict=True)]
    while len(words) > 1 and sum(words) + 2 * len(words) - 1 > width:
        words.pop()
    widths = widths[: len(words)]
    while sum(widths) + 2 * len(widths) - 1 > width and widths != words:
        widths[max(range(len(widths)), key=lambda at: (widths[at] > words[at], widths[at]))] -= 1
    lines = [visible(title), ""] if title else []
    for number, cells in enumerate([columns, *body]):
        parts = [
            [c] if cell_len(c) <= w else textwrap.wrap(c, w, break_on_hyphens=False)
            for c, w in zip(cells, widths, strict=False)
        ]
        lines += [" " + "  ".join(map(set_cell_size, of, widths)).rstrip() for of in zip_longest(*parts, fillvalue="")]
        lines += [line for cell in cells[len(widths) :] for line in textwrap.wrap(cell, width, **_BELOW)]
        lines += [" " + "\u2500" * (sum(widths) + 2 * len(widths) - 2)] if number == 0 else []
    return "\n".join([*lines, "", ""])


def plain_text(value: Mapping[str, Any]) -> str:
    """Values by name, the text of every command without a form of its own: a line for each, then the rows, as tables.
    What is absent is left out.
    """
    tables, lines = [], []
    for name, each in value.items():
        title = name.replace("_", " ")
        if isinstance(each, list) and each and isinstance(each[0], Mapping):
            tables.append(row_table(each, title))
        elif isinstance(each, Mapping) and any(isinstance(of, Mapping) for of in each.values()):
            lines += [f"{title} {key}: {_words(of)}" for key, of in each.items()]
        elif isinstance(each, list) and any(" " in str(one) for one in each):  # sentences
            lines += [f"{title}: {_words(one)}" for one in each]
        elif words := _words(each):
            lines.append(f"{title}: {words}")
    return "".join([*(f"{folded(line)}\n" for line in lines), *tables]) or "nothing\n"


def row_table(rows: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """Rows as a table of all of their columns."""
    columns = [*dict.fromkeys(column for row in rows for column in row)]
    cells = [[row.get(column) for column in columns] for row in rows]
    return text_table([column.replace("_", " ") for column in columns], cells, title) if rows else ""


def _words(value: Any) -> str:
    """A value in a line; nothing if it is absent."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_words(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, datetime):
        return in_utc(value).isoformat(timespec="seconds").replace("+00:00", "Z")
    return "" if value is None else str(value)


def folded(line: str) -> str:
    """A line of text, folded to the same width between words; what follows is indented."""
    width = get_terminal_size().columns
    return textwrap.fill(line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


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
