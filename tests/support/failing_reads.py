"""A disk whose reads fail: a file that cannot be opened, a folder that cannot be listed or looked at."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

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
        """In this context these files cannot be opened, these folders not be listed."""
        self._chosen, self._error = chosen, error or OSError(24, "Too many open files")
        try:
            yield
        finally:
            self._chosen = None


@contextmanager
def unseen(path: Path) -> Iterator[None]:
    """In this context the status of a path cannot be read, so that `exists` and `is_dir` deny it, as they do of any error from 3.14 on."""
    stat = os.stat

    def failing(at: Any, *args: Any, **how: Any) -> os.stat_result:
        if str(at) == str(path):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(path))
        return stat(at, *args, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", failing)
        yield
