"""Changes of files that reads prove: two reads of a file in different versions.

Gives `changes_read`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import codes_of
from .scopes import value_at

__all__ = ["changes_read"]

Int = NDArray[np.int64]


def changes_read(
    asked: tuple[Int, pa.Array], read: tuple[Int, pa.Array], seq: Int, version: pa.Array
) -> tuple[Int, Int]:
    """For each (turn, path) pair the last two neighboring reads that have different versions, -1 for none: the file
    changed between them. `read` holds the pairs of the reads, all of which have a version.
    """
    turn, path = read
    file, held = codes_of([pa.array(turn), path]), codes_of([version])
    order = np.lexsort((seq, file))
    earlier, later = order[:-1], order[1:]
    differ = (file[earlier] == file[later]) & (held[earlier] != held[later])
    earlier, later = earlier[differ], later[differ]
    changed = turn[earlier], path.take(pa.array(earlier))
    return value_at(asked, changed, seq[earlier]), value_at(asked, changed, seq[later])
