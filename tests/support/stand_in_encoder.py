"""A stand-in for an embedding model: no weights, and as deterministic as one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 512


class WordsByTheirStart:
    """Texts are alike as far as their words begin with the same four letters."""

    profile = "words-by-their-start/1"

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        vectors = np.zeros((len(texts), DIMENSIONS))
        for row, text in enumerate(texts):
            for word in re.findall(r"[a-z]{4,}", text.lower()):
                digest = hashlib.sha256(word[:4].encode()).digest()
                vectors[row, int.from_bytes(digest[:2], "big") % DIMENSIONS] += 1
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return np.clip(np.rint(vectors * 2**15), 0, 2**15 - 1).astype(np.int16)


class SharedWords:
    """A stand-in for a cross-encoder: the share of a question's words that a text has."""

    profile = "shared-words/1"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        words = [(set(question.lower().split()), set(text.lower().split())) for question, text in pairs]
        return np.array([len(asked & said) / max(len(asked), 1) for asked, said in words])
