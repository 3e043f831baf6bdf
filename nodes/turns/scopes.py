"""Which rules, files and matches a task touches: folders, topics, and the distance of a file from the failure.

Gives: `paths_named` (files in texts), `Pairs` (which turn has which path), `folders_above`, `topics_in`, `tiers`.

Note: a stack trace names `parser.test.ts` and a match `src/parser.test.ts`. Paths are compared
by their last two segments where both have two, else by the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import codes_of, flat
from ..columns.ragged import Ragged, starts_of
from ..text.anchor_patterns import find_all

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

_SUFFIX = r"(?:[A-Za-z][A-Za-z0-9]{0,4}|svelte|gradle|graphql|jsonnet|markdown|parquet|sqlite3?)"
_AFTER_FOLDER = r"(?:properties|service|feature)"
_ROOT = r"(?:(?:[A-Za-z]:)?/)?"
_FOLDER = r"(?:[\w@+~.-]+/)"
_STEM = r"\.?[\w@+~-][\w.@+~-]*\."
_NAME = rf"(?:{_FOLDER}*{_STEM}{_SUFFIX}|{_FOLDER}+{_STEM}{_AFTER_FOLDER})"
_BEHIND = r"(?:[:#(,;!?'\"`)\]>*|]|[^\x00-\x7F]|\s|$)"
_FILE = rf"({_ROOT}{_NAME}|{_ROOT}{_FOLDER}+{_STEM}{_SUFFIX}\.){_BEHIND}"
"""A path or a file name with a suffix, as stack traces, summaries and sentences write it. Some suffixes are also words of
programs (`self.service`), and only count after a folder."""
_BARE = (
    r"(?:(?:Make|Docker|Container|Gem|Rake|Proc|Jenkins|Vagrant|Brew|Pip|Caddy|Tilt|Snake|Fast|Pod)file|GNUmakefile"
    r"|[Jj]ustfile|LICENSE|CODEOWNERS|\.(?:env|git(?:ignore|attributes|modules)|dockerignore|npm(?:rc|ignore)|nvmrc|editorconfig"
    r"|(?:eslint|prettier|babel|pylint|bash|zsh|stylelint)rc|(?:eslint|prettier)ignore|flake8|coveragerc|python-version))"
    r"(?:\.[a-z][\w-]*)*"
)
_USUAL = rf"(?:^|[^\w.@+~/-])({_ROOT}{_FOLDER}*{_BARE})\.?{_BEHIND}"
"""A file whose usual name has no suffix, with its folders."""

TOPICS: Mapping[str, str] = {
    "tests": r"(?i)\b(tests?|testing|pytest|jest|vitest|coverage)\b|\.(test|spec)\.|\btest_",
    "deployment": r"(?i)\b(deploy\w*|releas\w+|rollout|kubernetes|helm|terraform|production infrastructure)\b",
    "mobile": r"(?i)\b(mobile|ios|android|swift|kotlin)\b",
    "frontend": r"(?i)\b(front-?end|css|react|browser|web ui)\b|\.(css|tsx|jsx|vue|svelte)\b",
    "backend": r"(?i)\b(back-?end|server|api server|database|migrations?|sql)\b|\.sql\b",
    "security": r"(?i)\b(security|secrets?|auth\w*|credentials?|permissions?|crypto\w*)\b",
    "typescript": r"(?i)\b(typescript|javascript|node\.js)\b|\.(ts|tsx|js|jsx|mts|cts)\b",
    "python": r"(?i)\bpython\b|\.pyi?\b",
    "go": r"(?i)\bgolang\b|\.go\b",
    "rust": r"(?i)\b(rust|cargo)\b|\.rs\b",
    "java": r"(?i)\b(java|gradle|maven)\b|\.java\b",
    "documentation": r"(?i)\b(docs|documentation|changelog|readme)\b|\.(md|rst)\b",
}
"""Topics of rule files and sections, with the words by which a task touches them."""
ALWAYS = [list(TOPICS).index(name) for name in ("security", "tests", "documentation")]
"""Columns of the topics that every task touches: guidelines that apply to any edit, from its plan to its report."""
TIERS = 5


def topics_in(texts: pa.Array) -> NDArray[np.bool_]:
    """Which topics each text mentions: bool[texts, topics]."""
    encoded = pc.fill_null(texts.cast(pa.large_string()), "").dictionary_encode()
    found = [pc.match_substring_regex(encoded.dictionary, pattern=pattern) for pattern in TOPICS.values()]
    return np.stack([np.asarray(each).astype(bool) for each in found], axis=1)[np.asarray(encoded.indices)]


def topic_matrix(lists: pa.Array) -> NDArray[np.bool_]:
    """Lists of topic names as bool[lists, topics]."""
    found = np.zeros((len(lists), len(TOPICS)), dtype=bool)
    held = Ragged.of(lists)
    place = np.array(
        [list(TOPICS).index(name) if name in TOPICS else -1 for name in held.vocabulary.to_pylist()], dtype=np.int64
    )
    column = place[held.codes]
    found[held.rows[column >= 0], column[column >= 0]] = True
    return found


def paths_named(texts: pa.Array) -> pa.ListArray:
    """The files that each text names, each once, those with a suffix first."""
    filled = pc.fill_null(texts.cast(pa.large_string()), "")
    parts = [find_all(filled, pattern) for pattern in (_FILE, _USUAL)]
    row, found = np.concatenate([rows for rows, _ in parts]), pa.concat_arrays([values for _, values in parts])
    path = pc.replace_substring_regex(found.cast(pa.string()), pattern=r"[^A-Za-z0-9]+$", replacement="")
    path = pc.replace_substring_regex(path, pattern=r"^(\./)+", replacement="")
    code = codes_of([pa.array(row), path])
    first = np.sort(np.unique(code, return_index=True)[1])
    first = first[np.argsort(row[first], kind="stable")]
    starts = starts_of(np.bincount(row[first], minlength=len(texts)))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), path.take(pa.array(first)))


def last_segments(paths: pa.Array, count: int) -> pa.Array:
    """The last segments of each path: `serializer.ts`, `src/serializer.ts`; null where it has fewer."""
    pattern = r"(?P<tail>" + "/".join([r"[^/]+"] * count) + r")$"
    return pc.struct_field(pc.extract_regex(paths.cast(pa.string()), pattern=pattern), 0)


def folders_of(paths: pa.Array) -> pa.Array:
    """The folder of each path; `` for a file at the top."""
    return pc.replace_substring_regex(paths, pattern=r"/?[^/]*$", replacement="")


def folders_above(paths: pa.Array) -> Ragged:
    """The folders of each path, the repository itself (``) first."""
    return Ragged.of(paths).expand(_folders)


def _folders(path: str) -> list[str]:
    parts = path.strip("/").split("/")[:-1]
    return ["", *("/".join(parts[: end + 1]) for end in range(len(parts)))]


@dataclass(frozen=True)
class Paths:
    """The paths of each turn, compared by their last segments."""

    owner: Int
    path: pa.Array

    @classmethod
    def of(cls, *lists: pa.Array) -> Paths:
        """Builds it from lists of paths, one list per turn."""
        held = [Ragged.of(flat(each)) for each in lists]
        taken = [each.vocabulary.take(pa.array(each.codes)).cast(pa.string()) for each in held]
        return cls(np.concatenate([each.rows for each in held]), pa.concat_arrays(taken))

    def have(self, owner: Int, path: pa.Array) -> Bool:
        """Whether turn `owner[i]` lists `path[i]`, bool[rows]."""
        found = np.zeros(len(owner), dtype=bool)
        if not len(owner) or not len(self.owner):
            return found
        for count in (1, 2):
            mine, asked = last_segments(self.path, count), last_segments(path, count)
            short = last_segments(self.path, 2).is_null() if count == 1 else mine.is_valid()
            keep = np.asarray(pc.and_(short, mine.is_valid())).astype(bool)
            found |= in_pairs((owner, asked), (self.owner[keep], mine.filter(pa.array(keep))))
        return found


def in_pairs(asked: tuple[Int, pa.Array], among: tuple[Int, pa.Array]) -> Bool:
    """Which (turn, text) pairs occur among others; a null text never does."""
    if not len(asked[0]) or not len(among[0]):
        return np.zeros(len(asked[0]), dtype=bool)
    both = pa.chunked_array([asked[1].cast(pa.string()), among[1].cast(pa.string())]).combine_chunks()
    code = codes_of([both, pa.array(np.concatenate([asked[0], among[0]]))])
    split = len(asked[0])
    return np.isin(code[:split], code[split:]) & np.asarray(asked[1].is_valid()).astype(bool)


def permitted(turn: Int, zone: pa.Array, zones: pa.ChunkedArray) -> Bool:
    """Whether the turn of each row may see its zone; `zones` lists the zones of every turn."""
    held = Ragged.of(flat(zones))
    return in_pairs((turn, zone), (held.rows, held.vocabulary.take(pa.array(held.codes))))


def tiers(owner: Int, path: pa.Array, public: Bool, failing: Paths, modified: Paths, cases: Paths) -> Int:
    """Distance of each file from the failure of its turn (S3.22), 1 to 5; `cases` are files in the folder of the
    failing case.
    """
    tier = np.full(len(owner), TIERS, dtype=np.int64)
    tier[public] = 4
    folder, beside = folders_of(path.cast(pa.string())), folders_of(cases.path)
    rooted = np.asarray(pc.match_substring(cases.path, "/")).astype(bool)
    tier[in_pairs((owner, folder), (cases.owner[rooted], beside.filter(pa.array(rooted))))] = 3
    tier[modified.have(owner, path)] = 2
    tier[failing.have(owner, path)] = 1
    return tier


def value_at(asked: tuple[Int, pa.Array], among: tuple[Int, pa.Array], values: Int, default: int = -1) -> Int:
    """The greatest value that `among` has for each (turn, text) pair, else the default."""
    both = pa.chunked_array([asked[1].cast(pa.string()), among[1].cast(pa.string())]).combine_chunks()
    code = codes_of([both, pa.array(np.concatenate([asked[0], among[0]]))])
    split = len(asked[0])
    order = np.lexsort((values, code[split:]))
    keys, held = code[split:][order], np.append(values[order], default)
    place = keys.searchsorted(code[:split], side="right") - 1
    found = (place >= 0) & (np.append(keys, -1)[place] == code[:split]) & np.asarray(asked[1].is_valid()).astype(bool)
    return np.where(found, held[place], default)


def below(path: pa.Array, root: pa.Array) -> Bool:
    """Whether each path is inside the folder of the same row; true where folder or path is null."""
    folder = pc.replace_substring_regex(root.cast(pa.string()), pattern=r"/*$", replacement="/")
    encoded = folder.dictionary_encode()
    inside = np.ones(len(path), dtype=bool)
    code = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
    for place, name in enumerate(encoded.dictionary.to_pylist()):
        mine = np.flatnonzero(code == place)
        inside[mine] = np.asarray(pc.fill_null(pc.starts_with(path.take(pa.array(mine)), pattern=name), True)).astype(
            bool
        )
    return inside
