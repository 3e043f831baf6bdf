"""Offsets and bytes of strings say the values, however the array lies in memory."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.columns.array_bytes import offsets_and_bytes

TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(texts=st.lists(st.none() | st.sampled_from(["", "a", "bé", "日本"]), max_size=6), data=st.data())
def test_what_stands_between_two_offsets_is_the_value(type_: pa.DataType, texts: list[str | None], data: st.DataObject):
    start, length = data.draw(st.integers(0, len(texts))), data.draw(st.integers(0, len(texts)))
    array = pa.array(texts, pa.large_string()).cast(type_).slice(start, length)
    offsets, found = offsets_and_bytes(array)
    assert [found[low:high].tobytes().decode() for low, high in pairwise(offsets)] == [
        text or "" for text in texts[start : start + length]
    ]
    assert (offsets[0], offsets[-1]) == (0, len(found)), "offsets count from the first byte of the slice"


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_bytes_below_a_null_are_not_read(type_: pa.DataType):
    whole = pa.array(["seen", "hidden", "seen"], type_)
    bits = pa.py_buffer(bytes([0b101]))
    offsets, found = offsets_and_bytes(pa.Array.from_buffers(type_, 3, [bits, *whole.buffers()[1:]]))
    assert (offsets.tolist(), found.tobytes()) == ([0, 4, 4, 8], b"seenseen")
