"""The models that nodes receive as inputs; they are loaded, and may be asked over a network, outside of `nodes`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class QueryEncoder(Protocol):
    """Encodes texts of queries; without `encoder` it encodes nothing."""

    encoder: Any

    def of(self, texts: Iterable[str]) -> tuple[dict[str, NDArray[np.int16]], dict[str, Exception]]:
        """The vector of each text, and the errors of those that get none."""
        ...


class CrossEncoder(Protocol):
    """A model that reads a question and a text together; without `model` it reads nothing."""

    model: Any

    def of(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """One score per pair, 0 to 1."""
        ...
