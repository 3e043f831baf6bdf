"""Token counters from local files: Hugging Face `tokenizers` JSON and tiktoken encodings, never downloaded.

Gives: `load_counters(names)`, the `Counters` that the line receives, `known_name` and `resolved_name`. A name is `approx-bpe/1`
(bundled), `tiktoken:<encoding>`, or the path of a `tokenizer.json` that was registered when the retriever was opened: a
request is untrusted input and must not choose a file that this process opens. An encoding is read from tiktoken's own
cache folder, set by `TIKTOKEN_CACHE_DIR`; if the file is missing, the name is refused, because tiktoken would download
it.

Note: a path does not identify the content of its file. On arrival a path becomes `PATH@sha256:HEX`, so that contract
and digest identify the file; a counter of that name is loaded from that file or not at all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...nodes.blocks.token_counting import BASE, Counters, EncodedCounter, TokenCounter
from ...nodes.errors import InputError, ModelError
from ..extras import package

PINNED = "@sha256:"
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


def load_counters(names: Iterable[str]) -> Counters:
    """Counters for these names, each loaded once; the base counter needs no file.

    Raises:
        ModelError: a tokenizer's package or file is missing, or the file cannot be read.
    """
    return Counters({name: load_counter(name) for name in sorted(set(names) - {BASE})})


def registered(files: Iterable[str | Path]) -> frozenset[str]:
    """The paths by which a request may name these tokenizer files: as given and from the root."""
    paths = [Path(file) for file in files]
    return frozenset(str(each) for path in paths for each in (path, path.absolute(), path.resolve()))


def resolved_name(name: str, files: Collection[str], at: str) -> str:
    """The name of a counter that can be loaded here; for a file, with its SHA-256: `PATH@sha256:HEX`.

    No path is accessed except `files`, the registered ones, not even to test that it exists.

    Raises:
        InputError: no counter has such a name, or the path is not registered; the error is the same for all such paths.
        ModelError: as `load_counters`, or a file does not match the hash in its name.
    """
    path, _, pinned = known_name(name, at).partition(PINNED)
    if not path.endswith(".json"):
        load_counter(name)
        return name
    if str(Path(path)) not in files:
        raise InputError(
            f"Expected {BASE}, {TIKTOKEN_PREFIX}<encoding> or a tokenizer file that is registered, got another path - at {at}",
            hint="the setting `tokenizers`, or `Retriever.open(tokenizers=...)`, names the files that a request may count with.",
        )
    stat = _file(path).stat()
    sha256 = _loadable(path, stat.st_mtime_ns, stat.st_size)
    if pinned and pinned != sha256:
        raise _another(path, pinned, sha256)
    return f"{path}{PINNED}{sha256}"


def known_name(name: str, at: str) -> str:
    """The name of a counter, which may still be missing on this machine.

    Raises:
        InputError: no counter has such a name.
    """
    encodings = [f"{TIKTOKEN_PREFIX}{each}" for each in _TIKTOKEN_FILES]
    if name in (BASE, *encodings) or (
        name.partition(PINNED)[0].endswith(".json") and not name.startswith(TIKTOKEN_PREFIX)
    ):
        return name
    raise InputError.described(f"{BASE}, {', '.join(encodings)} or a path that ends in .json", repr(name), at)


@lru_cache(maxsize=64)
def _loadable(path: str, modified: int, size: int) -> str:
    """The SHA-256 of a loadable tokenizer file; read again when the file changes."""
    load_counter(path)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _another(path: str, pinned: str, sha256: str) -> ModelError:
    return ModelError(
        f"Expected the tokenizer file with SHA-256 {pinned}, got {sha256} - at {path}",
        hint="restore the file that the request was resolved with, or repeat the request.",
    )


def _file(path: str) -> Path:
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"Expected a tokenizer file, got no file - at {file}", hint="nothing is downloaded.")
    return file


def load_counter(name: str) -> TokenCounter:
    """One counter by its name, a known one; see `load_counters`."""
    if name == BASE:
        return Counters().get(BASE)
    return _tiktoken(name) if name.startswith(TIKTOKEN_PREFIX) else _hugging_face(name)


def _hugging_face(name: str) -> TokenCounter:
    tokenizers = package("tokenizers")
    given, _, pinned = name.partition(PINNED)
    data = _file(given).read_bytes()
    if pinned and pinned != (sha256 := hashlib.sha256(data).hexdigest()):
        raise _another(given, pinned, sha256)
    try:
        tokenizer: Any = tokenizers.Tokenizer.from_str(data.decode())
    except Exception as error:  # the package raises bare Exception
        raise ModelError(f"Expected a tokenizers JSON file, got one that does not parse - at {given}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: Sequence[str]) -> Iterable[int]:
        return (len(encoded.ids) for encoded in tokenizer.encode_batch(list(texts), add_special_tokens=False))

    return EncodedCounter(name, encode)


@lru_cache(maxsize=64)
def _tiktoken(name: str) -> TokenCounter:
    """The counter of an encoding, loaded once; failures are not cached."""
    encoding = name.removeprefix(TIKTOKEN_PREFIX)
    # The folder tiktoken itself uses; see load.py of tiktoken.
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    root = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    name_in_cache, sha256 = _TIKTOKEN_FILES[encoding]
    path = root / name_in_cache
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise ModelError(
            f"Expected the file of {encoding}, got none or another - at {name_in_cache} in the cache of tiktoken",
            hint="tiktoken would download it; put the file there, or set TIKTOKEN_CACHE_DIR to a folder that has it.",
        )
    encoder = package("tiktoken").get_encoding(encoding)

    def encode(texts: Sequence[str]) -> Iterable[int]:
        return (len(tokens) for tokens in encoder.encode_ordinary_batch(list(texts)))

    return EncodedCounter(name, encode)
