"""`index`: from paths and flags through readers and redaction to one publication of the corpus.

Reads: work trees, Git history, logs, records, generic rows; settings. Gives: a new generation and an `IndexReport`.

Note: everything is read, checked and redacted before the first byte of the corpus is written, so malformed input leaves
the corpus unchanged. With `git`, a checkout is read as its history plus its uncommitted files instead of its work tree:
no text is imported under two sources.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm.auto import tqdm

from ...nodes.columns.digests import text_sha256
from ...nodes.errors import InputError, MovedOnError
from ..config.grants import load_grants, write_starter_grants
from ..config.opening import corpus_of, head_file, made_or_opened
from ..config.settings import Settings
from ..corpus.identity import evidence_ids
from ..corpus.publishing import PublishReport
from ..corpus.writing import expect_writable
from ..encoders.encoder import encoder_available, is_bundled, load_encoder
from ..plugins import installed
from ..progress import Say, StepReporter, counted, quiet, taking
from ..redaction.masking import REDACTOR
from ..sources import git_history, records, work_tree
from ..sources.evidence_file import read_evidence
from ..sources.importing import normalize
from ..sources.incremental_import import IncrementalImport, UnusableError
from ..sources.jsonl import is_unicode
from ..sources.mcp_resources import named_server, read_mcp_resources
from ..sources.selection import Selection
from ..sources.source_reader import SourceReader, languages, tables_of
from ..sources.structured import files_named, with_schemas
from ..storage.durable import exists
from .reader_digest import reader_digest
from .report import IndexReport

__all__ = ["IndexReport", "IndexRequest", "index_into"]

Paths = tuple[Path, ...]
Tables = Iterable[pa.Table]

RECORDS = {reader.name: reader for reader in records.READERS}
"""Readers of records by the flag for their files."""
LONG_SECONDS = 60
"""Embedding that takes longer is announced with an estimated duration."""


@dataclass(frozen=True)
class IndexRequest:
    """The inputs of an import: work trees in `paths`, generic rows in `evidence`, and records."""

    paths: Paths = ()
    git: bool = False
    evidence: Paths = ()
    read: tuple[tuple[str, Path], ...] = ()
    """Names of readers of records, including those of plugins, each with a file or folder."""
    mcp: tuple[str, ...] = ()
    """MCP servers whose resources are read, each as `NAME=COMMAND` or `NAME=URL`."""
    source: str | None = None
    selection: Selection = field(default_factory=Selection)
    """Which files of `paths` are read."""
    semantic: bool = True
    max_embedded_rows: int | None = None

    @property
    def empty(self) -> bool:
        """Whether no input is named."""
        return not (self.mcp or self.read or self.paths or self.evidence)


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
    project = settings["project"]
    if not project:
        raise InputError.described("a project", "none", "--project", hint="name the project that the rows belong to.")
    if request.empty:
        raise InputError.described(
            "something to read", "nothing", "index", hint="name a PATH, or a flag such as --memory."
        )
    named = [*request.paths, *request.evidence, *(path for _, path in request.read)]
    for name in (project, request.source or "", *(str(path.absolute()) for path in named), *request.mcp):
        if not is_unicode(name):
            raise InputError.described("names and paths in UTF-8", "another encoding", ascii(name))
    if request.git and not (request.selection.git and not request.selection.submodules):
        raise InputError.described("a history, or --no-git and --submodules of the work tree", "both", "--git")
    request = _once(request)
    servers = [named_server(server)[0] for server in request.mcp]
    if twice := [name for name in servers if servers.count(name) > 1]:
        raise InputError.described("each name once", f"{twice[0]} twice", "--mcp")
    if request.source is None:
        _expect_names(request.paths)
    if grant and exists(settings.grants_path):
        load_grants(settings.grants_path)  # a malformed grants file raises now, not after publication
    expect_writable(settings["corpus"])
    say(f"reading sources of project {project}")
    plugins = installed(settings["plugins"])
    readers = {**RECORDS, **{reader.name: reader for reader in plugins.readers if reader.read is not None}}
    for name, _ in request.read:
        if name not in readers:
            raise InputError.one_of(readers, name, "--read")
    known = _source_states(settings, request, plugins.digest)
    with languages(plugins.readers):
        try:
            import_ = _Import(settings, request, now, known, progress, say, readers)
            published = import_.publish()
        except (UnusableError, MovedOnError):
            import_ = _Import(settings, request, now, None, progress, say, readers)
            published = import_.publish()
    report = import_.report
    if grant:
        _grant(settings, report)
    report.published, report.generation = asdict(published), published.generation
    report.seconds = time.perf_counter() - started
    return report


@dataclass
class _Import:
    """One import and its report. The stored states of the sources may turn out to be unusable."""

    settings: Settings
    request: IndexRequest
    now: datetime
    known: IncrementalImport | None
    """The states of the sources from the last import; None if everything is read."""
    progress: bool
    say: Say
    readers: Mapping[str, SourceReader]
    report: IndexReport = field(init=False)
    read: int = field(init=False, default=0)
    """The number of rows of evidence read, without the unchanged ones that only the report counts."""

    def __post_init__(self) -> None:
        self.report = IndexReport(self.settings["project"], self.settings["corpus"])

    def publish(self) -> PublishReport:
        """Read, then publish.

        Raises:
            UnusableError: the stored states cannot be used; nothing was written.
            MovedOnError: another import published in the meantime; nothing was written.
        """
        rows = self._read()
        encoder = self._encoder(rows)
        report, corpus = self.report, made_or_opened(self.settings)
        if self.read:
            self.say(f"writing what is new of {counted(self.read, 'row')}")
        with _Embedding(self.progress, self.say) as embedding:
            return corpus.publish(
                rows,
                complete_sources=report.sources.complete_sources,
                commits=report.sources.commits,
                project=report.project,
                user=self.settings.principal,
                now=self.now,
                encoder=encoder,
                redactor=REDACTOR,
                on_encoded=embedding,
                **(self.known.for_publishing() if self.known is not None else {}),
            )

    def _read(self) -> pa.Table:
        """Every row of every source, normalized and redacted, except rows that the corpus already has."""
        report, tables = self.report, list[pa.Table]()
        ids: dict[str, list[pa.Array]] = defaultdict(list)
        with tqdm(desc="read", unit=" rows", disable=not self.progress, leave=False) as bar:
            for kind, found in self._sources():
                report.places.setdefault(kind, 0)
                for table in found:
                    rows = self._normalized(kind, table)
                    found_ids = evidence_ids(rows.append_column("text_sha256", text_sha256(rows["text"])))
                    ids[kind].append(found_ids)
                    if self.known is not None:
                        self.known.count(rows, found_ids)
                        if kind in self.readers or kind in ("evidence", "mcp"):
                            self.known.share(rows["source_id"].unique().to_pylist())
                    tables.append(rows)
                    bar.update(rows.num_rows)
        report.rows = {kind: len(pa.chunked_array(ids[kind], pa.string()).unique()) for kind in report.places}
        self.read = sum(report.rows.values())
        for source in self.known.relied if self.known is not None else ():
            report.count_unread("history" if source.commits else "work tree", source.counts, len(source.standing))
        return pa.concat_tables(tables) if tables else self._no_rows()

    def _normalized(self, kind: str, table: pa.Table) -> pa.Table:
        report = self.report
        rows, imported = normalize(table, project=report.project, principal=self.settings.principal, now=self.now)
        imported.read = 0  # already counted by the reader
        report.sources.merge(imported)
        report.masked += imported.redacted
        for other in sorted({*rows["owner_project"].unique().to_pylist()} - {report.project}):
            report.sources.note(f"{kind}: rows with a project of their own went to project {other}")
        report.places[kind] += rows.num_rows
        return rows

    def _no_rows(self) -> pa.Table:
        empty = pa.table({"source_id": pa.array([], pa.string()), "text": pa.array([], pa.large_string())})
        return normalize(empty, project=self.report.project, principal=self.settings.principal, now=self.now)[0]

    def _sources(self) -> Iterator[tuple[str, Tables]]:
        """Kind of source and its tables, in a fixed order."""
        request = self.request
        common = {"project": self.report.project, "now": self.now, "report": self.report.sources}
        selected = {"name": request.source, "selection": request.selection}
        again = {**selected, "incremental": self.known}
        placed = with_schemas(
            file for reader, path in self._named() if reader.placed for file in files_named(path, reader.placed)
        )
        for path in request.paths:
            if request.git:
                yield "history", git_history.read_git_history(path, say=self.say, **again, **common)
                yield "uncommitted", git_history.read_uncommitted(path, **selected, **common)
            else:
                yield "work tree", work_tree.read_work_tree(path, leave_out=placed, **again, **common)
        for reader, path in self._named():
            yield reader.name, tables_of(reader, path, **common, **({"roots": request.paths} if reader.placed else {}))
        for server in request.mcp:
            yield "mcp", read_mcp_resources(server, **common)
        for path in request.evidence:
            yield "evidence", [read_evidence(path, report=self.report.sources)]

    def _named(self) -> Iterator[tuple[SourceReader, Path]]:
        """Every file or folder of records with its reader, in reading order."""
        for kind, reader in self.readers.items():
            yield from ((reader, path) for name, path in self.request.read if name == kind)

    def _encoder(self, rows: pa.Table) -> Any:
        """The encoder of the semantic lane; None if it is disabled, not installed or the import is too large for it.

        Raises:
            ModelError: the chosen encoder does not load or answer.
            UnusableError: unchanged rows have no vectors, and would get them if they were read.
        """
        settings, request, report = self.settings, self.request, self.report
        if not request.semantic or "semantic" not in settings["lanes"]:
            return None
        available, why = encoder_available()
        bundled = is_bundled(settings["encoder"])
        if not available and bundled:
            report.notes.append(f"the semantic lane stays off: {why}")
            return None
        count = sum(report.places.values())
        if request.max_embedded_rows is not None and count > request.max_embedded_rows:
            report.notes.append(
                f"{report.project}: {count} rows are not embedded; the limit here is {request.max_embedded_rows}"
            )
            return None
        if self.known is not None:
            self.known.embed()
        if report.unread and not rows.num_rows:
            return None
        self.say("loading the encoder" if bundled else f"asking the encoder {settings['encoder']}")
        known = corpus_of(settings).encoder_profile if exists(head_file(settings)) else None
        encoder = load_encoder(settings.encoder_choice, known)
        if encoder is not None:
            _ = encoder.profile  # raises before there is a corpus if the encoder does not answer
        return encoder


def _once(request: IndexRequest) -> IndexRequest:
    """The request without duplicates, compared by real path."""

    return replace(
        request,
        paths=_first(request.paths, os.path.realpath),
        evidence=_first(request.evidence, os.path.realpath),
        read=_first(request.read, lambda named: (named[0], os.path.realpath(named[1]))),
    )


def _first(items: Iterable[Any], key: Callable[[Any], Any]) -> tuple[Any, ...]:
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(key(item), item)
    return tuple(found.values())


def _expect_names(paths: Paths) -> None:
    """Refuse two folders of the same name: sources are named after folders, so each would end the other's rows."""
    folders: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            other = folders.setdefault(path.resolve().name, path)
            if not other.samefile(path):
                hint = "index them one by one, and name the sources apart with `--source NAME`"
                raise InputError(f"Expected folders of different names, got {other} - at {path}", hint=hint)


