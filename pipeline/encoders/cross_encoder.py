"""A cross-encoder: one model reads question and text together and scores the match; a term of reranking (S1.11, S1.27).

Gives: `load_cross_encoder`, `CrossEncoder.scores`, and `PairScores`, which belongs to the driving process. The model is
a local folder in the layout of sentence-transformers' CrossEncoder: a transformers sequence classifier with one label
and its weights in `model.safetensors`. Nothing is ever downloaded, and no code of the folder is run.

Note: a pair that is scored in a batch differs in its last bits from the same pair alone. So
every pair is a batch of its own, padded to one of a few fixed lengths, and its logit is rounded to a multiple of 2**-10.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...nodes.columns.numbers import quantise
from ...nodes.errors import ModelError
from .model_files import digest_of, files_about, loading

__all__ = [
    "BUCKETS",
    "CROSS_ENCODER",
    "WEIGHTS",
    "CrossEncoder",
    "PairReader",
    "PairScores",
    "files_profile",
    "load_cross_encoder",
]

CROSS_ENCODER = "cross_encoder"
"""Its name in records. It counts as a lane there: it may be off, and its failure does not fail the answer."""
WEIGHTS = "model.safetensors"
"""The file over which the digest of a model is computed."""
BUCKETS = (64, 128, 256, 512)
"""Lengths in tokens that pairs are padded to, up to the limit of the model; in a longer pair the longer text is cut."""
PAIRS_KEPT = 1 << 13
"""Scores cached by a retriever, each with its two texts: halving a shard around a request scores no pair twice."""
_STEPS = 2.0**10
_HINT = (
    "a folder in the layout of sentence-transformers' CrossEncoder, with one label and its weights in model.safetensors"
)

Pair = tuple[str, str]


class PairReader(Protocol):
    """The interface of a cross-encoder for the line: a score of [0, 1] for each pair of question and text."""

    @property
    def profile(self) -> str: ...

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]: ...


def load_cross_encoder(folder: str | Path) -> CrossEncoder:
    """The model of a folder, loaded once per process as long as its files do not change.

    Raises:
        ModelError: there is no such model in the folder, or it does not load.
    """
    place = Path(folder).resolve()
    return _loaded(place, *(files_profile(place).split("+")))


def files_profile(folder: Path) -> str:
    """The part of a profile that depends on the files of a folder, without loading the model.

    Raises:
        ModelError: there are no weights in it, or a file cannot be read.
    """
    weights = digest_of(folder, [_weights(folder)])
    return f"{weights[:16]}+{digest_of(folder, files_about(folder, deep=False))[:16]}"


@lru_cache(maxsize=1)
def _loaded(folder: Path, weights: str, about: str) -> CrossEncoder:
    return CrossEncoder(folder, weights, about)


def _again(folder: Path, profile: str) -> CrossEncoder:
    """Loads the same model in another process."""
    model = load_cross_encoder(folder)
    if model.profile != profile:
        raise ModelError(f"Expected the cross-encoder {profile}, got {model.profile}", at=folder)
    return model


class CrossEncoder:
    """Pairs of question and text to scores of [0, 1]: the sigmoid of the model's only logit, in float32 on the CPU."""

    def __init__(self, folder: Path, weights: str, about: str) -> None:
        """`weights` and `about` are the starts of digests of the files of the folder, in hexadecimal."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import torch

            # By their modules: for the names of the package a type checker reads 2,600 more files.
            from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification
            from transformers.models.auto.tokenization_auto import AutoTokenizer
        except ImportError as error:
            raise ModelError(
                "Expected torch and transformers, got neither or one",
                at=folder,
                hint="install scoped-retrieval[semantic]",
            ) from error
        with loading("a cross-encoder", folder, _HINT):
            loaded: Any = AutoModelForSequenceClassification.from_pretrained(
                str(folder),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
            tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
            model, info = loaded
            self._model = model.eval().to("cpu")
        if (labels := int(model.config.num_labels)) != 1:
            raise ModelError(f"Expected a model with one label, got {labels}", at=folder, hint=_HINT)
        if missing := len(info["missing_keys"]) + len(info["mismatched_keys"]):
            raise ModelError(
                f"Expected the weights of the whole model, got none for {missing} parts", at=folder, hint=_HINT
            )
        if tokenizer.pad_token_id is None:
            raise ModelError("Expected a tokenizer that pads, got one that does not", at=folder, hint=_HINT)
        tokenizer.padding_side = "right"
        self._torch, self._tokenizer, self._folder = torch, tokenizer, folder
        limit = min(
            BUCKETS[-1], tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", BUCKETS[-1])
        )
        self._buckets = (*(length for length in BUCKETS if length < limit), int(limit))
        lengths = "-".join(map(str, self._buckets))
        self.profile = f"{weights}+{about}+float32+{lengths}+cpu"
        """All that a score depends on besides its pair: weights, other files of the model, the lengths of batches."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the folder, and refuses a different model."""
        return _again, (self._folder, self.profile)

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """One score per pair, a multiple of 2**-30: a function of the pair and the profile alone."""
        logits = np.array([self._logit(question, text) for question, text in pairs], dtype=np.float64)
        return quantise(1.0 / (1.0 + np.exp(-np.rint(logits * _STEPS) / _STEPS)))

    def _logit(self, question: str, text: str) -> float:
        torch = self._torch
        most = self._buckets[-1]
        tokens = self._tokenizer(question, text, truncation=True, max_length=most)
        length = next(bucket for bucket in self._buckets if bucket >= len(tokens["input_ids"]))
        padded = self._tokenizer.pad(tokens, padding="max_length", max_length=length)
        with torch.inference_mode():
            logit = float(self._model(**{name: torch.tensor([row]) for name, row in padded.items()}).logits[0, 0])
        if not np.isfinite(logit):
            raise ModelError(f"Expected a finite score, got {logit}", at=self._folder)
        return logit


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


def _weights(folder: Path) -> Path:
    if not (file := folder / WEIGHTS).is_file():
        got = "none" if folder.is_dir() else "no folder"
        raise ModelError(f"Expected a cross-encoder with {WEIGHTS}, got {got}", at=folder, hint=_HINT)
    return file
