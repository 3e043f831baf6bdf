"""Reads texts as documents through the cache: what is not there is cut into chunks, by worker processes if it is much.

Gives: `DocumentReader`, and `chunked`, the function that workers call. It depends on the bytes of a text, the kind of its
path and the readers alone, so the rows of an import are the same for any number of workers.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..redaction.masking import redact_columns
from .chunk_cache import CHUNKS, DOCUMENTS, PLACE, ChunkCache
from .chunking import read_document
from .file_kinds import file_kind
from .files import FILE_ROWS, ReadOptions, columns_of, is_generated, readable, table_of
from .headers import metadata_of
from .report import SourceReport

__all__ = ["DocumentReader", "Text", "chunked", "processors"]

TASK_BYTES = 1_000_000
"""Least bytes of a task of `chunked`."""
TASK_TEXTS = 256
TASKS_HERE = 4
"""This many tasks are done before workers start: starting one takes as long as a task or two."""
_OF_HEADERS = ("title", "level", "document_type", "tags")
"""Columns that may come from a header, where secrets are not masked yet."""

_PLACED = [field.name for field in PLACE][1:]


class Text(NamedTuple):
    """A text to be read: its key in the cache, a path of its kind, and its bytes, None if they are missing."""

    key: bytes
    path: str
    data: Callable[[], bytes | None]


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class DocumentReader:
    """Reads texts into the cache.

    `known` counts the texts that earlier imports cut, `cut` those that this one did.
    """

    cache: ChunkCache
    options: ReadOptions = field(default_factory=ReadOptions)
    workers: int = 1
    known: int = 0
    cut: int = 0
    _tasks: int = 0
    _pool: ProcessPoolExecutor | None = None

    @classmethod
    def of(cls, options: ReadOptions | None = None) -> DocumentReader:
        """A reader with a cache in memory."""
        return cls(ChunkCache(None, ""), options or ReadOptions())

    def __enter__(self) -> DocumentReader:
        return self

    def __exit__(self, *exception: object) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def table(self, chunks: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
        """A table of `FILE_ROWS` from chunks and the columns that differ from theirs: arrays, or one value."""
        given: dict[str, Any] = dict(zip(chunks.column_names, chunks.columns, strict=True)) | dict(columns)
        arrays = []
        for column in FILE_ROWS:
            found: Any = given.get(column.name)
            if not isinstance(found, pa.Array | pa.ChunkedArray):
                value = found.cast(column.type) if isinstance(found, pa.Scalar) else pa.scalar(found, column.type)
                found = pa.repeat(value, chunks.num_rows)
            arrays.append(found.cast(column.type))
        return pa.Table.from_arrays(arrays, schema=FILE_ROWS)

    def key(self, content: str, path: str) -> bytes:
        """The key of a text at a path; `content` identifies its bytes."""
        kind = file_kind(path)
        return self.cache.key(content, kind, self.options.limit(kind))

    def key_of(self, data: bytes, path: str) -> bytes:
        """The key of the bytes of a file."""
        return self.key(f"sha256:{sha256(data).hexdigest()}", path)

    def read(self, texts: Iterable[Text]) -> set[bytes]:
        """Read these texts; returns the keys of those whose bytes are missing."""
        missing = set[bytes]()
        waiting, size = list[tuple[bytes, str, bytes]](), 0
        pending = deque[Future[bytes]]()
        seen = set[bytes]()
        run = partial(chunked, options=self.options)

        def give() -> None:
            self._tasks += 1
            if self._tasks <= TASKS_HERE or self.workers < 2:
                self.cache.add(run(waiting))
                return
            self._pool = self._pool or ProcessPoolExecutor(self.workers, multiprocessing.get_context("spawn"))
            pending.append(self._pool.submit(run, waiting))
            while len(pending) > 2 * self.workers:
                self.cache.add(pending.popleft().result())

        for text in texts:
            if text.key in seen:
                continue
            if text.key in self.cache:
                self.known += self.cache.is_stored(text.key)
                continue
            seen.add(text.key)
            data = text.data()
            if data is None:
                missing.add(text.key)
                continue
            self.cut += 1
            waiting.append((text.key, text.path, data))
            size += len(data)
            if size >= TASK_BYTES or len(waiting) >= TASK_TEXTS:
                give()
                waiting, size = [], 0
        if waiting:
            give()
        while pending:
            self.cache.add(pending.popleft().result())
        return missing


def chunked(texts: Sequence[tuple[bytes, str, bytes]], options: ReadOptions) -> bytes:
    """A group of the cache from texts: key, a path of the kind, and bytes."""
    rows, numbers = list[dict[str, Any]](), dict[tuple[object, ...], int]()
    documents = list[dict[str, object]]()
    for key, path, data in texts:
        kind, report = file_kind(path), SourceReport()
        text, reason = readable(kind, data, options)
        document = read_document(path, text) if text is not None else None
        if text is None or document is None or not document.chunks:
            documents.append({"key": key, "reason": reason or "without text", "notes": [], "places": []})
            continue
        common = {"title": document.title, "generated": is_generated(kind, data)}
        if kind.splitter == "markdown":
            common |= metadata_of(path, document.title, text, report)
        described, places = repr(common), list[tuple[Any, ...]]()
        for chunk in document.chunks:
            own = chunk.kind or kind
            row = chunk.columns()
            place = [row.pop(name) for name in _PLACED]
            number = numbers.setdefault((own, described, *row.values()), len(rows))
            if number == len(rows):
                rows.append(columns_of(own) | row | {"language": own.language} | common)
            places.append((number, *place))
        documents.append({"key": key, "notes": [*report.notes], "version": document.version, "places": places})
    chunks = _masked(table_of(rows, CHUNKS.remove(len(CHUNKS) - 1)))
    sink = pa.BufferOutputStream()
    for one, schema in ((table_of(documents, DOCUMENTS), DOCUMENTS), (chunks, CHUNKS)):
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(one)
    return sink.getvalue().to_pybytes()


def _masked(rows: pa.Table) -> pa.Table:
    """CHUNKS of the rows, secrets masked."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    columns |= zip(_OF_HEADERS, redact_columns([columns[name] for name in _OF_HEADERS]), strict=True)
    marked = pc.match_substring(columns["text"], "[REDACTED:")
    if pc.any(marked).as_py():  # a mask may uncover another secret
        columns["text"] = pc.replace_with_mask(
            columns["text"], marked, redact_columns([columns["text"].filter(marked)])[0]
        )
    named = zip(columns["section"].to_pylist(), columns["text"].to_pylist(), strict=True)
    hashes = [sha256(f"{section or ''}\0{text}".encode()).digest()[:8] for section, text in named]
    same = pa.array([int.from_bytes(digest, "little") for digest in hashes], pa.uint64())
    return pa.table([*(columns[name] for name in CHUNKS.names[:-1]), same], schema=CHUNKS)
