"""Rows taken out of a corpus for good: out of the current generation, and out of every pack on disk.

A pack is immutable, so one that holds an erased row goes whole: what else of it is still current is written again
elsewhere, and every generation that needs it is forgotten. Packs that no manifest names, which crashed writers left, go,
too. Every step may be repeated, and what a broken-off erasure left is found again by the ids in its receipt.
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
from ..storage.durable import entries, read_table, remove_leftovers, remove_published, sync_path
from ..storage.locks import confirm
from .blocks import DAMAGED
from .commits import FILE, without_sources
from .embedding_checkpoints import forget_checkpoints
from .generation import Generation
from .manifest import LOCK, manifest_of, needs
from .next_generation import Next, Revision
from .source_states import forget_source_states
from .stored import StoredRows
from .tombstones import Receipt, receipts, tombstone_keys, write_receipt

_READ = ("evidence_id", "owner_project", "owner_user", "source_id", "text_sha256")


@dataclass(frozen=True)
class Selection:
    """Which rows are meant: all of what is named, of the projects in `audited` and of what `principal` owns."""

    principal: str
    audited: frozenset[str]
    source: str | None = None
    user: str | None = None
    project: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, object]:
        """What was asked for, as it is in a receipt."""
        chosen = {"source": self.source, "user": self.user, "project": self.project, "evidence": list(self.evidence)}
        return {name: value for name, value in chosen.items() if value}

    def of(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Whether each row is meant, and one that the principal may erase."""
        chosen = np.ones(rows.num_rows, dtype=bool)
        for column, value in (("source_id", self.source), ("owner_user", self.user), ("owner_project", self.project)):
            if value is not None:
                chosen &= truth(pc.equal(rows[column], value))
        if self.evidence:
            chosen &= among(rows["evidence_id"], self.evidence)
        own = truth(pc.equal(rows["owner_user"], self.principal))
        return chosen & (own | among(rows["owner_project"], self.audited))

    def sources_in(self, commits: pa.Table) -> set[tuple[str, str]]:
        """Project and source of the commit tables that are meant: of a source or project that is erased as a whole."""
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
    """The ids of the stored rows that are meant, current or not, those of a broken-off erasure of the same rows included."""
    chosen = [table["evidence_id"].filter(pa.array(selection.of(table))) for table in _rows_on_disk(base).values()]
    again = [receipt.evidence_ids for receipt in receipts(base.path) if _repeats(receipt, selection)]
    return {row for ids in chosen for row in ids.to_pylist()}.union(*again)


def selected_histories(base: Generation, selection: Selection) -> dict[str, set[tuple[str, str]]]:
    """Project and source of the commit tables that are meant, by the pack that has them."""
    return {pack: selection.sources_in(table) for pack, table in _on_disk(base, FILE)}


def ids_on_disk(base: Generation) -> pa.Array:
    """The ids of all stored rows, each once, of this and earlier generations."""
    columns = [chunk for table in _rows_on_disk(base).values() for chunk in table["evidence_id"].chunks]
    return pc.unique(pa.chunked_array(columns, pa.string()))


def erased(base: Generation, selection: Selection, now: datetime, reason: str) -> tuple[Generation, set[str], set[str]]:
    """The generation after `base` without the rows that are meant, their ids, and the packs that hold one: `forget_packs` is next.

    A receipt without payload is written first. With the rows go those of erasures that are not finished.

    Raises:
        StoreError: something is damaged or cannot be read now; no generation and no pack was removed.
    """
    stored = _rows_on_disk(base)
    receipt = _receipt_of(stored, selection, now, reason)
    left = [each.evidence_ids for each in receipts(base.path) if not each.finished or _repeats(each, selection)]
    ids = set(receipt.evidence_ids).union(*left)
    named = selected_histories(base, selection)
    packs = _packs_with(stored, ids) | {pack for pack, sources in named.items() if sources}
    _expect_whole(base, packs)
    forget_checkpoints(base.path)
    forget_source_states(base.path)
    if receipt.rows:
        write_receipt(base.path, receipt)
    return _without_rows(base, packs, ids, now, set[tuple[str, str]]().union(*named.values())), ids, packs


def _receipt_of(stored: Mapping[str, pa.Table], selection: Selection, now: datetime, reason: str) -> Receipt:
    """The receipt for the stored rows that are meant."""
    chosen = [table.filter(pa.array(selection.of(table))) for table in stored.values()]
    rows = {row for table in chosen for row in table["evidence_id"].to_pylist()}
    keys = {key for table in chosen for key in tombstone_keys(table).to_pylist()}
    named = selection.named
    return Receipt(now.isoformat(), selection.principal, reason, named, tuple(sorted(rows)), tuple(sorted(keys)))


def _repeats(receipt: Receipt, selection: Selection) -> bool:
    """Whether a receipt is of the same principal and the same rows: who asks again may have another folder of runs."""
    return (receipt.by, receipt.selection) == (selection.principal, selection.named)


def _rows_on_disk(base: Generation) -> dict[str, pa.Table]:
    """Id, owner, source and text digest of every row of every pack, by the pack's name, current or not.

    Raises:
        StoreError: a pack is damaged or cannot be read, so its content is unknown.
    """
    return {pack: table.select(_READ) for pack, table in _on_disk(base, "evidence.arrow")}


def _on_disk(base: Generation, name: str) -> Iterator[tuple[str, pa.Table]]:
    """A file of every pack that has it, by the pack's name, as it was written; of packs that crashed writers left, as it is."""
    path = base.path
    named = {pack: files for each in needs(path, base.trust) for pack, files in each.packs.items()}
    for folder in entries(path / "packs"):
        if not folder.name.startswith("."):
            sha256 = named.get(folder.name, {}).get(name, {}).get("sha256")
            with suppress(FileNotFoundError):
                yield folder.name, read_table(folder / name, sha256, DAMAGED)


def _packs_with(rows: Mapping[str, pa.Table], ids: Collection[str]) -> set[str]:
    """The packs that hold one of these rows."""
    return {pack for pack, table in rows.items() if among(table["evidence_id"], ids).any()}


def _expect_whole(base: Generation, packs: Collection[str]) -> None:
    """What stays of these packs can be written again as it was.

    Raises:
        StoreError: one that the generation uses is damaged.
    """
    used = [pack for name, pack in base.packs.items() if name in packs]
    if used and base.manifest.changes is not None:
        used.append(base.packs[base.manifest.changes])  # says how some of their rows are now
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

    `histories` are pairs of project and source whose commits go; `packs` has those that hold such.
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
    """Remove packs, the generations that need one, and packs that no generation needs; how many generations went.

    `base` is the current generation, which needs none of them.

    Raises:
        StoreError: a manifest cannot be read now, so it is unknown what is needed; nothing was removed.
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
    """Remove all but the newest `keep` generations, and the packs that no other one uses: numbers and bytes freed.

    Raises:
        StoreError: a manifest cannot be read now, so it is unknown what is used; nothing was removed.
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
