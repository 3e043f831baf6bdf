"""The patterns that find anchors in text from people and programs: identifiers, paths, tests, error lines, ids.

Reads arrays of text. Gives every match of every pattern, as (text, value) pairs; loops run over patterns only.

Note: Arrow has no "find all". `find_all` marks each match with two control characters, splits at them and keeps the
text in between; the control characters are removed from the text first, so a text cannot forge a match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants

KINDS = ("identifier", "path", "test", "error", "id", "literal", "regex")
LOWER_CASE_ID = r"\b([a-z][a-z0-9]{1,9}-\d{1,9})\b"
"""An id like those of kind `id`, in lower case; many words look like one (`utf-8`), so it is not an anchor."""

_OPEN, _CLOSE = "\x1e", "\x1f"
_MARKS = f"[{_OPEN}{_CLOSE}]"
_URL = r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`)]+"

_EXTENSIONS = (
    "py|pyi|ts|tsx|mts|cts|js|jsx|mjs|cjs|go|java|kt|scala|rb|rs|c|cc|cpp|h|hpp|cs|swift|php|sh|sql|html|css|scss|vue"
    "|md|rst|txt|json|jsonl|ya?ml|toml|cfg|ini|xml|proto|tf|lock|log|ipynb|csv"
)
_PART = r"[\w@+~-][\w.@+~-]*"
_START = r"(?:^|[^\w/.@+~-])"
_NAME = r"[A-Za-z_$][\w$]*"

_VALUE = re.compile(r"""%[-+#.\d]*\w|[#$]?\{[^{}]*\}|'[^']*'|"[^"]*"|\b\d[\w.]*|\A[\w.]+:\s""")
"""A value in a printed text, the form that it has in the program, and the one word with a colon before a message."""

_FILE = re.compile(rf"\.(?:{_EXTENSIONS})$")
_TEXT = pa.large_string()


@dataclass(frozen=True)
class Pattern:
    """One rule: RE2 with one group, the anchor. It is compiled only for texts with what it needs: a question in plain words
    needs few of them.
    """

    kind: str
    name: str
    regex: str
    needs: str
    """A regular expression that finds something in every text that has a match."""

    @cached_property
    def needed(self) -> re.Pattern[str]:
        return re.compile(self.needs)


PATTERNS = (
    Pattern("identifier", "backticks", rf"`({_NAME}(?:(?:\.|::|#){_NAME})*)(?:\(\))?`", needs="`"),
    Pattern("identifier", "snake or CONSTANT", r"\b(_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*)\b", needs="_"),
    Pattern("identifier", "dunder", r"\b(__[A-Za-z][A-Za-z0-9]*__)\b", needs="__"),
    Pattern("identifier", "camelCase", r"\b([a-z][a-z0-9]*[A-Z][A-Za-z0-9]*)\b", needs="[a-z0-9][A-Z]"),
    Pattern(
        "identifier", "PascalCase", r"\b([A-Z][A-Z0-9]*[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+)\b", needs="[a-z0-9][A-Z]"
    ),
    Pattern("identifier", "dotted", rf"\b({_NAME}[\w$](?:\.{_NAME}[\w$])+)\b", needs=r"\."),
    Pattern("identifier", "call", rf"\b({_NAME}[\w$])\(\)", needs=r"\(\)"),
    Pattern(
        "identifier",
        "exception",
        r"\b([A-Z][A-Za-z0-9]*(?:Error|Exception|Warning))\b",
        needs="Error|Exception|Warning",
    ),
    Pattern("path", "slashed", rf"{_START}((?:[A-Za-z]:)?(?:\.{{0,2}}/)?(?:{_PART}/)+{_PART}\.\w+)", needs="/"),
    Pattern(
        "path",
        "folder",
        rf"{_START}((?:\.{{1,2}}/)?(?:{_PART}/){{2,}}{_PART}|(?:{_PART}/)+)(?:[\s`'\",;:)]|$)",
        needs="/",
    ),
    Pattern("path", "file name", rf"{_START}({_PART}\.(?:{_EXTENSIONS}))\b", needs=r"\."),
    Pattern("path", "Python frame", r'File "([^"\n]+)", line \d+', needs='File "'),
    Pattern("path", "JavaScript frame", r"(?:\(|\bat )(?:file://)?([^\s()]+\.\w+):\d+:\d+", needs=":"),
    Pattern("path", "Java frame", r"\bat [\w.$]+\((\w+\.\w+):\d+\)", needs="at "),
    Pattern("path", "Go frame", r"(?m)^\s+([^\s:]+\.go):\d+", needs=r"\.go:"),
    Pattern("identifier", "Python frame", r'File "[^"\n]+", line \d+, in (\w+)', needs='File "'),
    Pattern("identifier", "JavaScript frame", r"\bat (?:async |new )*([\w.$]+) (?:\[as \w+\] )?\(", needs="at "),
    Pattern("identifier", "Java frame", r"\bat ([\w.$]+)\(\w+\.\w+:\d+\)", needs="at "),
    Pattern("identifier", "Go frame", r"(?m)^[\w./-]+\.(?:\(\*?\w+\)\.)?(\w+)\([^)\n]*\)$", needs=r"\("),
    Pattern("test", "pytest node id", r"\b([\w./-]+\.py(?:::\w+)+(?:\[[^\]\n]*\])?)", needs=r"\.py::"),
    Pattern("test", "test function", r"\b(test_\w+)(?:[^\w.]|\.\W|\.?$)", needs="test_"),
    Pattern("test", "jest title", r"(?m)(?:^\s*[●✕\x{d7}✗]\s+|\bFAIL\s+)(\S[^\n]*? > [^\n]*\S)", needs=" > "),
    Pattern(
        "test",
        "jest failure",
        r"(?m)^\s*[●✕\x{d7}✗]\s+(\S[^\n]*\S)",
        needs=r"[●✕\u00d7✗]",
    ),
    Pattern(
        "test",
        "test file",
        r"\b([\w@+~./-]+\.(?:spec|test|fixture|cy)\.\w+)\b",
        needs=r"\.spec\.|\.test\.|\.fixture\.|\.cy\.",
    ),
    Pattern(
        "error",
        "error line",
        r"\b((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure)\b(?::[^\n]{1,200})?)",
        needs="Error|Exception|Warning|Failure",
    ),
    Pattern(
        "error",
        "expectation",
        r"(?i)\b(expected:?\s[^\n]{1,120}?\n?\s*(?:but )?(?:received|got|was|actual):?\s[^\n]{1,80})",
        needs="(?i)expected",
    ),
    Pattern("id", "ULID", r"\b([0-7][0-9A-HJKMNP-TV-Z]{25})\b", needs=r"\w{26}"),
    Pattern("id", "UUID", r"\b([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b", needs="-"),
    Pattern("id", "KEY-123", r"\b([A-Z][A-Z0-9]{1,9}-\d{1,9})\b", needs="-"),
    Pattern(
        "id",
        "memory id",
        r"\b((?:mem|memory|dec|evt|adr)[-_:][A-Za-z0-9][\w-]*)\b",
        needs="mem|dec|evt|adr",
    ),
    Pattern("id", "evidence id", r"\b([0-9a-v]{26})\b", needs=r"\w{26}"),
    Pattern("id", "commit", r"\b([0-9a-f]{40})\b", needs=r"\w{40}"),
    *(Pattern("literal", "quoted", rf"\B{q}([^{q}\n]*\s[^{q}\n]*){q}\B", needs=q) for q in "\"'`"),
    Pattern(
        "literal",
        "message",
        r"\b\w*[a-z][A-Z]\w*: ([^\n]*)",
        needs=": ",
    ),
)


class Anchor(NamedTuple):
    """A value found in a text, with the position of the text."""

    text: int
    kind: str
    value: str


def anchors_in(texts: pa.Array, kinds: Sequence[str] = KINDS) -> list[Anchor]:
    """Every anchor of some kinds in an array of texts without nulls, with repetitions.

    URLs are not searched: the part after `://` is neither a path nor an identifier of the project.
    """
    clean = texts.cast(_TEXT)
    said = "\n".join(clean.to_pylist())
    if re.search(rf"{_MARKS}|\\", said):
        clean = pc.replace_substring(unmarked(texts), pattern="\\", replacement="/")
        said = said.replace("\\", "/")
    if "://" in said:
        clean = pc.replace_substring_regex(clean, pattern=_URL, replacement=" ")
    found = []
    for pattern in PATTERNS:
        if pattern.kind not in kinds or not pattern.needed.search(said):
            continue
        at, values = find_all(clean, pattern.regex)
        values = normalized_paths(values) if pattern.kind == "path" else values
        for text, value in zip(at.tolist(), values.to_pylist(), strict=True):
            is_file = pattern.kind == "identifier" and _FILE.search(value)  # `app.py` is dotted but not an identifier
            if len(value := value.strip()) > 1 and not is_file:
                found.append(Anchor(text, pattern.kind, value))
    return found


def normalized_paths(values: pa.Array) -> pa.Array:
    """Paths as indexed: `/` between parts, no leading `./`, no line number, no trailing dot."""
    values = pc.replace_substring(values, pattern="\\", replacement="/")
    values = pc.replace_substring_regex(values, pattern=r"(?::\d+)+:?$", replacement="")
    values = pc.replace_substring_regex(values, pattern=r"^(?:\.{1,2}/)+", replacement="")
    return pc.replace_substring_regex(values, pattern=r"[.:/]+$", replacement="")


def unmarked(texts: pa.Array) -> pa.Array:
    """Texts without the control characters that mark a match in `find_all`."""
    return pc.replace_substring_regex(texts.cast(pa.large_string()), pattern=_MARKS, replacement=" ")


def find_all(texts: pa.Array, regex: str) -> tuple[NDArray[np.int64], pa.Array]:
    """The group of every match of a pattern, and the position of its text; matches do not overlap."""
    hit = np.asarray(pc.match_substring_regex(texts, pattern=regex)).nonzero()[0]
    if not len(hit):
        return hit, constants((), _TEXT)
    some = texts.take(pa.array(hit))
    marked = pc.replace_substring_regex(some, pattern=regex, replacement=f"{_OPEN}\\1{_CLOSE}")
    pieces = pc.split_pattern(marked, _OPEN)
    parent = np.asarray(pc.list_parent_indices(pieces)).astype(np.int64)
    flat = pieces.flatten()
    found = np.asarray(pc.match_substring(flat, _CLOSE))
    value = pc.list_element(pc.split_pattern(flat.filter(pa.array(found)), _CLOSE, max_splits=1), 0)
    return hit[parent[found]], value.cast(pa.large_string())


def fixed_part(text: str) -> str:
    """The longest part of a printed text that its program has as well: no values, and no class before it."""
    return max(_VALUE.split(text), key=len).strip()


def spoken_state(text: str) -> str:
    """The values of a task state given as JSON, one per line; text that is not JSON stays unchanged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    lines, pending = [], [value]
    while pending:
        match pending.pop():
            case str(line):
                lines.append(line)
            case dict(fields):
                pending.extend(reversed(fields.values()))
            case list(items):
                pending.extend(reversed(items))
            case int(number) | float(number) if not isinstance(number, bool):
                lines.append(str(number))
    return "\n".join(lines)
