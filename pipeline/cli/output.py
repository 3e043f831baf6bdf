"""What every command shares on the way out: JSON or text, errors, exit codes and progress.

Results go to standard output, everything about them to standard error. An error prints its message and its hint, never
a traceback, and with `--json` the same as one object on standard output. Progress bars need a terminal. Everything that
is printed goes through the sanitizer of `views/printed.py`, so there are no colors either: an escape code is one of evidence.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...nodes.errors import ScopedRetrievalError
from ..progress import counted
from ..views.printed import json_document, printed, to_json, visible

__all__ = [
    "EXIT",
    "InterruptedCommandError",
    "deliver",
    "emit",
    "emit_block",
    "exit_code_of",
    "note",
    "note_left_out",
    "note_other_runs",
    "print_error",
    "shows_progress",
    "stored",
    "to_json",
    "write_file",
    "write_table",
]

EXIT = {
    "ok": 0,
    "empty": 0,
    "partial": 0,
    "denied": 3,
    "failed": 4,
    "differs": 5,
    "erased": 6,
    "unreadable": 7,
    "interrupted": 130,
}
"""Exit code by outcome; 2 is a usage or input error."""


class InterruptedCommandError(ScopedRetrievalError):
    """The user pressed Ctrl-C, and the command says what it leaves behind."""

    exit_code = EXIT["interrupted"]


def exit_code_of(statuses: Mapping[str, int]) -> int:
    """The exit code of a run from its statuses by count: 4 if a request failed, 3 if every one was denied, else 0."""
    total = sum(statuses.values())
    if statuses.get("failed"):
        return EXIT["failed"]
    if total and statuses.get("denied", 0) == total:
        return EXIT["denied"]
    if total and statuses.get("erased", 0) == total:
        return EXIT["erased"]
    return EXIT["ok"]


def emit(value: Any, *, as_json: bool, text: str | None = None) -> None:
    """Print a result: the value as JSON, or the text."""
    if as_json or text is None:
        sys.stdout.write(json_document(value))
    else:
        sys.stdout.write(printed(text))
    sys.stdout.flush()


def deliver(text: str, out: Path | None) -> None:
    """Print what a view has made ready, or write the same bytes to a file."""
    if out is not None:
        write_file(out, text.encode())
        return
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def write_file(out: Path, data: bytes) -> None:
    """Write the file of `--out`, and say so.

    Raises:
        InputError: it cannot be written.
    """
    note(f"wrote {stored(out, data)}")


def stored(out: Path, data: bytes) -> Path:
    """The file of `--out` once it is written; its path may name a link or a device.

    Raises:
        InputError: it cannot be written.
    """
    from ...nodes.errors import InputError

    try:
        out.write_bytes(data)
    except OSError as error:
        hint = "--out names a file in a folder that exists and that you may write to."
        raise InputError(f"{error.strerror}: --out {out}", hint=hint) from error
    return out


def emit_block(block: str, value: Any, *, as_json: bool) -> None:
    """Print a block exactly as it is, or the value as JSON. A terminal gets a line end after it, and escapes in the
    place of control characters, which evidence could move its cursor with. Where standard error goes to the same place,
    the line end is its own, so that a note begins a line.
    """
    if as_json:
        return emit(value, as_json=True)
    sys.stdout.write(visible(block) + "\n" if sys.stdout.isatty() else block)
    sys.stdout.flush()
    if block and not sys.stdout.isatty() and _one_stream():
        note("")
    return None


def _one_stream() -> bool:
    """Whether both outputs go to the same place, as under `2>&1`."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):
        return False


def note(text: str) -> None:
    """One line on standard error, with escapes in the place of control characters: it may name what evidence says."""
    print(visible(text), file=sys.stderr, flush=True)


def note_left_out(damaged: int) -> None:
    """How many damaged runs a list leaves out, if any."""
    if damaged:
        note(f"left out: {counted(damaged, 'damaged run')}; `verify` names what differs")


def note_other_runs(settings: Any, *, but: Collection[str] = ()) -> None:
    """Every run that the principal may know of and that cannot be read now, with its state; `but` were named already."""
    from ..reading.across_runs import other_runs

    for other in other_runs(settings, but=but):
        note(f"left out: {other.run_id}: {other.state}")


def print_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error without a traceback; returns the exit code."""
    message, hint, code = _described(error)
    if as_json:
        kind = type(error).__name__
        emit({"error": {"type": kind, "message": message, "hint": hint, "exit_code": code}}, as_json=True)
    with suppress(BrokenPipeError):
        note(f"error: {message}" + (f"\n\nHint: {hint}" if hint else ""))
    return code


def shows_progress(setting: bool) -> bool:
    """Progress bars are wanted and standard error is a terminal."""
    return setting and sys.stderr.isatty()


def write_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as text, as wide as the terminal, elsewhere as wide as its cells."""
    from ..views.text_table import UNFOLDED, text_table

    terminal = sys.stdout.isatty()
    cells = ([visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text_table(visible(title), columns, cells, width=None if terminal else UNFOLDED)


_OF_THE_DISK = {
    errno.ENOSPC: "free disk space, or use another folder",
    errno.EDQUOT: "free disk space, or use another folder",
    errno.EROFS: "make it writable, or use another folder",
    errno.EACCES: "fix the permissions, or use another folder",
    errno.EMFILE: "let the process open more files (`ulimit -n`)",
}
"""What to do where the system refuses, by its number."""


def _described(error: BaseException) -> tuple[str, str, int]:
    number = getattr(error, "errno", None) or getattr(error.__cause__, "errno", None)
    todo = _OF_THE_DISK.get(number, "") if number is not None else ""
    if isinstance(error, ScopedRetrievalError):
        return error.message, error.hint or todo, error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted", "", EXIT["interrupted"]
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror or 'Input/output error'}{where}", todo, EXIT["unreadable"]
    where = _last_frame(error)
    return (
        f"Unexpected {type(error).__name__}{where}",
        "this is a defect of scoped-retrieval; PYTHONDEVMODE=1 shows where it happened.",
        1,
    )


def _last_frame(error: BaseException) -> str:
    """Module and line where an unforeseen error came from; its message may quote evidence and is not shown."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    return f" - at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else ""
