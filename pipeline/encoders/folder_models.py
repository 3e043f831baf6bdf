"""Models of sentence-transformers in a local folder, on the CPU in float32: an encoder, or a cross-encoder.

Gives: `SentenceTransformerEncoder`; `files_profile`, digests of what vectors and scores depend on; `loaded`, the model;
`each_alone`, which reads several inputs on `single_threads`. Pooling, prompts, lengths and later modules are those of the folder. Weights are read from safetensors only, as
others may contain code; no code of a folder is run, and nothing is downloaded.

Note: for nearly every model, a text in a batch gets other last bits than alone. So a model reads one text, or one pair, at
a time, on one thread; several threads read several. A profile includes digests of the files with their paths in the
folder, not the folder itself: a model can be moved. Documentation next to the weights does not count.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, lru_cache
from logging import CRITICAL
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.errors import ModelError
from .choice import SENTENCE_TRANSFORMERS, EncoderChoice
from .unit_vectors import each_once, rounded

Kind = Literal["SentenceTransformer", "CrossEncoder"]
"""The class of a model in sentence-transformers."""
WEIGHTS_SUFFIX = ".safetensors"
_ABOUT = (".json", ".txt", ".model", ".jinja")
"""Files next to the weights that results depend on: configuration, vocabulary, tokenizer, templates."""
_APART = ("onnx", "openvino", "checkpoint-")
"""Folders of the same model in other forms, which are not read."""
MODULES = "modules.json"
_OWN = "sentence_transformers."
HINT = "a folder as `save_pretrained` of sentence-transformers writes it, with weights in safetensors"


def files_profile(folder: Path) -> str:
    """Digests of the weights and of the files next to them, without loading the model.

    Raises:
        ModelError: there are no weights, a file cannot be read, or a module comes from another package.
    """
    try:
        weights = _files(folder, (WEIGHTS_SUFFIX,))
        if not weights:
            raise ModelError(f"Expected weights in {WEIGHTS_SUFFIX}, got none", at=folder, hint=HINT)
        for other in folder.rglob("pytorch_model*.bin"):
            if not any(file.parent == other.parent for file in weights):
                got = other.relative_to(folder)
                raise ModelError(f"Expected weights in {WEIGHTS_SUFFIX}, got {got}", at=folder, hint=HINT)
        _expect_own_modules(folder)
        return "+".join(_digest(folder, files)[:16] for files in (weights, _files(folder, _ABOUT)))
    except OSError as error:
        raise ModelError(f"{error.strerror}: {folder}") from error


def _expect_own_modules(folder: Path) -> None:
    """Refuse a folder with modules of another package: code that a model brings along is not run."""
    if not (file := folder / MODULES).exists():
        return
    try:
        kinds = [str(module["type"]) for module in json.loads(file.read_bytes())]
    except (ValueError, TypeError, KeyError) as error:
        got = type(error).__name__
        raise ModelError(f"Expected {MODULES} with a list of modules, got {got}", at=folder, hint=HINT) from error
    if foreign := [kind for kind in kinds if not kind.startswith(_OWN)]:
        raise ModelError(
            f"Expected modules of sentence-transformers, got {len(foreign)} of another package", at=folder, hint=HINT
        )


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files in the folder and those of its modules. Names that start with a dot are skipped."""
    places = (file.relative_to(folder) for file in folder.rglob("*") if file.suffix in suffixes and file.is_file())
    return sorted(
        folder / place
        for place in places
        if not any(part.startswith(".") for part in place.parts) and not place.parts[0].startswith(_APART)
    )


def _digest(folder: Path, files: Sequence[Path]) -> str:
    """SHA-256 of the names and digests of some files."""
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        found.update(f"{file.relative_to(folder).as_posix()}:{digest}\n".encode())
    return found.hexdigest()


@lru_cache(maxsize=2)
def loaded(kind: Kind, folder: Path, files: str) -> Any:
    """The model of a folder; `files`, the digests of its files, is part of the cache key.

    Raises:
        ModelError: it does not load; a damaged folder may cause any exception.
    """
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):  # before the import: the hub is never contacted
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import sentence_transformers
        import torch
        from transformers.utils import logging
    except ImportError as error:
        got = "Expected sentence-transformers and torch, got neither or one"
        raise ModelError(got, at=folder, hint="install scoped-retrieval[semantic]") from error
    base, lock = getattr(sentence_transformers, kind), RLock()

    class Model(base):  # type: ignore[misc,valid-type]  # one of two classes
        """Tokenizes on one thread at a time: tokenizing modifies the tokenizer."""

        def preprocess(self, *given: Any, **named: Any) -> Any:
            with lock:
                return super().preprocess(*given, **named)

        def tokenize(self, *given: Any, **named: Any) -> Any:
            with lock:
                return super().tokenize(*given, **named)

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity(CRITICAL)
    try:
        model: Any = Model(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": torch.float32, "use_safetensors": True},
        )
        model.eval().float()
    except Exception as error:
        raise ModelError(f"Expected a model that loads, got {type(error).__name__}", at=folder, hint=HINT) from error
    finally:
        logging.set_verbosity(before)
    _expect_all_weights(model, folder, but=".pooler." if kind == "SentenceTransformer" else None)
    return model


