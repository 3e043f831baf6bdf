"""A digest of everything in this installation that determines the rows, and the vectors, of a file.

Gives: `reader_digest`. It covers the readers' own source code and the versions of the libraries that they call, so no
version number has to be raised by hand: after any change to the readers, everything is read again.
"""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version

from ..line.code_digest import sources_below
from ..redaction.masking import REDACTOR
from ..sources.grammars import QUERIES, WHEELS

__all__ = ["reader_digest"]

_FOLDERS = ("nodes", "pipeline.sources", "pipeline.redaction", "pipeline.corpus")
_VECTORS = "pipeline.encoders"
_LIBRARIES = ("PyYAML", "markdown-it-py", "tree-sitter", *WHEELS)


@lru_cache(maxsize=2)
def reader_digest(*, vectors: bool = False) -> str:
    """SHA-256 over the sources and queries of readers, redaction, tables and identity, and their libraries' versions.

    Includes Python's version: its `re` and Unicode tables determine where words and lines end. With `vectors`, includes
    the encoders.
    """
    package = __name__.rsplit(".", 3)[0]
    read = dict(
        pair
        for name in (*_FOLDERS, *([_VECTORS] if vectors else ()))
        for pair in sources_below(resources.files(f"{package}.{name}"), name)
    )
    read |= {file.name: file for file in QUERIES.iterdir()}
    read["pipeline.indexing.importing"] = resources.files(f"{package}.pipeline.indexing") / "importing.py"
    digests = sorted(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for name, file in read.items())
    versions = [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _LIBRARIES)]
    named = [REDACTOR, *versions, *digests]
    return hashlib.sha256("\n".join(named).encode()).hexdigest()


def _version(name: str) -> str:
    """The version of a distribution; a grammar that is missing is an error only where a file needs it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
