"""The fast path over bytes is the same counter as the documented expressions, unit by unit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks.line_units import LONG_LINE, units_of
from scoped_retrieval.nodes.blocks.token_counting import BASE, Counters
from scoped_retrieval.nodes.rendering import quoted

ASCII = st.text(st.sampled_from("abzABZ019 \t.,(|_\n\x01"), max_size=60)
PIECES = st.sampled_from(
    [
        "word ",
        "Word",
        "HTTPServer",
        "  ",
        " ",
        "\t",
        "12",
        "()",
        "|",
        "\r\n",
        "\n",
        "\r",
        "é",
        "你好世界。",
        "😀",
        "\u2028",
    ]
)
MIXED = st.lists(PIECES, max_size=30).map("".join)
LONG = st.lists(
    st.sampled_from(["alpha. ", "Beta; ", "x" * 40, " ", "你好。", "  ", "ABCd "]), min_size=40, max_size=120
).map("".join)


def shown(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def rendered(text: str) -> str:
    return quoted(text) + "\n"


def count(text: str) -> int:
    return int(Counters().get(BASE).count(pa.array([text], pa.large_string()))[0])


@given(st.lists(ASCII | MIXED, max_size=5))
@example([" ", "a"])
@example(["A", "b"])
@example(["\r", "\n"])
@example(["a" * 40 + " " * 17 + "b", " " * 16 + "A"])
@settings(max_examples=400, deadline=None)
def test_the_units_of_a_text_cost_what_its_rendering_costs(texts: list[str]) -> None:
    units = units_of(pa.array(texts, pa.large_string()), Counters(), [BASE], np.zeros(len(texts), np.int64))
    for number, text in enumerate(texts):
        first, last = units.first[number], units.first[number + 1]
        if not text:
            assert first == last
            continue
        tokens, chars = units.cost(first, last)
        over = len(text) - len(shown(text)) - text.endswith("\n")  # a hidden carriage return is counted, to be safe
        assert (int(tokens) - over, int(chars) - over) == (count(rendered(shown(text))), len(rendered(shown(text))))


@given(LONG)
@example("x" * 2000)
@example("x" * 700 + " " + "y" * 700)
@settings(max_examples=60, deadline=None)
def test_a_long_line_falls_into_pieces_that_cost_at_least_their_rendering(text: str) -> None:
    units = units_of(pa.array([text], pa.large_string()), Counters(), [BASE], np.zeros(1, np.int64))
    data = text.encode()
    assert units.start[0] == 0
    assert units.end[-1] == len(data)
    assert units.start[1:].tolist() == units.end[:-1].tolist()
    assert len(data) <= LONG_LINE or len(units.end) > 1 or " " not in text
    for number, end in enumerate(units.end):
        part = data[:end].decode()
        tokens, chars = units.cost(np.int64(0), np.int64(number + 1))
        assert count(rendered(part)) <= tokens <= count(rendered(part)) + 1
        assert len(rendered(part)) == chars
