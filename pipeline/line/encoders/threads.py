"""Threads for models: as many as Arrow uses, in each of which torch uses that one alone.

Gives: `single_threads`. A product that torch divides among threads may be added up in another order than with fewer of
them; here the number of threads decides how many texts are read at once, and not how one is.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
import torch

__all__ = ["single_threads"]

_SETTING = Lock()


@contextmanager
def single_threads() -> Iterator[ThreadPoolExecutor]:
    """A pool of threads that lasts as long as the block."""
    with _SETTING:  # two callers at once would each take the other's 1 for what was set before
        before = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(pa.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield pool
        finally:
            torch.set_num_threads(before)  # what threads begin with that are started later
