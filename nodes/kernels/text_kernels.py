"""Compiled loops over the bytes of texts: the tokens of their units, their checksums, and their query words.

Fills the arrays that `byte_runs`, `same_texts` and `passages` prepare. Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

from numba import types  # pyright: ignore[reportMissingImports]

from .selection_kernels import filled, given, index, loop

_I8, _U1, _U2, _U4, _B = types.int64, types.uint8, types.uint16, types.uint32, types.boolean
_ALONE, _BEHIND_MARGIN = 14 * 16, 6 * 16 + 1
"""The state before a unit, and that after a margin, a sign, which is one token so far."""


@loop(given(_U1), given(_I8), given(_B), given(_U1), given(_U2), filled(_I8), filled(_B))
def unit_tokens(data, starts, opens, classes, steps, tokens, signs) -> None:
    """Writes the tokens of each unit and whether it has a sign: `byte_runs.unit_tokens`, step by step."""
    for unit in range(len(starts)):
        end = starts[unit + 1] if unit + 1 < len(starts) else len(data)
        state, total = (_BEHIND_MARGIN, 1) if opens[unit] else (_ALONE, 0)
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


_UPPER, _MARK, _PREFIX, _IDEOGRAPH = 2, 4, 5, 6
"""As in `passages`."""


@loop(
    given(_U1), given(_I8), given(_I8), given(_U1), given(_U1), given(_I8), given(_I8), given(_I8), _I8,
    filled(_I8), filled(_I8), filled(_I8), gives=_I8,
)  # fmt: skip
def keyed(data, low, high, kinds, small, slots, places, keys, shift, text_of, start, place) -> int:
    """Writes the words of texts whose key is known, and returns their number: `passages._keyed`, word by word."""
    size = 0
    for text in range(len(low)):
        end, at = high[text], low[text]
        before = types.uint8(0)
        while at < end:
            kind = kinds[data[index(at)]]
            starts = kind > 0 and (before == 0 or kind == _MARK or (kind == _UPPER and before != _UPPER))
            before = kind
            if not starts:
                at += 1
                continue
            key = types.int64(small[data[index(at)]])
            first, at = at, at + 1
            if kind == _MARK:  # the next character may start another pair
                for other in range(at, min(end, first + _IDEOGRAPH)):
                    key = key << 8 | small[data[index(other)]]
            else:
                until = min(end, first + _PREFIX)
                while at < until:
                    next_ = kinds[data[index(at)]]
                    if next_ == 0 or next_ == _MARK or (next_ == _UPPER and before != _UPPER):
                        break
                    before = next_
                    key = key << 8 | small[data[index(at)]]
                    at += 1
            slot = types.uint64(types.uint64(key) * types.uint64(0x9E3779B97F4A7C15)) >> types.uint64(shift)
            for found in range(slots[index(slot)], slots[index(slot + 1)]):
                if keys[index(places[index(found)])] == key:
                    text_of[size], start[size], place[size] = text, first, places[index(found)]
                    size += 1
    return size
