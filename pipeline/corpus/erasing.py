"""Permanent removal of rows from a corpus: from the current generation and from every pack on disk.

A pack is immutable, so a pack that contains an erased row is removed as a whole: its other current rows are rewritten
to a new pack, and every generation that needs it is removed. Packs that no manifest names, left by crashed writers, are
removed, too. Every step is idempotent, and an interrupted erasure is resumed from the ids in its receipt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import among, truth
from ..storage.durable import entries, read_table, remove_leftovers, remove_published, remove_tree, sync_path
from ..storage.locks import confirm
from .blocks import DAMAGED
from .commits import FILE, without_sources
from .embedding_checkpoints import forget_checkpoints
from .generation import Generation
from .manifest import LOCK, manifest_of, needs
from .next_generation import Next, Revision
from .stored import StoredRows
from .tombstones import Receipt, receipts, tombstone_keys, write_receipt
from .writing import CACHE

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

    def sources_in(self, commits: pa.Table) -> set[tuple[str, str]]:
        """Project and source of the selected commit tables: those of a source or project that is erased as a whole."""
        if self.user is not None or self.evidence:
            return set()
        pairs = commits.group_by(["owner_project", "source_id"]).aggregate([]).to_pylist()
        return {
            (pair["owner_project"], pair["source_id"])
            for pair in pairs
            if pair["owner_project"] in self.audited
            and self.project in (None, pair["owner_project"])
            and self.source in (None, pair["source_id"])
        }


def selected_ids(base: Generation, selection: Selection) -> set[str]:
    """The ids of the selected rows, current or not, including those of an interrupted erasure of the same selection."""
    chosen = [table["evidence_id"].filter(pa.array(selection.of(table))) for table in _rows_on_disk(base).values()]
    again = [receipt.evidence_ids for receipt in receipts(base.path) if _repeats(receipt, selection)]
    return {row for ids in chosen for row in ids.to_pylist()}.union(*again)


def selected_sources(base: Generation, selection: Selection) -> set[str]:
    """The source ids of the selected rows."""
    chosen = (table["source_id"].filter(pa.array(selection.of(table))) for table in _rows_on_disk(base).values())
    return {source for sources in chosen for source in sources.unique().to_pylist()}


def selected_histories(base: Generation, selection: Selection) -> dict[str, set[tuple[str, str]]]:
    """Project and source of the selected commit tables, by the pack that contains them."""
    return {pack: selection.sources_in(table) for pack, table in _on_disk(base, FILE)}


def ids_on_disk(base: Generation) -> pa.Array:
    """The distinct ids of all stored rows, of this and earlier generations."""
    columns = [chunk for table in _rows_on_disk(base).values() for chunk in table["evidence_id"].chunks]
    return pc.unique(pa.chunked_array(columns, pa.string()))


def erased(base: Generation, selection: Selection, now: datetime, reason: str) -> tuple[Generation, set[str], set[str]]:
    """The generation after `base` without the selected rows, their ids, and the packs to pass to `forget_packs` next.

    A receipt without payload is written first. Rows of unfinished erasures are erased as well.

    Raises:
        StoreError: a file is damaged or cannot be read now; no generation and no pack was removed.
    """
    stored = _rows_on_disk(base)
    receipt = _receipt_of(stored, selection, now, reason)
    left = [each.evidence_ids for each in receipts(base.path) if not each.finished or _repeats(each, selection)]
    ids = set(receipt.evidence_ids).union(*left)
    named = selected_histories(base, selection)
    packs = _packs_with(stored, ids) | {pack for pack, sources in named.items() if sources}
    _expect_whole(base, packs)
    forget_checkpoints(base.path)
    with suppress(FileNotFoundError):
        remove_tree(base.path / CACHE)
    if receipt.rows:
        write_receipt(base.path, receipt)
    return _without_rows(base, packs, ids, now, set[tuple[str, str]]().union(*named.values())), ids, packs


def _receipt_of(stored: Mapping[str, pa.Table], selection: Selection, now: datetime, reason: str) -> Receipt:
    """The receipt for the selected rows."""
    chosen = [table.filter(pa.array(selection.of(table))) for table in stored.values()]
    rows = {row for table in chosen for row in table["evidence_id"].to_pylist()}
    keys = {key for table in chosen for key in tombstone_keys(table).to_pylist()}
    named = selection.named
    return Receipt(now.isoformat(), selection.principal, reason, named, tuple(sorted(rows)), tuple(sorted(keys)))


def _repeats(receipt: Receipt, selection: Selection) -> bool:
    """Whether a receipt has the same principal and selection: an erasure may be repeated for another folder of runs."""
    return (receipt.by, receipt.selection) == (selection.principal, selection.named)


def _rows_on_disk(base: Generation) -> dict[str, pa.Table]:
    """Id, owner, source and text digest of every row of every pack, by the pack's name, current or not.

    Raises:
        StoreError: a pack is damaged or cannot be read, so its content is unknown.
    """
    return {pack: table.select(_READ) for pack, table in _on_disk(base, "evidence.arrow")}


def _on_disk(base: Generation, name: str) -> Iterator[tuple[str, pa.Table]]:
    """A file of every pack that has it, by the pack's name; verified by checksum unless no manifest names the pack."""
    path = base.path
    named = {pack: files for each in needs(path, base.trust) for pack, files in each.packs.items()}
    for folder in entries(path / "packs"):
        if not folder.name.startswith("."):
            sha256 = named.get(folder.name, {}).get(name, {}).get("sha256")
            with suppress(FileNotFoundError):
                yield folder.name, read_table(folder / name, sha256, DAMAGED)


