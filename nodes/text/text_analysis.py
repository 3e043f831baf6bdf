"""How text becomes index terms: named analyzers, all in one term space.

`prose/1` drops English stopwords and stems; `code/1` stems and drops nothing; `plain/1` only lowercases words, to
compare with other implementations. A compound (`parseUser`, `parse_user`, `re-rank`, `app.config`, `utf8`) is kept
whole and split into its parts. A script without spaces yields pairs of neighboring characters. The version in a name
changes whenever its terms do.

Reads: arrays of text. Gives: the terms of each text, in order, with repetitions.

Texts are cut into runs over their bytes (`word_runs`), and only *distinct* runs are processed in Python: the cost
depends on the vocabulary. A byte above 127 always belongs to a run, so normalization (NFKC), Unicode classes and
scripts are also handled once per distinct run.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes
from ..columns.ragged import Ragged, distinct, starts_of
from ..errors import InputError
from .word_runs import runs_of

__all__ = [
    "ANALYZERS",
    "Analyzer",
    "analyze",
    "analyzer_for",
    "is_plain",
    "parts_of",
    "query_tokens",
    "terms_by_kind",
    "terms_in",
    "terms_of",
    "terms_of_run",
    "tokens_of",
]

STOPWORDS = frozenset(
    """
    a about an and any are as at be because been being but by can did do does doing for from had has have having he her
    here hers him his how i if in into is it its itself just me my no nor not of on or other our ours out over own same
    she should so some such than that the their theirs them then there these they this those through to too under until
    up very was we were what when where which while who whom why will with would you your yours
    aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
    """.split()  # noqa: SIM905 (a list of 130 literals would be harder to read)
) | frozenset(string.ascii_lowercase)
"""English function words, remainders of `aren't`, `couldn't`, ..., and single letters: initials, list items."""

LONGEST_WORD = 128
"""In characters; longer words (encoded data, minified code) are not terms, neither whole nor in parts."""


@dataclass(frozen=True, slots=True)
class Analyzer:
    """A rule from text to terms. `compounds` also splits identifiers; `stem` is Snowball's English stemmer."""

    name: str
    compounds: bool
    stem: bool
    stopwords: frozenset[str]


ANALYZERS = {
    analyzer.name: analyzer
    for analyzer in (
        Analyzer("prose/1", compounds=True, stem=True, stopwords=STOPWORDS),
        Analyzer("code/1", compounds=True, stem=True, stopwords=frozenset()),
        Analyzer("plain/1", compounds=False, stem=False, stopwords=frozenset()),
    )
}

_WORD = r"[0-9A-Za-z_\x80-\U0010FFFF]"
_RUN = re.compile(rf"{_WORD}+(?:[.'\-]{_WORD}+)*")
"""A run of `word_runs`, joined."""
_CODE_KINDS = frozenset({"code", "test-log", "tool-output"})


def analyzer_for(evidence_kind: str | None, language: str | None = None) -> str:
    """The analyzer of a row: `code/1` for code, logs and tool output, else `prose/1`.

    `language` does not matter yet: Snowball's English stemmer is used for every alphabet.
    """
    return "code/1" if evidence_kind in _CODE_KINDS else "prose/1"


def analyze(texts: pa.Array | pa.ChunkedArray, analyzer: str) -> pa.ListArray:
    """The terms of each text as list<string>; a null or empty text has none.

    Raises:
        InputError: no analyzer has that name.
    """
    return terms_of(texts, analyzer).to_lists()


