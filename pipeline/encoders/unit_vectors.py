"""The interface of an encoder, and the check of its vectors.

Gives: `Encoder`; `encoded`, which encodes the texts of rows and of questions; `each_once` and `rounded`, for
encoders.

Note: products of two vectors are added up modulo 2**32, in compiled loops, or as float64. Both are equal as long as
each product fits a signed 32-bit integer; so no vector may be much longer than a unit vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import ModelError

TOO_LONG = 1 << 31
"""Upper bound of the sum of squares of a vector's components: for a unit vector times 2**15 it is about 2**30.

No product of two vectors is greater than that of their lengths (Cauchy-Schwarz). Both squares are below 2**31, so the
product of the lengths is, and every product of two vectors fits an int32.
"""
_HINT = "divide a vector by its length, multiply it by 2**15, round it, and give it as int16"


class Encoder(Protocol):
    """The interface of an encoder for a corpus and its questions; a text's vector must not depend on other texts.

    An encoder that reads questions differently from passages also has `encode_queries`, with the signature of `encode`.
    """

    @property
    def profile(self) -> str:
        """Name, digest of the weights, and how vectors are computed: vectors of two profiles are never compared."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """int16[texts, dimensions]: unit vectors in multiples of 2**-15."""
        ...


def encoded(
    encoder: Encoder, texts: Sequence[str], place: tuple[int, int] | None = None, *, queries: bool = False
) -> NDArray[np.int16]:
    """The vectors of some texts, int16[texts, dimensions].

    Args:
        encoder: is called once.
        texts: the texts to encode.
        place: the number of earlier texts, and the total, if errors may name the text. Errors of questions do not: they
            must not depend on other questions.
        queries: the texts are questions, which an encoder may read differently from passages.

    Raises:
        ModelError: a vector is too long for exact products, see `TOO_LONG`, or its components are of another type.
    """
    encode = getattr(encoder, "encode_queries", encoder.encode) if queries else encoder.encode
    vectors = encode(texts)
    if vectors.dtype != np.int16:
        raise ModelError(f"Expected int16, got {vectors.dtype}", at=f"encoder {encoder.profile}", hint=_HINT)
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
    if len(long := np.flatnonzero(squares >= TOO_LONG)):
        before, total = place or (0, 0)
        text = f"text {before + long[0] + 1} of {total}, " if place else ""
        raise ModelError(
            f"Expected a squared length below {TOO_LONG}, got {squares[long[0]]}",
            at=f"{text}encoder {encoder.profile}",
            hint=_HINT,
        )
    return vectors


def rounded(vectors: NDArray[np.float64]) -> NDArray[np.int16]:
    """Vectors made unit, their components rounded to multiples of 2**-15 and multiplied by 2**15; zero stays zero."""
    if not vectors.size:
        return np.zeros((len(vectors), 0), dtype=np.int16)
    greatest = np.abs(vectors).max(axis=1, keepdims=True)  # squares of great numbers would not fit a float64
    vectors = vectors / np.where(greatest > 0, greatest, 1.0)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return np.clip(np.rint(unit * 2**15), -(2**15), 2**15 - 1).astype(np.int16)


def each_once(
    texts: Sequence[str], encode: Callable[[list[str]], NDArray[np.int16]], dimensions: int
) -> NDArray[np.int16]:
    """The vectors of texts of which each is encoded once."""
    if not len(texts):
        return np.zeros((0, dimensions), dtype=np.int16)
    place = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return encode(list(place))[[place[text] for text in texts]]
