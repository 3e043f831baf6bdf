"""The folder in which a run is staged before it has its name, and what a process that was killed left of one.

runs/.new-<run_id>-<hex>          there while the run is staged; its lock is held from before until after

Note: such a folder holds what people asked, and no command reads it. Staging and erasing
remove those whose lock is free, as their process is gone.
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
    """A folder of this machine to stage a run in; it is gone afterwards unless `publish_folder` renamed it.

    Raises:
        StoreError: it cannot be made, or its lock not be taken.
    """
    if isinstance(runs, ObjectPlace):  # staged elsewhere, where the system removes what is temporary
        with staging_folder(runs, _PREFIX) as folder:
            yield folder
        return
    with locked(lock, "a run"), staging_folder(runs, f"{_PREFIX}{run_id}-") as folder:
        yield folder


def remove_abandoned(runs: Place, locks: Place) -> None:
    """Remove the folders whose processes are gone; one that cannot be removed stays for the next time."""
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
