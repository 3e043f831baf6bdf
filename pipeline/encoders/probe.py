"""The behavior of a model on a few fixed texts: whether a text's neighbors matter, and a sketch that identifies it.

Gives: `PROBES`, `reads_alone`, `sketch_of` and `same_sketch`. Reads nothing: the caller has the model and provides the vectors.

A sketch is the signs of the products of four vectors with 64 fixed directions each (Charikar 2002, SimHash): for two
vectors at an angle of a, a share of a/pi of the signs differs. Rounding on a server changes none or one of the 256,
another model half of them.

Note: neighbors that have no effect here may have one elsewhere. So whether a model reads alone is tested in two orders
and two sizes of batch, with texts of different lengths, before rounding: rounding hides the difference in some texts,
but not in others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROBES", "reads_alone", "same_sketch", "sketch_of"]

PROBES = (
    "a",
    "The default role of a new account is guest.",
    "def retry(times: int) -> None: raise TimeoutError(times)",
    "Migrations run in order of their numbers. " * 12,
)
"""The texts that a model encodes when it is loaded."""
_DIRECTIONS = 64
"""The number of signs per text."""
_MOVED = 8
"""The number of the 256 signs that may differ between two answers of one model."""

Vectors = Callable[[Sequence[str]], NDArray[np.float64]]


def reads_alone(vectors: Vectors, alone: NDArray[np.float64]) -> bool:
    """Whether a text has to be encoded by itself, because others in its batch change its vector.

    Args:
        vectors: returns the vectors of some texts in one batch, unrounded.
        alone: the vectors of `PROBES`, each from a batch of its own.
    """
    together, two = vectors(PROBES), vectors(PROBES[:0:-2])
    return not (np.array_equal(together, alone) and np.array_equal(two, alone[:0:-2]))


def sketch_of(alone: NDArray[np.float64]) -> str:
    """The signs as 64 hexadecimal digits."""
    directions = _directions(alone.shape[1])
    return np.packbits(alone @ directions.T > 0).tobytes().hex()


def same_sketch(one: str, other: str) -> bool:
    """Whether two sketches are of one model, up to rounding."""
    try:
        differing = int(one, 16) ^ int(other, 16)
    except ValueError:
        return False
    return len(one) == len(other) and differing.bit_count() <= _MOVED


@lru_cache(maxsize=4)
def _directions(dimensions: int) -> NDArray[np.float64]:
    """float64[64, dimensions] of 1 and -1, the same everywhere."""
    size = _DIRECTIONS * dimensions
    stream = hashlib.shake_256(b"scoped-retrieval probe/1").digest(-(-size // 8))
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))[:size]
    return 2 * bits.reshape(_DIRECTIONS, dimensions).astype(np.float64) - 1
