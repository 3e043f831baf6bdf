"""The counts by lengths of runs are those of the documented expressions, text by text and unit by unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks import byte_runs
from scoped_retrieval.nodes.blocks.byte_runs import plain, text_tokens, unit_tokens
from scoped_retrieval.nodes.blocks.token_counting import TOKEN
from scoped_retrieval.nodes.rendering import MARGIN

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


def units(line: str, cuts: list[int]) -> list[str]:
    """A line cut before some of its spaces, as a long line is; a cut behind a blank is none."""
    places = [n for n in range(1, len(line)) if line[n] == " " and line[n - 1] > " "]
    chosen = sorted({places[cut % len(places)] for cut in cuts}) if places else []
    return [line[start:end] for start, end in zip([0, *chosen], [*chosen, len(line)], strict=True)]


LINES = st.tuples(TEXTS.map(lambda text: re.sub(r"[\r\n]", "", text)), st.sampled_from(["\n", "\r\n"])).map("".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(LINES, st.lists(st.integers(0, 9), max_size=3)), max_size=5), TEXTS)
def test_each_unit_costs_what_it_costs_rendered_alone(lines: list[tuple[str, list[int]]], last: str) -> None:
    last = re.sub(r"[\r\n]", "", last)
    cut = [units(line, cuts) for line, cuts in lines] + ([units(last, [0])] if last else [])
    every = [unit for line in cut for unit in line]
    opens = [n == 0 for line in cut for n in range(len(line))]
    offsets, data = packed(every)
    tokens, signs = unit_tokens(data, offsets[:-1], np.array(opens, dtype=bool))
    rendered = [(MARGIN if opening else "") + unit for unit, opening in zip(every, opens, strict=True)]
    assert tokens.tolist() == [counted(unit) for unit in rendered]
    named = [
        (unit, sign)
        for unit, sign in zip(every, signs.tolist(), strict=True)
        if not re.search(r"[\x00-\x08\x0e-\x1f\x7f]", unit)
    ]
    assert [sign for _, sign in named] == [bool(unit.strip()) for unit, _ in named]


@pytest.mark.parametrize(("texts", "expected"), [
    (["a\r", "\n", "a\rb", "\r\n\r\r\n"], [False, True, False, False]),
    (["a\x0bb", "a\x0cb", "a\x1cb", "a\x1db", "a\x1eb"], [False] * 5),
])  # fmt: skip
def test_a_text_with_another_line_break_is_not_plain(texts: list[str], expected: list[bool]) -> None:
    assert plain(*packed(texts)).tolist() == expected
