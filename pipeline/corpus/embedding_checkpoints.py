"""Vectors that are made and not published yet, so that an interrupted publication need not make them again.

    encoding/<profile>/<n>.arrow    `text_digest` and `vector`, a piece of some texts; `<profile>` is a digest

A piece is whole or absent, and does not depend on its writer: a vector depends on its text and the encoder's profile alone.
The next publication that encodes takes vectors from here and, when it is done, removes the folder, as do erasing and cleaning
up. The writer's lock is held for all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from ..storage.durable import arrow_source, entries, make_folders, remove_tree, store_table
from ..storage.places import Place

FOLDER = "encoding"
PIECE = 128
"""Texts that are encoded and kept at once: less than half a minute on one core. A publication of fewer keeps none."""

Told = Callable[[int, int], None]
"""Told how many texts of how many are encoded, before the first and after every piece."""


@dataclass(frozen=True)
class Pieces:
    """The pieces of one corpus and encoder profile."""

    corpus: Place
    profile: str
    told: Told = lambda done, total: None

    @property
    def folder(self) -> Place:
        """Where they lie."""
        return self.corpus / FOLDER / hashlib.sha256(self.profile.encode()).hexdigest()[:16]

    def tables(self) -> list[pa.Table]:
        """What is kept; a piece that is no Arrow file goes, and one that cannot be read now stays for the next publication."""
        found = []
        for file in self._files():
            try:
                with suppress(OSError), arrow_source(file) as source:
                    found.append(pa.ipc.open_file(source).read_all())
            except pa.ArrowInvalid:
                file.unlink(missing_ok=True)
        return found

    def keep(self, table: pa.Table) -> None:
        """Add a piece."""
        make_folders(self.folder, self.corpus)
        number = max((int(file.stem) for file in self._files()), default=0) + 1
        store_table(self.folder / f"{number:06d}.arrow", table)

    def _files(self) -> list[Place]:
        return [file for file in entries(self.folder) if file.suffix == ".arrow" and file.stem.isdecimal()]


def forget_pieces(corpus: Place) -> None:
    """Remove every piece; the caller holds the lock."""
    with suppress(FileNotFoundError):
        remove_tree(corpus / FOLDER)


def has_pieces(corpus: Place) -> bool:
    """Whether an interrupted publication left vectors, or one that goes on has made some."""
    return any((corpus / FOLDER).glob("*/[0-9]*.arrow"))


def kept_texts(corpus: Place) -> int:
    """How many texts an interrupted publication left vectors of, up to a piece."""
    return PIECE * sum(1 for _ in (corpus / FOLDER).glob("*/[0-9]*.arrow"))
