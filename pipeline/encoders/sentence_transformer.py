"""A model in the layout of sentence-transformers, from a local folder, on the CPU in float32.

Gives: `SentenceTransformerEncoder`, and `located`, the folder of a name. Prompts of questions and passages, pooling,
the maximum length of texts and later modules are those of the folder (`modules.json`,
`config_sentence_transformers.json`). Weights are read from safetensors only, and no code of a folder is run.

Note: for nearly every model, a text in a batch gets other last bits than alone. So a model reads one text at a time, on
one thread; several threads read several texts. The profile includes digests of the files, not the folder: a model can be moved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import ModelError
from .choice import SENTENCE_TRANSFORMERS, EncoderChoice
from .model_files import WEIGHTS_SUFFIX, digest_of, files_about, loading, weights_of
from .unit_vectors import rounded

__all__ = ["KIND", "SentenceTransformerEncoder", "located"]

KIND = SENTENCE_TRANSFORMERS.rstrip(":")
"""The start of a profile."""
_MODULES = "modules.json"
_OWN = "sentence_transformers."
_HINT = "a folder as `SentenceTransformer.save_pretrained` writes it, with modules.json and weights in safetensors"


class _Model(NamedTuple):
    loaded: Any
    dimensions: int


class SentenceTransformerEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(self, choice: EncoderChoice) -> None:
        """Nothing is read before the first vector or the profile is needed."""
        self._choice = choice
        self._own: tuple[Path, str] | None = None
        self._profile: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the folder, and refuses a different model."""
        return _again, (self._choice, self._profile)

    @property
    def files_profile(self) -> str:
        """The part of the profile that depends on the files, without loading the model.

        Raises:
            ModelError: there is no such model.
        """
        return self._files()[1]

    @property
    def profile(self) -> str:
        """Digests of the files, own prompts, type, length and dimension.

        Raises:
            ModelError: there is no such model, or it does not load.
        """
        if self._profile is None:
            folder, files = self._files()
            model = _loaded(folder, files)
            length = getattr(model.loaded, "max_seq_length", None) or "any"
            self._profile = f"{files}+float32+{length}+{model.dimensions}+cpu"
        return self._profile

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per passage: a function of the text and the profile alone."""
        return self._encoded(texts, "document", self._choice.prompts.passage)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per question; otherwise like `encode`."""
        return self._encoded(texts, "query", self._choice.prompts.query)

    def _files(self) -> tuple[Path, str]:
        if self._own is None:
            folder = located(self._choice)
            weights, about = _parts(folder)
            digests = (digest_of(folder, files)[:16] for files in (weights, about))
            self._own = folder, f"{KIND}+{'+'.join(digests)}{self._choice.prompts.mark}"
        return self._own

    def _encoded(self, texts: Sequence[str], kind: str, prompt: str | None) -> NDArray[np.int16]:
        _ = self.profile
        model = _loaded(*self._files())
        if not len(texts):
            return np.zeros((0, model.dimensions), dtype=np.int16)
        places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        found = _vectors(model.loaded, list(places), kind, prompt, self._files()[0])
        return rounded(found)[[places[text] for text in texts]]


def _again(choice: EncoderChoice, profile: str | None) -> SentenceTransformerEncoder:
    """Loads the same model in another process."""
    encoder = SentenceTransformerEncoder(choice)
    if profile is not None and encoder.profile != profile:
        raise ModelError(f"Expected the encoder {profile}, got {encoder.profile}", at=choice.name)
    return encoder


def located(choice: EncoderChoice) -> Path:
    """The folder of the model that a choice names.

    Raises:
        ModelError: there is none.
    """
    name = choice.name.removeprefix(SENTENCE_TRANSFORMERS)
    if (folder := Path(name).expanduser()).is_dir():
        return folder.resolve()
    raise ModelError("Expected the folder of a model, got none", at=name, hint=_HINT)