def _source_states(settings: Settings, request: IndexRequest, plugins: str) -> IncrementalImport | None:
    """The states of the sources from their last import; None if the request names no paths."""
    if not request.paths:
        return None
    corpus = corpus_of(settings) if exists(head_file(settings)) else None
    wanted = request.semantic and "semantic" in settings["lanes"]
    encoder = [settings["encoder"], encoder_available()[0]] if wanted else None
    rules = (reader_digest(vectors=wanted) + plugins, settings.principal, encoder)
    return IncrementalImport(settings["project"], corpus, rules, named=request.source is not None)


def _grant(settings: Settings, report: IndexReport) -> None:
    """Let the principal ask in the project, unless the project already has grants."""
    path, principal, project = settings.grants_path, settings.principal, report.project
    if write_starter_grants(path, principal, project, audit=True, first=True):
        report.granted = str(path)
    elif project not in load_grants(path).projects(principal):
        report.notes.append(
            f"no grant was written: others may ask in {project}, you ({principal}) may not; a grant goes into {path}"
        )


class _Embedding:
    """Reports the progress of embedding by lines or a bar and, after the first checkpoint, an estimate if it takes
    long.
    """

    def __init__(self, progress: bool, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._say, self._clock = progress, say, clock
        self._began: float | None = None
        self._tell = StepReporter(say, "embedded {:,} of {:,} texts", least=500)
        self._bar: tqdm | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None or done == 0:
            self._say(f"embedding {counted(total, 'text')}; --no-semantic skips it")
            self.__exit__()
            self._bar = tqdm(desc="embed", unit=" texts", total=total, disable=not self._progress, leave=False)
            self._began = self._clock()
        elif self._began is not None:
            seconds = (self._clock() - self._began) / done * (total - done)
            self._began = None
            if seconds >= LONG_SECONDS:
                write = self._bar.write if self._progress else self._say
                write(f"embedding takes about {taking(seconds)}; if it is interrupted, the next `index` resumes there")
        self._bar.update(done - self._bar.n)
        self._tell(done, total)

    def __enter__(self) -> _Embedding:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
