"""What `index` is asked to read. Apart from the readers, so that a question only compares files with those that were read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..sources.selection import Selection

__all__ = ["IndexRequest"]

Paths = tuple[Path, ...]


@dataclass(frozen=True)
class IndexRequest:
    """The inputs of an import: work trees in `paths`, and records."""

    paths: Paths = ()
    history: bool = False
    """Whether the Git history of `paths` is read, too."""
    read: tuple[tuple[str, str | Path], ...] = ()
    """Names of readers of records, including those of plugins, each with a file or folder; `mcp` with `NAME=COMMAND` or
    `NAME=URL`.
    """
    source: str | None = None
    selection: Selection = field(default_factory=Selection)
    """Which files of `paths` are read."""
    semantic: bool = True
    max_embedded_rows: int | None = None
    workers: int = 0
    """Processes that cut files and blobs; 0: as many as there are processors."""

    @property
    def empty(self) -> bool:
        """Whether no input is named."""
        return not (self.paths or self.read)
