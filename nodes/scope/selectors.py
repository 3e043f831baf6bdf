"""Which sources a list of selectors picks, and which paths a list of globs picks.

A source selector is the name of an origin class (`memory`, or one of its aliases) or an anchored glob on `source_id`
(`git:shop`, `docs:*`). `?` is one character, `*` any run of them, and a trailing `/` means everything below. In a path
`*` and `?` stay inside one segment, `**` crosses segments, and a name is that of a file or of a folder with everything
below it; a source id is a name, so there `*` crosses `/` too, or a
denial of `external:*` would miss `external:site/page`. `[*]`, `[?]` and `[[]` match those characters literally, as does
every other character; a pattern always matches the whole string. Patterns joined by a line break must all match: the
intersection of two lists of allowances. No request can contain one, since names have no line break; a preset lists
them.

A list of path globs also decides about rows without a path. A list of allowances admits them only if it contains
`(none)`. A denial excludes them, because they may come from there, unless the glob is written `path:GLOB`, which
applies only to rows with a path. Case is exact.

Selectors are judged once per distinct (origin_class, source_id) pair, never per row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import and_
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import truth
from ..vocabulary import ORIGIN_CLASSES

AND = "\n"
"""Separates patterns that must all match."""
NO_PATH = "(none)"
"""In a list of paths: matches rows without a path."""
PATH_ONLY = "path:"
"""Prefix of a denied glob that does not apply to rows without a path."""
_WILD = re.compile(r"\[[*?\[]\]|\*\*/|\*+|\?")


class SourcePairs(NamedTuple):
    """The distinct (origin_class, source_id) pairs of some rows; `codes[i]` is the pair of row `i`, int32[rows]."""

    codes: NDArray[np.int32]
    origin_class: pa.Array
    source_id: pa.Array


def source_pairs(origin_class: pa.ChunkedArray | pa.Array, source_id: pa.ChunkedArray | pa.Array) -> SourcePairs:
    """The distinct pairs of two parallel columns, in order of first appearance."""
    classes, class_codes = _encode(origin_class)
    sources, source_codes = _encode(source_id)
    wide = max(len(classes), 1)
    both = pa.array(source_codes * wide + class_codes).dictionary_encode()
    distinct = np.asarray(both.dictionary)
    return SourcePairs(
        np.asarray(both.indices), classes.take(pa.array(distinct % wide)), sources.take(pa.array(distinct // wide))
    )


def selected_pairs(selectors: Sequence[str] | None, pairs: SourcePairs) -> NDArray[np.bool_]:
    """Which distinct pairs a list of selectors picks: None picks every one, an empty list none."""
    if selectors is None:
        return np.ones(len(pairs.source_id), dtype=bool)
    picked = np.zeros(len(pairs.source_id), dtype=bool)
    for selector in sorted(set(selectors)):
        picked |= reduce(and_, (_picked_by(part, pairs) for part in selector.split(AND)))
    return picked


def _picked_by(selector: str, pairs: SourcePairs) -> NDArray[np.bool_]:
    name = ORIGIN_CLASSES.aliases.get(selector, selector)
    if name in ORIGIN_CLASSES:
        return truth(pc.equal(pairs.origin_class, name))
    return truth(pc.match_substring_regex(pairs.source_id, glob_regex(selector, names=True)))


def selected(
    selectors: Sequence[str] | None,
    origin_class: pa.ChunkedArray | pa.Array,
    source_id: pa.ChunkedArray | pa.Array,
) -> NDArray[np.bool_]:
    """Which rows a list of selectors picks: None picks every one, an empty list none."""
    if selectors is None:
        return np.ones(len(source_id), dtype=bool)
    pairs = source_pairs(origin_class, source_id)
    return selected_pairs(selectors, pairs)[pairs.codes]


def glob_mask(values: pa.ChunkedArray | pa.Array, globs: Sequence[str], *, pathless: bool = False) -> NDArray[np.bool_]:
    """Which paths match one of the globs as a whole; `pathless` is the result for a null path."""
    distinct, codes = _encode(values)
    return np.append(matching_paths(distinct, globs), pathless)[codes]


def allows_pathless(globs: Sequence[str]) -> bool:
    """Whether a list of allowed paths admits rows without a path."""
    return any({*glob.split(AND)} == {NO_PATH} for glob in globs)


def denies_pathless(globs: Sequence[str]) -> bool:
    """Whether a list of denied paths excludes rows without a path."""
    return not all(glob.startswith(PATH_ONLY) for glob in globs)


def matching_paths(distinct: pa.Array, globs: Sequence[str]) -> NDArray[np.bool_]:
    """Which distinct paths match one of the globs as a whole."""
    picked = np.zeros(len(distinct), dtype=bool)
    for glob in sorted(set(globs)):
        parts = [part.removeprefix(PATH_ONLY) for part in glob.split(AND)]
        if NO_PATH not in parts:
            masks = (truth(pc.match_substring_regex(distinct, glob_regex(part))) for part in parts)
            picked |= reduce(and_, masks)
    return picked


@lru_cache(maxsize=1024)
def glob_regex(glob: str, *, names: bool = False) -> str:
    """The anchored RE2 pattern of a glob: of a path, or with `names` of a source id."""
    glob = f"{glob}**" if glob.endswith("/") else glob
    folder = "" if names or _WILD.search(glob.rpartition("/")[2]) else "(?:/.*)?"
    translated, at = [], 0
    for wild in _WILD.finditer(glob):
        starts_segment = wild.start() == 0 or glob[wild.start() - 1] == "/"
        translated += [_literal(glob[at : wild.start()]), _wildcard(wild.group(), starts_segment, names)]
        at = wild.end()
    return f"(?s)^(?:{''.join(translated)}{_literal(glob[at:])}{folder})$"


def _wildcard(wild: str, starts_segment: bool, names: bool) -> str:
    if wild.startswith("["):
        return _literal(wild[1])
    if wild == "?":
        return "." if names else "[^/]"
    if names:
        return ".*/" if wild.endswith("/") else ".*"
    if wild.endswith("/"):
        return "(?:.*/)?" if starts_segment else ".*/"
    return "[^/]*" if wild == "*" else ".*"


def _literal(text: str) -> str:
    return "".join(c if c.isalnum() or c == "_" or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in text)


def _encode(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """Distinct values and each row's position among them; -1 for null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    encoded = column.dictionary_encode()
    return encoded.dictionary, encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
