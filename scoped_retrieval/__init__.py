"""Scoped retrieval: evidence for agents, inside a boundary, with a record of what was shown.

    from scoped_retrieval import ask

    print(ask("where is the retry limit set?").block)         # of the folder in which Python runs, as the command does

Gives: `ask` and `index`, the commands of the same names; `Retriever`, for many questions or your own stores; `Corpus`,
`Runs`, `SessionLog` and `ContextPolicy`. Modules below `nodes` and `pipeline` may change, except those that the guides name.

Note: everything is loaded on first use, because the command line imports this package, and its `--help` must not load the
data stack.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pipeline.asking.retrieval import Retrieval
    from .pipeline.asking.retriever import Retriever
    from .pipeline.config.settings import Settings
    from .pipeline.context.log import SessionLog
    from .pipeline.context.policy import ContextPolicy
    from .pipeline.corpus import Corpus
    from .pipeline.indexing.report import IndexReport
    from .pipeline.runs import Runs

__all__ = ["ContextPolicy", "Corpus", "Retriever", "Runs", "SessionLog", "ask", "index"]

_HOMES = {"ContextPolicy": "context.policy", "Corpus": "corpus", "Retriever": "asking.retriever", "Runs": "runs",
          "SessionLog": "context.log"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".pipeline.{_HOMES[name]}", __name__), name)


def ask(question: str, folder: str | Path = ".", **fields: Any) -> Retrieval:
    """The answer to one question in a folder. Its corpus is found upwards, or made, and reads what changed.

    Args:
        question: the question.
        folder: where it is asked; its settings apply, and its project.
        fields: other fields of a request, such as `purpose` and `budget`.

    Raises:
        InputError: a field is invalid, or no corpus can be made of the folder.
        StoreError: the corpus cannot be read, or came with the folder and was not adopted.
    """
    from .pipeline.asking.opening import open_retriever
    from .pipeline.indexing.following import defaults_in
    from .pipeline.indexing.freshness import up_to_date
    from .pipeline.progress import quiet
    from .pipeline.requests.handoff import trees_around

    log = logging.getLogger(__name__)
    settings = up_to_date(_settings(folder), progress=False, say=quiet, warn=lambda _, text: log.warning(text))
    given = defaults_in(settings, Path(folder), fields)
    with open_retriever(settings, work_trees=trees_around(Path(folder))) as retriever:
        return retriever.retrieve({**given, **fields, "question": question})


def index(folder: str | Path = ".", *, project: str | None = None, history: bool = False) -> IndexReport:
    """Read a folder, or its Git history too, into its corpus, and grant it to you; other options are those of the command.

    One process reads: more would run the caller's script again, unless it is guarded by `__name__ == "__main__"`.

    Raises:
        InputError: there is nothing to read.
        StoreError: the corpus cannot be written, or came with the folder and was not adopted.
    """
    from .pipeline.indexing.following import IndexRequest, of_folder
    from .pipeline.indexing.freshness import index_followed

    request = IndexRequest(paths=(Path(folder),), history=history, workers=1)
    settings = of_folder(_settings(folder, project=project), Path(folder))
    return index_followed(settings, request)


def _settings(folder: str | Path, **given: Any) -> Settings:
    from .pipeline.config.opening import expect_known, expect_untracked
    from .pipeline.config.settings import load_settings

    settings = load_settings(given, cwd=Path(folder))
    for name in ("corpus", "runs"):
        expect_untracked(settings, name)
        expect_known(settings, name)
    return settings
