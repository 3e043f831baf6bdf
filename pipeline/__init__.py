"""Everything that does input or output: corpus, sources, driver, runs, views, command line.

Rooms rest on each other in one direction, which the import rules of the project hold. From the user inwards:

- interfaces: `cli`; `servers` (HTTP and MCP); `adapters` for other frameworks; `compat` (interfaces of other documents)
- beside the main job: `leaktest`, imported by the command line alone; `demo`, `evaluation`, `maintenance`, by these two
- `contracts`: preview, explain, lint, diff; `context`: what a model sees of a session this round
- `asking`: from a request to a snapshot; `indexing`: from sources to a generation; `reading`: what was written
- `engines`: who runs the shards of a run; `requests`: rows become REQUESTS; `config`: settings, grants, policies; `plugins`,
  with `reinforcement`, a score term of this package
- `sources`: readers; `corpus`: generations of rows; `runs`: what was written; `views`: forms of it
- `line`: the dataflow driven; `parsing`: files that people write; `redaction`; `storage`: folders, stores, locks; `progress`

`Retriever`, `Corpus` and `RunStore` are imported from here; each is loaded when it is first used, because the command
line imports this package and its `--help` loads nothing of the data stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asking.retriever import Retriever
    from .corpus import Corpus
    from .runs import RunStore

__all__ = ["Corpus", "Retriever", "RunStore"]

_HOMES = {"Corpus": "corpus", "Retriever": "asking.retriever", "RunStore": "runs"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
