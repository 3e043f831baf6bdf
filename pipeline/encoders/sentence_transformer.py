"""An encoder in a folder: a model in the layout of sentence-transformers, see `folder_models`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import ModelError
from .choice import SENTENCE_TRANSFORMERS, EncoderChoice
from .folder_models import HINT, MODULES, again, each_alone, files_profile, loaded
from .unit_vectors import each_once, rounded

KIND = SENTENCE_TRANSFORMERS.rstrip(":")
"""The start of a profile."""


class SentenceTransformerEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(self, choice: EncoderChoice) -> None:
        """Nothing is read before the first vector or the profile is needed."""
        self._choice = choice
        self._own: tuple[Path, str] | None = None
        self._profile: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the folder, and refuses a different model."""
        return again, (SentenceTransformerEncoder, self._choice, self._profile)

    @property
    def files_profile(self) -> str:
        """The part of the profile that depends on the files, without loading the model.

        Raises:
            ModelError: there is no such model.
        """
        return f"{KIND}+{self._files()[1]}{self._choice.prompts.mark}"

    @property
    def profile(self) -> str:
        """Digests of the files, own prompts, type, length and dimension.

        Raises:
            ModelError: there is no such model, or it does not load.
        """
        if self._profile is None:
            length = getattr(self._model(), "max_seq_length", None) or "any"
            self._profile = f"{self.files_profile}+float32+{length}+{self._vectors(['a'], 'document', '').shape[1]}+cpu"
        return self._profile

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per passage: a function of the text and the profile alone."""
        return self._encoded(texts, "document", self._choice.prompts.passage)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per question; otherwise like `encode`."""
        return self._encoded(texts, "query", self._choice.prompts.query)

    def _files(self) -> tuple[Path, str]:
        if self._own is None:
            name = self._choice.name.removeprefix(SENTENCE_TRANSFORMERS)
            folder = Path(name).expanduser().resolve()
            if not folder.is_dir():
                raise ModelError("Expected the folder of a model, got none", at=name, hint=HINT)
            if not (folder / MODULES).exists():  # pooling would be guessed
                raise ModelError(f"Expected a model with {MODULES}, got none", at=folder, hint=HINT)
            self._own = folder, files_profile(folder)
        return self._own

    def _model(self) -> Any:
        return loaded("SentenceTransformer", *self._files())

    def _encoded(self, texts: Sequence[str], kind: str, prompt: str | None) -> NDArray[np.int16]:
        dimensions = 0 if len(texts) else int(self.profile.split("+")[-2])
        return each_once(texts, lambda distinct: rounded(self._vectors(distinct, kind, prompt)), dimensions)

    def _vectors(self, texts: Sequence[str], kind: str, prompt: str | None) -> NDArray[np.float64]:
        """Vectors of texts in order; without a prompt, with that of the model."""
        model = self._model()
        read = model.encode_query if kind == "query" else model.encode_document
        return each_alone(lambda text: read([text], prompt=prompt, show_progress_bar=False)[0], texts, self._files()[0])
