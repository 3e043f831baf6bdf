"""Words that texts say and their requests ask for: the arrays and the compiled loop find the same, text by text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks import passages
from scoped_retrieval.nodes.blocks.passages import RequestTerms, matched_terms
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.tables import MATCH_TERMS

LOOPS = compiled.kernels(compiled.PAYS_FROM)
WORDS = st.sampled_from(
    ["port", "export", "Ports", "a", "aB", "HTTPServer", "2024", "2a", "café", "你好", "你", "好吗", "\U0001f600"]
)
TEXTS = st.lists(WORDS | st.sampled_from([" ", "_", "\n", ".", "", "é"]), max_size=8).map("".join)


@pytest.fixture(scope="module", params=["arrays", "compiled"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "compiled" and LOOPS is None:
        pytest.skip("needs the extra fast")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "kernels", lambda visits: LOOPS if request.param == "compiled" else None)
        yield


def terms_of(*asked: tuple[str, str]) -> RequestTerms:
    owners, terms = [owner for owner, _ in asked], [term for _, term in asked]
    table = MATCH_TERMS.build({"request_id": owners, "term": terms, "weight": [1.0] * len(terms)})
    return RequestTerms.of(table, pa.array(["r1", "r2"]))


def said(texts: list[str], asking: list[int], terms: RequestTerms) -> set[tuple[int, int]]:
    pairs = matched_terms(pa.array(texts, pa.large_string()), np.array(asking, np.int64), terms)
    return set(zip(*(one.tolist() for one in pairs), strict=True))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, st.integers(0, 1)), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from(["r1", "r2"]), WORDS), min_size=1, max_size=6),
)
def test_each_text_says_what_it_says_alone(texts: list[tuple[str, int]], asked: list[tuple[str, str]]) -> None:
    terms = terms_of(*asked)
    alone = {(number, term) for number, (text, owner) in enumerate(texts) for _, term in said([text], [owner], terms)}
    together = said([text for text, _ in texts], [owner for _, owner in texts], terms)
    assert together == alone
    if LOOPS is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(passages, "kernels", lambda visits: None)
            assert said([text for text, _ in texts], [owner for _, owner in texts], terms) == together


@pytest.mark.parametrize("bits", [1, 16])
def test_every_key_is_found_however_many_share_a_slot(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passages, "_MOST_BITS", bits)
    words = [f"{first}{second}{third}" for first in "abcd" for second in "efgh" for third in "ijklm"]
    terms = terms_of(*(("r1", word) for word in words[::2]))
    found = said([" ".join(words)], [0], terms)
    assert len(found) == len(words) / 2
    assert not said([" ".join(words[1::2])], [0], terms)


def test_two_words_in_three_bytes_are_found() -> None:
    """A capital starts a word: the arrays that the loop fills have room for more words than separators."""
    terms, text = terms_of(("r1", "x")), b"xX " * 400
    number, start, _ = passages._keyed(np.array([0]), np.array([len(text)]), np.frombuffer(text, np.uint8), terms)
    assert start.tolist() == [at for at in range(len(text)) if at % 3 < 2]
    assert not number.any()


def test_no_pair_of_ideographs_crosses_the_end_of_its_text() -> None:
    terms = terms_of(("r1", "你好"))
    assert said(["说你", "好", "说你好"], [0, 0, 0], terms) == {(2, 0)}
