"""Detects unchanged parts of sources: files and paths whose rows are already in the corpus.

Gives: `IncrementalImport`, one import, which has an `IncrementalSource` for each source; readers ask it which paths are
unchanged, and report what they read. An import without it reads everything, with the same result.

Note: a path counts as unchanged only if everything else that determines its rows is unchanged, too (`rules`). An import
may detect late that it must not rely on earlier states (`UnusableError`); it is then run again without them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ..corpus import Corpus
from ..corpus.source_states import SourceState
from .incremental_source import IncrementalSource, UnusableError
from .same_source import same_folder

__all__ = ["IncrementalImport", "UnusableError"]

_COUNTED = ("source_id", "workspace_root", "path", "redactions", "recorded_time")


class IncrementalImport:
    """The sources of one import into one project."""

    def __init__(
        self,
        project: str,
        corpus: Corpus | None,
        rules: Sequence[object],
        started: int | None = None,
        *,
        named: bool = False,
    ) -> None:
        """
        Args:
            corpus: the corpus with the earlier states; None if there is none yet.
            named: the user named the source, so any folder is accepted for it.
            rules: everything except the source itself that determines the rows of a file.
            started: when reading began, in nanoseconds since 1970; default: now.
        """
        self.project, self._corpus, self._rules, self._named = project, corpus, rules, named
        self._started = time.time_ns() if started is None else started
        self._sources: dict[str, IncrementalSource] = {}
        self._shared: set[str] = set()
        self._embedded = False

    @property
    def basis(self) -> str | None:
        """The generation whose rows were relied on; None if none were."""
        return self._corpus.generation if self.relied and self._corpus is not None else None

    @property
    def relied(self) -> list[IncrementalSource]:
        """The sources whose rows in the corpus were used instead of reading them."""
        return [known for known in self._sources.values() if known.relied]

    def source(
        self, source_id: str, root: Path, *rules: object, same: Callable[[SourceState], bool] = lambda _: False
    ) -> IncrementalSource:
        """One source, read from the folder `root`; `rules` determine its rows together with those of the import.

        `same` returns whether `root` is a copy of the source that was read elsewhere.

        Raises:
            InputError: it was read from another folder, which still exists, and the user did not name the source.
            StoreError: it cannot be determined now whether that folder still exists.
            UnusableError: two sources of this import have that id.
        """
        if source_id in self._sources:
            raise UnusableError
        root = root.resolve()
        digest = hashlib.sha256(json.dumps([source_id, self.project, *self._rules, *rules]).encode()).hexdigest()
        before = None if self._corpus is None else self._corpus.source_state(self.project, source_id)
        if before is not None and not (self._named or same_folder(before.root, root) or same(before)):
            name = source_id.partition(":")[2]
            raise InputError(
                f"Expected {before.root}, from which {source_id} was read, got another folder of that name - at {root}",
                hint=f"name this one with `--source NAME`; `--source {name}` replaces the other",
            )
        if before is None or before.rules != digest or source_id in self._shared:
            before = SourceState(digest)
        before = replace(before, root=str(root))
        known = self._sources[source_id] = IncrementalSource(
            before, lambda paths: self._stored(source_id, paths), self._started
        )
        return known

    def share(self, source_ids: Iterable[str]) -> None:
        """Declare that rows of these sources come from another reader, too, so that the reader of a path is unknown.

        Raises:
            UnusableError: rows of one of them were already taken as unchanged.
        """
        self._shared.update(source_ids)
        if any(self._sources[source_id].relied for source_id in self._shared & self._sources.keys()):
            raise UnusableError

    def embed(self) -> None:
        """Declare that rows of this import get vectors.

        Raises:
            UnusableError: rows taken as unchanged were imported without vectors.
        """
        if any(not known.before.embedded for known in self.relied):
            raise UnusableError
        self._embedded = True

    def _stored(self, source_id: str, paths: Sequence[str]) -> pa.Table:
        assert self._corpus is not None  # only called for known sources
        return self._corpus.stored_paths(self.project, source_id, paths)

    def count(self, rows: pa.Table, ids: pa.Array) -> None:
        """Count normalized rows and their evidence ids by path; without those of uncommitted files in work trees."""
        for source_id, known in self._sources.items():
            mine = pc.and_(pc.equal(rows["source_id"], source_id), pc.is_null(rows["workspace_root"]))
            if pc.any(mine).as_py():
                known.add(rows.select(_COUNTED).append_column("id", ids).filter(mine))

    @property
    def standing(self) -> dict[str, IncrementalSource]:
        """The sources with unread paths, by id."""
        return {source_id: known for source_id, known in self._sources.items() if known.standing}

    def for_publishing(self) -> dict[str, Any]:
        """The arguments of `Corpus.publish` for this import."""
        standing = {source: of.standing.keys() for source, of in self.standing.items()}
        return {"standing": standing, "source_states": self.source_states(), "basis": self.basis}

    def source_states(self) -> dict[tuple[str, str], SourceState]:
        """The states of the sources after this import, by project and source id."""
        made = {source_id: known.state() for source_id, known in self._sources.items() if source_id not in self._shared}
        return {
            (self.project, source_id): replace(state, embedded=self._embedded)
            for source_id, state in made.items()
            if state is not None
        }
