"""Closed lists: words from outside are understood or refused, words that a node chooses are in the list."""

from __future__ import annotations

import numpy as np
import pytest
from scoped_retrieval.nodes.errors import InputError, SchemaError
from scoped_retrieval.nodes.vocabulary import LIFECYCLES, OUTCOMES


def test_a_word_of_another_document_becomes_ours():
    assert LIFECYCLES.canonical("approved", "status") == "verified"
    with pytest.raises(InputError, match=r"Expected one of candidate, .*, got 'new' - at status"):
        LIFECYCLES.canonical("new", "status")


def test_a_node_chooses_words_of_the_list_only():
    words = np.array(["selected", "hidden", "selected"], dtype=object)
    assert OUTCOMES.column(words).to_pylist() == words.tolist()
    with pytest.raises(SchemaError, match="Expected one of selected, hidden, rejected, got 'gone' - at outcome"):
        OUTCOMES.column(["selected", "gone"])
