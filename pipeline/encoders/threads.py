"""Threads for models: as many as Arrow uses; in each, torch uses a single thread.

Gives: `single_threads`. A product that torch divides among threads may be added up in a different order than with
fewer; here the number of threads determines how many texts are read at once, not how each is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
import torch

_SETTING = Lock()


@contextmanager
def single_threads() -> Iterator[ThreadPoolExecutor]:
    """A pool of threads for the duration of the block."""
    with _SETTING:  # two concurrent callers would each restore the other's 1 as the previous value
        before = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(pa.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield pool
        finally:
            torch.set_num_threads(before)  # the setting for threads that are started later
