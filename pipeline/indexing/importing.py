"""`index`: from paths and flags through readers and redaction to one publication of the corpus.

Reads: work trees, Git history, logs, records, generic rows; settings. Gives: a new generation and an `IndexReport`.

Note: everything is read, checked and redacted before the first byte of the corpus is written, so malformed input leaves
the corpus unchanged; only a long history is published in parts. With `history`, a checkout is read as
its history plus its uncommitted files instead of its work tree: no text is imported under two sources.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tqdm.auto import tqdm

from ...nodes.columns.digests import named_digest, text_sha256
from ...nodes.errors import InputError
from ..config.grants import load_grants, write_starter_grants
from ..config.opening import corpus_of, head_of, made_or_opened
from ..config.settings import Settings
from ..cores import cores
from ..corpus import Corpus
from ..corpus.identity import evidence_ids
from ..corpus.incoming import PLACEMENT_LIST
from ..encoders.encoder import encoder_available, is_bundled, load_encoder
from ..line.provenance import code_digest
from ..plugins import installed
from ..progress import Say, StepReporter, counted, quiet
from ..redaction.masking import REDACTOR
from ..sources import git_history, work_tree
from ..sources.document_reader import DocumentReader
from ..sources.grammars import QUERIES, WHEELS
from ..sources.importing import NO_ROWS, normalize
from ..sources.readers import READERS, SourceReader, tables_of
from ..sources.structured import files_named
from ..storage.durable import exists
from .following import IndexRequest, expect_names
from .report import IndexReport

Tables = Iterable[pa.Table]

PART_PLACEMENTS = 150_000
"""A history with more placements than this is published in parts."""
_LIBRARIES = ("PyYAML", "lxml", "markdown-it-py", "pypdf", "python-docx", "tree-sitter", *WHEELS)


def index_into(
    settings: Settings,
    request: IndexRequest,
    *,
    now: datetime | None = None,
    progress: bool = False,
    say: Say = quiet,
    grant: bool = True,
) -> IndexReport:
    """Read all inputs of the request, then publish them at once.

    Args:
        settings: corpus, project, principal and grants file.
        now: the time of reading; default: the current time.
        progress: show bars on standard error.
        say: called with a line when a long phase begins.
        grant: let the principal ask in the project, unless the project already has grants.

    Raises:
        InputError: no project, nothing to read, malformed input or grants; the corpus is unchanged.
        ModelError: the chosen encoder does not load or answer; the corpus is unchanged.
        StoreError: the corpus cannot be read or written.
    """
    started = time.perf_counter()
    now = datetime.now(UTC) if now is None else now
    if not settings["project"]:
        raise InputError.described("a project", "none", "--project", hint="name the project that the rows belong to.")
    request = _checked(settings, request)
    if grant and exists(settings.grants_path):
        load_grants(settings.grants_path)  # a malformed grants file raises now, not after publication
    say(f"reading sources of project {settings['project']}")
    readers = {reader.name: reader for reader in (*READERS, *installed(settings["plugins"]).readers)}
    for name, _ in request.read:
        if name not in readers:
            raise InputError.one_of(readers, name, "--add")
    with DocumentReader(workers=request.workers or cores(), readers=reader_digest()) as documents:
        if head_of(settings) is not None:
            documents.keep_in(settings["corpus"])
        import_ = _Import(settings, request, now, documents, progress, say, readers, grant)
        import_.publish()
        import_.report.generation = import_.embed()
    report = import_.report
    report.seconds = time.perf_counter() - started
    return report


def _checked(settings: Settings, request: IndexRequest) -> IndexRequest:
    """The request without duplicates, by real path.

    Raises:
        InputError: it names nothing, or what cannot be read together.
    """
    if not (request.paths or request.read):
        raise InputError.described("something to read", "nothing", "index", hint="name a PATH, or --add KIND=PATH.")
    inputs = [*request.paths, *(path for _, path in request.read)]
    for name in (settings["project"], request.source or "", *map(os.path.abspath, inputs)):
        if name.encode("utf-8", "replace").decode() != name:
            raise InputError.described("names and paths in UTF-8", "another encoding", ascii(name))
    if request.history and request.selection.submodules:
        raise InputError.described("a history, or --submodules of the work tree", "both", "--history")
    expect_names(settings, request)
    read = {(name, os.path.realpath(path)): (name, path) for name, path in request.read}
    paths = {os.path.realpath(path): path for path in request.paths}
    return replace(request, paths=tuple(paths.values()), read=tuple(read.values()))


@dataclass
class _Import:
    """One import and its report."""

    settings: Settings
    request: IndexRequest
    now: datetime
    documents: DocumentReader
    progress: bool
    say: Say
    readers: Mapping[str, SourceReader]
    grant: bool
    report: IndexReport = field(init=False)
    _corpus: Corpus | None = None
    _encoder: Any = None

    def __post_init__(self) -> None:
        self.report = IndexReport(self.settings["project"], self.settings["corpus"])
        self._ids: dict[str, list[pa.Array]] = defaultdict(list)

    def publish(self) -> None:
        """Read and publish: all at once, but histories last, and long ones in parts of paths."""
        report, waiting, done = self.report, list[pa.Table](), dict[str, set[str]]()
        with tqdm(desc="read", unit=" rows", disable=not self.progress, leave=False) as bar:
            for kind, found in self._sources():
                for rows in self._read(kind, found):
                    bar.update(rows.num_rows)
                    waiting.append(rows)
                    if kind == "history" and sum(map(_placements, waiting)) >= PART_PLACEMENTS:
                        partly = _paths(filter(_is_history, waiting))
                        self._publish(waiting, partly=partly)
                        for source, paths in partly.items():
                            done.setdefault(source, set()).update(paths)
                        waiting = []
        report.rows = {kind: len(pa.chunked_array(self._ids[kind], pa.string()).unique()) for kind in report.places}
        histories = report.sources.commits  # the rows of their work trees from imports without a history end
        ended = {f"workspace:{source.removeprefix('git:')}" for source in histories}
        complete = report.sources.complete_sources | ended
        self._publish(waiting, complete_sources=complete, commits=histories, standing=done)

    def _publish(self, tables: list[pa.Table], **sources: Any) -> None:
        """Publish rows without vectors, and let the principal ask for them. The encoder is loaded before: one that does
        not answer leaves the corpus alone.
        """
        rows = pa.concat_tables(tables or [NO_ROWS], promote_options="default")
        opened = self._corpus is not None
        if self._corpus is None:
            encoder = self._loaded() if self.documents.cut or self.request.read else None
            self._corpus = made_or_opened(self.settings)
            if encoder is not None:
                self._corpus.expect_encoder(encoder)
            self.documents.keep_in(self._corpus.path)
        if rows.num_rows:
            self.say(f"writing what is new of {counted(rows.num_rows, 'row')}")
        published = self._corpus.publish(
            rows,
            project=self.report.project,
            user=self.settings.principal,
            now=self.now,
            redactor=REDACTOR,
            **sources,
        )
        counts = asdict(published)
        del counts["generation"]
        self.report.published.update(counts)
        if self.grant and not opened:
            _grant(self.settings, self.report)
        pa.default_memory_pool().release_unused()  # of the largest part so far

    def embed(self) -> str:
        """Encode the rows of this import that have no vector, with a bar or lines of progress; returns the generation."""
        corpus = self._corpus
        assert corpus is not None  # something was published
        ids = pa.chunked_array([*chain.from_iterable(self._ids.values())], pa.string()).unique()
        if self.request.semantic and corpus.unencoded(ids) and (encoder := self._loaded()) is not None:
            tell = StepReporter(self.say, "embedded {:,} of {:,} texts", least=500)
            self.say("embedding texts; --no-semantic skips it. If it is interrupted, the next `index` resumes there")
            with tqdm(desc="embed", unit=" texts", disable=not self.progress, leave=False) as bar:

                def encoded(done: int, total: int) -> None:
                    bar.total = total
                    bar.update(done - bar.n)
                    tell(done, total)

                corpus.embed(ids, encoder, now=self.now, on_encoded=encoded)
        return corpus.generation

    def _read(self, kind: str, found: Tables) -> Iterator[pa.Table]:
        """The rows of a source, normalized and redacted, and counted."""
        report, known = self.report, self.documents.known
        report.places.setdefault(kind, 0)
        for table in found:
            masked = kind in ("work tree", "history", "uncommitted")
            rows, imported = normalize(
                table, project=report.project, principal=self.settings.principal, now=self.now, masked=masked
            )
            report.sources.merge(imported)
            for other in sorted({*rows["owner_project"].unique().to_pylist()} - {report.project}):
                report.sources.note(f"{kind}: rows with a project of their own went to project {other}")
            report.places[kind] += _placements(rows)
            self._ids[kind].append(evidence_ids(rows.append_column("text_sha256", text_sha256(rows["text"]))))
            yield rows
        if self.documents.known > known:
            report.unread[kind] = report.unread.get(kind, 0) + self.documents.known - known

    def _sources(self) -> Iterator[tuple[str, Tables]]:
        """Kind of source and its tables, in a fixed order."""
        request = self.request
        common = {"project": self.report.project, "now": self.now, "report": self.report.sources}
        of_trees = common | {"name": request.source, "selection": request.selection, "reader": self.documents}
        named = [(reader, path) for kind, reader in self.readers.items() for name, path in request.read if name == kind]
        placed = {file for reader, path in named if reader.placed for file in files_named(str(path), reader.placed)}
        for path in () if request.history else request.paths:
            yield "work tree", work_tree.read_work_tree(path, leave_out=placed, **of_trees)
        for reader, path in named:
            own = {"roots": request.paths} if reader.placed else {}
            own |= {"name": request.source} if reader in READERS and not request.paths else {}
            yield reader.name, tables_of(reader, path, **common, **own)
        for path in request.paths if request.history else ():
            yield "history", git_history.read_git_history(path, say=self.say, **of_trees)
            yield "uncommitted", git_history.read_uncommitted(path, **of_trees)

    def _loaded(self) -> Any:
        """The encoder of the semantic lane, loaded once; None if the lane is off or its encoder is not installed.

        Raises:
            ModelError: the chosen encoder does not load or answer.
        """
        settings = self.settings
        if self._encoder is not None or not self.request.semantic or "semantic" not in settings["lanes"]:
            return self._encoder
        bundled = is_bundled(settings["encoder"])
        available, why = encoder_available() if bundled else (True, "")
        if not available:
            note = f"the semantic lane stays off: {why}"
            self.report.notes += [note] if note not in self.report.notes else []
            return None
        self.say("loading the encoder" if bundled else f"asking the encoder {settings['encoder']}")
        known = corpus_of(settings).encoder_profile if head_of(settings) is not None else None
        self._encoder = load_encoder(settings.encoder_choice, known)
        if self._encoder is not None:
            _ = self._encoder.profile  # raises before there is a corpus if the encoder does not answer
        return self._encoder


def _placements(rows: pa.Table) -> int:
    """The number of placements of these rows."""
    if not _is_history(rows):
        return rows.num_rows
    return int(pc.sum(pc.fill_null(pc.list_value_length(rows[PLACEMENT_LIST]), 1)).as_py() or 0)


def _is_history(rows: pa.Table) -> bool:
    return PLACEMENT_LIST in rows.column_names


def _paths(tables: Iterable[pa.Table]) -> dict[str, set[str]]:
    """The paths of these rows by source id."""
    rows = pa.concat_tables([table.select(["source_id", "path"]) for table in tables])
    found = rows.group_by("source_id").aggregate([("path", "distinct")]).to_pylist()
    return {row["source_id"]: set(row["path_distinct"]) for row in found}


def _grant(settings: Settings, report: IndexReport) -> None:
    """Let the principal ask in the project, unless the project already has grants."""
    path, principal, project = settings.grants_path, settings.principal, report.project
    if write_starter_grants(path, principal, project, audit=True, first=True):
        report.granted = str(path)
    elif project not in load_grants(path).projects(principal):
        report.notes.append(
            f"no grant was written: others may ask in {project}, you ({principal}) may not; a grant goes into {path}"
        )


@lru_cache(maxsize=1)
def reader_digest() -> str:
    """SHA-256 over everything in this installation that determines the chunks of a text: code, queries, redaction, and the
    versions of libraries, so that after any change everything is cut again.

    Includes Python's version: its `re` and Unicode tables determine where words and lines end.
    """
    read = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in QUERIES.iterdir()}
    read |= {name: _version(name) for name in _LIBRARIES}
    return named_digest(read | {"python": platform.python_version(), "code": code_digest(), "redactor": REDACTOR})


def _version(name: str) -> str:
    """The version of a distribution; that of an extra may be missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
