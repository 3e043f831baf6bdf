from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.text.text_analysis import ANALYZERS, terms_by_kind, tokens_of

ANY_TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=40), st.text("aB9_.-' é日", max_size=20)), max_size=6)


def terms(text: str | None, analyzer: str = "code/2") -> list[str]:
    return analyzed(pa.array([text], pa.string()), analyzer)[0]


def analyzed(texts: pa.Array | pa.ChunkedArray, analyzer: str) -> list[list[str]]:
    kinds = pa.array([{"code/2": "code", "prose/2": "doc"}[analyzer]] * len(texts), pa.string())
    found = terms_by_kind(texts, kinds)
    words = found.vocabulary.take(pa.array(found.codes)).to_pylist()
    return [words[low:high] for low, high in pairwise(found.starts.tolist())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parseUser", ["parseuser", "pars", "user"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parse_user", ["parse_user", "pars", "user"]),
        ("__init__", ["__init__", "init"]),
        ("re-rank", ["re-rank", "re", "rank"]),
        ("app.config", ["app.config", "app", "config"]),
        ("utf8", ["utf8", "utf", "8"]),
        ("URLs", ["url"]),
        ("3.14", ["3.14", "3", "14"]),
        ("приветМир", ["приветмир", "привет", "мир"]),
    ],
)
def test_a_compound_is_kept_whole_and_split_into_parts(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize("text", ["(user).", "--user", ".user-"])
def test_punctuation_around_a_word_is_no_part_of_it(text: str) -> None:
    assert terms(text) == ["user"]


def test_the_end_of_one_text_never_joins_the_start_of_the_next() -> None:
    split = pa.array(["foo", "bar", "", None, "-baz", "qux-", "quux"])
    assert analyzed(split, "code/2") == [["foo"], ["bar"], [], [], ["baz"], ["qux"], ["quux"]]


def test_prose_drops_stopwords_and_single_letters_and_stems() -> None:
    assert terms("The users were parsing a T cell", "prose/2") == ["user", "pars", "cell"]


@pytest.mark.parametrize("text", ["it's the user's", "it’s the user’s"])  # noqa: RUF001
def test_an_apostrophe_leaves_no_letters_behind(text: str) -> None:
    assert terms(text, "prose/2") == ["user"]


def test_scripts_without_spaces_become_pairs_of_characters() -> None:
    assert terms("我想退货 and 货") == ["我想", "想退", "退货", *"我想退货", "and", "货"]
    assert terms("データ2023年") == ["デー", "ータ", "2023", "年"]
    assert terms("ภาษา") == ["ภา", "าษ", "ษา"]
    assert {"세션", "값"} <= {*terms("세션을 값은")}  # with particles


@pytest.mark.parametrize(
    "same",
    [
        "हिन्दी हिन्दियों",
        "книга книгами",
        "δρόμος ΔΡΟΜΟΙ",
        "كتاب الكتاب",
        "straße STRASSE",
        "Müller muller",
        "naïve naive",
    ],
)
def test_words_of_one_stem_are_one_term_in_any_script(same: str) -> None:
    assert len(set(terms(same))) == 1


def test_compatibility_forms_and_invisible_characters_make_no_difference() -> None:
    assert terms("ｕｓｅｒ") == terms("u\u200bser") == terms("user") == ["user"]  # noqa: RUF001
    assert terms("cafe\u0301") == terms("café")


@pytest.mark.parametrize("text", ["", "\ufe0f", "___", " \n\t "])
def test_text_without_letters_or_digits_has_no_terms(text: str | None) -> None:
    assert [terms(text, name) for name in ANALYZERS] == [[], []]


def test_encoded_data_is_no_term() -> None:
    assert terms("x" * 129 + " user") == ["user"]


def test_terms_of_questions_are_terms_of_prose_and_code_alike() -> None:
    text = "how does parse_user handle timeouts"
    asked = list(tokens_of(text))
    assert asked == ["parse_user", "pars", "user", "handl", "timeout"]
    assert set(asked) <= set(terms(text, "prose/2"))
    assert set(asked) <= set(terms(text, "code/2"))


def test_a_question_of_stopwords_alone_keeps_them() -> None:
    assert [*map(tokens_of, ["who is it", ""])] == [("who", "is", "it"), ()]


@settings(max_examples=150, deadline=None)
@given(ANY_TEXTS, st.sampled_from(sorted(ANALYZERS)), st.integers(1, 7))
def test_terms_depend_on_nothing_but_the_text(texts: list[str | None], analyzer: str, chunk: int) -> None:
    alone = [terms(text, analyzer) for text in texts]
    column = pa.chunked_array([texts[i : i + chunk] for i in range(0, len(texts), chunk)], pa.string())
    assert analyzed(column, analyzer) == alone
    padded = pa.array(["before", *texts, "after"], pa.large_string())
    assert analyzed(padded.slice(1, len(texts)), analyzer) == alone
