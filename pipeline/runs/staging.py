"""The folder in which a run is staged before it gets its name, and the removal of abandoned ones.

runs/.new-<run_id>-<hex>          exists while the run is staged; its lock is held throughout

Note: such a folder contains questions, and no command reads it. Staging and erasing remove folders whose lock is free,
as their process is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..storage.durable import entries, remove_tree, staging_folder
from ..storage.locks import hold
from ..storage.places import ObjectPlace, Place
from .files import locked
from .ids import RUN_ID

__all__ = ["remove_abandoned", "run_folder"]

_PREFIX = ".new-"
_NAME = re.compile(rf"{re.escape(_PREFIX)}(?P<run_id>{RUN_ID.pattern})-[0-9a-f]+")


@contextmanager
def run_folder(runs: Place, run_id: str, lock: Place) -> Iterator[Path]:
    """A local folder to stage a run in; it is removed afterwards unless `publish_folder` renamed it.

    Raises:
        StoreError: it cannot be created or locked.
    """
    if isinstance(runs, ObjectPlace):  # staged elsewhere, where the system removes temporary files
        with staging_folder(runs, _PREFIX) as folder:
            yield folder
        return
    with locked(lock, "a run"), staging_folder(runs, f"{_PREFIX}{run_id}-") as folder:
        yield folder


def remove_abandoned(runs: Place, locks: Place) -> None:
    """Remove the folders whose processes are gone; one that cannot be removed now is left for the next time."""
    if isinstance(runs, ObjectPlace):
        return
    with suppress(OSError):
        for folder in entries(runs):
            if named := _NAME.fullmatch(folder.name):
                _remove(folder, locks / named["run_id"])


def _remove(folder: Place, lock: Place) -> None:
    with suppress(OSError):
        if held := hold(lock):
            try:
                remove_tree(folder)
            finally:
                held.release()
