"""The compiled loop over posting lists: the same rows and scores as `posting_recall` finds with arrays.

Needs numba; `compiled.kernels` decides whether it is loaded.

Note: parts of a score are multiples of 2**-30, so a sum is exact in any order. No fast-math: every step rounds as
NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import types  # pyright: ignore[reportMissingImports]

from .loops import filled, given, index, loop

BINS = 512
"""The number of bins of a histogram of scores."""
_I8, _I4, _F8, _B = types.int64, types.int32, types.float64, types.boolean


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_F8), given(_I8), given(_I8), given(_I4), given(_I4), given(_I8), given(_F8, 2),
    given(_B, 2), given(_I8), given(_I8), given(_I8), given(_I8), filled(_I8), filled(_I8), filled(_F8),
)  # fmt: skip
def best_rows(
    first,
    last,
    starts,
    key,
    weight,
    low,
    high,
    row,
    frequency,
    line,
    half,
    gates,
    gate,
    k,
    place,
    to,
    found,
    best,
    scores,
) -> None:
    """Writes the `k` best rows of the sub-queries from `first` to `last`, and their scores, in no order.

    The look-ups of a sub-query are `key[starts[sub]:starts[sub + 1]]`, the postings of a key `row[low[key]:high[key]]`.
    Only rows that pass the line `gate` of `gates` count, and each is weighed by the line `line` of `half`; of equal
    scores the least `place` is better. The rows of a sub-query are written from `to` on, their number to `found`.
    """
    sums, totals, touched = np.zeros(len(place)), np.empty(len(place)), np.empty(len(place) + 1, dtype=np.int64)
    counts = np.empty(BINS, dtype=np.int64)
    for sub in range(first, last):
        passed, halves, many = gates[gate[sub]], half[line[sub]], np.int64(0)
        most = 4194304.0 / (starts[sub + 1] - starts[sub])
        for look_up in range(starts[sub], starts[sub + 1]):
            for posting in range(low[key[look_up]], high[key[look_up]]):
                own, often = index(row[index(posting)]), frequency[index(posting)]
                if passed[own]:
                    part, old = weight[look_up] * (often / (often + halves[own])), sums[own]
                    sums[own] = old + np.rint(min(part, most) * 1073741824.0) / 1073741824.0
                    touched[index(many)] = own
                    many += np.int64((old == 0) & (sums[own] > 0))
        scale, bin_, above = 0.0, np.int64(BINS), np.int64(0)
        if many > k[sub]:
            # A histogram of the scores finds a bin that the k-th best is in or above.
            highest = 0.0
            for number in range(many):
                highest = max(highest, sums[touched[index(number)]])
            scale = (BINS - 1) / highest
            counts[:] = 0
            for number in range(many):
                counts[index(sums[touched[index(number)]] * scale)] += 1
            while above < k[sub]:
                bin_ -= 1
                above += counts[bin_]
        size = np.int64(0)
        for number in range(many):
            own = touched[index(number)]
            touched[index(size)], totals[index(size)] = own, sums[own]
            size += np.int64(scale == 0 or np.int64(sums[own] * scale) >= bin_)
            sums[own] = 0.0
        least, last_place = 0.0, np.int64(len(place))
        if size > k[sub]:
            least = np.partition(totals[:size], size - k[sub])[size - k[sub]]
            tied = np.sort(place[touched[:size][totals[:size] == least]])
            last_place = tied[k[sub] - np.sum(totals[:size] > least) - 1]
        at = to[sub]
        for number in range(size):
            own, total = touched[number], totals[number]
            if total > least or (total == least and place[own] <= last_place):
                best[at], scores[at] = own, total
                at += 1
        found[sub] = at - to[sub]
