"""What is asked of an encoder, and the check of what it gives.

Gives: `Encoder` and `encoded`, through which the texts of rows and of questions go.

The one thing to know: products of two vectors are added up modulo 2**32, by loops that are compiled, or as float64. Both
are the same number as long as each product fits 32 bits with its sign; so no vector may be much longer than a unit vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import ModelError

__all__ = ["TOO_LONG", "Encoder", "encoded"]

TOO_LONG = 1 << 31
"""What the squares of a vector's components add up to less than: those of a unit vector times 2**15 to 2**30, about.

No product of two vectors is greater than that of their lengths (Cauchy-Schwarz). Both squares are below 2**31, so the
product of the lengths is, and every product of two vectors fits an int32.
"""
_HINT = "divide a vector by its length, multiply it by 2**15, round it, and give it as int16"


class Encoder(Protocol):
    """What a corpus and its questions need of an encoder; a text's vector must not depend on the texts beside it."""

    @property
    def profile(self) -> str:
        """Name, digest of the weights, and how they are computed: vectors of two profiles never meet."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """int16[texts, dimensions]: unit vectors in multiples of 2**-15."""
        ...


def encoded(encoder: Encoder, texts: Sequence[str], place: tuple[int, int] | None = None) -> NDArray[np.int16]:
    """The vectors of some texts, int16[texts, dimensions].

    Args:
        encoder: is asked once.
        texts: what it is asked.
        place: how many texts of how many came before, where an error may say which text it is about. Of a question none
            does: what is said of it must not depend on the questions beside it.

    Raises:
        ModelError: a vector is too long for exact products, see `TOO_LONG`, or its components are of another type.
    """
    vectors = encoder.encode(texts)
    if vectors.dtype != np.int16:
        raise ModelError(f"Expected int16, got {vectors.dtype} - at encoder {encoder.profile}", hint=_HINT)
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
    if len(long := np.flatnonzero(squares >= TOO_LONG)):
        before, total = place or (0, 0)
        text = f"text {before + long[0] + 1} of {total}, " if place else ""
        raise ModelError(
            f"Expected a squared length below {TOO_LONG}, got {squares[long[0]]} - at {text}encoder {encoder.profile}",
            hint=_HINT,
        )
    return vectors
