"""The types and the compilation of loops; needs numba."""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]


def given(kind: types.Type, dimensions: int = 1) -> types.Array:
    """The type of a read-only array, such as a mapped file; it also accepts writable arrays."""
    return types.Array(kind, dimensions, "C", readonly=True)


def filled(kind: types.Type, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C")


def loop(*arguments: types.Type, gives: types.Type = types.void):
    return njit(gives(*arguments), cache=True, nogil=True, error_model="numpy")


@njit(inline="always")
def index(number) -> np.uint64:
    """A position that is not negative: numba then omits the wraparound of negative indices."""
    return np.uint64(number)
