"""The files of a model in a local folder, and a digest of those that vectors and scores depend on.

Gives: `WEIGHTS_SUFFIX`, `weights_of`, `files_about`, `digest_of`, `loading`. No file is downloaded, and no code of a
folder is run.

Note: a digest over several files includes their paths, relative to the folder, so that moving or renaming a file
changes it. Documentation next to the weights (`README.md`, pictures) does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from logging import CRITICAL
from pathlib import Path

from ...nodes.errors import ModelError

__all__ = ["WEIGHTS_SUFFIX", "digest_of", "files_about", "loading", "weights_of"]

WEIGHTS_SUFFIX = ".safetensors"
"""The only format of weights that is read: others may contain code that runs when they are loaded."""
_ABOUT = (".json", ".txt", ".model", ".jinja")
"""Files next to the weights that results depend on: configuration, vocabulary, tokenizer, templates."""
_APART = ("onnx", "openvino", "checkpoint-")
"""Folders of the same model in other forms, which are not read."""


def weights_of(folder: Path) -> list[Path]:
    """Files of weights in a folder and the folders of its modules."""
    return _named(folder, (WEIGHTS_SUFFIX,))


def files_about(folder: Path, *, deep: bool) -> list[Path]:
    """Files next to the weights; with `deep`, also those in the folders of its modules."""
    return _named(folder, _ABOUT, deep=deep)


def digest_of(folder: Path, files: Sequence[Path]) -> str:
    """SHA-256 of one file; of several, of their names and digests.

    Raises:
        ModelError: a file cannot be read.
    """
    try:
        found = [(file.relative_to(folder).as_posix(), _sha256(file)) for file in files]
    except OSError as error:
        raise ModelError(f"{error.strerror}: {folder}") from error
    if len(found) == 1:
        return found[0][1]
    return hashlib.sha256("".join(f"{name}:{digest}\n" for name, digest in found).encode()).hexdigest()


@contextmanager
def loading(model: str, folder: Path, hint: str) -> Iterator[None]:
    """Keeps transformers silent while a model loads.

    Raises:
        ModelError: it does not load; a damaged folder may cause any exception.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity(CRITICAL)
    try:
        yield
    except Exception as error:
        raise ModelError(f"Expected {model} that loads, got {type(error).__name__}", at=folder, hint=hint) from error
    finally:
        logging.set_verbosity(before)


def _named(folder: Path, suffixes: tuple[str, ...], *, deep: bool = True) -> list[Path]:
    """The files in the folder and, if `deep`, in its subfolders for modules. Names that start with a dot are skipped."""
    try:
        found = [file for file in (folder.rglob("*") if deep else folder.iterdir()) if file.suffix in suffixes]
        return sorted(file for file in found if _is_read(file.relative_to(folder)) and file.is_file())
    except OSError as error:
        raise ModelError(f"{error.strerror}: {folder}") from error


def _is_read(place: Path) -> bool:
    return not any(part.startswith(".") for part in place.parts) and not place.parts[0].startswith(_APART)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
