"""How text becomes index terms: named analyzers, all in one term space.

`prose/2` drops English stopwords and stems; `code/2` stems and drops nothing. A compound (`parseUser`, `parse_user`, `re-rank`, `app.config`, `utf8`) is kept
whole and split into its parts. A script without spaces yields pairs of neighboring characters; of Han and Hangul the single
characters, too, so that no particle hides a noun. Case, and accents of Latin and Greek letters, make no difference. The stemmer
(Snowball) is that of the script; of Latin it is the English one, since a question is too short to tell its language. The version
in a name changes whenever its terms do.

Reads: arrays of text. Gives: the terms of each text, in order, with repetitions.

Texts are cut into runs over their bytes, and only *distinct* runs are processed in Python: the cost depends on the
vocabulary. A byte above 127 always belongs to a run, so normalization (NFKC), Unicode classes and
scripts are also handled once per distinct run.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer
from numpy.typing import NDArray

from ..columns.keys import flat
from ..columns.ragged import Ragged, distinct, starts_of

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


ANALYZERS = {"prose/2": STOPWORDS, "code/2": frozenset[str]()}
"""The words that each analyzer drops."""

_WORD = r"[0-9A-Za-z_\x80-\U0010FFFF]"
RUN = re.compile(rf"{_WORD}+(?:[.'\-]{_WORD}+)*")
"""A run of `runs_of`."""
_CODE_KINDS = frozenset({"code", "test-log", "tool-output"})


TEXT_COLUMNS = ("title", "path", "section", "text")
"""The columns of EVIDENCE that are indexed: their terms count towards a row's `length`."""


def index_text(evidence: pa.Table | Mapping[str, pa.Array], columns: Sequence[str] = TEXT_COLUMNS) -> pa.Array:
    """The given columns of each row, each on its own lines, nulls left out: postings, vectors and feedback cover the
    same words.
    """
    texts = [flat(evidence[name]).cast(pa.large_string()) for name in columns]
    return pc.binary_join_element_wise(*texts, pa.scalar("\n", pa.large_string()), null_handling="skip")


def analyzer_for(evidence_kind: str | None) -> str:
    """The analyzer of a row: `code/2` for code, logs and tool output, else `prose/2`."""
    return "code/2" if evidence_kind in _CODE_KINDS else "prose/2"


@lru_cache(maxsize=1024)
def tokens_of(question: str) -> tuple[str, ...]:
    """The terms of a question: stopwords dropped unless there is nothing else, compounds whole and in parts. A plan repeats it
    for several kinds of evidence.
    """
    return tuple(terms_in(question)) or tuple(terms_in(question, "code/2"))


def terms_in(text: str, analyzer: str = "prose/2") -> list[str]:
    """The terms of one text: `terms_by_kind` for few texts."""
    return [term for run in RUN.findall(text) for term in terms_of_run(run, analyzer)]


@lru_cache(maxsize=1 << 16)
def terms_of_run(run: str, analyzer: str = "prose/2") -> tuple[str, ...]:
    """The terms of a text without white space."""
    spaced = run if run.isascii() else _spaced(pa.array([run]))[0].as_py()
    return tuple(_terms(spaced, ANALYZERS[analyzer], _stemming()))


def terms_by_kind(texts: pa.Array, evidence_kinds: pa.Array) -> Ragged:
    """The terms of each text, in order, under the analyzer of its kind; a null or empty text has none."""
    kinds = evidence_kinds.dictionary_encode()
    names = [analyzer_for(kind) for kind in kinds.dictionary.to_pylist()]
    used = sorted(set(names)) or [analyzer_for(None)]
    runs = runs_of(texts)
    first = np.array([used.index(name) * len(runs.vocabulary) for name in names], np.int64)[kinds.indices.to_numpy()]
    codes = runs.codes + np.repeat(first, np.diff(runs.starts))
    return Ragged(runs.vocabulary, codes, runs.starts).then(_terms_of_runs(runs.vocabulary, used))


# --- texts to runs: letters, digits, `_` and every byte above 127, which is part of a character --------------------------

_CHUNK_BYTES = 1 << 21
"""Small enough that all passes over them read from the processor's cache."""
_JOINERS = b".-'"


def runs_of(texts: pa.Array | pa.ChunkedArray) -> Ragged:
    """The maximal runs of each text, where a `.`, `-` or `'` between two word bytes joins them; none of a null."""
    cut = [_tailed_runs(chunk) for chunk in _chunks(texts)]
    tailed = pa.chunked_array([runs for runs, _ in cut], pa.string()).dictionary_encode()
    spelled = tailed.chunk(tailed.num_chunks - 1).dictionary if tailed.num_chunks else pa.array([], pa.string())
    runs, own = distinct([pc.ascii_rtrim(spelled, "\0")])
    codes = [own[chunk.indices.to_numpy()] for chunk in tailed.chunks]
    none = np.empty(0, dtype=np.int64)
    return Ragged(runs, np.concatenate([none, *codes]), starts_of(np.concatenate([none, *(each for _, each in cut)])))


