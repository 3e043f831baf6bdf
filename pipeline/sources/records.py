"""The readers of records, each one object: to add one, write its function in a file beside this one and a line in `READERS`.

Each is called `read(path, *, project, now, report)`, gives tables of a subset of the columns of IMPORT_ROWS, and parses
everything before it gives the first one. What is still null afterwards `importing.normalise` fills.
"""

from __future__ import annotations

from .artifacts import read_artifacts
from .documents import read_decisions, read_external, read_standards
from .memory import read_memory, read_preferences
from .sessions import read_sessions
from .source_reader import SourceReader
from .structured import read_logs, read_sot

__all__ = ["READERS"]

READERS = (
    SourceReader("sessions", "Session events, JSONL.", read_sessions),
    SourceReader("memory", "Governed memory records, JSONL.", read_memory),
    SourceReader("artifacts", "Logs and other artifacts, a file or folder.", read_artifacts),
    SourceReader("decisions", "Decision records, Markdown with a header.", read_decisions),
    SourceReader("preferences", "User preferences.", read_preferences),
    SourceReader("standards", "Team standards.", read_standards),
    SourceReader("external", "External text; untrusted.", read_external),
    SourceReader(
        "sot",
        "Structured records by key, CSV or YAML, with schemas beside them.",
        read_sot,
        placed=(".csv", ".yaml", ".yml"),
    ),
    SourceReader("logs", "CSV logs with a column of times, such as context_actions.csv.", read_logs, placed=(".csv",)),
)
"""Every reader of records, by the flag that names its files, in the order in which they are read."""
