"""The unpacked size of an Arrow stream or a Parquet file, determined without unpacking it.

Gives: `unpacked_bytes`, `page_bytes`. Zeros compress to a thirty-thousandth of their size, so a small file could fill the
memory of its reader (Arrow columnar format, IPC messages and body compression; FlatBuffers internals; Parquet format,
PageHeader in Thrift's compact protocol).

Note: Arrow allocates what the header of a page says, whatever the footer of the file says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["page_bytes", "unpacked_bytes"]

_HEADER, _ROWS, _BUFFERS, _COMPRESSION = 2, 0, 2, 3
"""Field numbers: the header of a Message; rows, buffers and compression of a RecordBatch."""
_BATCH, _SCHEMA = "record batch", "schema"


def unpacked_bytes(data: bytes) -> int:
    """The declared bytes of all buffers of a stream, plus one per row.

    Raises:
        ValueError: it is not a stream of record batches, or has dictionaries, whose values could be repeated without
        limit. pa.ArrowException: a message is cut off.
    """
    return sum(size for message in pa.ipc.MessageReader.open_stream(data) for size in _sizes(message))


def _sizes(message: pa.ipc.Message) -> Iterator[int]:
    if message.type == _SCHEMA:
        return
    if message.type != _BATCH:
        raise ValueError(f"Expected record batches, got a {message.type}")
    try:
        meta, body = message.metadata.to_pybytes(), message.body.to_pybytes()
        batch = _followed(meta, _field(meta, _followed(meta, 0), _HEADER))
        rows, compressed = _field(meta, batch, _ROWS), _field(meta, batch, _COMPRESSION)
        yield struct.unpack_from("<q", meta, rows)[0] if rows else 0
        buffers = _followed(meta, _field(meta, batch, _BUFFERS))
        (count,) = struct.unpack_from("<I", meta, buffers)
        for place in range(count):
            start, length = struct.unpack_from("<qq", meta, buffers + 4 + 16 * place)
            declared = struct.unpack_from("<q", body, start)[0] if compressed and length else -1
            yield length if declared < 0 else declared
    except struct.error as error:
        raise ValueError("Expected a record batch, got other bytes") from error


def _followed(meta: bytes, at: int) -> int:
    """The target of the offset at a position."""
    return at + struct.unpack_from("<I", meta, at)[0]


def _field(meta: bytes, table: int, number: int) -> int:
    """The position of a field of a table; 0 if it is absent."""
    layout = table - struct.unpack_from("<i", meta, table)[0]
    (size,) = struct.unpack_from("<H", meta, layout)
    entry = 4 + 2 * number
    (offset,) = struct.unpack_from("<H", meta, layout + entry) if entry < size else (0,)
    return table + offset if offset else 0


_UNPACKED, _PACKED, _DATA_PAGE, _DATA_PAGE_V2 = 2, 3, 5, 8
"""Fields of a PageHeader."""
_ENCODINGS = (0, 2, 8)
"""PLAIN, PLAIN_DICTIONARY and RLE_DICTIONARY; values of other encodings may grow when they are decoded."""
_TRUE, _FALSE, _INTEGERS, _BINARY, _STRUCT = 1, 2, (4, 5, 6), 8, 12


def page_bytes(data: bytes, footer: pq.FileMetaData) -> int:
    """The declared bytes of all pages of a file, plus eight per row and column, the most that a code or number takes.

    Raises:
        ValueError, IndexError, KeyError, RecursionError: it has other bytes or encodings.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    total = 8 * footer.num_columns * sum(group.num_rows for group in groups)
    for chunk in (group.column(number) for group in groups for number in range(footer.num_columns)):
        at = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
        end = at + chunk.total_compressed_size
        while at < end:
            header, at = _thrift(data, at)
            encoding = header.get(_DATA_PAGE, {}).get(2, header.get(_DATA_PAGE_V2, {}).get(4, 0))
            if encoding not in _ENCODINGS or min(header[_UNPACKED], header[_PACKED]) < 0:
                raise ValueError("Expected pages that this version writes, got others")
            total, at = total + header[_UNPACKED], at + header[_PACKED]
    return total


def _thrift(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """The integers and structs of a struct by field number, and the position after it."""
    found, number = dict[int, Any](), 0
    while kind := data[at] & 15:
        step, at = data[at] >> 4, at + 1
        if step:
            number += step
        else:
            number, at = _zigzag(data, at)
        if kind in _INTEGERS:
            found[number], at = _zigzag(data, at)
        elif kind == _STRUCT:
            found[number], at = _thrift(data, at)
        elif kind == _BINARY:
            length, at = _varint(data, at)
            at += length
        elif kind not in (_TRUE, _FALSE):
            raise ValueError("Expected the header of a page, got other bytes")
    return found, at + 1


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1
