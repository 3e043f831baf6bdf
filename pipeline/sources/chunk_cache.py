"""The chunks of files and blobs, kept in the corpus, so that no text is cut twice.

    cache/KEY                    a random key of this corpus
    cache/<n>-<sum>.arrow        groups, each two streams: DOCUMENTS, then CHUNKS; the sum is XXH3 of the file

The chunks of a text are a function of its bytes, the kind of its path and the readers (`indexing.importing.reader_digest`), and a
document is found by a digest of all three. The digest is keyed: no reader of the folder can test guesses about a
masked secret. Chunks are stored as the corpus stores them, secrets masked.

Note: the cache decides nothing. It may be removed at any time, a damaged file is removed, and a corpus on an object
store has none. An erasure removes it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from ..corpus.manifest import CACHE
from ..storage.durable import make_folders, write_atomic
from ..storage.places import Place
from .files import FILE_ROWS

__all__ = ["CHUNKS", "DOCUMENTS", "PLACE", "ChunkCache", "Places"]

MOST_BYTES = 4_000_000_000
"""The oldest files beyond this size are removed."""
_SMALL = 1_000_000
MOST_SMALL = 32
"""This many files smaller than `_SMALL` become one."""

_OF_PLACES = (
    "path", "version", "recorded_time", "superseded_at", "deleted_at", "source_id", "owner_project", "workspace_root",
    "branch", "occurrence", "line_start", "line_end", "byte_start", "byte_end",
)  # fmt: skip
PLACE = pa.struct(
    [
        ("chunk", pa.int32()), ("occurrence", pa.int32()), ("line_start", pa.int32()), ("line_end", pa.int32()),
        ("byte_start", pa.int64()), ("byte_end", pa.int64()),
    ]
)  # fmt: skip
DOCUMENTS = pa.schema(
    [
        pa.field("key", pa.binary(16), False),
        pa.field("reason", pa.string()),
        pa.field("notes", pa.list_(pa.string())),
        pa.field("version", pa.string()),
        pa.field("places", pa.list_(PLACE)),
    ]
)
"""`reason` says why a text has no chunks; `chunk` of a place is a row of the CHUNKS of the same group."""
CHUNKS = pa.schema(
    [
        *(field for field in FILE_ROWS if field.name not in _OF_PLACES),
        pa.field("same", pa.uint64(), False),
    ]
)
"""Each distinct chunk once; `event_time` is that of the document's header. `same` is a hash of section and text."""


@dataclass(frozen=True)
class _Group:
    documents: pa.Table
    chunks: pa.Table

    @cached_property
    def same(self) -> NDArray[np.uint64]:
        return self.chunks["same"].combine_chunks().to_numpy()


@dataclass(frozen=True)
class Places:
    """The places of the chunks of some documents: `document` is a position in the list that was asked for."""

    document: NDArray[np.int64]
    group: NDArray[np.int64]
    at: dict[str, NDArray]
    """The fields of PLACE; `chunk` is a row of the group's chunks."""
    same: NDArray[np.uint64]


