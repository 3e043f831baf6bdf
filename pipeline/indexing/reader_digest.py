"""A digest of everything in this installation that determines the chunks of a text.

Gives: `reader_digest`. It covers the readers' own source code and the versions of the libraries that they call, so no
version number has to be raised by hand: after any change to the readers, everything is cut again.
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

_FOLDERS = ("nodes", "pipeline.sources", "pipeline.redaction", "pipeline.parsing")
_LIBRARIES = ("PyYAML", "lxml", "markdown-it-py", "pypdf", "python-docx", "tree-sitter", *WHEELS)


@lru_cache(maxsize=1)
def reader_digest() -> str:
    """SHA-256 over the sources and queries of readers, redaction and tables, and their libraries' versions.

    Includes Python's version: its `re` and Unicode tables determine where words and lines end.
    """
    package = __name__.rsplit(".", 3)[0]
    read = dict(pair for name in _FOLDERS for pair in sources_below(resources.files(f"{package}.{name}"), name))
    read |= {file.name: file for file in QUERIES.iterdir()}
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
