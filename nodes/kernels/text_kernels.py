"""Compiled loops over the bytes of texts: the tokens of their units, and what tells texts apart.

Fills the arrays that `byte_runs` and `evidence_packing` prepare. Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

from numba import types  # pyright: ignore[reportMissingImports]

from .selection_kernels import filled, given, index, loop

_I8, _U1, _U2, _U4, _B = types.int64, types.uint8, types.uint16, types.uint32, types.boolean
_ALONE, _BEHIND_MARGIN = 14 * 16, 12 * 16 + 1
"""The state before a unit, and that behind a margin: its sign and its space, which are two tokens so far."""


@loop(given(_U1), given(_I8), given(_B), given(_U1), given(_U2), filled(_I8), filled(_B))
def unit_tokens(data, starts, opens, classes, steps, tokens, signs) -> None:
    """Writes the tokens of each unit and whether it has a sign: `byte_runs.unit_tokens`, step by step."""
    for unit in range(len(starts)):
        end = starts[unit + 1] if unit + 1 < len(starts) else len(data)
        state, total = (_BEHIND_MARGIN, 2) if opens[unit] else (_ALONE, 0)
        seen = 0
        for at in range(starts[unit], end):
            step = types.int64(steps[index((state << 4) | classes[data[index(at)]])])
            state = step & 255
            total += (step >> 8) & 1
            seen |= step
        tokens[unit] = total
        signs[unit] = seen >= 512


@loop(given(_U1), given(_I8), given(_U4), filled(_I8))
def sums(data, offsets, weights, totals) -> None:
    """Writes the sum of the weights of each text's bytes, modulo 2**32; text `i` is `data[offsets[i]:offsets[i + 1]]`."""
    for text in range(len(totals)):
        total = types.uint32(0)
        for at in range(offsets[text], offsets[text + 1]):
            total += weights[data[index(at)]]
        totals[text] = types.int64(types.uint32(total))
