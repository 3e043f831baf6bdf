"""Output shared by all commands: JSON or text, errors, exit codes and progress.

Results go to standard output, everything else to standard error. An error prints its message and its hint, never a
traceback, and with `--json` the same as one object on standard output. Progress bars need a terminal. All printed text
is sanitized by `views/printed.py`, so there are no colors either: any escape code comes from evidence.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ...nodes.errors import ScopedRetrievalError, last_frame
from ..progress import counted
from ..views.printed import json_document, printed, visible
from ..views.text_table import plain_text, row_table

GIVEN: ContextVar[dict[str, Any]] = ContextVar("given")
"""The global options of the command that runs, those that were given; see `options.Command`."""


def given(name: str) -> Any:
    """The value of a global option, None if it was not given."""
    return GIVEN.get({}).get(name)


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
    """The user pressed Ctrl-C; the message names what the command leaves behind."""

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


def emit(value: Any, *, text: str | None = None) -> None:
    """Print a result: the value as JSON if the user asked for JSON, else the text, by default its values in lines."""
    sys.stdout.write(json_document(value) if given("json") else printed(plain_text(value) if text is None else text))
    sys.stdout.flush()


def deliver(text: str, out: Path | None) -> None:
    """Print the output of a view unchanged, or write the same bytes to a file. On a terminal, control characters, with
    which evidence could move the cursor, are escaped.
    """
    if out is not None:
        write_file(out, text.encode())
        return
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def write_file(out: Path, data: bytes) -> None:
    """Write the file of `--out`, which may be a link or a device, and report it.

    Raises:
        InputError: it cannot be written.
    """
    from ...nodes.errors import InputError

    try:
        out.write_bytes(data)
    except OSError as error:
        hint = "--out names a file in a folder that exists and that you may write to."
        raise InputError(f"{error.strerror}: --out {out}", hint=hint) from error
    note(f"wrote {out}")


def note(text: str) -> None:
    """Print a line to standard error, unless `-q` was given. Control characters are escaped: it may quote names from
    evidence.
    """
    if not given("quiet"):
        _tell(text)


def _tell(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


def note_left_out(damaged: int, what: str = "run") -> None:
    """Report how many damaged runs a list omits, or lines of the log, if any."""
    if damaged:
        note(f"skipped: {counted(damaged, f'damaged {what}')}; `verify` names what differs")


def print_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error without a traceback; returns the exit code."""
    from ..redaction.masking import redact_text

    message, hint, code = _described(error)
    message, hint = redact_text(message), redact_text(hint)
    if as_json:
        found = {"type": type(error).__name__, "message": message, "hint": hint, "exit_code": code}
        parts = {"at": redact_text(getattr(error, "at", "")), "choices": [*getattr(error, "choices", ())]}
        deliver(json_document({"error": found | {name: part for name, part in parts.items() if part}}), None)
    with suppress(BrokenPipeError):
        _tell(f"error: {message}" + (f"\n\nHint: {hint}" if hint else ""))
    return code


def shows_progress(setting: bool) -> bool:
    """Whether progress bars are enabled and standard error is a terminal."""
    return setting and sys.stderr.isatty()


def frame_table(title: str, frame: Any) -> str:
    """A frame as text, its index first."""
    return row_table(frame.reset_index().to_dict("records"), title)


_OF_THE_DISK = {
    errno.ENOSPC: "free disk space, or use another folder",
    errno.EDQUOT: "free disk space, or use another folder",
    errno.EROFS: "make it writable, or use another folder",
    errno.EACCES: "fix the permissions, or use another folder",
    errno.EMFILE: "let the process open more files (`ulimit -n`)",
}
"""Hints for operating system errors, by error number."""


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
    where = f" - at {last_frame(error)}"
    return (
        f"Unexpected {type(error).__name__}{where}",
        "this is a defect of scoped-retrieval; PYTHONDEVMODE=1 shows where it happened.",
        1,
    )
