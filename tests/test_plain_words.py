"""Words, keys and hashes taken all at once are those taken one by one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.nodes.columns.ragged import FEW_STRINGS, Ragged
from scoped_retrieval.nodes.text.index_keys import DEPTH, definition_keys, path_keys
from scoped_retrieval.nodes.text.plain_keys import keys_of_definitions, keys_of_paths
from scoped_retrieval.nodes.text.siphash import siphash
from scoped_retrieval.nodes.text.text_analysis import is_plain, parts_of
from scoped_retrieval.pipeline.corpus import postings
from scoped_retrieval.pipeline.corpus.incoming import incoming

PARTS = re.compile(r"\d+|[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def drawn(alphabet: str, longest: int, count: int = 5_000) -> list[str]:
    chance = random.Random(alphabet)
    return sorted({"".join(chance.choices(alphabet, k=chance.randint(0, longest))) for _ in range(count)})


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("HTTPServer", ["http", "server"]),
        ("parseURLs", ["parse", "urls"]),
        ("URLsx", ["ur", "lsx"]),
        ("As", ["as"]),
        ("utf8_Decode", ["utf", "8", "decode"]),
        ("__", []),
    ],
)
def test_a_word_has_these_parts(word: str, parts: list[str]) -> None:
    found, counts, lowered = parts_of(pa.array([word]))
    assert (found.to_pylist(), counts.tolist(), lowered.to_pylist()) == (parts, [len(parts)], [word.lower()])


def test_parts_taken_all_at_once_are_those_of_the_expression() -> None:
    words = pa.array(drawn("abAB12_.-sS", 9))
    words = words.filter(pa.array(is_plain(words, 8)))
    parts, counts, _ = parts_of(words)
    starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
    for number, word in enumerate(words.to_pylist()):
        expected = [part.lower() for part in PARTS.findall(word)]
        assert parts[starts[number] : starts[number + 1]].to_pylist() == expected, word


@pytest.mark.parametrize("word", ["é", "don't", "-a", "a.", "a" * 9, "", "a b", "a\n"])
def test_other_words_are_not_plain(word: str) -> None:
    assert is_plain(pa.array([word, "a.b-C_1"]), 8).tolist() == [False, True]


@pytest.mark.parametrize(
    ("all_", "one", "alphabet"),
    [(keys_of_paths, path_keys, "aB/./_\\ é-1"), (keys_of_definitions, definition_keys, "aB_1.: /#é()$")],
)
def test_keys_taken_all_at_once_are_those_of_each(
    all_: Callable[[Ragged], Ragged], one: Callable[[str], list[str]], alphabet: str
) -> None:
    assert len(drawn(alphabet, 9)) > FEW_STRINGS
    deep = ["/".join(f"D{n}" for n in range(parts)) + ".md" for parts in (DEPTH - 1, DEPTH, DEPTH + 1, 4 * DEPTH)]
    strings = [*drawn(alphabet, 9), None, "src/App/url.test.ts", "src/App/url.test.ts", *deep]
    expected = [[] if string is None else one(string) for string in strings]
    assert all_(Ragged.of(pa.array(strings, pa.string()))).to_lists().to_pylist() == expected
    assert all_(Ragged.of(pa.array([None], pa.string()))).to_lists().to_pylist() == [[]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_hashes_are_those_of_pandas(kind: pa.DataType) -> None:
    strings = [*drawn("abcdefé你x", 30), "", "a" * 8, "b" * 300]
    expected = pd.util.hash_array(np.array(strings, dtype=object), categorize=False)
    array = pa.array(strings, kind)
    assert np.array_equal(siphash(array), expected)
    assert np.array_equal(siphash(array.slice(3, 5)), expected[3:8])
    assert len(siphash(array.slice(0, 0))) == 0


def test_postings_do_not_depend_on_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    words = drawn("abcdefgh", 3, 300)
    rows = [
        {"text": " ".join(words[n : n + 9]), "path": f"src/{words[n % 7]}.md", "evidence_kind": ("doc", "code")[n % 2]}
        for n in range(100)
    ]
    evidence = incoming(import_rows(*rows), day(1)).evidence
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(postings, "CORES", cores)
        monkeypatch.setattr(postings, "PIECE", 16)
        monkeypatch.setattr(postings, "SORTED_APART", 10)
        made, length = postings.postings_of(evidence)
        lists, keys = postings.posting_lists(made, np.array([0, 40, evidence.num_rows]))
        numbers = [column.tolist() for column in (lists.hashes, lists.starts, lists.rows, lists.freqs, keys)]
        found.append((length.to_pylist(), lists.keys.to_pylist(), numbers))
    assert found[0] == found[1] == found[2]