def query_tokens(texts: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """The terms of each question: stopwords dropped unless there is nothing else, compounds whole and in parts."""
    return pa.array([tokens_of(text or "") for text in texts.to_pylist()], pa.list_(pa.string()))


@lru_cache(maxsize=1024)
def tokens_of(question: str) -> tuple[str, ...]:
    """`query_tokens` of one text; a plan repeats it for several kinds of evidence."""
    return tuple(terms_in(question)) or tuple(terms_in(question, "code/1"))


def terms_in(text: str, analyzer: str = "prose/1") -> list[str]:
    """The terms of one text: `terms_of` for few texts."""
    return [term for run in _RUN.findall(text) for term in terms_of_run(run, analyzer)]


def terms_of(texts: pa.Array | pa.ChunkedArray, analyzer: str) -> Ragged:
    """The terms of each text, by code into the distinct ones; see `analyze`."""
    if analyzer not in ANALYZERS:
        raise InputError.one_of(ANALYZERS, analyzer, "analyzer")
    rule = ANALYZERS[analyzer]
    runs = runs_of(texts, joined=rule.compounds)
    return runs.then(_terms_of_runs(runs.vocabulary, [rule]))


@lru_cache(maxsize=1 << 16)
def terms_of_run(run: str, analyzer: str = "prose/1") -> tuple[str, ...]:
    """The terms of a text without white space: `terms_of` for one run at a time."""
    words = [run] if run.isascii() else _spaced(pa.array([run]))[0].as_py().split()
    stem = Stemmer.Stemmer("english").stemWord
    return tuple(term for word in words for term in _word_terms(word, ANALYZERS[analyzer], stem))


def terms_by_kind(texts: pa.Array, evidence_kinds: pa.Array) -> Ragged:
    """The terms of each text under the analyzer of its kind: `terms_of` for all kinds at once.

    These analyzers differ only in their stopwords, so texts are cut and words split once, whatever their kind.
    """
    kinds = evidence_kinds.dictionary_encode()
    names = [analyzer_for(kind) for kind in kinds.dictionary.to_pylist()]
    used = sorted(set(names)) or [analyzer_for(None)]
    runs = runs_of(texts, joined=True)
    terms = _terms_of_runs(runs.vocabulary, [ANALYZERS[name] for name in used])
    if len(used) > 1:
        first = np.array([used.index(name) * len(runs.vocabulary) for name in names])[kinds.indices.to_numpy()]
        codes = np.repeat(first, np.diff(runs.starts))
        codes += runs.codes
        runs = Ragged(runs.vocabulary, codes, runs.starts)
    return runs.then(terms)


# --- distinct runs to words ------------------------------------------------------------------------------------------

_UNSPACED = r"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\x{30FC}]+)"
_UNSPACED_MARK = "\x01"  # cannot occur in a run: control characters end one


def _spaced(runs: pa.Array) -> pa.Array:
    """Each run as its words separated by spaces: NFKC, no invisible characters, scripts without spaces separated."""
    ascii_ = pc.string_is_ascii(runs)
    if ascii_.true_count == len(runs):
        return runs
    foreign = pc.invert(ascii_)
    text = pc.utf8_normalize(runs.filter(foreign), form="NFKC")
    text = pc.replace_substring(text, pattern="\u2019", replacement="'")
    text = pc.replace_substring_regex(text, pattern=r"\p{Cf}+", replacement="")
    text = pc.replace_substring_regex(text, pattern=_UNSPACED, replacement=f" {_UNSPACED_MARK}\\1 ")
    text = pc.replace_substring_regex(text, pattern=r"[.'\-]*[^\pL\pM\pN_.'\-\x01]+[.'\-]*", replacement=" ")
    return pc.replace_with_mask(runs, foreign, pc.utf8_trim_whitespace(text))


# --- distinct words to terms -----------------------------------------------------------------------------------------

_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞΑ-ΩА-Я", "a-zß-öø-ÿα-ωа-я"
_PARTS = re.compile(
    rf"\d+"
    rf"|[{_UPPER}]{{2,}}s(?![{_LOWER}])"  # URLs, not UR and Ls
    rf"|[{_UPPER}]+(?![{_LOWER}])"  # HTTP in HTTPServer
    rf"|[{_UPPER}]?[^\d_.\-{_UPPER}]+"  # Server, parse
)
_CONTRACTION = re.compile(r"'(?:s|t|d|m|ll|re|ve)(?=$|[.\-])", re.IGNORECASE)


def _terms_of_runs(runs: pa.Array, rules: Sequence[Analyzer]) -> Ragged:
    """The terms of every run under the first rule, then of every run under the next; only stopwords differ."""
    words = Ragged.of(pc.ascii_split_whitespace(_spaced(runs)))
    plain = is_plain(words.vocabulary, LONGEST_WORD) & rules[0].compounds
    some, others = (words.vocabulary.filter(pa.array(mask)) for mask in (plain, ~plain))
    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord if rules[0].stem else str
    slow = others.to_pylist()
    one_by_one = (_word_terms(word, rule, stem) for rule in rules for word in slow)
    lists = Ragged.joined([_plain_terms(some, rules), Ragged.of_lists(one_by_one)])
    place = np.where(plain, np.cumsum(plain) - 1, len(some) * len(rules) + np.cumsum(~plain) - 1)
    step = np.where(plain, len(some), len(others))
    codes = np.concatenate([(place + number * step)[words.codes] for number in range(len(rules))])
    return Ragged(words.vocabulary, codes, starts_of(np.tile(np.diff(words.starts), len(rules)))).then(lists)


def _plain_terms(words: pa.Array, rules: Sequence[Analyzer]) -> Ragged:
    """`_compound_terms` of words that `parts_of` can split, all at once, under one rule after the other."""
    parts, counts, lowered = parts_of(words)
    of_word = np.repeat(np.arange(len(words)), counts)
    split = counts > 1
    alone = ~split[of_word]
    split[of_word[alone]] = (pc.binary_length(parts).to_numpy() != pc.binary_length(words).to_numpy()[of_word])[alone]
    parts, codes = distinct([parts])
    stemmer = Stemmer.Stemmer("english", 0)
    stems = pa.array(stemmer.stemWords(parts.to_pylist()), pa.string()) if rules[0].stem else parts
    vocabulary, found = distinct([stems, lowered.filter(pa.array(split))])
    of_part, of_whole = found[: len(stems)], found[len(stems) :]
    terms, sizes = [], []
    for rule in rules:
        stopped = pc.is_in(parts, value_set=pa.array(sorted(rule.stopwords), pa.string()))
        kept = ~stopped.to_numpy(zero_copy_only=False)[codes]
        size = split + np.bincount(of_word[kept], minlength=len(words))
        own = np.empty(size.sum(), dtype=np.int64)
        is_whole = np.zeros(len(own), dtype=bool)
        is_whole[starts_of(size)[:-1][split]] = True
        own[is_whole] = of_whole
        own[~is_whole] = of_part[codes[kept]]
        terms.append(own)
        sizes.append(size)
    return Ragged(vocabulary, np.concatenate(terms), starts_of(np.concatenate(sizes)))


def _word_terms(word: str, rule: Analyzer, stem: Callable[[str], str]) -> list[str]:
    """The terms of a word."""
    if word.startswith(_UNSPACED_MARK):
        return [word[i : i + 2] for i in range(1, max(len(word) - 1, 2))]
    if len(word) > LONGEST_WORD or not any(map(str.isalnum, word)):
        return []
    if not rule.compounds:
        return [word.lower()]
    if "'" in word:
        pieces = _CONTRACTION.sub("", word).split("'")
        return [term for piece in pieces for term in _compound_terms(piece, rule, stem)]
    return _compound_terms(word, rule, stem)


def _compound_terms(word: str, rule: Analyzer, stem: Callable[[str], str]) -> list[str]:
    parts = [part.lower() for part in _PARTS.findall(word)]
    whole = word.strip(".-").lower()
    terms = [whole] if len(parts) > 1 or (parts and parts[0] != whole) else []
    return terms + [stem(part) for part in parts if part not in rule.stopwords]


_SEPARATOR, _DIGIT, _CAPITAL, _SMALL = range(4)
_CLASS = np.zeros(256, dtype=np.uint8)
_CLASS[list(b"0123456789")] = _DIGIT
_CLASS[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _CAPITAL
_CLASS[list(b"abcdefghijklmnopqrstuvwxyz")] = _SMALL
_LOWERED = np.arange(256, dtype=np.uint8)
_LOWERED[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] += 32
_PLAIN = r"^[0-9A-Za-z_](?:[0-9A-Za-z_.\-]*[0-9A-Za-z_])?$"


def is_plain(words: pa.Array, longest: int) -> NDArray[np.bool_]:
    """Which words are ASCII letters, digits, `_`, `.` and `-`, with neither `.` nor `-` at an end, and not too long."""
    plain = pc.and_(pc.match_substring_regex(words, _PLAIN), pc.less_equal(pc.binary_length(words), longest))
    return plain.to_numpy(zero_copy_only=False)


def parts_of(words: pa.Array) -> tuple[pa.StringArray, NDArray[np.int64], pa.StringArray]:
    """The parts of plain words in lower case, in order; the number of parts of each word; and the words in lower case.

    A part is a run of digits; capitals at the end of a word or before another part, like `HTTP` before `Server`;
    `URLs`; `Server` and `parse`.
    """
    offsets, data = offsets_and_bytes(words)
    kind = _CLASS[data]
    first = np.zeros(len(data) + 1, dtype=bool)
    first[offsets[:-1]] = True
    first[1:-1] |= kind[1:] != kind[:-1]
    begin = first[:-1].nonzero()[0]
    size = np.diff(begin, append=len(data))
    of = kind[begin]
    new_word = np.zeros(len(data) + 1, dtype=bool)
    new_word[offsets] = True

    starts = of != _SEPARATOR
    joins = np.zeros(len(begin), dtype=bool)
    joins[1:] = (of[1:] == _SMALL) & (of[:-1] == _CAPITAL) & ~new_word[begin[1:]]
    starts[joins] = False
    lower = joins.nonzero()[0]
    many = size[lower - 1] >= 2
    plural = many & (size[lower] == 1) & (data[begin[lower]] == ord("s"))
    at = np.zeros(len(data) + 1, dtype=bool)
    at[begin[starts]] = True
    at[begin[lower[many & ~plural]] - 1] = True  # the last capital begins the part that follows

    breaks = (at[:-1] | new_word[:-1] | ((kind == _SEPARATOR) & first[:-1])).nonzero()[0]
    ends = np.append(breaks[1:], len(data))
    is_part = at[breaks]
    sizes = (ends - breaks)[is_part]
    counts = np.diff(breaks[is_part].searchsorted(offsets))
    lowered = _LOWERED[data]
    return _strings(lowered[kind != _SEPARATOR], sizes), counts, _strings(lowered, np.diff(offsets))


def _strings(data: NDArray[np.uint8], sizes: NDArray[np.int64]) -> pa.StringArray:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(data))
