"""Compiled loops that find keys among those of a segment, and extract the postings of a scope from its lists.

Fills the arrays that `scope_postings` prepares. Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

from numba import types  # pyright: ignore[reportMissingImports]

from .selection_kernels import filled, first_from, given, loop

_I8, _I4, _U8, _U1, _B = types.int64, types.int32, types.uint64, types.uint8, types.boolean


@loop(given(_U8), given(_I8), given(_U1), given(_U8), given(_I8), given(_U1), filled(_I8))
def find(hashes, starts, texts, stored, stored_starts, stored_texts, position) -> None:
    """The place of each key in a segment's list of keys, -1 if it is absent.

    Both lists are sorted by hash; the text of key `i` is `texts[starts[i]:starts[i + 1]]`. Equal hashes are distinguished
    by their texts.
    """
    at, end = 0, len(stored)
    for key in range(len(hashes)):
        wanted = hashes[key]
        position[key] = -1
        step = 1
        while at + step < end and stored[at + step] < wanted:
            at += step
            step *= 2
        at = first_from(stored, wanted, at, min(at + step, end))
        other = at
        size = starts[key + 1] - starts[key]
        while other < end and stored[other] == wanted:
            first = stored_starts[other]
            if stored_starts[other + 1] - first == size:
                same = True
                for letter in range(size):
                    if stored_texts[first + letter] != texts[starts[key] + letter]:
                        same = False
                        break
                if same:
                    position[key] = other
                    break
            other += 1


@loop(given(_I8), given(_I8), given(_I4), given(_I4), _B, filled(_I8))
def count(position, starts, rows, local, whole, counts) -> None:
    """Adds to each key's count its postings in a segment's rows that are in scope: `local` is not -1 (`whole`: all
    are).
    """
    for key in range(len(position)):
        at = position[key]
        if at >= 0 and whole:
            counts[key] += starts[at + 1] - starts[at]
        elif at >= 0:
            found = 0
            for posting in range(starts[at], starts[at + 1]):
                found += local[rows[posting]] >= 0
            counts[key] += found


@loop(given(_I8), given(_I8), given(_I4), given(_I4), given(_I4), filled(_I8), filled(_I4), filled(_I4))
def gather(position, starts, rows, freqs, local, ends, row, freq) -> None:
    """Appends the postings counted by `count` to those of each key, at its position in `ends`."""
    for key in range(len(position)):
        at = position[key]
        if at >= 0:
            end = ends[key]
            for posting in range(starts[at], starts[at + 1]):
                own = local[rows[posting]]
                if own >= 0:
                    row[end] = own
                    freq[end] = freqs[posting]
                    end += 1
            ends[key] = end


@loop(given(_U8), given(_I8), given(_I8), given(_U1), gives=_B)
def alike(hashes, chosen, starts, texts) -> bool:
    """Whether adjacent keys of equal hash have equal texts; that of key `i` is `texts[starts[c]:starts[c + 1]]`, `c`
    being `chosen[i]`.
    """
    for key in range(1, len(hashes)):
        if hashes[key] == hashes[key - 1]:
            one, other = chosen[key - 1], chosen[key]
            size = starts[one + 1] - starts[one]
            if starts[other + 1] - starts[other] != size:
                return False
            for letter in range(size):
                if texts[starts[one] + letter] != texts[starts[other] + letter]:
                    return False
    return True
