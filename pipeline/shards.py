"""The shards of a run: requests of one scope stand together, so that what a scope costs is paid once.

Gives: `shards_of`, the shard of each request, and `with_progress`, shards under a progress bar.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ORDER = ("project", "principal", "namespace", "branch", "workspace_root", "as_of", "request_id")


def shards_of(requests: pa.Table, size: int) -> pa.Array:
    """The shard of each request, int32: sorted by scope, then cut into `size` requests."""
    order = np.asarray(pc.sort_indices(requests, [(name, "ascending") for name in _ORDER]))
    shards = np.empty(requests.num_rows, np.int32)
    shards[order] = np.arange(requests.num_rows) // size
    return pa.array(shards)


def with_progress(shards: list[int], shown: bool) -> Iterable[int]:
    """The shards, with a bar on standard error where one is shown."""
    if not shown:
        return shards
    from tqdm.auto import tqdm

    return tqdm(shards, unit="shard")
