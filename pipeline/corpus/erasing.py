"""Permanent removal of rows from a corpus: from the current generation and from every pack on disk.

A pack is immutable, so a pack that contains an erased row is removed as a whole: its other current rows are rewritten
to a new pack. One line publishes the receipt and the generation without the rows; all generations before it, and what
other writers left, are removed after that. Every step is idempotent: an interrupted erasure is completed by the next one
of any selection and principal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import among, truth
from ..storage.chain import Line
from ..storage.durable import entries, remove_leftovers, remove_tree, sync_path
from ..storage.places import ObjectPlace, Place
from .commits import FILE
from .generation import Generation
from .manifest import CACHE, manifest_of, needs, number_of, stored
from .next_generation import NO_ROWS, Next, Revision
from .packs import Pack
from .stored import StoredRows
from .tombstones import Receipt, erased_in, tombstones

_READ = ("evidence_id", "owner_project", "owner_user", "source_id", "text_sha256")


@dataclass(frozen=True)
class Selection:
    """The rows to erase: those that match every given field and that `principal` owns or are in `audited` projects."""

    principal: str
    audited: frozenset[str]
    source: str | None = None
    user: str | None = None
    project: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, object]:
        """The selection as a receipt records it."""
        chosen = {"source": self.source, "user": self.user, "project": self.project, "evidence": list(self.evidence)}
        return {name: value for name, value in chosen.items() if value}

    def of(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Whether each row is selected and the principal may erase it."""
        chosen = np.ones(rows.num_rows, dtype=bool)
        for column, value in (("source_id", self.source), ("owner_user", self.user), ("owner_project", self.project)):
            if value is not None:
                chosen &= truth(pc.equal(rows[column], value))
        if self.evidence:
            chosen &= among(rows["evidence_id"], self.evidence)
        own = truth(pc.equal(rows["owner_user"], self.principal))
        return chosen & (own | among(rows["owner_project"], self.audited))

    def of_commits(self, commits: pa.Table) -> NDArray[np.bool_]:
        """Whether each commit is selected: of a source or project that is erased as a whole, in an audited project."""
        chosen = among(commits["owner_project"], self.audited if self.user is None and not self.evidence else ())
        for column, value in (("source_id", self.source), ("owner_project", self.project)):
            if value is not None:
                chosen &= truth(pc.equal(commits[column], value))
        return chosen


class Stored:
    """The rows of a generation, and those of them that a selection names. No generation before has others: a row stays until
    it is erased.

    Raises:
        StoreError: a pack is damaged or cannot be read now, so its content is unknown.
    """

    def __init__(self, base: Generation, selection: Selection) -> None:
        self.base, self.selection = base, selection
        self._rows, self._commits = dict[str, pa.Table](), dict[str, pa.Table]()
        for name, entry in base.manifest.packs.items():
            pack = Pack(base.path / "packs" / name, entry)  # as it is now: it may have been damaged since
            if "evidence.arrow" in pack:
                self._rows[name] = pack.table("evidence.arrow").select(_READ)
            if FILE in pack:
                self._commits[name] = pack.table(FILE)

    @property
    def any(self) -> bool:
        """Whether anything is selected, or was erased by the same selection."""
        return bool(self.chosen.num_rows or self.histories or self._receipts)

    @cached_property
    def chosen(self) -> pa.Table:
        """Id, owner, source and text digest of the selected rows, current or not."""
        return pa.concat_tables(rows.filter(pa.array(self.selection.of(rows))) for rows in self._tables())

    @cached_property
    def ids(self) -> set[str]:
        """The ids of the selected rows, including those of earlier erasures of the same selection, which may have been
        interrupted, or are repeated for another folder of runs.
        """
        before = (erased_in(self.base.packs[each.pack], "evidence_id") for each in self._receipts)
        return set[str](self.chosen["evidence_id"].to_pylist()).union(*before)

    @property
    def _receipts(self) -> list[Receipt]:
        mine = (self.selection.principal, self.selection.named)
        return [each for each in self.base.manifest.receipts if (each.by, each.selection) == mine]

    @cached_property
    def histories(self) -> set[str]:
        """The packs that contain selected commits."""
        return {name for name, table in self._commits.items() if self.selection.of_commits(table).any()}

    @property
    def held(self) -> pa.Array:
        """The distinct ids of all stored rows."""
        return pc.unique(pa.concat_tables(self._tables())["evidence_id"])

    def packs_with(self, ids: Collection[str]) -> set[str]:
        """The packs that contain one of these rows, or selected commits."""
        return {name for name, rows in self._rows.items() if among(rows["evidence_id"], ids).any()} | self.histories

    def _tables(self) -> Sequence[pa.Table]:
        return [*self._rows.values()] or [self.base.evidence().select(_READ)]


def erased(found: Stored, now: datetime, reason: str) -> Generation:
    """The generation after `base` without the selected rows and commits and with a receipt; `base` if there are none.

    Raises:
        MovedOnError: another writer published after `base`.
        StoreError: a file is damaged or cannot be read now; nothing is published.
    """
    base, selection, ids = found.base, found.selection, found.ids
    packs = found.packs_with(ids)
    for name in packs:
        base.packs[name].expect_whole()
    remove_tree(base.path / CACHE)
    erasure, chosen = None, set(found.chosen["evidence_id"].to_pylist())
    if found.histories or chosen:
        receipt = Receipt(now.isoformat(), selection.principal, reason, selection.named, len(chosen))
        erasure = receipt, tombstones(found.chosen)
    old = StoredRows.of(base, [segment for segment in base.segments() if segment.pack in packs])
    dropped = np.flatnonzero(among(old.evidence["evidence_id"], ids))
    commits = None
    if base.manifest.commits in found.histories:
        commits = base.commits.filter(pa.array(~selection.of_commits(base.commits))).combine_chunks()
    next_ = Next(base, old, Revision(range(len(old.segments)), dropped), commits=commits, erasure=erasure)
    return next_.write(old.imported(NO_ROWS), now)


def forget(base: Generation, lines: Collection[Line]) -> dict[str, int]:
    """Remove the generations of these lines, unless current, and every file that no other generation needs; returns
    counts and bytes freed.

    On an object store, only files with a number up to that of the current line are removed: another writer may be about to
    publish the others. Generations go first, and durably, so that each one that is left has its packs.

    Raises:
        StoreError: a manifest cannot be read now, so the packs it uses are unknown; nothing was removed.
    """
    path = base.path
    number = base.manifest.number + (not isinstance(path, ObjectPlace))
    gone = [line for line in lines if line.body["generation"] != base.manifest.generation]
    kept = [line for line in stored(path, base.chain) if line not in gone]
    used = {manifest_of(path, line).name for line in kept} | set(needs(path, kept))
    used |= set(base.manifest.packs)  # another writer may build on them, and have removed this generation by now

    def unused(folder: str) -> list[Place]:
        return [
            each
            for each in entries(path / folder)
            if (of := number_of(each.name)) is not None and of <= number and each.name not in used
        ]

    manifests, packs = unused("generations"), unused("packs")
    sizes = list[int]()
    for file in (each for folder in packs for each in entries(folder)):
        with suppress(FileNotFoundError):  # another writer removes them, too
            sizes.append(file.stat().st_size)
    for manifest in manifests:
        manifest.unlink(missing_ok=True)
    sync_path(path / "generations")
    for folder in packs:
        remove_tree(folder)
    for folder in (path, path / "generations", path / "packs"):
        remove_leftovers(folder)
        sync_path(folder)
    return {"generations": len(gone), "packs": len(packs), "files": len(sizes), "bytes": sum(sizes)}
