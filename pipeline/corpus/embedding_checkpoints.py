"""Checkpoints of vectors that are not published yet, so that an interrupted publication can be resumed without encoding
again.

    encoding/<profile>/<n>.arrow    a checkpoint: `text_digest` and `vector` of some texts; `<profile>` is a digest

A checkpoint is whole or absent, and does not depend on its writer: a vector depends on its text and the encoder's profile
alone. The next publication that encodes reads vectors from here and then removes the folder, as erasing and cleaning up do.
The writer holds the lock throughout.
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
CHECKPOINT_TEXTS = 128
"""Texts of a checkpoint: less than half a minute on one core. A publication of fewer texts writes none."""

OnEncoded = Callable[[int, int], None]
"""Called with the number of encoded texts and their total, before the first checkpoint and after each."""


@dataclass(frozen=True)
class EmbeddingCheckpoints:
    """The checkpoints of one corpus and encoder profile."""

    corpus: Place
    profile: str
    on_encoded: OnEncoded = lambda done, total: None

    @property
    def folder(self) -> Place:
        """The folder of these checkpoints."""
        return self.corpus / FOLDER / hashlib.sha256(self.profile.encode()).hexdigest()[:16]

    def tables(self) -> list[pa.Table]:
        """The readable checkpoints. A file that is not Arrow is removed; a file that cannot be read now stays."""
        found = []
        for file in self._files():
            try:
                with suppress(OSError), arrow_source(file) as source:
                    found.append(pa.ipc.open_file(source).read_all())
            except pa.ArrowInvalid:
                file.unlink(missing_ok=True)
        return found

    def keep(self, table: pa.Table) -> None:
        """Write a checkpoint."""
        make_folders(self.folder, self.corpus)
        number = max((int(file.stem) for file in self._files()), default=0) + 1
        store_table(self.folder / f"{number:06d}.arrow", table)

    def _files(self) -> list[Place]:
        return [file for file in entries(self.folder) if file.suffix == ".arrow" and file.stem.isdecimal()]


def forget_checkpoints(corpus: Place) -> None:
    """Remove every checkpoint; the caller holds the lock."""
    with suppress(FileNotFoundError):
        remove_tree(corpus / FOLDER)


def has_checkpoints(corpus: Place) -> bool:
    """Whether a publication that was interrupted, or that is running, has written checkpoints."""
    return any((corpus / FOLDER).glob("*/[0-9]*.arrow"))


def kept_texts(corpus: Place) -> int:
    """Approximate number of texts whose vectors an interrupted publication left: whole checkpoints."""
    return CHECKPOINT_TEXTS * sum(1 for _ in (corpus / FOLDER).glob("*/[0-9]*.arrow"))
