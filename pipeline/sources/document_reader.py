"""Cuts texts into chunks, by worker processes if they are many, and keeps the chunks in the corpus, so that no text is cut twice.

    cache/KEY                    a random key of this corpus, then the digest of the readers
    cache/<n>-<sum>.arrow        groups, each two streams: DOCUMENTS, then CHUNKS; the sum is XXH3 of the file

Gives: `DocumentReader`, and `chunked`, the function that workers call. The chunks of a text are a function of its bytes, the kind
of its path and the readers (`indexing.importing.reader_digest`), so the rows of an import are the same for any number of
workers. A document is found by a digest of the first two. The digest is keyed: no reader of the folder can test guesses about a
masked secret. Chunks are stored as the corpus stores them, secrets masked.

Note: the cache decides nothing. It may be removed at any time, one of other readers is removed, as is a damaged file, and a
corpus on an object store has none. An erasure removes it.
"""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from ...nodes.tables import IMPORT_ROWS
from ..corpus.manifest import CACHE
from ..redaction.masking import redact_columns
from ..storage.durable import make_folders, write_atomic
from ..storage.places import Place
from .chunking import read_document
from .file_kinds import file_kind
from .files import columns_of, is_generated, limit, readable, table_of
from .headers import metadata_of
from .report import SourceReport

TASK_BYTES = 1_000_000
"""Least bytes of a task of `chunked`, and of a file that no further group is added to."""
TASK_TEXTS = 256
TASKS_HERE = 4
"""This many tasks are done before workers start: starting one takes as long as a task or two."""
_KEY_BYTES = 32
_OF_HEADERS = ("title", "level", "document_type", "tags")
"""Columns that may come from a header, where secrets are not masked yet."""

PLACED = ("occurrence", "line_start", "line_end", "byte_start", "byte_end")
"""The columns of the place of a chunk. `occurrence` is 0 for the first chunk of a document with a section and text, then 1, 2, ..."""
_PLACE = pa.struct([("chunk", pa.int32()), *((name, IMPORT_ROWS.columns[name].type) for name in PLACED)])
_DOCUMENTS = pa.schema(
    [
        pa.field("key", pa.binary(16), False),
        pa.field("reason", pa.string()),
        pa.field("notes", pa.list_(pa.string())),
        pa.field("version", pa.string()),
        pa.field("places", pa.list_(_PLACE)),
    ]
)
"""`reason` says why a text has no chunks; `chunk` of a place is a row of the chunks of the same group."""
_COLUMNS = (
    "origin_class", "evidence_kind", "document_type", "content_type", "entity", "level", "title", "section", "event_time",
    "tags", "zone", "declared_visibility", "authority", "lifecycle", "declared_safety", "declared_standing", "language",
    "symbols", "calls", "links", "generated", "statements", "text",
)  # fmt: skip
_CHUNKS = pa.schema([*map(IMPORT_ROWS.schema.field, _COLUMNS), pa.field("same", pa.uint64(), False)])
"""Each distinct chunk once; `event_time` is that of the document's header. `same` is a hash of section and text."""


class Text(NamedTuple):
    """A text to be read: its key, a path of its kind, and its bytes, None if they are missing."""

    key: bytes
    path: str
    data: Callable[[], bytes | None]


class _Group(NamedTuple):
    documents: pa.Table
    chunks: pa.Table


@dataclass(frozen=True)
class Places:
    """The places of the chunks of some documents: `document` is a position in the list that was asked for."""

    document: NDArray[np.int64]
    group: NDArray[np.int64]
    at: dict[str, NDArray]
    """The fields of a place; `chunk` is a row of the group's chunks."""
    same: NDArray[np.uint64]


