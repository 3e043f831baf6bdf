"""The readers of records: to add one, write its function in a module beside this one and a line in `READERS`.

Each is called as `read(path, *, project, now, report)` with a path that exists, yields tables with a subset of the
columns of IMPORT_ROWS, and parses everything before it yields the first. `importing.normalize` fills remaining nulls.

Note: the help of `index` is made from this list, so nothing of the data stack is imported here: a reader's module is imported
when it first reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from .source_reader import SourceReader

__all__ = ["READERS"]


def _function(module: str, name: str) -> Callable[..., Iterator[Any]]:
    """A function of a module beside this one, imported when it is first called."""

    def read(path: Any, **given: Any) -> Iterator[Any]:
        return getattr(import_module(f".{module}", __package__), name)(path, **given)

    return read


READERS = (
    SourceReader("sessions", "Session events, JSONL.", _function("sessions", "read_sessions")),
    SourceReader("memory", "Governed memory records, JSONL.", _function("memory", "read_memory")),
    SourceReader("artifacts", "Logs and other artifacts, a file or folder.", _function("artifacts", "read_artifacts")),
    SourceReader("decisions", "Decision records, Markdown with a header.", _function("documents", "read_decisions")),
    SourceReader("preferences", "User preferences.", _function("memory", "read_preferences")),
    SourceReader("standards", "Team standards.", _function("documents", "read_standards")),
    SourceReader("external", "External text; untrusted.", _function("documents", "read_external")),
    SourceReader(
        "sot",
        "Structured records by key, CSV or YAML, with schemas beside them.",
        _function("structured", "read_sot"),
        placed=(".csv", ".yaml", ".yml"),
    ),
    SourceReader(
        "logs",
        "CSV logs with a column of times, such as context_actions.csv.",
        _function("structured", "read_logs"),
        placed=(".csv",),
    ),
)
"""Every reader of records, by the KIND of `index --add`."""