def _expect_all_weights(model: Any, folder: Path, but: str | None) -> None:
    """Refuse files with fewer numbers than the model has: the rest would be drawn at random in every process again.

    Numbers are counted, not names, which libraries change; an encoder of BERT often lacks the layer after the pooling.
    """
    from safetensors import safe_open

    stored = 0
    for file in _files(folder, (WEIGHTS_SUFFIX,)):
        with safe_open(str(file), "np") as opened:
            stored += sum(int(np.prod(opened.get_slice(name).get_shape())) for name in opened.keys())  # noqa: SIM118 - the file of weights itself gives no names
    needed = sum(part.numel() for name, part in model.named_parameters() if but is None or but not in name)
    if stored < needed:
        hint = "the weights are not those of the whole model"
        raise ModelError(f"Expected weights of {needed} numbers, got {stored}", at=folder, hint=hint)


def each_alone(read: Callable[[Any], Any], given: Iterable[Any], folder: Path) -> NDArray[np.float64]:
    """What a model gives for each of at least one input, in order.

    Raises:
        ModelError: it fails, or gives numbers that are not finite.
    """
    try:
        with single_threads() as pool:
            found = np.stack([np.asarray(one, dtype=np.float64) for one in pool.map(read, given)])
    except Exception as error:  # a model may raise anything
        raise ModelError(f"Expected numbers of a model, got {type(error).__name__}", at=folder, hint=HINT) from error
    if not np.isfinite(found).all():
        raise ModelError("Expected finite numbers of a model, got others", at=folder, hint=HINT)
    return found


def again(kind: Callable[[Any], Any], given: Any, profile: str | None) -> Any:
    """The same model in another process.

    Raises:
        ModelError: it is not the same.
    """
    model = kind(given)
    if profile is not None and model.profile != profile:
        raise ModelError(f"Expected the model {profile}, got {model.profile}", at="model")
    return model


_SETTING = Lock()


@contextmanager
def single_threads() -> Iterator[ThreadPoolExecutor]:
    """A pool of threads, as many as Arrow uses, in each of which torch uses one, for the duration of the block: a product
    that torch divides among threads may be added up in another order than with fewer.
    """
    import torch

    with _SETTING:  # two concurrent callers would each restore the other's 1 as the previous value
        before = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(pa.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield pool
        finally:
            torch.set_num_threads(before)  # the setting for threads that are started later


KIND = SENTENCE_TRANSFORMERS.rstrip(":")
"""The start of a profile."""


class SentenceTransformerEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(self, choice: EncoderChoice) -> None:
        """Nothing is read before the first vector or the profile is needed."""
        self._choice = choice

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the folder, and refuses a different model."""
        return again, (SentenceTransformerEncoder, self._choice, vars(self).get("_profile"))

    @property
    def profile(self) -> str:
        """Digests of the files, own prompts, type, length and dimension.

        Raises:
            ModelError: there is no such model, or it does not load.
        """
        return self._profile

    @cached_property
    def _profile(self) -> str:
        length = getattr(self._model(), "max_seq_length", None) or "any"
        start = f"{KIND}+{self._files[1]}{self._choice.prompts_mark}"
        return f"{start}+float32+{length}+{self._vectors(['a'], 'document', '').shape[1]}+cpu"

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per passage: a function of the text and the profile alone."""
        return self._encoded(texts, "document", self._choice.passage_prompt)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per question; otherwise like `encode`."""
        return self._encoded(texts, "query", self._choice.query_prompt)

    @cached_property
    def _files(self) -> tuple[Path, str]:
        name = self._choice.name.removeprefix(SENTENCE_TRANSFORMERS)
        folder = Path(name).expanduser().resolve()
        if not (folder / MODULES).is_file():  # pooling would be guessed
            raise ModelError(f"Expected the folder of a model with {MODULES}, got none", at=name, hint=HINT)
        return folder, files_profile(folder)

    def _model(self) -> Any:
        return loaded("SentenceTransformer", *self._files)

    def _encoded(self, texts: Sequence[str], kind: str, prompt: str | None) -> NDArray[np.int16]:
        dimensions = 0 if len(texts) else int(self.profile.split("+")[-2])
        return each_once(texts, lambda distinct: rounded(self._vectors(distinct, kind, prompt)), dimensions)

    def _vectors(self, texts: Sequence[str], kind: str, prompt: str | None) -> NDArray[np.float64]:
        """Vectors of texts in order; without a prompt, with that of the model."""
        model = self._model()
        read = model.encode_query if kind == "query" else model.encode_document
        return each_alone(lambda text: read([text], prompt=prompt, show_progress_bar=False)[0], texts, self._files[0])