def _parts(folder: Path) -> tuple[list[Path], list[Path]]:
    """The weights of a model folder, and the files next to them."""
    try:
        modules = json.loads((folder / _MODULES).read_bytes())
        kinds = [str(module["type"]) for module in modules]
    except FileNotFoundError as error:
        raise ModelError(f"Expected a model with {_MODULES}, got none", at=folder, hint=_HINT) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelError(
            f"Expected {_MODULES} with a list of modules, got {type(error).__name__}", at=folder, hint=_HINT
        ) from error
    if foreign := [kind for kind in kinds if not kind.startswith(_OWN)]:
        raise ModelError(
            f"Expected modules of sentence-transformers, got {len(foreign)} of another package",
            at=folder,
            hint="code that a model brings along is not run",
        )
    weights = weights_of(folder)
    for other in folder.rglob("pytorch_model*.bin"):
        if not any(file.parent == other.parent for file in weights):
            raise ModelError(
                f"Expected weights in {WEIGHTS_SUFFIX}, got {other.relative_to(folder)}", at=folder, hint=_HINT
            )
    if not weights:
        raise ModelError(f"Expected weights in {WEIGHTS_SUFFIX}, got none", at=folder, hint=_HINT)
    return weights, files_about(folder, deep=True)


@lru_cache(maxsize=1)
def _loaded(folder: Path, files: str) -> _Model:
    """The model of a folder; `files`, the digests of its files, is part of the cache key."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):  # before the import: the hub is never contacted
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ModelError(
            "Expected sentence-transformers and torch, got neither or one",
            at=folder,
            hint="install scoped-retrieval[semantic]",
        ) from error

    class Model(SentenceTransformer):
        """Tokenizes on one thread at a time: tokenizing modifies the tokenizer."""

        def preprocess(self, *given: Any, **named: Any) -> Any:
            with lock:
                return super().preprocess(*given, **named)

        def tokenize(self, *given: Any, **named: Any) -> Any:
            with lock:
                return super().tokenize(*given, **named)

    lock = RLock()
    with loading("a model", folder, _HINT):
        model: Any = Model(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": torch.float32, "use_safetensors": True},
        )
        model.eval().float()
    _expect_all_weights(model, folder)
    return _Model(model, _vectors(model, ["a"], "document", "", folder).shape[1])


def _vectors(model: Any, texts: Sequence[str], kind: str, prompt: str | None, folder: Path) -> NDArray[np.float64]:
    """Vectors of texts in order; without a prompt, with that of the model."""
    from .threads import single_threads

    read = model.encode_query if kind == "query" else model.encode_document

    def vector(text: str) -> NDArray[np.float64]:
        return np.asarray(read([text], prompt=prompt, show_progress_bar=False), dtype=np.float64)

    try:
        with single_threads() as pool:
            found = np.vstack(list(pool.map(vector, texts)))
    except Exception as error:  # a model may raise anything
        raise ModelError(f"Expected vectors, got {type(error).__name__}", at=folder, hint=_HINT) from error
    if not np.isfinite(found).all():
        raise ModelError("Expected finite vectors, got others", at=folder, hint=_HINT)
    return found


def _expect_all_weights(model: Any, folder: Path) -> None:
    """Refuse files with fewer numbers than the model has: the rest would be drawn at random in every process again.

    Numbers are counted, not names, which libraries change; the layer after the pooling of BERT is often omitted.
    """
    from safetensors import safe_open

    stored = 0
    for file in weights_of(folder):
        with safe_open(str(file), "np") as opened:
            stored += sum(int(np.prod(opened.get_slice(name).get_shape())) for name in opened.keys())  # noqa: SIM118
    needed = sum(part.numel() for name, part in model.named_parameters() if ".pooler." not in name)
    if stored < needed:
        raise ModelError(
            f"Expected weights of {needed} numbers, got {stored}",
            at=folder,
            hint="the weights are not those of the whole model",
        )
