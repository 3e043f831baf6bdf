"""Anchors: what a pattern says of its matches never loses one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.text import anchor_patterns
from scoped_retrieval.nodes.text.anchor_patterns import PATTERNS, anchors_in

PIECES = (
    "a", "B", "_", "__", "foo", "Bar", "fooBar", "FooBar", "src/", "app.py", ".", "()", "`", "Error", "Exception",
    "Warning", "Failure", 'File "', '"', ", line 3", ", in f", " at ", "at ", "(", ")", ":3:4", ":12", ".go:5", "test_x",
    "::", "[x]", " > ", "● ", "✗ ", "\u00d7 ", "FAIL ", ".spec.", "ts", ".cy.", "expected ", "EXPECTED: ", "eXpected\n",
    "received", "got ", "was 3", "0" * 26, "A" * 26, "a1" * 20, "-", "ABC-123", "mem-1", "dec_x", "adr:2",
    "12345678-1234-1234-1234-123456789abc", " ", "\n", "\\", "://", "http", "http://x.y/z", "\x1e", "K", "\u017f", "é", "\0",
    "\t", "\r\n", "C:", "./", "../", "$", "async ", "new ", "\x85",
)  # fmt: skip
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=3)


def found(texts: list[str]) -> list[tuple[int, int, str]]:
    matches = anchors_in(pa.array(texts, pa.large_string()))
    return list(zip(matches.text.tolist(), matches.kind.tolist(), matches.value.to_pylist(), strict=True))


@given(TEXTS)
def test_a_pattern_that_is_left_out_would_have_found_nothing(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        asked = tuple(replace(pattern, needs=(), hump=False, run=0) for pattern in PATTERNS)
        patch.setattr(anchor_patterns, "PATTERNS", asked)
        everything = found(texts)
    assert found(texts) == everything
