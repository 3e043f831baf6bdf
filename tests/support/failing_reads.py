"""A disk that does not give what stands on it: a file that cannot be opened, a folder that cannot be listed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_EVENTS = ("open", "os.listdir", "os.scandir")


class FailingReads:
    """Lets Python's own reads of what `_chosen` names fail with `_error`; Arrow opens its files unseen."""

    def __init__(self) -> None:
        self._chosen: Callable[[Path], bool] | None = None
        self._error = OSError()
        sys.addaudithook(self._watch)

    def _watch(self, event: str, args: tuple) -> None:
        if self._chosen is None or event not in _EVENTS or not isinstance(args[0], str | Path):
            return
        if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            return
        path = Path(args[0])
        if os.path.lexists(path) and self._chosen(path):
            raise type(self._error)(*self._error.args, str(path))

    @contextmanager
    def of(self, chosen: Callable[[Path], bool], error: OSError | None = None) -> Iterator[None]:
        """Meanwhile these files cannot be opened, these folders not be listed."""
        self._chosen, self._error = chosen, error or OSError(24, "Too many open files")
        try:
            yield
        finally:
            self._chosen = None
