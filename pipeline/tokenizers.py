"""Token counters from local files: Hugging Face `tokenizers` JSON and tiktoken encodings, never downloaded.

Gives: `load_counters(names)`, the `Counters` that the line receives. A name is `approx-bpe/1` (bundled), the path of a
`tokenizer.json`, or `tiktoken:<encoding>`. An encoding is read from tiktoken's own cache folder, the one
`TIKTOKEN_CACHE_DIR` names; where the file is missing the name is refused, because tiktoken would fetch it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..nodes.errors import ModelError
from ..nodes.token_counting import BASE, Counter, Counters, EncodedCounter

__all__ = ["load_counter", "load_counters"]

TIKTOKEN_PREFIX = "tiktoken:"
_TIKTOKEN_FILES = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Each encoding's file name in tiktoken's cache and its SHA-256, as `tiktoken_ext/openai_public.py` pins it."""


def load_counters(names: Iterable[str], environment: Mapping[str, str] | None = None) -> Counters:
    """Counters for these names, each loaded once; the base counter needs no file.

    Raises:
        ModelError: a tokenizer's package or file is missing, or the file cannot be read.
    """
    return Counters({name: load_counter(name, environment) for name in sorted(set(names) - {BASE})})


def load_counter(name: str, environment: Mapping[str, str] | None = None) -> Counter:
    """One counter by name; see `load_counters`."""
    if name == BASE:
        return Counters().get(BASE)
    if name.startswith(TIKTOKEN_PREFIX):
        return _tiktoken(name, os.environ if environment is None else environment)
    if name.endswith(".json"):
        return _hugging_face(name)
    raise ModelError(
        f"Expected {BASE}, a path that ends in .json or {TIKTOKEN_PREFIX}<encoding>, got {name!r} - at tokenizer",
        hint="no tokenizer is downloaded; name one whose file is on this machine.",
    )


def _hugging_face(name: str) -> Counter:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelError(
            "Expected the package tokenizers, got none - at tokenizer", hint="pip install tokenizers"
        ) from error
    path = Path(name)
    if not path.is_file():
        raise ModelError(f"Expected a tokenizer file, got no file - at {path}", hint="nothing is downloaded.")
    try:
        tokenizer: Any = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the package raises bare Exception
        raise ModelError(f"Expected a tokenizers JSON file, got one that does not parse - at {path}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: Sequence[str]) -> Iterable[int]:
        return (len(encoded.ids) for encoded in tokenizer.encode_batch(list(texts), add_special_tokens=False))

    return EncodedCounter(name, encode)


def _tiktoken(name: str, environment: Mapping[str, str]) -> Counter:
    encoding = name.removeprefix(TIKTOKEN_PREFIX)
    if encoding not in _TIKTOKEN_FILES:
        raise ModelError(f"Expected one of {', '.join(_TIKTOKEN_FILES)}, got {encoding!r} - at tokenizer")
    # The folder tiktoken itself uses; see load.py of tiktoken.
    folder = environment.get("TIKTOKEN_CACHE_DIR") or environment.get("DATA_GYM_CACHE_DIR")
    root = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    name_in_cache, sha256 = _TIKTOKEN_FILES[encoding]
    path = root / name_in_cache
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise ModelError(
            f"Expected the file of {encoding}, got none or another - at {path}",
            hint="tiktoken would download it; put the file there, or set TIKTOKEN_CACHE_DIR to a folder that has it.",
        )
    try:
        import tiktoken  # pyright: ignore[reportMissingImports] - in no extra; the user brings it
    except ImportError as error:
        raise ModelError(
            "Expected the package tiktoken, got none - at tokenizer", hint="pip install tiktoken"
        ) from error
    encoder: Any = tiktoken.get_encoding(encoding)

    def encode(texts: Sequence[str]) -> Iterable[int]:
        return (len(tokens) for tokens in encoder.encode_ordinary_batch(list(texts)))

    return EncodedCounter(name, encode)
