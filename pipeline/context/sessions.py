"""A recorded session, from a log folder or from a file of JSON lines, which is a read-only log.

Gives: `read_session`, all of its rows; `open_reference`, the text of a reference in a model input.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...nodes.context_tables import STATE_FACTS
from ...nodes.errors import InputError
from .artifacts import Artifacts
from .events import LogReader
from .log import SessionLog
from .log_files import LogView, notes_of, of_other_file, read_event_file

__all__ = ["open_reference", "read_session"]


def read_session(path: str | Path, session_id: str | None = None, checks: Sequence[str] = ()) -> tuple[str, LogView]:
    """The id and all rows of a session, from a log folder or a file of JSON lines; `checks` are commands that count as
    checks.

    Raises:
        InputError: the file has no events, or one that is malformed.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        log = SessionLog.open(place, checks=checks)
        return log.session_id, log.read()
    file, reader = read_event_file(place), LogReader(session_id or place.stem, checks)
    try:
        tables = reader.read(file.values, file.at)
    except InputError as error:
        raise of_other_file(error, file) from error
    return reader.session_id, LogView(tables, STATE_FACTS.empty(), notes_of(reader, file.skipped), file.skipped)


def open_reference(path: str | Path, reference: str) -> str:
    """The text of a reference in a model input, its secrets masked, from a log folder or a file of JSON lines.

    Raises:
        InputError: the session has nothing under that name.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        return SessionLog.open(place).open_ref(reference)
    return Artifacts(lambda: read_event_file(place).values).open(reference, str(place))
