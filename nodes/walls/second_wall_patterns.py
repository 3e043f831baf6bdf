"""The second wall's own rules for selectors and globs: which rows a list of patterns picks, allows or denies.

Reads rows, and per row the number of its list. Gives `picked` sources, `on_allowed_path`, `on_denied_path`, `leads_to`.
Deliberately independent of `scope.selectors`, which the first wall uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flat, present, truth
from ..columns.list_columns import flattened
from ..columns.ragged import expand_ranges
from ..vocabulary import ORIGIN_CLASSES

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Column: TypeAlias = pa.ChunkedArray | pa.Array

AND = "\n"
_LETTER = re.compile(r"\[[*?\[]\]|(?s:.)")
_WILD = re.compile(r"[*?\[]")
_TOKEN = re.compile(r"\[[*?\[]\]|\*\*/|\*+|\?|[^*?]")


def picked(rows: pa.Table, order: Ints, selectors: Column) -> Mask:
    """Whether a selector of list `order[i]` picks the source of row `i`."""
    if not _listed(selectors):
        return np.zeros(len(order), dtype=bool)
    sources, classes = (flat(rows[name]).dictionary_encode() for name in ("source_id", "origin_class"))
    width = max(len(classes.dictionary), 1)
    pair, which = np.unique(_codes(sources) * width + _codes(classes), return_inverse=True)
    source, class_ = (encoded.dictionary.to_pylist() for encoded in (sources, classes))
    named = [(source[each // width], class_[each % width]) for each in pair.tolist()]
    return _asked_once(order, selectors, which, lambda part, at: [_selects(part, *named[each]) for each in at.tolist()])


def on_allowed_path(rows: pa.Table, order: Ints, globs: Column) -> Mask:
    """Whether list `order[i]` allows the path of row `i`; a row without a path needs the entry `(none)`."""
    return _on_path(rows, order, globs) | _pathless(rows, order, globs, _is_no_path)


def on_denied_path(rows: pa.Table, order: Ints, globs: Column) -> Mask:
    """Whether list `order[i]` denies the path of row `i`; every glob but `path:GLOB` denies rows without a path, too."""
    return _on_path(rows, order, globs) | _pathless(rows, order, globs, lambda glob: not glob.startswith("path:"))


def _is_no_path(glob: str) -> bool:
    return all(part == "(none)" for part in glob.split(AND))


def _pathless(rows: pa.Table, order: Ints, globs: Column, speaks: Callable[[str], bool]) -> Mask:
    """Rows without a path to which some glob of list `order[i]` applies."""
    without = ~present(rows["path"])
    if not without.any() or not _listed(globs):
        return np.zeros(len(order), dtype=bool)
    listing, glob = flattened(globs)
    speaking = np.zeros(len(globs), dtype=bool)
    speaking[listing[np.fromiter(map(speaks, glob.to_pylist()), bool, len(glob))]] = True
    return without & speaking[order]


def _on_path(rows: pa.Table, order: Ints, globs: Column) -> Mask:
    """Whether a glob of list `order[i]` matches the path of row `i` as a whole; no path, no match."""
    if not _listed(globs):
        return np.zeros(len(order), dtype=bool)
    paths = flat(rows["path"])
    encoded = paths.fill_null("").dictionary_encode()
    return present(paths) & _asked_once(
        order, globs, _codes(encoded), lambda part, at: _leading(part, encoded.dictionary.take(pa.array(at)))
    )


def _asked_once(order: Ints, patterns: Column, value: Ints, matches: Callable[[str, Ints], Iterable[bool]]) -> Mask:
    """Whether a pattern of list `order[i]` matches value number `value[i]`; each distinct pair is tested once.

    `matches` tests one pattern on some numbers of values.
    """
    picked = np.zeros(len(order), dtype=bool)
    listing, selector = flattened(patterns)
    if not len(selector) or not len(order):
        return picked
    starts = listing.searchsorted(np.arange(len(patterns) + 1))
    counts = np.diff(starts)[order]
    row = np.arange(len(order)).repeat(counts)
    wanted = flat(selector).dictionary_encode()
    asked = _codes(wanted)[expand_ranges(starts[:-1][order].astype(np.int64), counts.astype(np.int64))]
    width = int(value.max()) + 1
    questions, which = np.unique(asked * width + value[row], return_inverse=True)
    pattern, number = np.divmod(questions, width)
    answers = np.ones(len(questions), dtype=bool)
    bounds = pattern.searchsorted(np.arange(len(wanted.dictionary) + 1)).tolist()
    for at, words in enumerate(wanted.dictionary.to_pylist()):
        mine = slice(bounds[at], bounds[at + 1])
        for part in words.split(AND):
            answers[mine] &= np.fromiter(matches(part, number[mine]), bool)
    picked[row[answers[which]]] = True
    return picked


def _codes(encoded: pa.DictionaryArray) -> Ints:
    return np.asarray(encoded.indices).astype(np.int64)


def _leading(glob: str, paths: pa.Array) -> Mask:
    """Which paths a glob matches. Paths without the text that every match contains are ruled out first."""
    if glob == "(none)":
        return np.zeros(len(paths), dtype=bool)
    glob = glob.removeprefix("path:")
    possible = np.ones(len(paths), dtype=bool)
    for word in _words_of(glob):
        possible &= truth(pc.match_substring(paths, word))
    possible[possible] = [leads_to(glob, path) for path in paths.filter(pa.array(possible)).to_pylist()]
    return possible


def _selects(selector: str, source_id: str, origin_class: str) -> bool:
    """Whether a selector names this origin class, or its glob this source id as a whole."""
    if selector in ORIGIN_CLASSES.values or selector in ORIGIN_CLASSES.aliases:
        return ORIGIN_CLASSES.aliases.get(selector, selector) == origin_class
    glob = selector + "*" if selector.endswith("/") else selector
    reached = {0}
    for token in _LETTER.findall(glob):
        if token == "*":
            reached = set(range(min(reached), len(source_id) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(source_id) and (token == "?" or _is(token, source_id[at]))}
    return len(source_id) in reached


def _is(token: str, character: str) -> bool:
    """Whether one glob token (a character or a bracketed one) matches this character."""
    return character == (token[1] if len(token) == 3 else token)


@lru_cache(maxsize=1 << 10)
def _words_of(glob: str) -> tuple[str, ...]:
    """A text that every match of a glob contains."""
    return () if "[" in glob else tuple(filter(None, re.split(r"\*\*/|\*+|\?", glob)))


@lru_cache(maxsize=1 << 16)
def leads_to(glob: str, path: str) -> bool:
    """Whether a glob matches a path as a whole: `?` and `*` stay inside one segment, `**` crosses segments.

    `[*]`, `[?]` and `[[]` are the characters in the brackets. A name that ends a glob may be that of a folder above the path.
    """
    glob = glob + "**" if glob.endswith("/") else glob
    reached, before = {0}, "/"
    for token in _TOKEN.findall(glob):
        if token == "?":
            reached = {at + 1 for at in reached if at < len(path) and path[at] != "/"}
        elif token == "*":
            reached = {end for at in reached for end in range(at, _segment_end(path, at) + 1)}
        elif token == "**/":
            ends = {end for at in reached for end in range(at + 1, len(path) + 1) if path[end - 1] == "/"}
            reached = ends | reached if before == "/" else ends
        elif token.startswith("**"):
            reached = set(range(min(reached), len(path) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if _is(token, path[at : at + 1])}
        before = token[-1]
    named = not _WILD.search(glob.rpartition("/")[2])
    return len(path) in reached or (named and any(path[at : at + 1] == "/" for at in reached))


def _segment_end(path: str, at: int) -> int:
    end = path.find("/", at)
    return len(path) if end < 0 else end


def _listed(lists: Column) -> bool:
    """Whether some list has an element."""
    return lists.null_count < len(lists) and len(flat(lists).flatten()) > 0
