"""Whether the compiled loops are used: they compute the same numbers as NumPy, and pay off once there is enough work.

Reads the number of postings to be visited. Gives the modules of kernels, or None where numba (extra `fast`) is not
installed or has no writable cache folder.

Note: this is not a node. Loading code is the only thing in `nodes` that reads files, those of the kernels themselves,
and it sets numba's cache folder. No result depends on either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PAYS_FROM = 10_000_000
"""Visits of postings for which NumPy needs about as long as the import of numba: a second."""
SOURCES = ("loops", "posting_kernels", "product_tiles", "vector_kernels")
"""The modules that are compiled."""
ALONE = 200_000
"""Visits up to which one thread is as fast as several."""


class Kernels(NamedTuple):
    """The modules of compiled loops."""

    postings: ModuleType
    vectors: ModuleType


def kernels(visits: int) -> Kernels | None:
    """The compiled loops, if they are loaded already or so many visits are worth loading them."""
    if not load.cache_info().currsize and visits < PAYS_FROM:
        return None
    return load()


_LOADING = Lock()
"""numba's folder is global to all threads: no other thread may load while it is changed."""


@lru_cache(maxsize=1)
def load() -> Kernels | None:
    """The compiled loops, regardless of the amount of work: for long-running processes. numba compiles them once per
    machine.
    """
    if find_spec("numba") is None:
        return None
    try:
        with _LOADING, kept_by_content(Path(__file__).parent, SOURCES):
            from . import posting_kernels, vector_kernels
    except (ImportError, OSError, RuntimeError):  # an unsupported version of NumPy, or no writable folder
        return None
    return Kernels(posting_kernels, vector_kernels)


@contextmanager
def kept_by_content(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Code compiled in this context is cached under a digest of all its sources, the modules of these names in `folder`.

    By default numba checks only the file of a function, not the files of those that it calls: after an upgrade it would
    use the machine code of the previous version. The files read and cached are code, and no value of a table depends on
    them.
    """
    from numba import config  # pyright: ignore[reportMissingImports]
    from numba.misc.appdirs import AppDirs  # pyright: ignore[reportMissingImports]

    sources = b"".join((folder / f"{name}.py").read_bytes() for name in names)
    before = config.CACHE_DIR
    root = Path(before or AppDirs("numba", appauthor=False).user_cache_dir)
    config.CACHE_DIR = str(root / f"scoped-retrieval-{hashlib.sha256(sources).hexdigest()[:16]}")
    try:
        yield
    finally:
        config.CACHE_DIR = before


def in_threads(kernel: Any, work: NDArray[np.int64], *arguments: Any) -> None:
    """Calls `kernel(first, last, *arguments)` for ranges of about equal work; `work` is per element, in visits.

    Uses as many threads as Arrow. The result for an element does not depend on the range that it falls into.
    """
    done = np.cumsum(work)
    total = int(done[-1]) if len(done) else 0
    threads = min(pa.cpu_count(), 1 + total // ALONE)
    if threads == 1:
        kernel(0, len(work), *arguments)
        return
    ranges = 4 * threads
    cuts = np.searchsorted(done, np.arange(1, ranges) * (total / ranges)).tolist()
    with ThreadPoolExecutor(threads) as pool:
        calls = [
            pool.submit(kernel, low, high, *arguments)
            for low, high in zip([0, *cuts], [*cuts, len(work)], strict=True)
            if low < high
        ]
        for call in calls:
            call.result()
