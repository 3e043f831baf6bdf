"""Both messages of many turns from the shown text of each source; `context_budget` counts them, `context_messages`
keeps them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flat, integers
from .fitting import BODY, FALLBACK
from .frame import GROUPS, INSTRUCTING, PLACE, assemble

Int = NDArray[np.int64]


def texts_of(
    shown: Int, turn: Int, group: Int, isolated: pa.Table, ordering: pa.Table, turns: pa.Table
) -> tuple[pa.Array, pa.Array]:
    """Both messages of every turn, with a NUL in place of the nonce."""
    group = np.where(shown == FALLBACK, PLACE["references"], group)
    body = pc.if_else(pa.array(shown == FALLBACK), flat(isolated["fallback"]), flat(isolated["body"]))
    place = integers(ordering["place"])
    made = []
    for first, end in ((0, INSTRUCTING), (INSTRUCTING, len(GROUPS))):
        mine = np.flatnonzero(((shown == BODY) | (shown == FALLBACK)) & (group >= first) & (group < end))
        mine = mine[np.lexsort((place[mine], group[mine], turn[mine]))]
        texts = assemble(turn[mine], group[mine], body.take(pa.array(mine)), flat(turns["fences"]), turns.num_rows)
        made.append(texts)
    return made[0], made[1]
