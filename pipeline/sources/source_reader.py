"""What reads a kind of source: one object with its name, its docs and the function that reads.

Gives: `SourceReader`, and `languages`, which lets readers of plugins cut files of their languages while an import runs.

Note: rows of every reader go through `importing.normalise`, which fills missing fields with the least privileged
values, masks secrets and refuses malformed rows. A reader grants no rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ...nodes.errors import InputError

__all__ = ["SourceReader", "language_of", "languages", "outline_of"]


@dataclass(frozen=True)
class SourceReader:
    """A reader of records (`read`) or of the files of a language (`extensions` and `outline`).

    `read(path, project=..., now=..., report=...)` gives tables of a subset of the columns of IMPORT_ROWS, at least
    `source_id` and `text`. `outline(lines)` gives the `Outline` of the `Lines` of one file: segments, and names by line.
    """

    name: str
    doc: str
    read: Callable[..., Iterator[Any]] | None = None
    extensions: tuple[str, ...] = ()
    outline: Callable[[Any], Any] | None = None
    placed: tuple[str, ...] = ()
    """Suffixes of files that work trees leave to this reader, whose paths are then relative to the tree."""

    def __post_init__(self) -> None:
        if (self.read is None) == (self.outline is None):
            raise InputError.described("either `read` or `outline`", "both or neither", self.name)
        if (self.outline is None) != (not self.extensions):
            raise InputError.described("`extensions` with `outline`", "one without the other", self.name)
        if not isinstance(self.extensions, tuple):
            raise InputError.of_kind("a tuple", self.extensions, f"{self.name}.extensions")
        for extension in self.extensions:
            if extension != extension.lower().strip("."):
                raise InputError.expected(
                    "an extension in lower case, without a dot", extension, f"{self.name}.extensions"
                )

    @property
    def language(self) -> str:
        """The language of its files."""
        return self.name.rpartition(".")[2]


_LANGUAGES: ContextVar[dict[str, SourceReader] | None] = ContextVar("languages", default=None)


@contextmanager
def languages(readers: Iterable[SourceReader]) -> Iterator[None]:
    """Files of these readers' extensions are cut by them in the meantime."""
    token = _LANGUAGES.set({extension: one for one in readers for extension in one.extensions} or None)
    try:
        yield
    finally:
        _LANGUAGES.reset(token)


def language_of(extension: str) -> SourceReader | None:
    """The reader of a plugin that cuts files of an extension now."""
    known = _LANGUAGES.get()
    return known.get(extension) if known else None


def outline_of(name: str) -> Callable[[Any], Any] | None:
    """How the reader of this name cuts a file now; None where there is none."""
    known = _LANGUAGES.get()
    return next((one.outline for one in known.values() if one.name == name), None) if known else None