class ChunkCache:
    """The documents that were read before; `folder` is None for one in memory."""

    def __init__(self, corpus: Place | None, readers: str) -> None:
        """`readers` is a digest of everything except the text and the kind of its path that determines chunks."""
        self._folder: Path | None = None
        self._readers = readers
        self._groups: list[_Group] = []
        self._where: dict[bytes, tuple[int, int]] = {}
        self._secret = secrets.token_bytes(32)
        self._number = 0
        self._stored = 0
        self._unwritten: list[bytes] = []
        if corpus is not None:
            self.keep_in(corpus)
            self._stored = len(self._groups)

    def keep_in(self, corpus: Place) -> None:
        """Keep the cache in a corpus, and everything that was read so far; without effect if it is kept already."""
        if self._folder is None and isinstance(corpus, Path):
            with suppress(OSError):
                self._open(corpus / CACHE)
                self._folder = corpus / CACHE
                groups, self._unwritten = self._unwritten, []
                for group in groups:
                    self._write(group)

    def key(self, content: str, *facts: object) -> bytes:
        """The key of a text: `content` identifies its bytes, `facts` everything else that determines its chunks."""
        data = "\0".join((self._readers, content, *map(str, facts))).encode("utf-8", "surrogateescape")
        return hashlib.blake2b(data, key=self._secret, digest_size=16).digest()

    def __contains__(self, key: bytes) -> bool:
        return key in self._where

    def is_stored(self, key: bytes) -> bool:
        """Whether the text was in the cache when it was opened."""
        return self._where[key][0] < self._stored

    def add(self, group: bytes) -> None:
        """Add a group (`chunked`); a cache that cannot be written to costs no import."""
        data: bytes | pa.Buffer = group
        if self._folder is None:
            self._unwritten.append(group)
        else:
            with suppress(OSError):
                data = pa.memory_map(str(self._write(group))).read_buffer()
        self._take(data)

    def _write(self, data: bytes) -> Path:
        assert self._folder is not None
        self._number += 1
        path = self._folder / f"{self._number:08d}-{xxhash.xxh3_128_hexdigest(data)}.arrow"
        write_atomic(path, data, sync=False)
        return path

    def document(self, key: bytes) -> tuple[str | None, list[str], str | None]:
        """Why a document has no chunks (null if it has), notes about it, and its version."""
        group, row = self._where[key]
        documents = self._groups[group].documents
        return tuple(documents[name][row].as_py() for name in ("reason", "notes", "version"))

    def places(self, keys: Sequence[bytes]) -> Places:
        """The places of the chunks of these documents, in the order of the keys."""
        found = np.array([self._where[key] for key in keys], dtype=np.int64).reshape(-1, 2)
        document, group, same = list[NDArray](), list[NDArray](), list[NDArray]()
        parts: dict[str, list[NDArray]] = {field.name: [] for field in PLACE}
        for number in np.unique(found[:, 0]).tolist():
            mine = np.flatnonzero(found[:, 0] == number)
            own = self._groups[number]
            lists = own.documents["places"].combine_chunks().take(pa.array(found[mine, 1]))
            flat = lists.flatten()
            document.append(mine[pc.list_parent_indices(lists).to_numpy()])
            group.append(np.full(len(flat), number))
            for name, values in parts.items():
                values.append(flat.field(name).to_numpy())
            same.append(own.same[parts["chunk"][-1]])
        if not document:
            none = np.empty(0, dtype=np.int64)
            return Places(none, none, dict.fromkeys(parts, none), none.astype(np.uint64))
        order = np.argsort(np.concatenate(document), kind="stable")
        at = {name: np.concatenate(values)[order] for name, values in parts.items()}
        return Places(np.concatenate(document)[order], np.concatenate(group)[order], at, np.concatenate(same)[order])

    def chunks(self, group: NDArray[np.int64], chunk: NDArray[np.int64]) -> pa.Table:
        """CHUNKS of these rows of these groups, in this order."""
        numbers = np.unique(group).tolist()
        which = [np.flatnonzero(group == number) for number in numbers]
        tables = [
            self._groups[number].chunks.take(pa.array(chunk[rows])) for number, rows in zip(numbers, which, strict=True)
        ]
        if len(tables) == 1:
            return tables[0]
        back = np.argsort(np.concatenate(which)) if which else np.empty(0, dtype=np.int64)
        return pa.concat_tables([CHUNKS.empty_table(), *tables]).combine_chunks().take(pa.array(back))

    def _open(self, folder: Path) -> None:
        make_folders(folder, folder.parent)
        with suppress(FileNotFoundError):
            if not self._groups and len(kept := (folder / "KEY").read_bytes()) == len(self._secret):
                self._secret = kept
        write_atomic(folder / "KEY", self._secret, private=True)
        found = sorted(folder.glob("[0-9]*-*.arrow"))
        self._number = int(found[-1].name[:8]) if found else 0
        left, small = MOST_BYTES, dict[Path, bytes]()
        for path in reversed(found):
            data = path.read_bytes() if path.stat().st_size < _SMALL else pa.memory_map(str(path)).read_buffer()
            left -= len(data)
            if left < 0 or xxhash.xxh3_128_hexdigest(data) != path.stem.partition("-")[2] or not self._take(data):
                path.unlink(missing_ok=True)
            elif isinstance(data, bytes):
                small[path] = data
        if len(small) >= MOST_SMALL:  # a file is a sequence of groups
            self._number += 1
            data = b"".join(small.values())
            write_atomic(folder / f"{self._number:08d}-{xxhash.xxh3_128_hexdigest(data)}.arrow", data, sync=False)
            for path in small:
                path.unlink(missing_ok=True)

    def _take(self, data: bytes | pa.Buffer) -> bool:
        """Take the groups of a file; returns whether all are of this version."""
        with suppress(pa.ArrowInvalid, OSError):
            for documents, chunks in _groups(data):
                number = len(self._groups)
                self._groups.append(_Group(documents, chunks))
                for row, key in enumerate(documents["key"].to_pylist()):
                    self._where.setdefault(key, (number, row))
            return True
        return False


def _groups(data: bytes | pa.Buffer) -> Iterator[tuple[pa.Table, pa.Table]]:
    source = pa.BufferReader(data)
    while source.tell() < source.size():
        documents, chunks = (pa.ipc.open_stream(source).read_all() for _ in range(2))
        if not (documents.schema.equals(DOCUMENTS) and chunks.schema.equals(CHUNKS)):
            raise pa.ArrowInvalid("another version")
        yield documents, chunks
