"""The tool's own folders: marked so that neither Git nor `index` takes a corpus or a run for evidence."""

from __future__ import annotations

from .file_access import open_new
from .places import ObjectPlace, Place


def keep_out(folder: Place) -> None:
    """Write a `.gitignore` that ignores everything in a folder of this tool; the readers honor it, too."""
    if isinstance(folder, ObjectPlace):
        return
    mark = folder / ".gitignore"
    if not mark.exists():
        with open_new(mark) as file:
            file.write(b"# Written by scoped-retrieval: nothing below is a source.\n*\n")
