"""Everything that touches the world: corpus, sources, driver, runs, views, command line.

`Retriever`, `Corpus` and `RunStore` are imported from here; each is loaded when it is first used, because the command
line imports this package and its `--help` loads nothing of the data stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .corpus import Corpus
    from .retriever import Retriever
    from .runs import RunStore

__all__ = ["Corpus", "Retriever", "RunStore"]

_HOMES = {"Corpus": "corpus", "Retriever": "retriever", "RunStore": "runs"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
