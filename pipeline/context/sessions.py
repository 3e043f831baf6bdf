"""A recorded session, from a log folder or from a file of JSON lines, which is a read-only log.

Gives: `read_session`, all of its rows; `open_reference`, the text of a reference in a model input.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...nodes.context_tables import STATE_FACTS
from ...nodes.errors import InputError
from .artifacts import artifact
from .events import LogReader
from .log import SessionLog
from .log_files import LogView, file_lines, of_other_file, text_behind, values_of
from .masking import masked_reference

__all__ = ["open_reference", "read_session"]


def read_session(
    path: str | Path, session_id: str | None = None, *, keep: Callable[[str], str] = artifact
) -> tuple[str, LogView]:
    """The id and all rows of a session, from a log folder or a file of JSON lines. `keep` stores a long text and
    returns its reference.

    Raises:
        InputError: a line of the file is not an event.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        log = SessionLog.open(place)
        return log.session_id, log.read(keep)
    reader, places, notes = LogReader(session_id or place.stem, keep=keep), list[str](), list[str]()
    try:
        tables = reader.read(values_of(file_lines(place, notes), places), lambda number: places[number])
    except InputError as error:
        raise of_other_file(error, place) from error
    return reader.session_id, LogView(tables, STATE_FACTS.empty(), reader.repeated, reader.backwards, tuple(notes))


def open_reference(path: str | Path, reference: str) -> str:
    """The text of a reference in a model input, its secrets masked, from a log folder or a file of JSON lines.

    Raises:
        InputError: the log has nothing under that name.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        return SessionLog.open(place).open_ref(reference)
    return masked_reference(reference, text_behind(reference, lambda _first, _until: file_lines(place, []), str(place)))
