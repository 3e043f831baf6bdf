"""Every reader of records under one name: sessions, memory, preferences, decisions, standards, external, artifacts,
structured records, logs.

Each is called `read_*(path, *, project, now, report, name=None)`, gives tables of a subset of the columns of IMPORT_ROWS,
and parses everything before it gives the first one. What is still null afterwards `importing.normalise` fills.
"""

from __future__ import annotations

from .artifacts import read_artifacts
from .documents import read_decisions, read_external, read_standards
from .memory import read_memory, read_preferences
from .sessions import read_sessions
from .structured import read_logs, read_sot

__all__ = [
    "read_artifacts",
    "read_decisions",
    "read_external",
    "read_logs",
    "read_memory",
    "read_preferences",
    "read_sessions",
    "read_sot",
    "read_standards",
]
