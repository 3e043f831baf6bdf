"""Compiled loops between the products of MiniLM: every one reads and writes row by row, so no row depends on another.

Reads sums of products of bytes, int32[tokens, outputs]. Gives the inputs of the next layer: rows of float32, or the
same in bytes, int8 with one scale per row. Rows are never added to each other; the order of the sum within a row
depends only on the processor.
"""

from __future__ import annotations

import numpy as np
from numba import njit  # pyright: ignore[reportMissingImports]

GREATEST = np.float32(127)
"""The greatest absolute value of an int8: -128 is not used, so that the range is symmetric."""
FINER = np.float32(254)
"""Steps of the second byte in one of the first, whose remainder is at most half a step."""
_LEAST = np.float32(1e-12)
"""The maximum assumed for a row of zeros, and the minimum of a variance."""
_HALF, _ONE, _WIDEST = np.float32(0.5), np.float32(1), np.float32(4)
_ROOT = np.float32(0.5**0.5)
_A1, _A3, _A5, _A7, _A9, _A11, _A13 = np.array(
    [-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05, -2.10102402082508e-06,
     2.77068142495902e-08, -2.72614225801306e-10], dtype=np.float32)  # fmt: skip
_B0, _B2, _B4, _B6, _B8 = np.array(
    [-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04, -1.45660718464996e-05],
    dtype=np.float32)  # fmt: skip
"""The error function from -4 to 4 as a quotient of polynomials: those of Eigen's `erf` for float32."""

_loop = njit(nogil=True, fastmath=True, cache=True, error_model="numpy")
_inside = njit(inline="always", fastmath=True, error_model="numpy")


@_inside
def _step(row):
    top = _LEAST
    for at in range(len(row)):
        top = max(top, abs(row[at]))
    return top / GREATEST


@_inside
def _bytes(row, whole):
    step = _step(row)
    steps = _ONE / step
    for at in range(len(row)):
        whole[at] = np.int8(np.rint(row[at] * steps))
    return step


@_inside
def _two_bytes(row, whole, rest):
    step = _step(row)
    steps = _ONE / step
    for at in range(len(row)):
        value = row[at] * steps
        first = np.rint(value)
        whole[at] = np.int8(first)
        rest[at] = np.int8(np.rint((value - first) * FINER))
    return step


@_inside
def _norm(row, gain, shift):
    size = np.float32(len(row))
    total = np.float32(0)
    for at in range(len(row)):
        total += row[at]
    mean = total / size
    squares = np.float32(0)
    for at in range(len(row)):
        squares += (row[at] - mean) * (row[at] - mean)
    factor = _ONE / np.sqrt(squares / size + _LEAST)
    for at in range(len(row)):
        row[at] = (row[at] - mean) * factor * gain[at] + shift[at]


@_loop
def embedded(ids, places, words, positions, gain, shift, rows, two, step):
    """Rows of the tokens, float32[tokens, 384], and the same in two bytes, int8[2, tokens, 384]."""
    for token in range(len(ids)):
        row, word, position = rows[token], words[ids[token]], positions[places[token]]
        for at in range(len(row)):
            row[at] = word[at] + position[at]
        _norm(row, gain, shift)
        step[token] = _two_bytes(row, two[0, token], two[1, token])


@_loop
def heads(sums, step, unit, bias, out):
    """The input of attention, float32[tokens, 1152], from the sums of both bytes, int32[2, tokens, 1152]."""
    for token in range(len(out)):
        whole, rest, row, own = sums[0, token], sums[1, token], out[token], step[token]
        for at in range(len(row)):
            row[at] = (np.float32(whole[at]) + np.float32(rest[at]) / FINER) * own * unit[at] + bias[at]


@_loop
def in_bytes(rows, whole, step):
    """Rows of float32 as bytes, with their step sizes."""
    for token in range(len(rows)):
        step[token] = _bytes(rows[token], whole[token])


@_loop
def normed(sums, sum_step, unit, bias, gain, shift, rows, two, step, fine):
    """Adds a layer's output to the rows and normalizes them; also in bytes, two per value if `fine`."""
    for token in range(len(rows)):
        row, found, own = rows[token], sums[token], sum_step[token]
        for at in range(len(row)):
            row[at] += np.float32(found[at]) * own * unit[at] + bias[at]
        _norm(row, gain, shift)
        if fine:
            step[token] = _two_bytes(row, two[0, token], two[1, token])
        else:
            step[token] = _bytes(row, two[0, token])


@_loop
def gelu(sums, sum_step, unit, bias, whole, step):
    """The wide layer's output through GELU, in bytes."""
    room = np.empty(sums.shape[1], dtype=np.float32)
    for token in range(len(step)):
        found, own = sums[token], sum_step[token]
        for at in range(len(room)):
            value = np.float32(found[at]) * own * unit[at] + bias[at]
            part = min(max(value * _ROOT, -_WIDEST), _WIDEST)
            square = part * part
            above = _A5 + square * (_A7 + square * (_A9 + square * (_A11 + square * _A13)))
            above = _A1 + square * (_A3 + square * above)
            below = _B0 + square * (_B2 + square * (_B4 + square * (_B6 + square * _B8)))
            room[at] = value * _HALF * (_ONE + part * above / below)
        step[token] = _bytes(room, whole[token])


@_loop
def pooled(rows):
    """The unit vector of the mean of a text's rows, in multiples of 2**-15."""
    out = np.empty(rows.shape[1], dtype=np.int16)
    total = np.zeros(rows.shape[1], dtype=np.float64)
    for token in range(len(rows)):
        for at in range(len(total)):
            total[at] += rows[token, at]
    squares = 0.0
    for at in range(len(total)):
        squares += total[at] * total[at]
    factor = 2.0**15 / np.sqrt(squares)
    for at in range(len(total)):
        out[at] = np.int16(min(max(np.rint(total[at] * factor), -(2.0**15)), 2.0**15 - 1))
    return out