def _packs_with(rows: Mapping[str, pa.Table], ids: Collection[str]) -> set[str]:
    """The packs that contain one of these rows."""
    return {pack for pack, table in rows.items() if among(table["evidence_id"], ids).any()}


def _expect_whole(base: Generation, packs: Collection[str]) -> None:
    """Verify these packs before their remaining rows are rewritten.

    Raises:
        StoreError: a pack that the generation uses is damaged.
    """
    used = [pack for name, pack in base.packs.items() if name in packs]
    if used and base.manifest.changes is not None:
        used.append(base.packs[base.manifest.changes])  # the current placements and descriptions of some of their rows
    for pack in used:
        pack.expect_whole()


def _without_rows(
    base: Generation,
    packs: Collection[str],
    ids: Collection[str],
    now: datetime,
    histories: Collection[tuple[str, str]],
) -> Generation:
    """The generation after `base` without these rows, packs and commit tables; `base` if it uses none of them.

    `histories` are pairs of project and source whose commits are removed; `packs` includes the packs of their tables.
    """
    old = StoredRows.of(base, [segment for segment in base.manifest.segments if segment.pack in packs])
    dropped = np.flatnonzero(among(old.evidence["evidence_id"], ids))
    lost = int(np.count_nonzero(np.isin(old.placements["row"].to_numpy(), dropped)))
    commits = {
        project: without_sources(base.commits(project), {source for owner, source in histories if owner == project})
        for project, pack in base.manifest.commits.items()
        if pack in packs
    }
    revision = Revision(range(len(old.segments)), dropped)
    return Next(base, old, revision, commits=commits).write(old.nothing, now, added=-lost)


def forget_packs(base: Generation, packs: AbstractSet[str]) -> int:
    """Remove packs, the generations that need one, and unused packs; returns the number of removed generations.

    `base` is the current generation, which needs none of them.

    Raises:
        StoreError: a manifest cannot be read now, so the packs it needs are unknown; nothing was removed.
    """
    path = base.path
    others = [each for each in needs(path, base.trust) if each.generation != base.manifest.generation]
    forgotten = [each.generation for each in others if not packs.isdisjoint(each.packs)]
    used = set(base.manifest.packs).union(*(each.packs for each in others if packs.isdisjoint(each.packs)))
    unused = [folder for folder in entries(path / "packs") if folder.name not in used and folder.is_dir()]
    confirm(path / LOCK)
    for name in forgotten:
        manifest_of(path, name).unlink()
    for folder in unused:
        remove_published(folder)
    for folder in (path, path / "generations", path / "packs"):
        remove_leftovers(folder)
        sync_path(folder)
    return len(forgotten)


def forget_generations(base: Generation, keep: int) -> dict[str, int]:
    """Remove all but the newest `keep` generations and unused packs; returns counts and bytes freed.

    Raises:
        StoreError: a manifest cannot be read now, so the packs it uses are unknown; nothing was removed.
    """
    path, known = base.path, needs(base.path, base.trust)
    forgotten = [name for name, _ in known[:-keep] if name != base.manifest.generation]
    used = set(base.manifest.packs).union(*(packs for name, packs in known if name not in forgotten))
    unused = [folder for folder in entries(path / "packs") if folder.name not in used and folder.is_dir()]
    sizes = [file.stat().st_size for folder in unused for file in entries(folder)]
    confirm(path / LOCK)
    for name in forgotten:
        manifest_of(path, name).unlink()
    for folder in unused:
        remove_published(folder)
    forget_checkpoints(path)
    remove_leftovers(path)
    remove_leftovers(path / "generations")
    return {"generations": len(forgotten), "packs": len(unused), "files": len(sizes), "bytes": sum(sizes)}
