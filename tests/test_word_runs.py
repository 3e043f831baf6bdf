"""Texts cut into runs all at once are those cut by an expression one by one."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.text import word_runs
from scoped_retrieval.nodes.text.word_runs import runs_of

WORD = "[0-9A-Za-z_\x80-\U0010ffff]"
ALONE, JOINED = re.compile(rf"{WORD}+"), re.compile(rf"{WORD}+(?:[.'-]{WORD}+)*")
TEXTS = st.lists(st.one_of(st.none(), st.text("aZ9_.-' \0\n/@[`{é日", max_size=9), st.text(max_size=9)), max_size=9)


def cut(texts: pa.Array | pa.ChunkedArray, joined: bool) -> list[list[str]]:
    return runs_of(texts, joined).to_lists().to_pylist()


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.booleans(), st.integers(1, 3))
def test_the_runs_of_a_text_are_those_of_the_expression(texts: list[str | None], joined: bool, chunk: int) -> None:
    pattern = JOINED if joined else ALONE
    expected = [pattern.findall(text or "") for text in texts]
    assert cut(pa.array(texts, pa.string()), joined) == expected
    assert (
        cut(pa.chunked_array([texts[i : i + chunk] for i in range(0, len(texts), chunk)], pa.string()), joined)
        == expected
    )
    assert cut(pa.array(["a", *texts, "b"], pa.large_string()).slice(1, len(texts)), joined) == expected


@pytest.mark.parametrize("byte", range(128))
def test_every_byte_of_a_word_is_a_letter_a_digit_or_an_underscore(byte: int) -> None:
    letter = chr(byte)
    expected = [[f"a{letter}b"]] if letter.isalnum() or letter == "_" else [["a", "b"]]
    assert cut(pa.array([f"a{letter}b"]), False) == expected


def test_runs_are_distinct_whatever_follows_them() -> None:
    runs = runs_of(pa.array(["a a,  a\n", "a"]), True)
    assert (runs.vocabulary.to_pylist(), runs.codes.tolist(), runs.starts.tolist()) == (["a"], [0, 0, 0, 0], [0, 3, 4])


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_column_cut_in_blocks_has_the_same_runs(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    texts = pa.array(["ab-", "-c.d", "", "e", ".", "f'g h"])
    whole = cut(texts, True)
    monkeypatch.setattr(word_runs, "_CHUNK_BYTES", size)
    assert cut(texts, True) == whole == [["ab"], ["c.d"], [], ["e"], [], ["f'g", "h"]]
