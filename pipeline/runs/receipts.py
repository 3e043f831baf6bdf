"""The receipts of the shards of an unfinished run, which mark shards as done.

stage/receipts/<shard>.json       its parts with their SHA-256, and the number of requests by status

Note: parts are not synced before a run is finished, so a receipt may survive a crash that loses its parts. A shard is
done if its receipt exists and every part matches it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from typing import Any

from ..storage.durable import read_whole
from ..storage.places import ObjectPlace, Place
from .run import STAGE

__all__ = ["RECEIPTS_STAGED", "receipt_name", "receipt_of"]

RECEIPTS_STAGED = f"{STAGE}/receipts"


def receipt_name(shard: int) -> str:
    """The receipt of a shard, as a path in the folder of its run."""
    return f"{RECEIPTS_STAGED}/{shard:05d}.json"


def receipt_of(folder: Place, shard: int, listed: Set[str]) -> dict[str, Any] | None:
    """The receipt of a shard that is done; None if it is not. On an object store, `listed` are the files in the folder.

    Raises:
        StoreError: the receipt or a part cannot be read now.
    """
    if isinstance(folder, ObjectPlace) and receipt_name(shard) not in listed:
        return None
    try:
        receipt = json.loads(read_whole(folder / receipt_name(shard)))
        wanted = {part["path"]: part["sha256"] for part in receipt["parts"]}
        if isinstance(folder, ObjectPlace):
            if not wanted.keys() <= listed:
                return None
            found = folder.read_all(list(wanted))
        else:
            found = (read_whole(folder / path) for path in wanted)
        same = all(hashlib.sha256(data).hexdigest() == each for data, each in zip(found, wanted.values(), strict=True))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return receipt if same else None
