"""Texts cut into runs of word bytes: letters, digits, `_` and every byte above 127, which is part of a character.

Reads arrays of text. Gives the distinct runs, and those of each text by code. Anything slower than a pass over bytes
(normalization, Unicode classes, stemming) is done once per distinct run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.ragged import Ragged, distinct, starts_of

__all__ = ["runs_of"]

_CHUNK_BYTES = 1 << 21
"""Small enough that all passes over them read from the processor's cache."""
_JOINERS = b".-'"


def runs_of(texts: pa.Array | pa.ChunkedArray, joined: bool) -> Ragged:
    """The maximal runs of each text; a null or empty text has none.

    With `joined`, a `.`, `-` or `'` between two word bytes joins them.
    """
    cut = [_tailed_runs(chunk, joined) for chunk in _chunks(texts)]
    tailed = pa.chunked_array([runs for runs, _ in cut], pa.string()).dictionary_encode()
    spelled = tailed.chunk(tailed.num_chunks - 1).dictionary if tailed.num_chunks else pa.array([], pa.string())
    runs, own = distinct([pc.ascii_rtrim(spelled, "\0")])
    codes = [own[chunk.indices.to_numpy()] for chunk in tailed.chunks]
    none = np.empty(0, dtype=np.int64)
    return Ragged(runs, np.concatenate([none, *codes]), starts_of(np.concatenate([none, *(each for _, each in cut)])))


def _chunks(texts: pa.Array | pa.ChunkedArray) -> Iterator[pa.LargeStringArray]:
    """Contiguous arrays without nulls, of about `_CHUNK_BYTES` each (a longer single text stays whole)."""
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        array = pc.fill_null(chunk.cast(pa.large_string()), "")
        offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        start = 0
        while start < len(array):
            end = max(int(np.searchsorted(offsets, offsets[start] + _CHUNK_BYTES, side="right")) - 1, start + 1)
            yield array.slice(start, end - start)
            start = end


def _tailed_runs(texts: pa.LargeStringArray, joined: bool) -> tuple[pa.StringArray, NDArray[np.int64]]:
    """Every run padded with zeros up to the next one, and the number of runs of each text.

    This avoids moving bytes: a run ends where the next one begins.
    """
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    seams = offsets[(offsets > 0) & (offsets < len(data))]
    word = _is_word(data)
    if joined:
        edges = np.concatenate([seams, seams - 1])  # a joiner there is next to a byte of another text
        at_edges = word[edges]
        between = data[1:-1] == _JOINERS[0]
        for joiner in _JOINERS[1:]:
            between |= data[1:-1] == joiner
        between &= word[:-2]
        between &= word[2:]
        word[1:-1] |= between
        word[edges] = at_edges
    first = word.copy()
    first[1:] &= ~word[:-1]
    first[seams] = word[seams]  # one text ends in a word and the next begins with one
    begin = np.flatnonzero(first)
    run_offsets = np.append(begin, len(data)).astype(np.int32)
    runs = pa.StringArray.from_buffers(len(begin), pa.py_buffer(run_offsets), pa.py_buffer(data * word))
    return runs, np.diff(np.searchsorted(begin, offsets))


def _is_word(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which bytes belong to words; arithmetic modulo 256 is several times as fast as a table."""
    word = (data | 32) - np.uint8(ord("a")) < 26
    word |= data - np.uint8(ord("0")) < 10
    word |= data == ord("_")
    word |= data > 127
    return word
