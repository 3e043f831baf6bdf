"""Numbers with the same sum in any order.

A float64 below 2**22 that is a multiple of 2**-30 needs at most 52 bits, so sums of such numbers are exact: no order,
path, thread count or batch changes them. Every score contribution goes through `quantise` before it is added. Terms of
[0, 1] and ranks stay far below that bound; scores of postings, whose weights are unbounded, are capped where they are
added up (`posting_recall`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import SchemaError, kind_of

RESOLUTION = 2.0**-30
"""Scores are multiples of this."""
EXACT_BELOW = 2.0**22
"""Sums of multiples of `RESOLUTION` below this are exact in any order."""


def share_of(part: NDArray[np.float64], whole: NDArray[np.float64], least: float = 0.0) -> NDArray[np.float64]:
    """`part / whole`, clipped to [`least`, 1], as a multiple of `RESOLUTION`; 0 where `whole` is 0."""
    return unit(np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0), least)


def unit(values: NDArray[np.float64], least: float = 0.0) -> NDArray[np.float64]:
    """The values clipped to [`least`, 1], as multiples of `RESOLUTION`."""
    return quantise(np.minimum(np.maximum(values, least), 1.0))


def quantise(values: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The nearest multiples of `RESOLUTION` (ties to even)."""
    return np.rint(np.asarray(values, dtype=np.float64) * 2.0**30) * RESOLUTION


def array_of(given: Any, at: str, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """The return value of a plugin function as an array.

    Raises:
        SchemaError: it does not convert; the message quotes nothing of it.
    """
    try:
        return np.asarray(given, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        got = f"an array of {given.dtype}" if isinstance(given, np.ndarray) else kind_of(given)
        raise SchemaError(f"Expected an array of numbers, got {got} - at {at}") from error
