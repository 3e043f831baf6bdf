"""Mode presets: what the mode of each request chooses inside the bounds, with the variables of its paths filled in.

Reads requests and mode policies. Gives `mode_presets`, one row per request.

What one would get wrong: a preset opens nothing. The gates judge its paths, levels and zones beside those of grants and
request, so A(r) itself is narrower and every statistic is taken inside it; its counts cap what a lane and the block hold; what it
expands, looks up or chains comes in as hits that pass every gate.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .keys import flat
from .mode_choices import chosen
from .tables import MODE_PRESETS, ModePolicies, ModePresets, Requests


def mode_presets(requests: Requests, mode_policies: ModePolicies) -> ModePresets:
    """The preset of each request, by request id; each distinct pair of mode and variables is filled in once.

    Raises:
        InputError: a path needs a variable that the request does not give, or one that is no name.
    """
    requests = requests.sort_by("request_id")
    modes = flat(requests["mode"]).dictionary_encode(null_encoding="encode")
    given = flat(requests["variables"]).dictionary_encode(null_encoding="encode")
    pairs = np.stack([modes.indices.to_numpy(), given.indices.to_numpy()], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    names, texts = modes.dictionary.to_pylist(), given.dictionary.to_pylist()
    policies = {policy["mode"]: policy for policy in mode_policies.to_pylist()}
    rows = [chosen(names[mode], texts[text], policies) for mode, text in distinct.tolist()]
    resolved = MODE_PRESETS.from_rows([{"request_id": "", **row} for row in rows])
    table = resolved.take(pa.array(which.ravel()))
    return MODE_PRESETS.build(
        {**{name: table[name] for name in MODE_PRESETS.columns}, "request_id": requests["request_id"]}
    )
