"""Everything that touches the world: corpus, sources, driver, runs, views, command line.

Its parts rest on each other in one direction, which the import rules of the project hold. By what it is for:

- doors: `cli`; `doors` (HTTP and MCP), over `renderings` of snapshots; `adapters` for other frameworks; `compat` (interfaces of other documents), `demo`, `doctor` with `model_checks`, `evaluation`, `leaktest`
- `contracts`: looked at before anything is asked, and asked why afterwards
- `context`: what a model sees of a session this round
- `service`: what doors share; `access`: who may look at what was written
- asking: `retriever`, `session`, `resuming`, `run_events` and `telemetry` for those who ask, over `engines`, `requests`, `policies`, `grants`, `tokenizers`, `lanes`;
  `retrieval`: what comes back; `grouping`: calls of many threads
- the corpus: `opening`, `indexing` and `index_report`, `sources`, `redaction`, `corpus`, `encoders`
- the line: `driver`, on a `planned_driver`; `plugins`: gates, lanes, score terms and readers of other packages, and `reinforcement`, a term of this one; `code_digest` and `provenance`: what it rested on
- `auditing`: the line of a run executed again, whole or from frozen tables
- what was written: `runs`, `views`, `pinned` (generations), `out_of_scope` (for auditors); `verification` with its `witness`;
  `answers` with `verify_facts`; `model_turns`; `erasure`
- the ground: `settings` (`declared_settings`, `model_settings`), `places`, `durable`, `locks`, `own_folders`, `file_access`,
  `cores`, `progress`
- what people write: `yaml_files`, `weight_sets`, `strict_json`, `patterns`, `model_errors`, `quoting`

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
