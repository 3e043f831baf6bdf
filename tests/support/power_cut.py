"""A process that ends, or a machine that loses power, before any change of a folder, one change after the other.

Gives: `each_cut`, which lets an action end before its n-th change, for every n. A change is a write, sync, rename,
removal, cut or new folder. After a kill, everything written is there. After a power cut, only what was synced is there:
a file has the bytes of its last sync, a folder the names of its last sync.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link")


class Ended(BaseException):
    """The end of the process: no handler of the code under test expects it."""


class _Disk:
    """What is synced below a folder, by inode. Handles are kept open, so that no inode is used twice."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names: dict[int, dict[str, tuple[int, bool]]] = {}
        self.bytes: dict[int, bytes] = {}
        self._handles: list[int] = []
        for path in (root, *root.rglob("*")):
            handle = os.open(path, os.O_RDONLY)
            self.sync(handle)
            os.close(handle)

    def sync(self, handle: int) -> None:
        self._handles.append(os.dup(handle))
        at, path = os.fstat(handle).st_ino, Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_dir():
            self.names[at] = {each.name: (each.lstat().st_ino, each.is_dir()) for each in path.iterdir()}
        else:
            self.bytes[at] = path.read_bytes() if path.exists() else b""

    def cut(self, target: Path) -> None:
        """Write what is synced to a new folder."""
        self._write(self.root.stat().st_ino, True, target)

    def close(self) -> None:
        for handle in self._handles:
            os.close(handle)

    def _write(self, at: int, folder: bool, target: Path) -> None:
        if folder:
            target.mkdir()
            for name, (each, below) in self.names.get(at, {}).items():
                self._write(each, below, target / name)
        else:
            target.write_bytes(self.bytes.get(at, b""))


class _Watch:
    def __init__(self) -> None:
        self.left: int | None = None
        self.below = ""
        sys.addaudithook(self._watch)

    def _watch(self, event: str, args: tuple[Any, ...]) -> None:
        if self.left is None or not args or self.below not in str(args[0]):
            return
        opened = event == "open" and (
            (isinstance(args[1], str) and set(args[1]) & set("wax+")) or args[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if opened or event in _CHANGES:
            self.count()

    def count(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Ended


_watch: list[_Watch] = []


def nothing(_: Path) -> bool:
    return False


def each_cut(
    start: Path, work: Path, action: Callable[[Path], object], *, power: bool, at_most: int = 400, every: int = 1,
    forgetful: Callable[[Path], bool] = nothing,
) -> Iterator[tuple[int, bool, Path]]:  # fmt: skip
    """Run `action` on copies of the folder `start`, ending before its first change, its second, and so on, or before each
    that is `every` changes later. Syncs of what is `forgetful` are left out, as a mistake would.

    Yields the number, whether the action returned, and the folder as it was left. The last action returns.
    """
    if not _watch:
        _watch.append(_Watch())
    watch = _watch[0]
    for step in range(0, at_most, every):
        folder = work / "running" / "it"
        shutil.copytree(start, folder)
        disk, fsync, done = _Disk(folder), os.fsync, False

        def sync(handle: int, disk: _Disk = disk, fsync: Callable[[int], None] = fsync) -> None:
            watch.count()
            if not forgetful(Path(f"/proc/self/fd/{handle}").readlink()):
                fsync(handle)
                disk.sync(handle)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", sync)
            watch.left, watch.below = step, str(folder)
            try:
                with suppress(Ended):
                    action(folder)
                    done = True
            finally:
                watch.left = None
        left = work / "left"
        if power:
            disk.cut(left)
        else:
            shutil.move(folder, left)
        disk.close()
        yield step, done, left
        shutil.rmtree(work / "running", ignore_errors=True)
        shutil.rmtree(left)
        if done:
            return
    raise AssertionError(f"more than {at_most} changes")
