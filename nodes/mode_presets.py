"""Mode presets: what the mode of each request chooses inside the bounds, with the variables of its paths filled in.

Reads requests and mode policies. Gives `mode_presets`, one row per request.

Note: a preset grants no access. The gates apply its paths, levels and zones in addition to those of grants and request,
so A(r) itself is narrower and every statistic is computed inside it; its counts cap the rows of a lane and the items of
the block; rows that it expands, looks up or chains are hits that pass every gate.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .columns.keys import distinct_rows, flat
from .scope.mode_choices import chosen, policies_by_mode
from .tables import MODE_PRESETS, ModePolicies, ModePresets, Requests


def mode_presets(requests: Requests, mode_policies: ModePolicies) -> ModePresets:
    """The preset of each request, by request id; each distinct pair of mode and variables is expanded once.

    Raises:
        InputError: a path needs a variable that the request does not set, or whose name is invalid.
    """
    requests = requests.sort_by("request_id") if requests.num_rows > 1 else requests
    modes = flat(requests["mode"]).dictionary_encode(null_encoding="encode")
    given = flat(requests["variables"]).dictionary_encode(null_encoding="encode")
    pairs = [column.indices.to_numpy().astype(np.int64) for column in (modes, given)]
    first, which = distinct_rows(*pairs)
    names, texts = modes.dictionary.to_pylist(), given.dictionary.to_pylist()
    policies = policies_by_mode(mode_policies)
    distinct = zip(*(codes[first].tolist() for codes in pairs), strict=True)
    resolved = MODE_PRESETS.from_rows(
        [{"request_id": "", **chosen(names[mode], texts[text], policies)} for mode, text in distinct]
    )
    table = resolved if requests.num_rows == 1 else resolved.take(pa.array(which))
    return table.set_column(0, MODE_PRESETS.schema.field(0), requests["request_id"])