def _chunks(texts: pa.Array | pa.ChunkedArray) -> Iterator[pa.LargeStringArray]:
    """Contiguous arrays without nulls, of about `_CHUNK_BYTES` each (a longer single text stays whole)."""
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        array = pc.fill_null(chunk.cast(pa.large_string()), "")
        offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        start = 0
        while start < len(array):
            end = max(int(np.searchsorted(offsets, offsets[start] + _CHUNK_BYTES, side="right")) - 1, start + 1)
            yield array.slice(start, end - start)
            start = end


def _tailed_runs(texts: pa.LargeStringArray) -> tuple[pa.StringArray, NDArray[np.int64]]:
    """Every run padded with zeros up to the next one, and the number of runs of each text.

    This avoids moving bytes: a run ends where the next one begins.
    """
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    seams = offsets[(offsets > 0) & (offsets < len(data))]
    word = _is_word(data)
    edges = np.concatenate([seams, seams - 1])  # a joiner there is next to a byte of another text
    at_edges = word[edges]
    between = data[1:-1] == _JOINERS[0]
    for joiner in _JOINERS[1:]:
        between |= data[1:-1] == joiner
    between &= word[:-2]
    between &= word[2:]
    word[1:-1] |= between
    word[edges] = at_edges
    first = word.copy()
    first[1:] &= ~word[:-1]
    first[seams] = word[seams]  # one text ends in a word and the next begins with one
    begin = np.flatnonzero(first)
    run_offsets = np.append(begin, len(data)).astype(np.int32)
    runs = pa.StringArray.from_buffers(len(begin), pa.py_buffer(run_offsets), pa.py_buffer(data * word))
    return runs, np.diff(np.searchsorted(begin, offsets))


def _is_word(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which bytes belong to words; arithmetic modulo 256 is several times as fast as a table."""
    word = (data | 32) - np.uint8(ord("a")) < 26
    word |= data - np.uint8(ord("0")) < 10
    word |= data == ord("_")
    word |= data > 127
    return word


# --- distinct runs to words ------------------------------------------------------------------------------------------

_UNSPACED = r"([\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\x{30FC}]+)"
_UNSPACED_MARK = "\x01"  # cannot occur in a run: control characters end one


def _spaced(runs: pa.Array) -> pa.Array:
    """Each run as its words separated by spaces: NFKC, no invisible characters, Latin and Greek without accents, scripts
    without spaces separated.
    """
    ascii_ = pc.string_is_ascii(runs)
    if ascii_.true_count == len(runs):
        return runs
    foreign = pc.invert(ascii_)
    text = pc.utf8_normalize(runs.filter(foreign), form="NFKD")
    text = pc.replace_substring_regex(text, pattern=r"([\p{Latin}\p{Greek}])\p{M}+", replacement=r"\1")
    text = pc.utf8_normalize(text, form="NFKC")
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
_CHARACTERS = re.compile("[\u3400-\u9fff\uac00-\ud7a3]")
"""Han and Hangul: a character is a term by itself, too."""
_STEMMERS = {"ARABIC": "arabic", "ARMENIAN": "armenian", "CYRILLIC": "russian", "DEVANAGARI": "hindi", "GREEK": "greek",
             "TAMIL": "tamil"}  # fmt: skip
"""Snowball by script, as Unicode names characters."""


def _stemming() -> Callable[[str], str]:
    """The stem of a word, by the stemmer of its script. Stemmers are not shared by threads."""
    known: dict[str, Callable[[str], str]] = {}

    def stem(word: str) -> str:
        script = "" if word.isascii() else unicodedata.name(word[0], "").partition(" ")[0]
        if script not in known:
            known[script] = Stemmer.Stemmer(_STEMMERS.get(script, "english")).stemWord
        return known[script](word)

    return stem


def _terms_of_runs(runs: pa.Array, analyzers: Sequence[str]) -> Ragged:
    """The terms of every run under the first analyzer, then of every run under the next."""
    spaced, stem = _spaced(runs).to_pylist(), _stemming()
    return Ragged.of_lists(_terms(text, ANALYZERS[name], stem) for name in analyzers for text in spaced)


def _terms(spaced: str, stopwords: frozenset[str], stem: Callable[[str], str]) -> list[str]:
    return [term for word in spaced.split() for term in _word_terms(word, stopwords, stem)]


def _word_terms(word: str, stopwords: frozenset[str], stem: Callable[[str], str]) -> list[str]:
    """The terms of a word."""
    if word.startswith(_UNSPACED_MARK):
        pairs = [word[i : i + 2] for i in range(1, max(len(word) - 1, 2))]
        return pairs + _CHARACTERS.findall(word) if len(word) > 2 else pairs
    if len(word) > LONGEST_WORD or not any(map(str.isalnum, word)):
        return []
    pieces = _CONTRACTION.sub("", word).split("'") if "'" in word else [word]
    return [term for piece in pieces for term in _compound_terms(piece, stopwords, stem)]


def _compound_terms(word: str, stopwords: frozenset[str], stem: Callable[[str], str]) -> list[str]:
    parts = [part.casefold() for part in _PARTS.findall(word)]
    whole = word.strip(".-").casefold()
    terms = [whole] if len(parts) > 1 or (parts and parts[0] != whole) else []
    return terms + [stem(part) for part in parts if part not in stopwords]
