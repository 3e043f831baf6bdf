"""The counts by lengths of runs are those of the documented expressions, text by text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks import byte_runs
from scoped_retrieval.nodes.blocks.byte_runs import text_tokens
from scoped_retrieval.nodes.blocks.token_counting import TOKEN

ASCII_TOKEN = re.compile(TOKEN.replace(r"[\x{00C0}-\x{04FF}]{1,2}|", ""))
"""The expression itself, without its one alternative that no ASCII text can take and that Python writes otherwise."""

RUNS = st.one_of(
    st.tuples(st.sampled_from("aZ9 .\t_-\r\n\x00\x7f"), st.integers(1, 20) | st.integers(60, 90)).map(
        lambda drawn: drawn[0] * drawn[1]
    ),
    st.sampled_from(
        [" a", " A", " Ab", "HTTPServer", "  return", "\t\tx", "x = []", "ABCDEfg", " ABCDEfg", " 1", ". a", "\r\n"]
    ),
)
TEXTS = st.lists(RUNS | st.text(st.characters(max_codepoint=127), max_size=6), max_size=8).map("".join)


@pytest.fixture(scope="module", params=["a few bytes at once", "many"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """The arrays count the same in blocks and whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            byte_runs, "BYTES_AT_ONCE", 4 if request.param == "a few bytes at once" else byte_runs.BYTES_AT_ONCE
        )
        yield


def counted(text: str) -> int:
    return len(ASCII_TOKEN.findall(text))


def packed(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and bytes of ASCII texts, one after the other."""
    offsets = np.cumsum([0, *map(len, texts)])
    return offsets, np.frombuffer("".join(texts).encode("ascii"), np.uint8)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, max_size=5))
@example(["", "a", "", " b", ""])
@example(["a" * 7, "a" * 8, " " * 16 + "a", " " * 17 + "a", "A" * 5 + "b", " " + "A" * 4 + "b"])
def test_each_text_has_as_many_tokens_as_the_expression_finds_in_it_alone(texts: list[str]) -> None:
    assert text_tokens(*packed(texts)).tolist() == [counted(text) for text in texts]
