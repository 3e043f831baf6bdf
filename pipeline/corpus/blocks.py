"""Checksums of the blocks of a pack's files, verified when a block is first read.

Reads: the bytes of a file and its entry in `pack.json`. Gives: `entry_of` for the writer; `CheckedFile`, which
opens the file as a table and verifies the blocks of the rows that are read.

    {"bytes": ..., "sha256": ..., "block_bytes": 65536, "block_xxh3": "<16 hex digits per block>"}

XXH3 (64 bits) detects damage, not tampering: the SHA-256 in the manifest detects both, see `checking.py`. XXH3 was
chosen over CRC-32C because it measured one and a half to two times as fast, with a wider sum. Of a file in an object
store, blocks are read when they are needed, several at once.

Note: Arrow does not check the offsets in a file, and a process that reads past the end of a mapping crashes. So footer
and metadata are verified before Arrow parses them, and offsets before the data they point to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
import xxhash

from ...nodes.errors import StoreError
from ..storage.places import ObjectPlace, Place

__all__ = ["DAMAGED", "CheckedFile", "entry_of", "expect_sha256", "no_pack"]

DAMAGED = (
    "restore the pack from a backup, or index its sources into a new corpus: a damaged pack is never rewritten or "
    "erased. `gc --keep 1` removes one that only older generations use."
)
"""The hint for a damaged file of a pack."""
FEWEST_BYTES, MOST_BLOCKS = 1 << 16, 512
"""Blocks are 64 KiB, and larger in files over 32 MiB, so that the sums of a file take at most 8 KiB."""
METADATA_BYTES = 1 << 16
"""Schema and record batch are described at the beginning of a file, which ends with its footer: some kilobytes each."""
READ_AT_ONCE = 1 << 22
"""Bytes that are read at a time from an object store."""
_DIGITS = 16


def entry_of(data: memoryview) -> dict[str, Any]:
    """The entry of a file with this content in `pack.json`."""
    size = max(FEWEST_BYTES, 1 << max(data.nbytes // MOST_BLOCKS, 1).bit_length())
    sums = (xxhash.xxh3_64_hexdigest(data[start : start + size]) for start in range(0, data.nbytes, size))
    return {
        "bytes": data.nbytes,
        "sha256": hashlib.sha256(data).hexdigest(),
        "block_bytes": size,
        "block_xxh3": "".join(sums),
    }


class CheckedFile:
    """A file of a pack: mapped, or on an object store empty memory of its size, into which blocks are read as they are
    needed.
    """

    def __init__(self, file: Place, entry: Mapping[str, Any]) -> None:
        self._file, self._entry = file, entry
        self._sums, self._size = entry["block_xxh3"], entry["block_bytes"]
        blocks = -(-entry["bytes"] // self._size)
        self._seen = bytearray(blocks)
        """1 per verified block."""
        self._rows = set[tuple[int, int, tuple[str, ...]]]()
        """Verified ranges of rows, with their columns."""
        remote = isinstance(file, ObjectPlace)
        self._data = pa.py_buffer(mmap(-1, entry["bytes"])) if remote else _mapped(file, entry["bytes"])

    def expect_whole(self) -> None:
        """Verify the file against the SHA-256 recorded when it was written.

        Raises:
            StoreError: it does not match.
        """
        self.expect_all()
        expect_sha256(self._data, self._entry["sha256"], self._file)

    def expect_bytes(self, start: int, end: int) -> None:
        """Verify the blocks that contain these bytes.

        Raises:
            StoreError: a block is damaged, or the file is shorter.
        """
        if not 0 <= start <= end <= self._data.size:
            raise self._damaged(f"no more than {self._data.size} bytes", f"an offset to {max(start, end)}")
        first, last = start // self._size, -(-end // self._size)
        seen = self._seen
        if start == end or 0 not in seen[first:last]:
            return
        at, view = 0, memoryview(self._data)
        if isinstance(self._file, ObjectPlace):
            each = max(READ_AT_ONCE // self._size, 1)
            first, last = first // each * each, min(-(-last // each) * each, len(seen))
            at = first * self._size
            view = memoryview(_read(self._file, at, min(last * self._size, self._data.size)))
        for block in range(first, last):
            if not seen[block]:
                data = view[block * self._size - at : (block + 1) * self._size - at]
                self._expect_block(block, data)
                if isinstance(self._file, ObjectPlace):
                    memoryview(self._data).cast("B")[block * self._size : block * self._size + len(data)] = data
                seen[block] = 1

    def expect_all(self) -> None:
        """Verify every block."""
        self.expect_bytes(0, self._data.size)

    def table(self) -> pa.Table:
        """The file as a table, zero-copy; only footer and metadata are verified, see `expect_rows`.

        Raises:
            StoreError: it is damaged.
        """
        self.expect_bytes(0, min(METADATA_BYTES, self._data.size))
        self.expect_bytes(max(self._data.size - METADATA_BYTES, 0), self._data.size)
        try:
            reader = pa.ipc.open_file(self._data)
            if reader.num_record_batches > 1:
                self.expect_all()
            return reader.read_all()
        except StoreError:
            raise
        except (pa.ArrowInvalid, OSError) as error:
            raise self._damaged("an Arrow file", "a damaged one") from error

    def expect_rows(self, table: pa.Table, start: int, end: int, *columns: str) -> None:
        """Verify the blocks of rows [start, end) of this file's table, in all columns by default.

        Raises:
            StoreError: a block is damaged, an offset is out of range, or the table has fewer rows.
        """
        if not 0 <= start <= end <= table.num_rows:
            raise self._damaged(f"{end} rows", f"{table.num_rows}")
        if (start, end, columns) in self._rows:
            return
        for name in columns or table.column_names:
            column = table[name]
            if column.num_chunks == 1:  # else the file was verified as a whole, or has no rows
                self._expect_values(column.chunk(0), start, end)
        self._rows.add((start, end, columns))

    def _expect_values(self, array: Any, start: int, end: int) -> None:
        """Verify elements [start, end) of an array whose offset is 0."""
        if start == end:
            return
        kind = array.type
        buffers = array.buffers()
        self._expect_bits(buffers[0], start, end, 1)
        if kinds.is_struct(kind):
            for at in range(kind.num_fields):
                self._expect_values(array.field(at), start, end)
        elif kinds.is_fixed_size_list(kind):
            self._expect_values(array.values, start * kind.list_size, end * kind.list_size)
        elif kinds.is_primitive(kind) or kinds.is_fixed_size_binary(kind):
            self._expect_bits(buffers[1], start, end, kind.bit_width)
        else:
            wide = kinds.is_large_string(kind) or kinds.is_large_binary(kind) or kinds.is_large_list(kind)
            low, high = self._expect_offsets(buffers[1], start, end, np.dtype(np.int64 if wide else np.int32))
            if kinds.is_list(kind) or kinds.is_large_list(kind):
                if high > len(array.values):
                    raise self._damaged(f"{len(array.values)} elements", f"an offset to {high}")
                self._expect_values(array.values, low, high)
            else:
                self._expect_bits(buffers[2], low, high, 8)

    def _expect_offsets(self, buffer: pa.Buffer, start: int, end: int, kind: np.dtype[Any]) -> tuple[int, int]:
        """Verify the offsets of elements [start, end); returns the first and the last."""
        self._expect_bits(buffer, start, end + 1, kind.itemsize * 8)
        offsets = np.frombuffer(buffer, kind, end + 1 - start, start * kind.itemsize)
        if offsets[0] < 0 or np.any(offsets[1:] < offsets[:-1]):
            raise self._damaged("ascending offsets", "others")
        return int(offsets[0]), int(offsets[-1])

    def _expect_bits(self, buffer: pa.Buffer | None, start: int, end: int, width: int) -> None:
        """Verify elements [start, end) of a buffer, `width` bits each."""
        if buffer is None or start == end:
            return
        low, high = start * width // 8, -(-end * width // 8)
        if high > buffer.size:
            raise self._damaged(f"{buffer.size} bytes", f"an offset to {high}")
        at = buffer.address - self._data.address
        self.expect_bytes(at + low, at + high)

    def _expect_block(self, block: int, data: memoryview) -> None:
        expected = self._sums[block * _DIGITS : (block + 1) * _DIGITS]
        if (got := xxhash.xxh3_64_hexdigest(data)) != expected:
            start = block * self._size
            raise self._damaged(f"checksum {expected} of bytes {start} to {start + len(data)}", got)

    def _damaged(self, expected: str, got: str) -> StoreError:
        return StoreError(f"Expected {expected}, got {got} - at {self._file}", hint=DAMAGED)


def expect_sha256(data: bytes | memoryview | pa.Buffer, sha256: str, file: Place) -> None:
    """Verify the bytes of a file against the SHA-256 recorded when it was written.

    Raises:
        StoreError: they do not match.
    """
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StoreError(f"Expected SHA-256 {sha256}, got another - at {file}", hint=DAMAGED)


def _mapped(file: Path, size: int) -> pa.Buffer:
    """A local file, mapped and closed again, as its buffer keeps the mapping."""
    try:
        with pa.memory_map(str(file)) as source:
            mapped = source.read_buffer()
    except (OSError, pa.ArrowInvalid) as error:
        if isinstance(error, FileNotFoundError):
            raise no_pack(file) from error
        got = getattr(error, "strerror", None) or "a damaged one"
        raise StoreError(f"Expected to map a pack, got {got} - at {file}", hint=DAMAGED) from error
    if mapped.size != size:
        # Reading past the end of a truncated mapping would crash the process.
        raise StoreError(f"Expected {size} bytes, got {mapped.size} - at {file}", hint=DAMAGED)
    return mapped


def _read(file: ObjectPlace, start: int, end: int) -> bytes:
    """Some bytes of an object."""
    try:
        data = file.read_bytes(start, end)
    except FileNotFoundError as error:
        raise no_pack(file) from error
    if len(data) != end - start:
        raise StoreError(f"Expected {end - start} bytes from {start}, got {len(data)} - at {file}", hint=DAMAGED)
    return data


def no_pack(file: Place) -> StoreError:
    """The error for a missing file of a pack."""
    removed = "open the corpus again: this generation may have been removed."
    hint = removed if isinstance(file, ObjectPlace) else DAMAGED
    return StoreError(f"Expected a pack, got none - at {file}", hint=hint)
