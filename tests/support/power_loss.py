"""What a loss of power would take now: a record of renames, new folders and syncs, in their order, by path.

A name is on disk once its folder was synced after it was given; bytes are once the file was synced. The record follows
files and folders by inode, so a folder that is renamed takes its history along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Disk:
    """Watches `os` from `watched` on. `forgetful` names folders whose syncs are left out, as a mistake would."""

    def __init__(self, forgetful: Callable[[Path], bool] = lambda _: False) -> None:
        self.calls: list[tuple[str, Path]] = []
        """Syncs, renames and new folders in order; a rename under its new name."""
        self._forgetful = forgetful
        self._synced: dict[int, int] = {}
        self._named: dict[tuple[int, str], int] = {}

    @contextmanager
    def watched(self) -> Iterator[Disk]:
        with pytest.MonkeyPatch.context() as patch:
            fsync = os.fsync
            patch.setattr(os, "fsync", lambda handle: self._sync(handle, fsync))
            for name in ("rename", "replace"):
                patch.setattr(os, name, self._renaming(name, getattr(os, name)))
            mkdir = os.mkdir
            patch.setattr(os, "mkdir", lambda path, *args, **how: self._made(path, mkdir(path, *args, **how)))
            yield self

    def lost(self, *roots: Path) -> list[str]:
        """The paths at and below these roots that are not on disk yet: their name, or their bytes."""
        found = []
        for root in roots:
            for path in (root, *sorted(root.rglob("*"))):
                if (path.name.startswith(".") or path.name.endswith(".lock")) and path.is_file():
                    continue  # marks and locks: created again when needed
                written = path.is_dir() or path.stat().st_ino in self._synced
                if not written or not self._has_name(path):
                    found.append(path.relative_to(root.parent).as_posix())
        return found

    def _has_name(self, path: Path) -> bool:
        given = self._named.get((path.parent.stat().st_ino, path.name))
        if given is None:
            given = self._synced.get(path.stat().st_ino, -1) if path.is_file() else -1
        return self._synced.get(path.parent.stat().st_ino, -1) > given

    def _sync(self, handle: int, real: Callable[[int], None]) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_dir() and self._forgetful(path):
            return
        real(handle)
        self.calls.append(("sync", path))
        self._synced[os.fstat(handle).st_ino] = len(self.calls)

    def _renaming(self, name: str, real: Callable[..., None]) -> Callable[..., None]:
        def rename(source: Any, target: Any, **how: Any) -> None:
            real(source, target, **how)
            self._name(name, Path(target))

        return rename

    def _made(self, path: Any, _: None) -> None:
        self._name("mkdir", Path(path))

    def _name(self, call: str, path: Path) -> None:
        path = path.absolute()
        self.calls.append((call, path))
        self._named[(path.parent.stat().st_ino, path.name)] = len(self.calls)
