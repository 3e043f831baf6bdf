"""A corpus: a folder of immutable packs, generations that list their segments, and a chain whose last line is current.

Reading: `Corpus.open(path).frame(projects)`. Writing: `publish`, `append`, `gc`, one writer at a time. Packs are
written first, then the manifest, then the line, so a crash at any moment leaves the previous generation intact. On an
object store, a writer that another one was ahead of begins again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.kept import Recent
from ...nodes.errors import ErasedError, InputError, MovedOnError, StoreError
from ..encoders.unit_vectors import Encoder
from ..storage.durable import exists, make_folders
from ..storage.file_access import keep_out, system_errors
from ..storage.places import ObjectPlace, Place, fixed_place
from ..storage.signing import UNSIGNED, Signer
from .commits import commits_after
from .erasing import Selection, Stored, erased, forget
from .frame import CorpusFrame
from .generation import Generation
from .identity import MultisetHash
from .incoming import FAMILY, incoming
from .manifest import Manifest, chain_of, generations, manifest_of, stored
from .publishing import Import, PublishReport, next_encoded, published, unencoded
from .stored import problems
from .tombstones import kept_out
from .vectors import OnEncoded

FRAMES_KEPT = 16
"""Frames that stay cached: opening one takes a tenth of the time of an answer from it."""
_HALF_ERASED = "the erasure is not finished, and part of the rows may still be there"
T = TypeVar("T")


class Corpus:
    """An open generation of a corpus. After a write, this object is at the generation that was written."""

    def __init__(self, base: Generation, *, pinned: bool) -> None:
        self._pinned = pinned
        self._move_on(base)

    @classmethod
    def create(cls, path: Place | str, signer: Signer = UNSIGNED) -> Corpus:
        """A new, empty corpus.

        Raises:
            BusyError: another writer held the lock for ten seconds.
            StoreError: a corpus exists already, or the store does not support conditional creation; nothing is written.
        """
        chain = chain_of(path := fixed_place(path), signer)
        there = StoreError(f"Expected no corpus, got one - at {path}", hint="open it instead.")
        if chain.last() is not None:
            raise there
        if isinstance(chain.place, ObjectPlace):
            chain.place.expect_create()
        with system_errors(path, "use another folder or fix the permissions."):
            make_folders(path)
            for folder in ("packs", "generations"):
                make_folders(path / folder, path)
            keep_out(path)
            try:
                Manifest("", None, MultisetHash.of(), corpus_id=token_hex(16)).publish(path, chain)
            except MovedOnError:  # another process has created it in the meantime
                raise there from None
        return cls.open(path, signer=signer)

    @classmethod
    def open(cls, path: Place | str, generation: str | None = None, signer: Signer = UNSIGNED) -> Corpus:
        """The current generation, or a pinned one, which cannot be written to.

        Raises:
            StoreError: there is no corpus or generation, or it cannot be read.
            VerificationError: its chain was changed, or is not signed with the trusted key.
        """
        path = fixed_place(path)
        chain = chain_of(path, signer)
        try:
            base = Generation.open(path, chain, generation)
        except StoreError:
            # A writer may have published and cleaned up after the line was read and before the packs were.
            base = Generation.open(path, chain, generation)
        return cls(base, pinned=generation is not None)

    @classmethod
    def of_rows(cls, rows: pa.Table, *, now: datetime, encoder: Encoder | None = None) -> Corpus:
        """A corpus of these rows (see `publish`) in a temporary folder, which is removed with the last reader of it."""
        folder = TemporaryDirectory(prefix="scoped-retrieval-")
        corpus = cls.create(folder.name)
        weakref.finalize(corpus._base.chain, folder.cleanup)
        corpus.publish(rows, now=now, encoder=encoder)
        return corpus

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the same generation."""
        return _opened, (str(self.path.resolve()), self.generation)

    def view(self) -> Corpus:
        """A read-only view of the open generation: it stays at this generation and caches its own frames."""
        return Corpus(self._base, pinned=True)

    @property
    def path(self) -> Place:
        """The folder."""
        return self._base.path

    @property
    def signer(self) -> Signer:
        """The keys of its signatures."""
        return self._base.chain.signer

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
        """What a run records of its corpus: the id, and the head that it read."""
        return {"corpus_id": self._base.manifest.corpus_id, "head": self.head}

    def expect_unerased(self) -> None:
        """Check that rows read from the open generation may still be shown.

        An erasure removes all generations before it erases from runs: an existing one may be shown.

        Raises:
            ErasedError: evidence was erased since the generation was opened, and the generation is gone.
        """
        manifest = self._base.manifest
        if manifest.line is None or exists(manifest_of(self.path, manifest.line)):
            return
        if len(Manifest.read(self.path, self._base.chain).receipts) > len(manifest.receipts):
            raise ErasedError(
                f"Expected the corpus as it was opened, got one from which evidence was erased since - at {self.path}",
                hint="open it again",
            )

    def projects(self) -> list[str]:
        """The projects that own rows, sorted."""
        return self._base.projects()

    def frame(self, projects: Collection[str] | None = None, users: Collection[str] | None = None) -> CorpusFrame:
        """The rows of these projects that belong to the whole project or to one of these users (None = any)."""
        frames, base = self._frames, self._base  # in this order: a new cache gets no old frame
        segments = base.segments(projects, users)
        key = tuple(segment.segment_id for segment in segments)
        return frames.get(key, lambda: base.frame(segments))

    def commits(self, project: str) -> pa.Table:
        """COMMITS of a project: source, full id, recorded time and branch of every commit of its histories."""
        return self._base.commits.filter(pc.equal(self._base.commits["owner_project"], project))

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
        partly: Mapping[str, Collection[str]] | None = None,
        standing: Mapping[str, Collection[str]] | None = None,
    ) -> PublishReport:
        """Update the corpus with imported rows and publish the result as the current generation.

        Args:
            rows: IMPORT_ROWS, normalized and redacted, with `redactions`; see `sources/importing.py`.
            complete_sources: source ids that `rows` contains completely: their other rows have ended.
            commits: source id to `version`, `recorded_time` and `branch` of every commit of a history of `project`; they
                replace the stored commits of these sources.
            project: the owner of the complete sources, where `rows` may be empty; default: the projects of `rows`.
            user: whose rows of complete sources may end, besides shared rows and those of the users in `rows`; another
                user's rows of a source with that name stay.
            now: when rows are captured and missing ones end, with a time zone.
            encoder: encodes the rows that have no vector, once they are published.
            redactor: the detector of secrets, with its version, that was applied to `rows`; recorded.
            partly: source id to the paths that `rows` contains completely, of a source that is published in parts.
            standing: source id to paths of a complete source that were published before, in parts.

        Raises:
            BusyError: another writer held the lock for `WAIT_SECONDS`.
            ModelError: the encoder does not answer; the rows are published without vectors.
            StoreError: the corpus has vectors of another encoder, or was opened at a pinned generation.
            SchemaError: `rows` does not match the schema; nothing is written.
        """
        if now.tzinfo is None:
            raise InputError.expected("a time with a time zone", now.isoformat(), "now")
        if commits and project is None:
            raise InputError.expected("the project of the commits", None, "project")

        def change(base: Generation) -> tuple[tuple[PublishReport, pa.Array], Generation]:
            new, erased = kept_out(base.erased, incoming(rows, now, _family(base, rows)))
            projects = set(new.evidence["owner_project"].unique().to_pylist()) | ({project} if project else set())
            report, after = published(
                base,
                Import(
                    new,
                    now,
                    complete_sources,
                    projects,
                    users={None, user, *new.evidence["owner_user"].unique().to_pylist()},
                    partly=partly or {},
                    standing=standing or {},
                    commits=_changed_commits(base, project, commits) if project and commits else None,
                    redactor=redactor,
                ),
            )
            ids = new.evidence["evidence_id"].combine_chunks()
            return (replace(report, erased_rows=erased), ids), after

        if encoder is not None:
            self.expect_encoder(encoder)
        report, ids = self._change(change)
        if encoder is not None:
            self.embed(ids, encoder, now=now)
        return replace(report, generation=self.generation)

    def expect_encoder(self, encoder: Encoder) -> None:
        """
        Raises:
            StoreError: the corpus has vectors of another encoder.
        """
        self._base.expect_encoder(encoder)

    def unencoded(self, ids: pa.Array) -> int:
        """How many of the rows with these ids have no vector."""
        return len(unencoded(self._base, ids)[1])

    def embed(
        self, ids: pa.Array, encoder: Encoder, *, now: datetime, on_encoded: OnEncoded = lambda done, total: None
    ) -> None:
        """Encode the rows with these ids that have no vector, current ones first, and publish them in batches.

        Raises:
            BusyError: another writer held the lock for `WAIT_SECONDS`.
            StoreError: the corpus has vectors of another encoder. Batches that were published stay.
        """
        total = left = self.unencoded(ids)

        def change(base: Generation) -> tuple[int, Generation]:
            base.expect_encoder(encoder)
            return next_encoded(base, ids, encoder, now, lambda done, rest: on_encoded(total - rest + done, total))

        while left:
            left = self._change(change)

    def append(self, rows: pa.Table, *, now: datetime, encoder: Encoder | None = None) -> PublishReport:
        """Add rows of a live source; all other rows stay. Small segments are merged on the way."""
        return self.publish(rows, now=now, encoder=encoder)

    def gc(self, keep: int = 1) -> dict[str, int]:
        """Remove all but the newest `keep` generations and unused packs; returns counts and bytes freed.

        Readers that have a generation open keep it.

        Raises:
            StoreError: a manifest cannot be read now, so the packs it uses are unknown; nothing was removed.
        """
        if keep < 1:
            raise InputError.expected("at least 1", keep, "keep")
        with self._writing("some unused files may already be removed; the current generation is intact"):
            return forget(self._base, [*stored(self.path, self._base.chain)][:-keep])

    def stored(self, selection: Selection) -> Stored:
        """The rows of this generation, and those of them that `erase` would remove."""
        return Stored(self._base, selection)

    def erase(self, selection: Selection, *, now: datetime, reason: str = "") -> tuple[set[str], int]:
        """Remove rows permanently, with all generations before; returns their ids and the number of removed generations.
        Where nothing is left to remove, later generations stay, and what an interrupted erasure left goes.

        Raises:
            BusyError: another writer held the lock for ten seconds.
            StoreError: a file is damaged or cannot be read now; no generation and no pack was removed. Erase again.
        """

        def change(base: Generation) -> tuple[tuple[set[str], int], Generation]:
            found = Stored(base, selection)
            after = erased(found, now, reason) if found.any else base
            before = [line for line in stored(self.path, after.chain) if line.number < after.manifest.erased_at]
            return (found.ids, forget(after, before)["generations"]), after

        return self._change(change, left=_HALF_ERASED)

    def encoded(self, projects: Collection[str], users: Collection[str]) -> tuple[int, int]:
        """The number of rows that `frame` returns for these projects and users, and how many of them have a vector."""
        segments = self._base.segments(projects, users)
        return sum(each.size for each in segments), sum(each.size for each in segments if each.encoded)

    def info(self) -> dict[str, Any]:
        """Statistics: rows, placements, owners, sources, sizes, analyzers, detectors, encoder, generations."""
        known = {
            "path": str(self.path),
            "generation": self.generation,
            "generations": generations(self.path, self._base.chain),
        }
        return known | self._base.facts()

    def verify(self, anchor: str | None = None) -> list[str]:
        """Problems of the stored generation: changed files or rows, content with another digest, a chain without
        `anchor`, the hash of a line that was kept elsewhere. Empty if there are none.

        Raises:
            VerificationError: a line of the chain was changed.
        """
        chain = self._base.chain
        lost = [] if anchor is None or any(line.hash == anchor for line in chain.lines()) else [
            f"Expected the anchor among the heads of the corpus, got another chain - at {chain.place}"
        ]  # fmt: skip
        return [*lost, *problems(self._base)]

    @property
    def head(self) -> str:
        """The hash of the line that was opened, to be kept elsewhere as an anchor."""
        return self._base.manifest.head

    def _change(
        self,
        change: Callable[[Generation], tuple[T, Generation]],
        *,
        left: str = "the corpus is as it was",
    ) -> T:
        """Apply a change to the current generation; if another writer of an object store was first, again."""
        while True:
            with self._writing(left):
                try:
                    result, base = change(self._base)
                except StoreError:
                    if self._base.chain.last() == self._base.manifest.line:
                        raise
                    continue  # also after a file that another writer has removed
                if base is not self._base:
                    self._move_on(base)
                return result

    @contextmanager
    def _writing(self, left: str = "the corpus is as it was") -> Iterator[None]:
        """Hold the lock, at the current generation; `left` describes the state of the corpus after a failed write."""
        if self._pinned:
            raise StoreError(f"Expected the current generation, got pinned {self.generation} - at {self.path}")
        chain = self._base.chain
        chain.signer.expect_signer()
        hint = f"{left}; free disk space or fix the permissions, then try again."
        with system_errors(self.path, hint), chain.writing():
            if chain.last() != self._base.manifest.line:
                self._move_on(Generation.open(self.path, chain))
            yield

    def _move_on(self, base: Generation) -> None:
        self._base = base
        self._frames = Recent[CorpusFrame](FRAMES_KEPT)


def _changed_commits(base: Generation, project: str, read: Mapping[str, pa.Table]) -> pa.Table | None:
    """The commits of all projects after an import of these histories of one; None if they are unchanged."""
    after = commits_after(base.commits, project, read)
    return None if after.equals(base.commits) else after


def _family(base: Generation, rows: pa.Table) -> pa.Table | None:
    """The stored rows that may be parents of imported ones; None if no imported row names a parent."""
    if "parent_id" not in rows.column_names or rows["parent_id"].null_count == rows.num_rows:
        return None
    return base.evidence().select(FAMILY)


@lru_cache(maxsize=1)
def _opened(place: str, generation: str) -> Corpus:
    """The corpus that a worker has open: values cached for it serve the next run, too."""
    return Corpus.open(place, generation)
