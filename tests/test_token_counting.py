# ruff: noqa: RUF001 - full-width and ideographic characters are part of the subject
"""The base counter is exact under its own name and adds up over lines; other counters come from local files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks import byte_runs
from scoped_retrieval.nodes.blocks.byte_runs import text_tokens
from scoped_retrieval.nodes.blocks.token_counting import BASE, TOKEN, Counters, EncodedCounter
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.pipeline.line.tokenizers import load_counter, load_counters


def count(*texts: str | None) -> list[int]:
    return Counters().get(BASE).count(pa.array(texts, pa.large_string())).tolist()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        (" word", 1),
        ("parse_user", 1 + 1 + 1),
        ("12345", 1 + 1),
        ("        return", 1 + 1),
        ("\r\n\r\n", 4),
        ("你好世界", 4 + 1),
        ("😀", 2),
        ("你好，我的名字是GPT-4o。我是一种新型的语言模型，很高兴见到你!", 36),
    ],
)
def test_a_token_is_one_match_of_the_documented_expressions(text: str | None, tokens: int) -> None:
    assert count(text) == [tokens]


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=40))
def test_counts_add_up_over_lines(lines: list[str], last: str) -> None:
    closed = [line + "\n" for line in lines] + [last]
    assert count("".join(closed)) == [sum(count(*closed))]


def test_counts_do_not_depend_on_neighbors_or_slicing() -> None:
    texts = pa.array(["a b", "你好世界", None, "😀\n"], pa.large_string())
    together = Counters().get(BASE).count(texts)
    assert together.tolist() == [count(text)[0] for text in texts.to_pylist()]
    assert Counters().get(BASE).count(texts.slice(1, 2)).tolist() == together[1:3].tolist()


def test_each_text_is_counted_by_the_counter_its_request_names() -> None:
    counters = Counters({"letters": EncodedCounter("letters", lambda texts: (len(text) for text in texts))})
    tokens = counters.count(pa.array(["one two", "one two"], pa.large_string()), [BASE, "letters"], np.array([0, 1]))
    assert tokens.tolist() == [2, 7]


def tokenizer_file(folder: Path) -> Path:
    vocabulary = {"[UNK]": 0, "one": 1, "two": 2}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }  # fmt: skip
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return path


def test_a_tokenizers_file_counts_under_its_path(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra semantic")
    name = str(tokenizer_file(tmp_path))
    counters = load_counters([BASE, name])
    assert counters.names() == sorted([BASE, name])
    counter = counters.get(name)
    assert not counter.additive
    assert counter.count(pa.array(["one two three", "", None], pa.large_string())).tolist() == [3, 0, 0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/tokenizer.json", r"Expected a tokenizer file, got no file - at missing"),
        ("tiktoken:cl100k_base", r"Expected the file of cl100k_base, got none or another - at"),
    ],
)
def test_a_missing_tokenizer_is_named_and_never_downloaded(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers", reason="needs the extra semantic")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ModelError, match=message):
        load_counter(name)


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


def packed(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and bytes of ASCII texts, one after the other."""
    offsets = np.cumsum([0, *map(len, texts)])
    return offsets, np.frombuffer("".join(texts).encode("ascii"), np.uint8)


@pytest.mark.parametrize("at_once", [4, byte_runs.BYTES_AT_ONCE])
@given(st.lists(TEXTS, max_size=5))
@example(["", "a", "", " b", ""])
@example(["a" * 7, "a" * 8, " " * 16 + "a", " " * 17 + "a", "A" * 5 + "b", " " + "A" * 4 + "b"])
def test_each_text_has_as_many_tokens_as_the_expression_finds_in_it_alone(at_once: int, texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_runs, "BYTES_AT_ONCE", at_once)
        assert text_tokens(*packed(texts)).tolist() == [len(ASCII_TOKEN.findall(text)) for text in texts]
