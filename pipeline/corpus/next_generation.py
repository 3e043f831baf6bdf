"""Writing the generation after another one: packs first, then the manifest, then the line of HEADS.

The changes to stored rows are decided beforehand (`Revision`, see `publishing.py`). Only rows that it names are hashed,
analyzed or written: the digest of a generation is a sum over its rows, so the next one is computed from the rows that
change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.errors import MovedOnError
from ..encoders.unit_vectors import Encoder
from ..storage.durable import remove_tree
from .commits import FILE, commit_hash
from .deltas import CHANGES, DESCRIPTIONS, Deltas
from .generation import Generation
from .identity import MultisetHash
from .incoming import Incoming
from .manifest import new_name
from .packs import Entry, Pack, side_by_side, write_pack, write_tables
from .parts import Part, with_rows
from .stored import StoredRows
from .tombstones import ERASED, Receipt
from .vectors import OnEncoded, vectors_of

SEGMENT_ROWS = 1 << 16
"""Rows analyzed and written at once: bounds memory and the size of a pack."""
NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Revision:
    """The changes to stored rows; rows and segments are positions in a `StoredRows`."""

    again: Collection[int]
    """Segments that are rewritten with the new rows, their deltas folded in."""
    dropped: NDArray[np.int64] = field(default_factory=NO_ROWS.copy)
    """Removed rows; their segments are in `again`."""
    changed: pa.Table = field(default_factory=CHANGES.remove(0).empty_table)
    """All placements of every row whose placements change."""
    described: NDArray[np.int64] = field(default_factory=NO_ROWS.copy)
    """Rows whose description changes, but not their postings or vectors."""
    descriptions: pa.Table | None = None
    """`STORED_EVIDENCE` of the rows in `described`, in their order."""

    @property
    def empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.again or len(self.dropped) or self.changed.num_rows or len(self.described))

    @cached_property
    def amended(self) -> NDArray[np.int64]:
        """The rows, ascending, whose placements or description change."""
        return np.union1d(self.changed["row"].to_numpy(), self.described)


@dataclass(frozen=True)
class Next:
    """The generation after `base`."""

    base: Generation
    old: StoredRows
    """The stored rows that the positions in `revision` refer to."""
    revision: Revision
    encoder: Encoder | None = None
    """Encodes the new rows."""
    redactor: str | None = None
    commits: pa.Table | None = None
    """COMMITS of all projects, if they change."""
    on_encoded: OnEncoded = lambda done, total: None
    erasure: tuple[Receipt, pa.Table] | None = None
    """The receipt of an erasure, and the `tombstones` of its rows."""

    def write(self, fresh: Incoming, now: datetime) -> Generation:
        """Write packs, manifest and line; `base` if there is nothing to write. `fresh` are the new and rewritten rows.

        Raises:
            MovedOnError: another writer published after `base`.
            StoreError: a pack that is partly rewritten is damaged; nothing is written.
        """
        base = self.base
        if not fresh.evidence.num_rows and self.revision.empty and self.commits is None and self.erasure is None:
            return base
        self._expect_whole()
        packs = dict(base.packs)
        try:
            return self._written(packs, fresh, now)
        except MovedOnError:
            for name in packs.keys() - base.packs:  # what a crash leaves of them, the next `gc` removes
                with suppress(OSError):
                    remove_tree(base.path / "packs" / name)
            raise

    def _written(self, packs: dict[str, Pack], fresh: Incoming, now: datetime) -> Generation:
        """`packs` are those of `base`; the new ones are added to them."""
        base, manifest = self.base, self.base.manifest
        content = manifest.content + self._altered()
        gone = {name: set(places) for name, places in manifest.gone.items()}
        for at in self.revision.again:
            gone.setdefault(self.old.segments[at].pack, set()).add(self.old.segments[at].place)
        for part, new in self._parts(fresh):
            self._new_pack(packs, write_pack, part)
            content += new
        commits = manifest.commits
        if (table := self.commits) is not None:
            content += commit_hash(table, base.commits) - commit_hash(base.commits, table)
            commits = self._new_pack(packs, write_tables, {FILE: table}) if table.num_rows else None
        changes = self._deltas(packs)
        receipts = [*manifest.receipts]
        if self.erasure is not None:
            receipt, tombstones = self.erasure
            receipts.append(replace(receipt, pack=self._new_pack(packs, write_tables, {ERASED: tombstones})))
        used = {changes, commits, *(receipt.pack for receipt in receipts)}
        used |= {name for name, pack in packs.items() if len(pack.sizes) > len(gone.get(name, ()))}
        used = {name: pack for name, pack in packs.items() if name in used}
        manifest = replace(
            manifest,
            created=now.isoformat(),
            encoder_profile=self._profile or None,
            content=content,
            packs={name: pack.entry for name, pack in used.items()},
            gone={name: sorted(places) for name, places in gone.items() if name in used},
            changes=changes,
            commits=commits,
            redactors=sorted({*manifest.redactors, *([self.redactor] if self.redactor else [])}),
            receipts=receipts,
        )
        return replace(base, manifest=manifest.publish(base.path, base.chain), packs=used)

    def _new_pack(self, packs: dict[str, Pack], write: Callable[..., Entry], *args: Any) -> str:
        """Write a new pack by calling `write` with its folder; returns its name."""
        folder = self.base.path / "packs" / new_name(self.base.manifest.number + 1)
        packs[folder.name] = Pack(folder, write(folder, *args))
        return folder.name

    def _expect_whole(self) -> None:
        """Verify everything that is copied, as rewritten damage would get a valid SHA-256: packs that are rewritten,
        placements of amended rows, and the input of the generation's digest.
        """
        base, manifest = self.base, self.base.manifest
        amended = self.old.segments_of(self.revision.amended).tolist()
        for pack in {self.old.segments[at].pack for at in self.revision.again}:
            base.packs[pack].expect_whole()
        if manifest.commits is not None and self.commits is not None:
            base.packs[manifest.commits].expect_whole()
        for pack in {self.old.segments[at].pack for at in amended}:
            base.packs[pack].expect_whole("evidence.arrow", "placements.arrow")
        if manifest.changes is not None and (self.revision.again or amended):
            base.packs[manifest.changes].expect_whole()

    @cached_property
    def _after(self) -> StoredRows:
        """The stored rows with all changes; removed rows are still included."""
        revision = self.revision
        descriptions = self.old.evidence.slice(0, 0) if revision.descriptions is None else revision.descriptions
        return self.old.amended(revision.changed, revision.described, descriptions)

    @property
    def _profile(self) -> str:
        return self.base.manifest.encoder_profile or (self.encoder.profile if self.encoder else "")

    def _altered(self) -> MultisetHash:
        """The change of the content hash: altered rows after the revision minus before."""
        altered = np.union1d(self.revision.amended, self.revision.dropped)
        if not len(altered):
            return MultisetHash.of()
        kept = np.setdiff1d(altered, self.revision.dropped)
        return self._after.hash(kept) - self.old.hash(altered)

    def _deltas(self, packs: dict[str, Pack]) -> str | None:
        """The pack of the deltas afterwards; None if there are none."""
        before, revision = self.base.deltas, self.revision
        gone = {self.old.segments[at].segment_id for at in revision.again}
        if not gone and not len(revision.amended):
            return self.base.manifest.changes
        stays = ~np.isin(np.arange(len(self.old.segments)), [*revision.again])

        def named(table: pa.Table, schema: pa.Schema) -> pa.Table:
            """The table with `segment_id` and rows numbered within the segment, without replaced segments."""
            rows = table["row"].to_numpy()
            segment = self.old.segments_of(rows)
            ids = pa.array([one.segment_id for one in self.old.segments], pa.string()).take(pa.array(segment))
            table = with_rows(table, rows - self.old.starts[segment]).append_column(schema.field("segment_id"), ids)
            return table.select(schema.names).filter(pa.array(stays[segment]))

        described = self.old.evidence.slice(0, 0) if revision.descriptions is None else revision.descriptions
        described = described.append_column(DESCRIPTIONS.field("row"), pa.array(revision.described))
        after = before.after(gone, Deltas(named(revision.changed, CHANGES), named(described, DESCRIPTIONS)))
        if after.tables.keys() == before.tables.keys() and all(
            table.equals(before.tables[name]) for name, table in after.tables.items()
        ):
            return self.base.manifest.changes
        return self._new_pack(packs, write_tables, after.tables) if after.tables else None

    def _parts(self, fresh: Incoming) -> Iterator[tuple[Part, MultisetHash]]:
        """New and rewritten rows, encoded ones apart, sorted, in batches; with the hash of the new ones."""
        waiting, content = dict[str, list[Part]](), MultisetHash.of()
        for part, new in self._units(fresh):
            before = waiting.setdefault(part.profile, [])
            if before and sum(each.evidence.num_rows for each in [*before, part]) > SEGMENT_ROWS:
                yield Part.joined(before).sorted(), content
                before[:], content = [], MultisetHash.of()
            before.append(part)
            content += new
        for parts in waiting.values():
            if any(part.evidence.num_rows for part in parts):
                yield Part.joined(parts).sorted(), content
                content = MultisetHash.of()

    def _units(self, fresh: Incoming) -> Iterator[tuple[Part, MultisetHash]]:
        for start in range(0, fresh.evidence.num_rows, SEGMENT_ROWS):
            evidence = fresh.evidence.slice(start, SEGMENT_ROWS)
            first, last = np.searchsorted(fresh.placements["row"].to_numpy(), (start, start + SEGMENT_ROWS))
            times = fresh.placements.slice(first, last - first)
            times = with_rows(times, times["row"].to_numpy() - start)
            vectors = None if self.encoder is None else self._encoded(evidence, self.encoder)
            part = Part.of_new(evidence, times, vectors, self._profile)
            yield part, part.content()
        old, keep = self._after, np.ones(self.old.evidence.num_rows, dtype=bool)
        keep[self.revision.dropped] = False
        for run in side_by_side(old.segments, sorted(self.revision.again)):
            part, kept = old.part(run), keep[old.starts[run.start] : old.starts[run.stop]]
            yield part if kept.all() else part.kept(kept), MultisetHash.of()

    def _encoded(self, evidence: pa.Table, encoder: Encoder) -> pa.Table:
        """Vectors, encoded or reused; a text has the same one in all packs, so it does not show where it was found."""
        return vectors_of(evidence, self.base.packs.values(), encoder, self.on_encoded)
