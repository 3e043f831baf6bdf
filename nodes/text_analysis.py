"""How text becomes index terms: named analyzers, all in one term space.

`prose/1` drops English stopwords and stems; `code/1` stems and drops nothing; `plain/1` gives lowercase words as they
stand, to compare with other implementations. A compound (`parseUser`, `parse_user`, `re-rank`, `app.config`, `utf8`) is kept
whole and split into its parts. A script without spaces gives pairs of neighbouring characters. The version in a name
changes whenever its terms do.

Reads: arrays of text. Gives: the terms of each text, in order, with repetitions.

Texts are cut into runs over their bytes, and only *distinct* runs meet Python: cost follows the vocabulary. A byte above
127 always belongs to a run, so normalisation (NFKC), Unicode classes and scripts are settled per distinct run too.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer
from numpy.typing import NDArray

from .ascii_words import is_plain, parts_of
from .errors import InputError
from .ragged import Ragged, distinct, starts_of

__all__ = ["ANALYZERS", "Analyzer", "analyze", "analyzer_for", "query_tokens", "terms_of"]

STOPWORDS = frozenset(
    """
    a about an and any are as at be because been being but by can did do does doing for from had has have having he her
    here hers him his how i if in into is it its itself just me my no nor not of on or other our ours out over own same
    she should so some such than that the their theirs them then there these they this those through to too under until
    up very was we were what when where which while who whom why will with would you your yours
    aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
    """.split()  # noqa: SIM905 (a list of 130 literals would be harder to read)
) | frozenset(string.ascii_lowercase)
"""English words that name nothing, what is left of `aren't`, `couldn't`, ..., and single letters: initials, list items."""

LONGEST_WORD = 128
"""Characters; longer ones (encoded data, minified code) are no terms, neither whole nor in parts."""


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
    terms = analyze(texts, "prose/1")
    none = np.asarray(terms.value_lengths()) == 0
    if not none.any():
        return terms
    spoken = analyze(texts.filter(pa.array(none)), "code/1")
    pick = np.arange(len(terms))
    pick[none] = len(terms) + np.arange(len(spoken))
    return pa.concat_arrays([terms, spoken]).take(pa.array(pick))


def terms_of(texts: pa.Array | pa.ChunkedArray, analyzer: str) -> Ragged:
    """The terms of each text, by code into the distinct ones; see `analyze`."""
    if analyzer not in ANALYZERS:
        raise InputError.one_of(ANALYZERS, analyzer, "analyzer")
    rule = ANALYZERS[analyzer]
    cut = [_runs(chunk, b".-'" if rule.compounds else b"") for chunk in _chunks(texts)]
    runs, codes = distinct([pa.array([], pa.string()), *(runs for runs, _ in cut)])
    starts = starts_of(np.concatenate([np.empty(0, np.int64), *(counts for _, counts in cut)]))
    words = Ragged.of(pc.ascii_split_whitespace(_spaced(runs)))
    plain = is_plain(words.vocabulary, LONGEST_WORD) & rule.compounds
    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord if rule.stem else str
    terms = words.in_two_ways(plain, lambda some: _plain_terms(some, rule), lambda word: _word_terms(word, rule, stem))
    return Ragged(runs, codes, starts).then(terms)


# --- bytes to runs ---------------------------------------------------------------------------------------------------

_WORD_BYTE = np.zeros(256, dtype=bool)
_WORD_BYTE[list(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz") + list(range(128, 256))] = True
_CHUNK_BYTES = 1 << 24


def _chunks(texts: pa.Array | pa.ChunkedArray) -> Iterable[pa.LargeStringArray]:
    """Contiguous arrays without nulls, of about `_CHUNK_BYTES` each (a longer single text stays whole)."""
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        array = pc.fill_null(chunk.cast(pa.large_string()), "")
        offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        start = 0
        while start < len(array):
            end = max(int(np.searchsorted(offsets, offsets[start] + _CHUNK_BYTES, side="right")) - 1, start + 1)
            yield array.slice(start, end - start)
            start = end


def _runs(texts: pa.LargeStringArray, joiners: bytes) -> tuple[pa.StringArray, NDArray[np.int64]]:
    """The maximal runs of word bytes and how many each text has; a joiner between two word bytes holds them together."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    seams = offsets[(offsets > 0) & (offsets < len(data))]
    word = _WORD_BYTE[data]
    for joiner in joiners:
        at = np.flatnonzero(data[1:-1] == joiner) + 1
        between = _WORD_BYTE[data[at - 1]] & _WORD_BYTE[data[at + 1]]
        word[at[between & ~np.isin(at, seams) & ~np.isin(at + 1, seams)]] = True
    fenced = np.concatenate(([False], word, [False]))
    bounds = np.flatnonzero(fenced[1:] != fenced[:-1])
    split = seams[word[seams - 1] & word[seams]]  # one text ends in a word and the next begins with one
    if len(split):
        bounds = np.sort(np.concatenate([bounds, split, split]), kind="stable")
    begin, end = bounds[::2], bounds[1::2]
    run_offsets = pa.py_buffer(starts_of(end - begin).astype(np.int32))
    runs = pa.StringArray.from_buffers(len(begin), run_offsets, pa.py_buffer(data[word]))
    return runs, np.diff(np.searchsorted(begin, offsets))


# --- distinct runs to words ------------------------------------------------------------------------------------------

_UNSPACED = r"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\x{30FC}]+)"
_UNSPACED_MARK = "\x01"  # cannot occur in a run: control characters end one


def _spaced(runs: pa.Array) -> pa.Array:
    """Each run as its words between spaces: NFKC, invisible characters gone, scripts without spaces set apart."""
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
    rf"|[{_UPPER}]+(?![{_LOWER}])"  # HTTP of HTTPServer
    rf"|[{_UPPER}]?[^\d_.\-{_UPPER}]+"  # Server, parse
)
_CONTRACTION = re.compile(r"'(?:s|t|d|m|ll|re|ve)(?=$|[.\-])", re.IGNORECASE)


def _plain_terms(words: pa.Array, rule: Analyzer) -> Ragged:
    """`_compound_terms` of words that `ascii_words` can take apart, all at once."""
    parts, counts, lowered = parts_of(words)
    of_word = np.repeat(np.arange(len(words)), counts)
    split = counts > 1
    alone = ~split[of_word]
    split[of_word[alone]] = (pc.binary_length(parts).to_numpy() != pc.binary_length(words).to_numpy()[of_word])[alone]
    parts, codes = distinct([parts])
    stopped = pc.is_in(parts, value_set=pa.array(sorted(rule.stopwords), pa.string())).to_numpy(zero_copy_only=False)
    stems = pa.array(Stemmer.Stemmer("english", 0).stemWords(parts.to_pylist()), pa.string()) if rule.stem else parts
    vocabulary, found = distinct([stems, lowered.filter(pa.array(split))])
    kept = ~stopped[codes]
    starts = starts_of(split + np.bincount(of_word[kept], minlength=len(words)))
    terms = np.empty(starts[-1], dtype=np.int64)
    is_whole = np.zeros(len(terms), dtype=bool)
    is_whole[starts[:-1][split]] = True
    terms[is_whole] = found[len(stems) :]
    terms[~is_whole] = found[: len(stems)][codes[kept]]
    return Ragged(vocabulary, terms, starts)


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
