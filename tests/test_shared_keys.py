"""Short cuts over many names at once give what the rules of one name give."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks.passages import RequestTerms, _forms, _prefixes
from scoped_retrieval.nodes.reranking.anchor_hits import _ends
from scoped_retrieval.nodes.tables import MATCH_TERMS
from scoped_retrieval.nodes.text.index_keys import definition_keys

PARTS = st.sampled_from(["a", "B", "load", "User", "_x", "É", "::", ".", "#", "/", "$", "()", " ", "two words"])
NAMES = st.lists(PARTS, min_size=1, max_size=6).map("".join)


@given(NAMES, NAMES)
def test_names_of_one_key_end_alike(called: str, defined: str) -> None:
    for name in (defined, f"{called}.{defined}", called):
        shared = set(definition_keys(called)[:1]) & set(definition_keys(name))
        if any(letter.isalnum() for key in shared for letter in key):
            ends = _ends(pa.array([*shared, name])).to_pylist()
            assert len(set(ends)) == 1


@given(st.text("abcdefgh", min_size=6))
def test_a_long_plain_term_has_one_form(term: str) -> None:
    assert _prefixes(pa.array([term])).vocabulary.to_pylist() == _forms(term)


def test_many_terms_have_the_keys_of_each() -> None:
    terms = [f"{stem}{number}" for number in range(40) for stem in ("log", "queri", "connect", "é", "你好")]
    table = MATCH_TERMS.build({"request_id": ["r1"] * len(terms), "term": terms, "weight": [1.0] * len(terms)})
    alone = [RequestTerms.of(table.slice(number, 1), pa.array(["r1"])).keys.tolist() for number in range(len(terms))]
    assert RequestTerms.of(table, pa.array(["r1"])).keys.tolist() == sorted({key for keys in alone for key in keys})
