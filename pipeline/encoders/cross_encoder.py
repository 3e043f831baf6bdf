"""A cross-encoder: one model reads question and text together and scores the match; a term of reranking (S1.11, S1.27).

Gives: `CrossEncoder.scores`, and `PairScores`, which belongs to the driving process. The model is
a local folder in the layout of sentence-transformers' CrossEncoder, with one label, see `folder_models`. Its logit is
rounded to a multiple of 2**-10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...nodes.columns.numbers import quantise
from ...nodes.errors import ModelError
from .folder_models import HINT, again, each_alone, files_profile, loaded

CROSS_ENCODER = "cross_encoder"
"""Its name in records. It counts as a lane there: it may be off, and its failure does not fail the answer."""
PAIRS_KEPT = 1 << 13
"""Scores cached by a retriever, each with its two texts: halving a shard around a request scores no pair twice."""
_STEPS = 2.0**10

Pair = tuple[str, str]


class PairReader(Protocol):
    """The interface of a cross-encoder for the line: a score of [0, 1] for each pair of question and text."""

    @property
    def profile(self) -> str: ...

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]: ...


class CrossEncoder:
    """Pairs of question and text to scores of [0, 1]: the sigmoid of the model's only logit. The model of a folder is loaded
    once per process as long as its files do not change.

    Raises:
        ModelError: there is no such model in the folder, or it does not load.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).resolve()
        files = files_profile(self._folder)
        self._model = loaded("CrossEncoder", self._folder, files)
        if (labels := int(self._model.num_labels)) != 1:
            raise ModelError(f"Expected a model with one label, got {labels}", at=self._folder, hint=HINT)
        self.profile = f"{files}+float32+{self._model.max_seq_length}+cpu"
        """All that a score depends on besides its pair: weights, other files of the model, the longest pair."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the folder, and refuses a different model."""
        return again, (CrossEncoder, self._folder, self.profile)

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """One score per pair, a multiple of 2**-30: a function of the pair and the profile alone."""
        from torch.nn import Identity

        def logit(pair: Pair) -> Any:
            return self._model.predict([pair], activation_fn=Identity(), show_progress_bar=False)[0]

        logits = each_alone(logit, pairs, self._folder) if len(pairs) else np.zeros(0)
        return quantise(1.0 / (1.0 + np.exp(-np.rint(logits * _STEPS) / _STEPS)))


@dataclass
class PairScores:
    """Scores of pairs, computed in the driving process; the last `PAIRS_KEPT` of them stay cached."""

    model: PairReader | None
    cached: dict[Pair, float] = field(default_factory=dict)

    def of(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """One score per pair; equal pairs are scored once."""
        assert self.model is not None
        wanted = dict.fromkeys(pairs)
        new = [pair for pair in wanted if pair not in self.cached]
        if new:
            try:
                self.cached.update(zip(new, self.model.scores(new).tolist(), strict=True))
            except Exception as error:  # any error of a model gets its name, as that of a node gets the node's
                error.add_note(f"node: {CROSS_ENCODER}")
                raise
        for pair in wanted:
            self.cached[pair] = self.cached.pop(pair)  # the most recently used are last
        for pair in list(self.cached)[: max(0, len(self.cached) - max(PAIRS_KEPT, len(wanted)))]:
            del self.cached[pair]
        return np.array([self.cached[pair] for pair in pairs], dtype=np.float64)
