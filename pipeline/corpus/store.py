"""A corpus: a folder of immutable packs, generations that list their segments, and one pointer to the current one.

Reading: `Corpus.open(path).frame(projects)`. Writing: `publish`, `append`, `merge`, `gc`, one writer at a time. Packs are
written first, then the manifest, then the pointer, so a crash at any moment leaves the previous generation intact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from secrets import token_hex
from typing import Any

import pyarrow as pa

from ...nodes.errors import ErasedError, InputError, StoreError
from ..encoders.unit_vectors import Encoder
from ..storage.durable import exists, make_folders, read_whole
from ..storage.file_access import keep_out
from ..storage.places import Place, fixed_place
from .blocks import DAMAGED
from .checking import changed_manifests, damaged_files, problems
from .commits import commits_after
from .embedding_checkpoints import EmbeddingCheckpoints, OnEncoded, forget_checkpoints
from .erasing import (
    Selection,
    erased,
    forget_generations,
    forget_packs,
    ids_on_disk,
    selected_histories,
    selected_ids,
    selected_sources,
)
from .frame import CorpusFrame, KeptFrames
from .generation import Generation
from .heads import anchored, chain
from .identity import MultisetHash
from .incoming import incoming
from .manifest import Manifest, complete_heads, current, generations, manifest_of, remove_ghosts
from .publishing import Import, PublishReport, merged, published
from .tombstones import finish_receipts, kept_out, receipts
from .trust import UNSIGNED, Trust
from .writing import locked, taken
from .zones import FAMILY

_HALF_ERASED = "the erasure is not finished, and part of the rows may still be there"


class Corpus:
    """An open generation of a corpus. After a write, this object is at the generation that was written."""

    def __init__(self, base: Generation, *, pinned: bool, erased: int) -> None:
        self._base = base
        self._pinned = pinned
        self._erased = erased
        """The number of finished erasures when the generation was opened."""
        self._frames = KeptFrames()

    @classmethod
    def create(cls, path: Place | str, trust: Trust = UNSIGNED) -> Corpus:
        """A new, empty corpus.

        Raises:
            BusyError: another writer held the lock for `WAIT_SECONDS`.
            StoreError: a corpus exists already, or the store does not support conditional creation; nothing is written.
        """
        _expect_none(heads := trust.place(path := fixed_place(path)))
        with taken(path, "use another folder or fix the permissions."):
            make_folders(path)
            with locked(path):
                _expect_none(heads)  # another process may have created it in the meantime
                for folder in ("packs", "generations"):
                    make_folders(path / folder, path)
                keep_out(path)
                Manifest(0, "", None, MultisetHash.of(), 0, corpus_id=token_hex(16)).write(path, trust)
        return cls.open(path, trust=trust)

    @classmethod
    def open(cls, path: Place | str, generation: str | None = None, trust: Trust = UNSIGNED) -> Corpus:
        """The current generation, or a pinned one, which cannot be written to.

        Raises:
            StoreError: there is no corpus or generation, its head is not trusted, or it or its receipts of erasures
                cannot be read.
        """
        path = fixed_place(path)
        erased = sum(receipt.finished for receipt in receipts(path))  # others may still remove what is opened
        try:
            base = Generation.open(path, generation, trust)
        except StoreError:
            # A writer may have published and cleaned up after the pointer was read and before the packs were.
            base = Generation.open(path, generation, trust)
        return cls(base, pinned=generation is not None, erased=erased)

    def view(self) -> Corpus:
        """A read-only view of the open generation: it stays at this generation and caches its own frames."""
        return Corpus(self._base, pinned=True, erased=self._erased)

    @property
    def path(self) -> Place:
        """The folder."""
        return self._base.path

    @property
    def trust(self) -> Trust:
        """The place of its heads, and the keys of their signatures."""
        return self._base.trust

    @property
    def generation(self) -> str:
        """The id of the open generation: a digest of its content."""
        return self._base.manifest.generation

    @property
    def encoder_profile(self) -> str | None:
        """The encoder of this corpus; None before the first vector."""
        return self._base.manifest.encoder_profile

    @property
    def pin(self) -> dict[str, Any]:
        """What a run records to find its generation again: folder and id of the corpus, sequence number and head."""
        manifest = self._base.manifest
        return {
            "path": str(self.path.resolve()),
            "corpus_id": manifest.corpus_id,
            "sequence": manifest.sequence,
            "head": manifest.head,
        }

    def expect_unerased(self) -> None:
        """Check that rows read from the open generation may still be shown.

        An erasure removes all generations that contain erased rows before it erases from runs: an existing one may be
        shown.

        Raises:
            ErasedError: evidence was erased since the generation was opened, and the generation is gone.
        """
        if not exists(manifest_of(self.path, self.generation)) and len(receipts(self.path)) > self._erased:
            raise ErasedError(
                f"Expected the corpus as it was opened, got one from which evidence was erased since - at {self.path}",
                hint="open it again",
            )

    def projects(self) -> list[str]:
        """The projects that own rows, sorted."""
        return self._base.projects()

    def frame(self, projects: Collection[str] | None = None, users: Collection[str] | None = None) -> CorpusFrame:
        """The rows of these projects that belong to the whole project or to one of these users (None = any)."""
        frames, base = self._frames, self._base  # in this order, so that a new cache gets no old frame
        segments = base.segments(projects, users)
        key = tuple(segment.segment_id for segment in segments)
        return frames.get(key, lambda lists: base.frame(segments, lists))

    def commits(self, project: str) -> pa.Table:
        """COMMITS of a project: source, full id and recorded time of every commit of its histories."""
        return self._base.commits(project)

    def publish(  # noqa: PLR0913 - options by keyword
        self,
        rows: pa.Table,
        *,
        complete_sources: Collection[str] = (),
        commits: Mapping[str, pa.Table] | None = None,
        project: str | None = None,
        user: str | None = None,
        now: datetime,
        encoder: Encoder | None = None,
        redactor: str | None = None,
        on_encoded: OnEncoded | None = None,
        partly: Mapping[str, Collection[str]] | None = None,
        standing: Mapping[str, Collection[str]] | None = None,
    ) -> PublishReport:
        """Update the corpus with imported rows and publish the result as the current generation.

        Args:
            rows: IMPORT_ROWS, normalized and redacted, with `redactions`; see `sources/importing.py`.
            complete_sources: source ids that `rows` contains completely: their other rows have ended.
            commits: source id to `version` and `recorded_time` of every commit of a history of `project`; they replace
                the stored commits of these sources.
            project: the owner of the complete sources, where `rows` may be empty; default: the projects of `rows`.
            user: whose rows of complete sources may end, besides shared rows and those of the users in `rows`; another
                user's rows of a source with that name stay.
            now: when rows are captured and missing ones end, with a time zone.
            encoder: encodes rows that have no vector yet.
            redactor: the detector of secrets, with its version, that was applied to `rows`; recorded.
            on_encoded: called with the number of encoded texts and their total.
            partly: source id to the paths that `rows` contains completely, of a source that is published in parts.
            standing: source id to paths of a complete source that were published before, in parts.

        Raises:
            BusyError: another writer held the lock for `WAIT_SECONDS`.
            StoreError: the corpus has vectors of another encoder, or was opened at a pinned generation.
            SchemaError: `rows` does not match the schema; nothing is written.
        """
        if now.tzinfo is None:
            raise InputError.expected("a time with a time zone", now.isoformat(), "now")
        if commits and project is None:
            raise InputError.expected("the project of the commits", None, "project")
        with self._writing():
            histories = self._changed_commits(project, commits) if project and commits else {}
            new, erased = kept_out(self.path, incoming(rows, now, self._family(rows)))
            projects = set(new.evidence["owner_project"].unique().to_pylist()) | ({project} if project else set())
            checkpoints = (
                None
                if encoder is None
                else EmbeddingCheckpoints(self.path, encoder.profile, *([on_encoded] if on_encoded else []))
            )
            import_ = Import(
                new,
                now,
                complete_sources,
                projects,
                users={None, user, *new.evidence["owner_user"].unique().to_pylist()},
                partly=partly or {},
                standing=standing or {},
                commits=histories,
                encoder=encoder,
                checkpoints=checkpoints,
                redactor=redactor,
            )
            report, base = published(self._base, import_)
            self._move_on(base)
            if encoder is not None:
                with suppress(OSError):  # the publication succeeded; the next writer removes them
                    forget_checkpoints(self.path)
        return replace(report, erased_rows=erased)

    def append(self, rows: pa.Table, *, now: datetime, encoder: Encoder | None = None) -> PublishReport:
        """Add rows of a live source; all other rows stay. Small segments are merged on the way."""
        return self.publish(rows, now=now, encoder=encoder)

    def merge(self, *, now: datetime) -> PublishReport:
        """Merge every owner's smaller segments, with their changes. Rows, generation and results stay the same."""
        with self._writing():
            report, base = merged(self._base, now)
            self._move_on(base)
        return report

    def gc(self, keep: int = 1) -> dict[str, int]:
        """Remove all but the newest `keep` generations and unused packs; returns counts and bytes freed.

        Readers that have a generation open keep it.

        Raises:
            StoreError: a manifest cannot be read now, so the packs it uses are unknown; nothing was removed.
        """
        if keep < 1:
            raise InputError.expected("at least 1", keep, "keep")
        with self._writing("some unused files may already be removed; the current generation is intact"):
            remove_ghosts(self.path, self.trust, all_=True)
            return forget_generations(self._base, keep)

    def selected(self, selection: Selection) -> set[str]:
        """The ids of the rows that `erase` would remove, including those of an interrupted erasure of the same rows."""
        return selected_ids(self._base, selection)

    def selected_sources(self, selection: Selection) -> set[str]:
        """The source ids of the rows that `erase` would remove."""
        return selected_sources(self._base, selection)

    def evidence_ids(self) -> pa.Array:
        """The ids of all rows of this and earlier generations."""
        return ids_on_disk(self._base)

    def selected_histories(self, selection: Selection) -> set[tuple[str, str]]:
        """Project and source of the commit tables that `erase` would remove."""
        return set[tuple[str, str]]().union(*selected_histories(self._base, selection).values())

    def erase(self, selection: Selection, *, now: datetime, reason: str = "") -> tuple[set[str], int]:
        """Remove rows from every generation and pack, permanently; returns their ids and the number of removed
        generations.

        A receipt without payload is written first. Call `finish_erasure` with these ids once runs contain nothing of
        the rows.

        Raises:
            BusyError: another writer held the lock for `WAIT_SECONDS`.
            StoreError: a file is damaged or cannot be read now; no generation and no pack was removed. Erase again.
        """
        with self._writing(_HALF_ERASED):
            remove_ghosts(self.path, self.trust, all_=True)
            base, ids, packs = erased(self._base, selection, now, reason)
            self._move_on(base)
            return ids, forget_packs(base, packs)

    def finish_erasure(self, evidence_ids: Collection[str]) -> None:
        """Mark the receipts whose rows are all among these as finished; later ones belong to other erasures."""
        with self._writing(_HALF_ERASED):
            finish_receipts(self.path, evidence_ids)

    def encoded(self, projects: Collection[str], users: Collection[str]) -> tuple[int, int]:
        """The number of rows that `frame` returns for these projects and users, and how many of them have a vector."""
        segments = self._base.segments(projects, users)
        return sum(each.size for each in segments), sum(each.size for each in segments if each.encoded)

    def info(self) -> dict[str, Any]:
        """Statistics: rows, placements, owners, sources, sizes, analyzers, detectors, encoder, generations."""
        known = {
            "path": str(self.path),
            "generation": self.generation,
            "generations": generations(self.path, self.trust),
        }
        return known | self._base.facts()

    def damaged(self) -> list[str]:
        """Files of the generation that do not match their SHA-256. Reads all files."""
        return damaged_files(self.path, self._base)

    def verify(self, anchor: str | None = None) -> list[str]:
        """Problems of the stored generation: changed files or rows, content with another digest, a chain of heads
        without `anchor`, the hash of a head that was kept elsewhere. Empty if there are none."""
        heads = self.trust.place(self.path)
        lost = anchored(heads, anchor) if anchor is not None else None
        changed = changed_manifests(self._base, chain(heads))
        return [*([lost] if lost else []), *changed, *problems(self.path, self._base)]

    @property
    def head(self) -> str:
        """The hash of the head that was opened, to be kept elsewhere as an anchor; empty for a corpus without heads."""
        return self._base.manifest.head

    def upgrade(self) -> bool:
        """Upgrade a corpus to the current schema version, with checksums of all blocks; returns whether it changed.

        Raises:
            StoreError: a corpus of schema version 1, whose manifests have no recorded hash, has damaged files or
                changed rows.
        """
        before = self.head
        if not before and (found := self.verify()):
            raise StoreError(found[0], hint=DAMAGED)
        with self._writing():
            self._move_on(self._base.with_sums())
            self._move_on(self._base.with_signature())
        self._move_on(Generation.open(self.path, None, self.trust))
        return before != self.head

    def _changed_commits(self, project: str, read: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The project's commit table after an import of these histories, by project; empty if it is unchanged."""
        stored = self._base.commits(project)
        after = commits_after(stored, project, read)
        return {} if after.equals(stored) else {project: after}

    def _family(self, rows: pa.Table) -> pa.Table | None:
        """The stored rows that may be parents of imported ones; None if no imported row names a parent."""
        if "parent_id" not in rows.column_names or rows["parent_id"].null_count == rows.num_rows:
            return None
        return self._base.evidence().select(FAMILY)

    @contextmanager
    def _writing(self, left: str = "the corpus is as it was") -> Iterator[None]:
        """Hold the lock, at the current generation; `left` describes the state of the corpus after a failed write."""
        if self._pinned:
            raise StoreError(f"Expected the current generation, got pinned {self.generation} - at {self.path}")
        trust = self.trust
        trust.expect_signer()
        hint = f"{left}; free disk space or fix the permissions, then try again."
        with locked(self.path), taken(self.path, hint):
            remove_ghosts(self.path, trust)
            complete_heads(self.path, trust)
            if current(self.path, trust) != (self.generation, self._base.manifest.sequence):
                self._move_on(Generation.open(self.path, None, self.trust))
            yield

    def _move_on(self, base: Generation) -> None:
        if base is not self._base:
            self._base = base
            self._frames = KeptFrames()


def _expect_none(path: Place) -> None:
    with suppress(FileNotFoundError):
        read_whole(path / "CURRENT")  # an unreadable file may be a corpus
        raise StoreError(f"Expected no corpus, got one - at {path}", hint="open it instead.")
