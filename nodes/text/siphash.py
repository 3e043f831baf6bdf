"""SipHash-2-4 of many strings at once, with the results of pandas' `hash_array`.

J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012. Strings are hashed by their UTF-8 bytes
under pandas' fixed key, so that equal strings have equal hashes on every machine.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes

__all__ = ["siphash"]

_KEY = np.frombuffer(b"0123456789123456", dtype="<u8")
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_AT_ONCE = 1 << 16

Lanes = list[NDArray[np.uint64]]


def siphash(strings: pa.Array) -> NDArray[np.uint64]:
    """The hash of each string; null counts as empty."""
    offsets, data = offsets_and_bytes(strings)
    data = np.concatenate([data, np.zeros(8, np.uint8)])
    sizes = np.diff(offsets)
    order = np.argsort(sizes >> 3, kind="stable")
    hashes = np.empty(len(sizes), dtype=np.uint64)
    for start in range(0, len(order), _AT_ONCE):  # so that the lanes stay in the processor's cache
        some = order[start : start + _AT_ONCE]
        hashes[some] = _spread(_hashes(offsets[some], sizes[some], data))
    return hashes


def _hashes(begin: NDArray[np.int64], sizes: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The hashes of strings sorted by their number of whole eight-byte words."""
    words = sizes >> 3
    view = np.lib.stride_tricks.as_strided(data, (max(len(data) - 7, 1), 8), (1, 1))
    lanes = [np.full(len(begin), word ^ int(_KEY[n % 2]), dtype=np.uint64) for n, word in enumerate(_START)]
    for number in range(int(words.max(initial=0))):
        first = int(np.searchsorted(words, number, side="right"))
        some = [lane[first:] for lane in lanes]
        _mix(some, view[begin[first:] + 8 * number].view("<u8").reshape(-1))
    left = view[begin + 8 * words].view("<u8").reshape(-1)
    bits = ((sizes & 7) * 8).astype(np.uint64)
    left &= (np.uint64(1) << bits) - np.uint64(1)
    left |= (sizes.astype(np.uint64) & np.uint64(0xFF)) << np.uint64(56)
    _mix(lanes, left)
    lanes[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(lanes)
    return lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3]


def _spread(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """pandas' last step: the finalizer of SplitMix64 (Steele, Lea, Flood, 2014)."""
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def _mix(lanes: Lanes, words: NDArray[np.uint64]) -> None:
    lanes[3] ^= words
    _round(lanes)
    _round(lanes)
    lanes[0] ^= words


def _round(lanes: Lanes) -> None:
    """One SipRound, in place."""
    a, b, c, d = lanes
    for mine, other, turn, half in ((a, b, 13, True), (c, d, 16, False), (a, d, 21, False), (c, b, 17, True)):
        mine += other
        _turn(other, turn)
        other ^= mine
        if half:
            _turn(mine, 32)


def _turn(lane: NDArray[np.uint64], bits: int) -> None:
    """Rotate left, in place."""
    high = lane << np.uint64(bits)
    lane >>= np.uint64(64 - bits)
    lane |= high
