"""The two score terms of names: how well the question names the file of a row, or its section of a document, and the
symbol that the row defines.

Reads questions, and the paths, sections and symbols of candidates. Gives `NameTerms`.

Note: people ask by the words of names, and an author names a file or a section after what it is for. Both terms follow
from the question and the row alone, so no other row changes them. A name is compared by its parts (`HttpClient`,
`http_client` and "HTTP clients" share both), a symbol as it is written. Which words of a question are names is not
guessed from their looks: a word is one for the rows that define it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, flat, flattened, gathered, truth
from ..columns.numbers import quantise
from ..scope.source_files import is_source
from ..text.text_analysis import terms_of_run

IN_SENTENCE = 0.5
"""Most that a symbol named inside a sentence counts; one that is the whole question counts fully."""
OF_SECTION = 0.5
"""Most that the names of a section count: the words of its heading are in its text, too."""
NAMESAKE = 1.5
"""Factor for a file that is named after the symbol: `SqlMapper.cs`, not `SqlMapper.Settings.cs`."""

_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|\.|->|#)[A-Za-z_$][\w$]*)*")
_HUMPS, _CAPITALS = re.compile("([a-z0-9])([A-Z])"), re.compile("([A-Z])([A-Z][a-z])")
_SIGNS = re.compile(r"[\W_]+")
_BETWEEN = re.compile(r"::|\.|->|#")

Float = NDArray[np.float64]
Int = NDArray[np.int64]


class NameTerms(NamedTuple):
    """The terms of each candidate, 0 to 1, multiples of 2**-30."""

    title: Float
    definition: Float


def name_terms(
    owner: Int, row: Int, rows: Mapping[str, pa.Array], questions: pa.Array, evidence: pa.Table
) -> NameTerms:
    """The terms of candidates; of code, 0 for all that is no source.

    Args:
        owner: request number of each candidate.
        row: its row in `evidence`.
        rows: its stored columns.
        questions: the question of each request.
        evidence: EVIDENCE.
    """
    terms = NameTerms(*(np.zeros(len(row)) for _ in NameTerms._fields))
    source = is_source(rows).nonzero()[0]
    if len(source):
        paths = rows["path"].take(pa.array(source))
        symbols = gathered(evidence["symbols"], row[source])
        terms.title[source] = _title(owner[source], paths, _of_file, questions)
        terms.definition[source] = _definition(owner[source], paths, symbols, questions)
    document = truth(pc.not_equal(rows["evidence_kind"], "code")).nonzero()[0]
    if len(document):
        paths = rows["path"].take(pa.array(document)).cast(pa.string()).fill_null("")
        headings = gathered(evidence["section"], row[document]).cast(pa.string()).fill_null("")
        titles = pc.binary_join_element_wise(paths, headings, " > ")
        terms.title[document] = quantise(OF_SECTION * _title(owner[document], titles, _of_section, questions))
    return terms


def _title(
    owner: Int, titles: pa.Array, words_of: Callable[[str], tuple[set[str], set[str]]], questions: pa.Array
) -> Float:
    """The Dice coefficient of the words of question and title: twice the words in common by the words of both. A word of
    the question that only the file's folder, or what is around a heading, has counts once, so a long question names no file by chance.
    """
    coded = titles.dictionary_encode()
    titled = [words_of(title) for title in coded.dictionary.to_pylist()]
    asked = [frozenset(_words(question)) for question in questions.to_pylist()]
    pairs, pair = distinct_numbers(owner * len(titled) + np.asarray(coded.indices))
    divided = zip(*(part.tolist() for part in np.divmod(pairs, len(titled))), strict=True)
    value = [_likeness(asked[request], *titled[title]) for request, title in divided]
    return quantise(np.array(value)[pair])


def _of_file(path: str) -> tuple[set[str], set[str]]:
    """The words of a file's name, and those of its folder's."""
    folder, _, name = path.rpartition("/")
    return set(_words(name.partition(".")[0])), set(_words(folder.rpartition("/")[2]))


def _of_section(title: str) -> tuple[set[str], set[str]]:
    """The words of a section's heading; and those of the headings around it, and of the name of its file."""
    path, *above, heading = title.split(" > ")
    name = path.rpartition("/")[2].partition(".")[0]
    return set(_words(heading or name)), set(_words(" ".join([name, *above])))


def _likeness(asked: frozenset[str], named: set[str], above: set[str]) -> float:
    return (len(asked & named) + len(asked & (named | above))) / (len(named) + len(asked) or 1)


@lru_cache(maxsize=1 << 16)
def _words(text: str) -> tuple[str, ...]:
    """The stemmed words of a text; identifiers as their parts."""
    spaced = _CAPITALS.sub(r"\1 \2", _HUMPS.sub(r"\1 \2", text))
    return tuple(term for word in _SIGNS.sub(" ", spaced).split() for term in terms_of_run(word))


def _definition(owner: Int, paths: pa.Array, symbols: pa.Array, questions: pa.Array) -> Float:
    """How clearly the question names a symbol that the row defines, as it is written there: 1 if it is the whole question,
    else its share of the words of the question, at most `IN_SENTENCE`; all of them together for a row that defines several.
    """
    value = np.zeros(len(owner))
    strength: dict[tuple[int, str], float] = {}
    for request, question in enumerate(questions.to_pylist()):
        words = max(len(_words(question)), 1)
        for name in _NAME.findall(question):
            share = len(_words(name)) / words
            last = request, _BETWEEN.split(name)[-1]
            strength[last] = max(strength.get(last, 0.0), 1.0 if share >= 1 else min(share, IN_SENTENCE))
    if not strength:
        return value
    names = pa.array(dict.fromkeys(name for _, name in strength))
    listed, defined = flattened(symbols)
    code = np.asarray(pc.index_in(flat(defined).cast(pa.string()), value_set=names).fill_null(-1))
    known = names.to_pylist()
    for at, name in dict.fromkeys((int(listed[n]), known[code[n]]) for n in (code >= 0).nonzero()[0].tolist()):
        stem = paths[at].as_py().rsplit("/", 1)[-1].rsplit(".", 1)[0]
        value[at] += strength.get((int(owner[at]), name), 0.0) * (NAMESAKE if _bare(stem) == _bare(name) else 1.0)
    return quantise(np.minimum(value / NAMESAKE, 1.0))


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
