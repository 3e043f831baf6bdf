"""A corpus: a folder of immutable packs, generations that list their segments, and one pointer to the current one.

Reading: `Corpus.open(path).frame(projects)`. Writing: `publish`, `append`, `merge`, `gc`, one writer at a time. Packs are
written first, then the manifest, then the pointer, so a crash at any moment leaves the generation before, whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from secrets import token_hex
from typing import Any

import pyarrow as pa

from ...nodes.errors import ErasedError, InputError, MovedOnError, StoreError
from ..line.encoders.unit_vectors import Encoder
from ..storage.durable import make_folders, read_whole, stands
from ..storage.file_access import keep_out
from ..storage.places import Place, fixed_place
from .blocks import DAMAGED
from .checking import changed_manifests, damaged_files, problems
from .commits import commits_after
from .embedding_checkpoints import EmbeddingCheckpoints, OnEncoded, forget_checkpoints
from .erasing import Selection, erased, forget_generations, forget_packs, ids_on_disk, selected_histories, selected_ids
from .frame import CorpusFrame, KeptFrames, placed_at
from .generation import Generation
from .heads import anchored, chain
from .identity import MultisetHash
from .incoming import incoming
from .manifest import Manifest, complete_heads, current, generations, manifest_of, remove_ghosts
from .publishing import Import, PublishReport, merged, published
from .source_states import Source, SourceState, carry_source_states, source_state_of, sources_of
from .tombstones import finish_receipts, kept_out, receipts
from .trust import UNSIGNED, Trust
from .writing import locked, taken
from .zones import FAMILY

_HALF_ERASED = "the erasure is not finished, and part of the rows may still be there"


class Corpus:
    """One generation of a corpus, opened. Writing moves this object on to the generation it wrote."""

    def __init__(self, base: Generation, *, pinned: bool, erased: int) -> None:
        self._base = base
        self._pinned = pinned
        self._erased = erased
        """Erasures that were done when the generation was opened."""
        self._frames = KeptFrames()

    @classmethod
    def create(cls, path: Place | str, trust: Trust = UNSIGNED) -> Corpus:
        """A new, empty corpus.

        Raises:
            BusyError: another writer holds the lock, and went on holding it.
            StoreError: there is one already, or the store creates an object twice; nothing is written.
        """
        _expect_none(heads := trust.place(path := fixed_place(path)))
        with taken(path, "use another folder or fix the permissions."):
            make_folders(path)
            with locked(path):
                _expect_none(heads)  # another process may have created it, and published, since
                for folder in ("packs", "generations"):
                    make_folders(path / folder, path)
                keep_out(path)
                Manifest(0, "", None, MultisetHash.of(), 0, corpus_id=token_hex(16)).write(path, trust)
        return cls.open(path, trust=trust)

    @classmethod
    def open(cls, path: Place | str, generation: str | None = None, trust: Trust = UNSIGNED) -> Corpus:
        """The current generation, or a pinned one, which cannot be written to.

        Raises:
            StoreError: there is no corpus or generation, its head is not one that is trusted, or it or what was erased from it cannot be read.
        """
        path = fixed_place(path)
        erased = sum(receipt.finished for receipt in receipts(path))  # another may yet take what is opened here
        try:
            base = Generation.open(path, generation, trust)
        except StoreError:
            # A writer may have moved on and cleaned up between the pointer and its packs.
            base = Generation.open(path, generation, trust)
        return cls(base, pinned=generation is not None, erased=erased)

    def view(self) -> Corpus:
        """The generation that is open now, for reading: it stays, whatever is written, and keeps frames of its own."""
        return Corpus(self._base, pinned=True, erased=self._erased)

    @property
    def path(self) -> Place:
        """The folder."""
        return self._base.path

    @property
    def trust(self) -> Trust:
        """The place of its heads, and whose signature they need."""
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
        """What a run keeps, to find its generation again: the folder, which corpus that is, and how far on it was."""
        manifest = self._base.manifest
        return {
            "path": str(self.path.resolve()),
            "corpus_id": manifest.corpus_id,
            "sequence": manifest.sequence,
            "head": manifest.head,
        }

    def expect_unerased(self) -> None:
        """Check that rows read from the open generation may still be shown.

        An erasure removes all generations that hold erased rows before it looks into runs: an existing one may be shown.

        Raises:
            ErasedError: evidence was erased since it was opened, and the generation is gone.
        """
        if not stands(manifest_of(self.path, self.generation)) and len(receipts(self.path)) > self._erased:
            raise ErasedError(
                f"Expected the corpus as it was opened, got one from which evidence was erased since - at {self.path}",
                hint="open it again",
            )

    def projects(self) -> list[str]:
        """The projects that own rows, sorted."""
        return self._base.projects()

    def frame(self, projects: Collection[str] | None = None, users: Collection[str] | None = None) -> CorpusFrame:
        """The rows of these projects that belong to the whole project or to one of these users (None = any)."""
        frames, base = self._frames, self._base  # in this order: the next one keeps no frame of the one before
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
        standing: Mapping[str, Collection[str]] | None = None,
        source_states: Mapping[Source, SourceState] | None = None,
        basis: str | None = None,
    ) -> PublishReport:
        """Bring the corpus in line with imported rows and make the result the current generation.

        Args:
            rows: IMPORT_ROWS, normalised and redacted, with `redactions`; see `sources/importing.py`.
            complete_sources: source ids that `rows` has all of: what it does not mention has ended.
            commits: source id to `version` and `recorded_time` of every commit of a history of `project`; they replace
                what is known of these sources.
            project: whose complete sources are meant, where `rows` may be empty; default the projects of `rows`.
            user: whose rows of complete sources may end, beside shared rows and those of the users in `rows`; another
                user's rows of a source with that name stay.
            now: when rows are captured, and when those end that are gone. With a time zone.
            encoder: encodes rows that have no vector yet.
            redactor: the detector of secrets, with its version, that `rows` went through; recorded.
            on_encoded: called with the number of encoded texts and their total.
            standing: source id to paths of a complete source that were not read, because their rows are unchanged.
            source_states: the state in which sources were read, for the next import.
            basis: the generation that `standing` holds for.

        Raises:
            BusyError: another writer holds the lock, and went on holding it.
            MovedOnError: the corpus is not at `basis` any more; it is as it was.
            StoreError: the corpus has vectors of another encoder, or was opened at a pinned generation.
            SchemaError: `rows` is not what is expected; the corpus is as it was.
        """
        if now.tzinfo is None:
            raise InputError.expected("a time with a time zone", now.isoformat(), "now")
        if commits and project is None:
            raise InputError.expected("the project of the commits", None, "project")
        with self._writing():
            before = self.generation
            if basis not in (None, before):
                hint = "another import came between; read the sources again and publish what they give."
                raise MovedOnError(f"Expected generation {basis}, got {before} - at {self.path}", hint=hint)
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
                standing=standing or {},
                commits=histories,
                encoder=encoder,
                checkpoints=checkpoints,
                redactor=redactor,
            )
            report, base = published(self._base, import_)
            self._move_on(base)
            touched = sources_of(rows) | {(owner, source) for owner in projects for source in complete_sources}
            carry_source_states(self.path, before, self.generation, touched, source_states or {})
            if encoder is not None:
                with suppress(OSError):  # published already; the next writer removes them
                    forget_checkpoints(self.path)
        return replace(report, erased_rows=erased)

    def append(self, rows: pa.Table, *, now: datetime, encoder: Encoder | None = None) -> PublishReport:
        """Add rows of a live source; what they do not mention stays. Small segments are folded together as they come."""
        return self.publish(rows, now=now, encoder=encoder)

    def merge(self, *, now: datetime) -> PublishReport:
        """Fold every owner's smaller segments into one, with their changes. Rows, generation and results stay."""
        with self._writing():
            report, base = merged(self._base, now)
            self._move_on(base)
        return report

    def gc(self, keep: int = 1) -> dict[str, int]:
        """Forget all but the newest `keep` generations, and the packs that no other one uses: numbers and bytes freed.

        Readers that have a generation open keep it.

        Raises:
            StoreError: a manifest cannot be read now, so it is unknown what is used; nothing was removed.
        """
        if keep < 1:
            raise InputError.expected("at least 1", keep, "keep")
        with self._writing("some unused files may already be removed; the current generation is intact"):
            remove_ghosts(self.path, self.trust, all_=True)
            return forget_generations(self._base, keep)

    def selected(self, selection: Selection) -> set[str]:
        """The ids of the rows that `erase` would take out, those of a broken-off erasure of the same rows included."""
        return selected_ids(self._base, selection)

    def evidence_ids(self) -> pa.Array:
        """The ids of all rows of this and earlier generations."""
        return ids_on_disk(self._base)

    def selected_histories(self, selection: Selection) -> set[tuple[str, str]]:
        """Project and source of the commit tables that `erase` would take out."""
        return set[tuple[str, str]]().union(*selected_histories(self._base, selection).values())

    def erase(self, selection: Selection, *, now: datetime, reason: str = "") -> tuple[set[str], int]:
        """Take rows out of every generation and pack, and keep them out; their ids, and how many generations went.

        A receipt without payload comes first. Call `finish_erasure` with these ids when runs hold nothing of the rows any more.

        Raises:
            BusyError: another writer holds the lock, and went on holding it.
            StoreError: something is damaged or cannot be read now: no generation and no pack was removed. Ask again.
        """
        with self._writing(_HALF_ERASED):
            remove_ghosts(self.path, self.trust, all_=True)
            base, ids, packs = erased(self._base, selection, now, reason)
            self._move_on(base)
            return ids, forget_packs(base, packs)

    def finish_erasure(self, evidence_ids: Collection[str]) -> None:
        """Say in the receipts of these rows that nothing is left to do; those that came since are other erasures'."""
        with self._writing(_HALF_ERASED):
            finish_receipts(self.path, evidence_ids)

    def source_state(self, project: str, source: str) -> SourceState | None:
        """The state in which a source was read, as far as this generation has its rows; None if unknown."""
        return source_state_of(self.path, self.generation, (project, source))

    def encoded(self, projects: Collection[str], users: Collection[str]) -> tuple[int, int]:
        """How many rows `frame` gives for these projects and users, and how many of them have a vector."""
        segments = self._base.segments(projects, users)
        return sum(each.size for each in segments), sum(each.size for each in segments if each.encoded)

    def stored_paths(self, project: str, source: str, paths: Collection[str]) -> pa.Table:
        """Evidence beside each of its placements, of some paths of a source as committed: no rows of work trees."""
        return placed_at(self.frame([project]), source, paths)

    def info(self) -> dict[str, Any]:
        """What is stored: rows, placements, owners, sources, sizes, analyzers, detectors, encoder, generations."""
        known = {
            "path": str(self.path),
            "generation": self.generation,
            "generations": generations(self.path, self.trust),
        }
        return known | self._base.facts()

    def damaged(self) -> list[str]:
        """Files of the generation that are not as they were written. Reads them all."""
        return damaged_files(self.path, self._base)

    def verify(self, anchor: str | None = None) -> list[str]:
        """Problems of the stored generation: files or rows that changed, content that has another digest, a chain of
        heads without `anchor`, the hash of a head that was kept elsewhere. Empty if there are none."""
        heads = self.trust.place(self.path)
        lost = anchored(heads, anchor) if anchor is not None else None
        changed = changed_manifests(self._base, chain(heads))
        return [*([lost] if lost else []), *changed, *problems(self.path, self._base)]

    @property
    def head(self) -> str:
        """The hash of the head that was opened, to be kept elsewhere as an anchor; empty for a corpus without heads."""
        return self._base.manifest.head

    def upgrade(self) -> bool:
        """Bring a corpus to the current schema version, with checksums of all blocks; whether there was anything to do.

        Raises:
            StoreError: a corpus of schema version 1, whose manifests nothing pins, has damaged files or changed rows.
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
        """The project's commit table after an import that read these histories, by project; empty if it is as it was."""
        stored = self._base.commits(project)
        after = commits_after(stored, project, read)
        return {} if after.equals(stored) else {project: after}

    def _family(self, rows: pa.Table) -> pa.Table | None:
        """The stored rows that may be parents of imported ones; None where no imported row names a parent."""
        if "parent_id" not in rows.column_names or rows["parent_id"].null_count == rows.num_rows:
            return None
        return self._base.evidence().select(FAMILY)

    @contextmanager
    def _writing(self, left: str = "the corpus is as it was") -> Iterator[None]:
        """Hold the lock, at the current generation; `left` is what a disk that takes no more leaves of it."""
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
        read_whole(path / "CURRENT")  # what cannot be read may be one
        raise StoreError(f"Expected no corpus, got one - at {path}", hint="open it instead.")
