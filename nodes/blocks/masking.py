"""E-mail addresses and absolute paths masked at projection, where the purpose's policy requires it.

Reads texts and the classes to mask in each. Gives the masked texts and the byte ranges of the masks. Secrets are not
handled here: they are masked at import and are stored nowhere.

Note: a mask is as long as what it covers, in bytes. So every line and byte position of a citation stays correct, the
budget is counted on the text shown, and no cut depends on whether a text was masked. A mask discloses only the position
and length of the covered text.
"""

from __future__ import annotations

import re

import pyarrow as pa

DETECTOR = "mask/2"
"""Name and version of the patterns below, recorded with every masked item; another pattern is another version."""

_ROOTS = "Users|Volumes|bin|builds|data|dev|etc|home|lib|media|mnt|opt|private|proc|project|root|run|sbin|srv|sys|tmp|usr|var|work|workspaces?"
_PATTERNS = {
    "email": (
        re.compile("@"),
        re.compile(r"(?<![\w.%+-])[\w.%+-]*[\w%+-]@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}(?![\w-])"),
    ),
    "absolute-path": (
        re.compile(r"/[\w.]|\\"),
        re.compile(
            rf"(?<![\w.:/~\\-])(?:file://)?/(?:(?:{_ROOTS})(?:/[\w.@%+~-]+)+/?|(?:[\w.@%+~-]+/)+[\w@%+~-][\w.@%+~-]*\.[A-Za-z]\w{{0,7}}\b)"
            r"|\A(?:home|Users|root)/[\w.@%+~-]+(?:/[\w.@%+~-]+)*"
            r"|(?<!\w)[A-Za-z]:[\\/](?:[^\s\\/:*?\"<>|`'(),;\[\]]+[\\/])*[^\s\\/:*?\"<>|`'(),;\[\]]{3,}"
            r"|(?<![\w\\])\\\\[\w.$-]+(?:\\[^\s\\/:*?\"<>|`'(),;\[\]]+)+"
        ),
    ),
}
"""By class: a pattern that every text with a finding matches, and the pattern of a finding. A path counts if it
begins at a usual root or ends in a file, because `/api/users` is a route. Stored paths have lost their leading slash:
at the beginning of a text, a home folder counts without it."""
_NAMES = {"email": "email", "absolute-path": "path"}

Span = tuple[int, int]
"""A range of bytes: start and end, exclusive."""


def class_lists(masks: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The classes of each row as one string, null where nothing is masked."""
    return pa.array([" ".join(names) if names else None for names in masks.to_pylist()], pa.string())


def masked(texts: pa.Array, classes: pa.Array) -> pa.Array:
    """Each text, or each of a list of texts, with its classes masked; the array itself where nothing is masked. Nulls stay
    null.
    """
    if classes.null_count == len(classes):
        return texts
    rows = zip(texts.to_pylist(), classes.to_pylist(), strict=True)
    return pa.array([_masked(value, names) if value and names else value for value, names in rows], texts.type)


def _masked(value: str | list[str], classes: str) -> str | list[str]:
    return masked_text(value, classes) if isinstance(value, str) else [masked_text(text, classes) for text in value]


def masked_text(text: str, classes: str) -> str:
    """A text with some classes masked."""
    return masked_spans(text, classes)[0]


def masked_spans(text: str, classes: str) -> tuple[str, list[Span]]:
    """The text with every finding covered, and where; of two that overlap, the one that begins first."""
    named = [(name, pattern) for name in classes.split() for signs, pattern in [_PATTERNS[name]] if signs.search(text)]
    findings = sorted((*found.span(), name) for name, pattern in named for found in pattern.finditer(text))
    parts: list[str] = []
    spans: list[Span] = []
    position = written = 0
    for start, end, name in findings:
        if start < position:
            continue
        size = len(text[start:end].encode())
        written += len(text[position:start].encode())
        spans.append((written, written + size))
        word = f"[{_NAMES[name]}"
        parts += [text[position:start], f"{word.ljust(size - 1, '*')}]" if size > len(word) else "*" * size]
        position, written = end, written + size
    return "".join([*parts, text[position:]]), spans
