"""Packages that are needed by some commands only."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..nodes.errors import ModelError, ScopedRetrievalError


def package(name: str, extra: str = "", error: type[ScopedRetrievalError] = ModelError) -> Any:
    """A package or a module of one, of an extra or one that the user brings.

    Raises:
        ModelError: it is not installed. `error` is another type.
    """
    try:
        return import_module(name)
    except ImportError as missing:
        own = name.partition(".")[0]
        hint = f"install scoped-retrieval[{extra}]" if extra else f"pip install {own}"
        raise error(f"Expected the package {own}, got none", hint=hint) from missing