class DocumentReader:
    """The chunks of texts; `known` counts the texts that earlier imports cut, `cut` those that this one did."""

    def __init__(self, workers: int = 1, readers: str = "") -> None:
        """`readers` is a digest of everything except the text and the kind of its path that determines chunks."""
        self.known = self.cut = 0
        self._workers, self._readers = workers, readers
        self._folder: Path | None = None
        self._secret = secrets.token_bytes(_KEY_BYTES)
        self._groups: list[_Group] = []
        self._where: dict[bytes, tuple[int, int]] = {}
        self._stored = 0
        self._unwritten: list[bytes] = []
        self._last: Path | None = None
        self._tasks, self._pending = 0, deque[Future[bytes]]()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> DocumentReader:
        gc.disable()  # nothing here is in a cycle, and looking takes a tenth of the time
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        gc.enable()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def key(self, content: str, path: str) -> bytes:
        """The key of a text at a path; `content` identifies its bytes."""
        kind = file_kind(path)
        data = f"{content}\0{kind}\0{limit(kind)}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(data, key=self._secret, digest_size=16).digest()

    def read(self, texts: Iterable[Text]) -> None:
        """Read these texts."""
        seen, waiting, size = set[bytes](), list[tuple[bytes, str, bytes]](), 0
        for text in texts:
            if text.key in seen:
                continue
            if text.key in self._where:
                self.known += self._where[text.key][0] < self._stored
                continue
            seen.add(text.key)
            data = text.data()
            if data is None:
                continue
            self.cut += 1
            waiting.append((text.key, text.path, data))
            size += len(data)
            if size >= TASK_BYTES or len(waiting) >= TASK_TEXTS:
                self._cut(waiting)
                waiting, size = [], 0
        if waiting:
            self._cut(waiting)
        while self._pending:
            self._add(self._pending.popleft().result())

    def _cut(self, texts: Sequence[tuple[bytes, str, bytes]]) -> None:
        """Cut some texts, here or by a worker."""
        self._tasks += 1
        if self._tasks <= TASKS_HERE or self._workers < 2:
            self._add(chunked(texts))
            return
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, context, initializer=gc.disable)
        self._pending.append(self._pool.submit(chunked, texts))
        while len(self._pending) > 2 * self._workers:
            self._add(self._pending.popleft().result())

    def document(self, key: bytes) -> tuple[str | None, list[str], str | None]:
        """Why a document has no chunks (null if it has), notes about it, and its version."""
        if key not in self._where:
            return "blob not in the repository", [], None
        group, row = self._where[key]
        documents = self._groups[group].documents
        return tuple(documents[name][row].as_py() for name in ("reason", "notes", "version"))

    def places(self, keys: Sequence[bytes]) -> Places:
        """The places of the chunks of these documents, in the order of the keys."""
        found = np.array([self._where[key] for key in keys], dtype=np.int64).reshape(-1, 2)
        none = np.empty(0, dtype=np.int32)
        document, group, same = [none.astype(np.int64)], [none.astype(np.int64)], [none.astype(np.uint64)]
        parts: dict[str, list[NDArray]] = {field.name: [none] for field in _PLACE}
        for number in np.unique(found[:, 0]).tolist():
            mine = np.flatnonzero(found[:, 0] == number)
            own = self._groups[number]
            lists = own.documents["places"].combine_chunks().take(pa.array(found[mine, 1]))
            flat = lists.flatten()
            document.append(mine[pc.list_parent_indices(lists).to_numpy()])
            group.append(np.full(len(flat), number))
            for name, values in parts.items():
                values.append(flat.field(name).to_numpy())
            same.append(own.chunks["same"].combine_chunks().to_numpy()[parts["chunk"][-1]])
        order = np.argsort(np.concatenate(document), kind="stable")
        at = {name: np.concatenate(values)[order] for name, values in parts.items()}
        return Places(np.concatenate(document)[order], np.concatenate(group)[order], at, np.concatenate(same)[order])

    def table(self, chunks: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
        """Import rows from chunks and further columns: arrays, or one value."""
        rows: dict[str, Any] = dict(zip(_COLUMNS, chunks.columns, strict=False))
        for name, found in columns.items():
            type_ = IMPORT_ROWS.columns[name].type
            if not isinstance(found, pa.Array | pa.ChunkedArray):
                found = pa.repeat(pa.scalar(found, type_), chunks.num_rows)
            rows[name] = found.cast(type_)
        return pa.table(rows)

    def chunks(self, places: Places, rows: NDArray[np.integer] | slice = slice(None)) -> pa.Table:
        """The chunks at some of the places, in this order."""
        group, chunk = places.group[rows], places.at["chunk"][rows]
        numbers = np.unique(group).tolist()
        which = [np.flatnonzero(group == number) for number in numbers]
        tables = [
            self._groups[number].chunks.take(pa.array(chunk[rows])) for number, rows in zip(numbers, which, strict=True)
        ]
        if len(tables) == 1:
            return tables[0]
        back = np.argsort(np.concatenate(which)) if which else np.empty(0, dtype=np.int64)
        return pa.concat_tables([_CHUNKS.empty_table(), *tables]).combine_chunks().take(pa.array(back))

    def keep_in(self, corpus: Place) -> None:
        """Use the cache of a corpus, and keep in it what was read so far; without effect if it is used already.

        A cache that cannot be written to costs no import.
        """
        if self._folder is not None or not isinstance(corpus, Path):
            return
        folder, readers = corpus / CACHE, self._readers.encode()
        with suppress(OSError):
            make_folders(folder, corpus)
            head = (folder / "KEY").read_bytes() if (folder / "KEY").is_file() else b""
            files = sorted(folder.glob("[0-9]*-*.arrow"))
            if head[_KEY_BYTES:] == readers and not self._groups:
                self._secret = head[:_KEY_BYTES]
                for file in files:
                    data = pa.memory_map(str(file)).read_buffer()
                    if xxhash.xxh3_128_hexdigest(data) == file.stem.partition("-")[2]:
                        self._take(data)
                        self._last = file
                    else:
                        file.unlink(missing_ok=True)
                self._stored = len(self._groups)
            else:
                for file in files:
                    file.unlink(missing_ok=True)
                write_atomic(folder / "KEY", self._secret + readers, private=True)
            self._folder = folder
            for group in self._unwritten:
                self._write(group)
            self._unwritten = []

    def _add(self, group: bytes) -> None:
        data: bytes | pa.Buffer = group
        if self._folder is None:
            self._unwritten.append(group)
        else:
            with suppress(OSError):
                data = self._write(group)
        self._take(data)

    def _write(self, group: bytes) -> pa.Buffer:
        """Write a group, behind those of the last file if that is small; returns its bytes, mapped."""
        assert self._folder is not None
        last, before = self._last, b""
        if last is not None and last.stat().st_size < TASK_BYTES:
            before = last.read_bytes()
        data = before + group
        number = int(last.name[:8]) + 1 if last else 1
        self._last = self._folder / f"{number:08d}-{xxhash.xxh3_128_hexdigest(data)}.arrow"
        write_atomic(self._last, data, sync=False)
        if before and last is not None:
            last.unlink(missing_ok=True)
        return pa.memory_map(str(self._last)).read_buffer()[len(before) :]

    def _take(self, data: bytes | pa.Buffer) -> None:
        source = pa.BufferReader(data)
        while source.tell() < source.size():
            documents, chunks = (pa.ipc.open_stream(source).read_all() for _ in range(2))
            for row, key in enumerate(documents["key"].to_pylist()):
                self._where.setdefault(key, (len(self._groups), row))
            self._groups.append(_Group(documents, chunks))


def chunked(texts: Sequence[tuple[bytes, str, bytes]]) -> bytes:
    """A group of the cache from texts: key, a path of the kind, and bytes."""
    rows, numbers = list[dict[str, Any]](), dict[tuple[object, ...], int]()
    documents = list[dict[str, object]]()
    for key, path, data in texts:
        kind, report = file_kind(path), SourceReport()
        text, reason = readable(kind, data)
        document = read_document(path, text) if text is not None else None
        if text is None or document is None or not document.chunks:
            documents.append({"key": key, "reason": reason or "without text", "notes": [], "places": []})
            continue
        common = {"title": document.title, "generated": is_generated(kind, data)}
        if kind.splitter == "markdown":
            common |= metadata_of(path, document.title, text, report)
        described, places, seen = repr(common), list[tuple[Any, ...]](), Counter[tuple[Any, Any]]()
        for chunk in document.chunks:
            own, same = chunk.kind or kind, (chunk.section, chunk.text)
            place = (chunk.line_start, chunk.line_end, chunk.byte_start, chunk.byte_end)
            placeless = chunk._replace(line_start=0, line_end=0, byte_start=0, byte_end=0)
            number = numbers.setdefault((own, described, placeless), len(rows))
            if number == len(rows):
                rows.append(columns_of(own) | chunk.columns() | {"language": own.language} | common)
            places.append((number, seen[same], *place))
            seen[same] += 1
        documents.append({"key": key, "notes": [*report.notes], "version": document.version, "places": places})
    chunks = _masked(table_of(rows, _CHUNKS.remove(len(_CHUNKS) - 1)))
    sink = pa.BufferOutputStream()
    for one, schema in ((table_of(documents, _DOCUMENTS), _DOCUMENTS), (chunks, _CHUNKS)):
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(one)
    return sink.getvalue().to_pybytes()


def _masked(rows: pa.Table) -> pa.Table:
    """Chunks of the rows, secrets masked."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    columns |= zip(_OF_HEADERS, redact_columns([columns[name] for name in _OF_HEADERS]), strict=True)
    marked = pc.match_substring(columns["text"], "[REDACTED:")
    if pc.any(marked).as_py():  # a mask may uncover another secret
        columns["text"] = pc.replace_with_mask(
            columns["text"], marked, redact_columns([columns["text"].filter(marked)])[0]
        )
    named = zip(columns["section"].to_pylist(), columns["text"].to_pylist(), strict=True)
    hashes = [hashlib.sha256(f"{section or ''}\0{text}".encode()).digest()[:8] for section, text in named]
    same = pa.array([int.from_bytes(digest, "little") for digest in hashes], pa.uint64())
    return pa.table([*(columns[name] for name in _CHUNKS.names[:-1]), same], schema=_CHUNKS)
