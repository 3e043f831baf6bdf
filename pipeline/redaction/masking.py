"""Masks secrets, so that neither the corpus nor a question contains any.

Reads: texts. Gives: the texts with each secret replaced by `[REDACTED:<kind>]`, and the byte ranges of those tokens.
Detection is detect-secrets' provider plugins plus `rules`. Masking is a function of one text alone and is
idempotent: a second pass changes nothing, and text that already carries a token counts as masked.

Long columns are cheap: RE2 inside Arrow selects the few texts worth a full check, and only those reach Python.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.schema import SPAN
from .keys_over_rows import MAY_BEGIN_KEY, keys_over_rows
from .private_keys import bare_keys, fenced_keys, wrapped_keys
from .rules import (
    ASSIGNMENTS,
    BARE_KEY,
    JWK_PRIVATE,
    KEY_FENCE,
    PASSWORDS,
    PLUGINS,
    PRIVATE_KEYS,
    RULES_VERSION,
    STATED,
    WRAPPED,
    SecretRule,
    is_basic,
    is_chosen,
    is_generated,
    is_jumbled,
    is_mixed,
    token_rules,
)

__all__ = [
    "REDACTOR",
    "hidden_at_cuts",
    "mask_spans",
    "redact_column",
    "redact_columns",
    "redact_text",
    "redact_texts",
    "without_keys_over_rows",
]

REDACTOR = f"detect-secrets/{version('detect-secrets')}+rules/{RULES_VERSION}"
"""Detector and version, recorded with a corpus: if it changes, the corpus must be indexed again."""

MASK = re.compile(r"\[REDACTED:[a-z0-9-]+\]")
_MASK_BYTES = re.compile(MASK.pattern.encode())

SecretFinding = tuple[int, int, str]
"""Start and end in characters, and kind."""


@dataclass(frozen=True, slots=True)
class _Finder:
    """`find` fully checks texts that match `prefilter`, an RE2 pattern that matches every text with a finding."""

    prefilter: str
    find: Callable[[str], Iterator[SecretFinding]]


@lru_cache(maxsize=1024)
def redact_text(text: str) -> str:
    """`text` with its secrets masked: for questions, anchors and single strings."""
    while True:
        finders = _finders() if _MAY_HOLD_A_TOKEN.search(text) else _finders_by_place()
        masked = _mask(text, [finding for finder in finders for finding in finder.find(text)])
        if masked == text:
            return text
        text = masked


def redact_texts(texts: Sequence[str]) -> list[str]:
    """Some texts with their secrets masked: for the questions of one request, or of a million."""
    if _sooner_one_by_one(len(texts), sum(map(len, texts))):
        return [redact_text(text) if len(text.encode()) >= _SHORTEST else text for text in texts]
    (values,) = redact_columns([pa.array(texts, pa.large_string())])
    return values.to_pylist()


def redact_column(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """A string column with its secrets masked, and the byte ranges of the masks in each value (list<start, end>).

    Nulls stay null; a value without a mask has an empty list of ranges. The type of the column is kept.
    """
    (values,) = redact_columns([column])
    return values, mask_spans(values)


def redact_columns(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[pa.Array]:
    """String columns, or columns of lists of strings, with the secrets of each string masked.

    All of them are scanned at once: setting up RE2 costs more than most columns.
    """
    arrays = [_flat(column) for column in columns]
    strings = [array.flatten() if pa.types.is_list(array.type) else array for array in arrays]
    long = [pc.fill_null(pc.greater_equal(pc.binary_length(values), _SHORTEST), False) for values in strings]
    encoded = [values.filter(mask).dictionary_encode() for values, mask in zip(strings, long, strict=True)]
    masked = _masked([one.dictionary for one in encoded])
    done = []
    for array, values, mask, one, own in zip(arrays, strings, long, encoded, masked, strict=True):
        if own is not one.dictionary:
            values = pc.replace_with_mask(values, mask, own.take(one.indices))
        done.append(_listed(values, array) if pa.types.is_list(array.type) else values)
    return done


def _masked(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Columns of strings with the secrets of each masked; a column without any is returned unchanged."""
    size = sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)
    count = sum(map(len, columns))
    if _sooner_one_by_one(count, size):
        close = (pa.array(map(redact_text, column.to_pylist()), column.type) for column in columns)
        return [column if column.equals(own) else own for column, own in zip(columns, close, strict=True)]
    texts = pa.chunked_array([column.cast(pa.large_string()) for column in columns])
    suspect = _suspects(texts.combine_chunks() if size < _COPIED else texts)
    done, at = list[pa.Array](), 0
    for column in columns:
        own = pa.array(suspect[at : at + len(column)])
        at += len(column)
        if pc.any(own).as_py():
            masked = pa.array(_redact(column.filter(own)), column.type)
            column = column if masked.equals(column.filter(own)) else pc.replace_with_mask(column, own, masked)
        done.append(column)
    return done


def _sooner_one_by_one(count: int, size: int) -> bool:
    return count * _TEXT_COST + size < _SETUP_COST


def _listed(strings: pa.Array, lists: pa.ListArray) -> pa.ListArray:
    """The lists with their strings replaced."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, strings, type=lists.type, mask=lists.is_null())


def mask_spans(values: pa.Array) -> pa.Array:
    """The byte ranges of the masks in each string, ascending: list<struct<start, end>>, empty if there are none."""
    marked = pc.fill_null(pc.match_substring(values, "[REDACTED:"), False)
    found = [[m.span() for m in _MASK_BYTES.finditer(t.encode())] for t in values.filter(marked).to_pylist()]
    counts = np.zeros(len(values) + 1, dtype=np.int32)
    counts[1:][marked.to_numpy(zero_copy_only=False)] = [len(spans) for spans in found]
    bounds = np.array([span for spans in found for span in spans], dtype=np.int64).reshape(-1, 2)
    spans = pa.StructArray.from_arrays([pa.array(bounds[:, 0]), pa.array(bounds[:, 1])], fields=list(SPAN))
    return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), spans)


def hidden_at_cuts(text: str, cuts: Sequence[int]) -> list[SecretFinding]:
    """The secrets of a document that cannot be found in its pieces: keys as a whole, and tokens divided by a cut.

    `cuts` are positions in characters, ascending; at the end of a line, a cut can divide only keys. Findings are
    ascending and disjoint, and may lie within one piece.
    """
    found = [f for finder in _finders_of_keys() for f in finder.find(text)] if _MAY_HOLD_A_KEY.search(text) else []
    for cut in cuts:
        if text[cut - 1] != "\n":
            start = max(cut - _AROUND, 0)
            window = text[start : cut + _AROUND]
            spans = [(start + a, start + b, kind) for finder in _finders() for a, b, kind in finder.find(window)]
            found += [(a, b, kind) for a, b, kind in spans if a < cut < b]
    disjoint, position = list[SecretFinding](), 0
    for start, end, kind in sorted(found, key=lambda f: (f[0], -f[1], f[2])):
        if end > position:
            disjoint.append((max(start, position), end, kind))
            position = end
    return disjoint


def without_keys_over_rows(texts: pa.Array, documents: Callable[[], pa.Array]) -> pa.Array:
    """The texts of rows, with the material of keys masked that extend over several rows.

    Args:
        texts: string[rows].
        documents: returns the document of each row, int[rows]; called only if a row may begin a key.
    """
    begins = np.flatnonzero(_matches(texts, MAY_BEGIN_KEY))
    if not len(begins) or len(texts) < 2:
        return texts
    document = documents().to_numpy()
    order = np.argsort(document, kind="stable")
    bounds = np.flatnonzero(np.diff(document[order], prepend=-1, append=-2))
    masked: dict[int, str] = {}
    for number in np.unique(np.searchsorted(document[order[bounds[:-1]]], document[begins])):
        rows = order[bounds[number] : bounds[number + 1]]
        own = texts.take(pa.array(rows)).to_pylist()
        found = keys_over_rows(own, np.flatnonzero(np.isin(rows, begins)).tolist())
        for row, text, spans in zip(rows.tolist(), own, found, strict=True):
            if spans and len(own) > 1:
                masked[row] = _mask(text, ((*span, "private-key") for span in spans))
    if not masked:
        return texts
    chosen = np.isin(np.arange(len(texts)), list(masked))
    return pc.replace_with_mask(texts, pa.array(chosen), pa.array([masked[row] for row in sorted(masked)], texts.type))


def _redact(texts: pa.Array) -> list[str]:
    """The fixed point of masking for each text. Every pass but the last masks something, so this terminates."""
    done = texts.to_pylist()
    open_ = list(range(len(done)))
    while open_:
        found = _findings(pa.array([done[i] for i in open_], pa.large_string()))
        masked = {open_[i]: _mask(done[open_[i]], findings) for i, findings in found.items()}
        open_ = sorted(i for i, text in masked.items() if text != done[i])
        for i in open_:
            done[i] = masked[i]
    return done


def _findings(texts: pa.Array) -> dict[int, list[SecretFinding]]:
    """The findings of each text that has any; they may overlap."""
    found: dict[int, list[SecretFinding]] = {}
    for finder in _finders():
        rows = np.flatnonzero(_matches(texts, finder.prefilter))
        for row, text in zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True):
            if findings := list(finder.find(text)):
                found.setdefault(row, []).extend(findings)
    return found


def _mask(text: str, findings: Iterable[SecretFinding]) -> str:
    """The text with findings replaced by tokens; of two that overlap, the earlier one. Existing tokens are kept."""
    tokens = [match.span() for match in MASK.finditer(text)]
    parts: list[str] = []
    position = 0
    for start, end, kind in sorted(findings, key=lambda f: (f[0], -f[1], f[2])):
        if start >= position and not any(a < end and start < b for a, b in tokens):
            parts += [text[position:start], f"[REDACTED:{kind}]"]
            position = end
    return "".join([*parts, text[position:]])


_MAY_HOLD_A_TOKEN = re.compile(r"\S{20}|eyJ|_authToken|(?i:xox)")
"""Matches every text with a token recognizable by form. Most questions do not match, which saves loading the plugins.
"""


@cache
def _finders() -> tuple[_Finder, ...]:
    return (
        *_finders_by_place(),
        *(_finder(rule, _is_jwt if rule.kind == "json-web-token" else _always) for rule in _plugin_rules()),
        *(_finder(rule, lambda match: not _in_data_uri(match)) for rule in token_rules()),
    )


@cache
def _finders_by_place() -> tuple[_Finder, ...]:
    """Finders of secrets that are recognized by the surrounding text."""
    return (
        *_finders_of_keys(),
        *(_finder(rule, lambda match: is_chosen(match["s"])) for rule in PASSWORDS),
        *(_finder(rule, _CHECKS[what]) for what, rule in STATED),
        *(_finder(rule, _is_stated if rule.kind == "stated-secret" else _is_assigned) for rule in ASSIGNMENTS),
    )


@cache
def _finders_of_keys() -> tuple[_Finder, ...]:
    """Finders of multi-line secrets, and of members that are secret only within their document."""
    return (
        _Finder(_re2(KEY_FENCE), lambda text: ((*span, "private-key") for span in fenced_keys(text))),
        _Finder(_re2(BARE_KEY), lambda text: ((*span, "private-key") for span in bare_keys(text))),
        _Finder(_re2(WRAPPED), lambda text: ((*span, "private-key") for span in wrapped_keys(text))),
        *(_finder(rule, _always) for rule in PRIVATE_KEYS),
        _finder(JWK_PRIVATE, lambda match: '"kty"' in match.string),
    )


_MAY_HOLD_A_KEY = re.compile(
    rf"PRIVATE KEY|PuTTY-User-Key-File|<RSAKeyValue>|\"kty\"|{WRAPPED.pattern}|{BARE_KEY.pattern}"
)
"""Matches every document that contains a key."""
_AROUND = 1_000
"""Characters that are checked on each side of a cut; no token with its context is longer."""


def _finder(rule: SecretRule, accept: Callable[[re.Match[str]], bool]) -> _Finder:
    def find(text: str) -> Iterator[SecretFinding]:
        for match in rule.pattern.finditer(text):
            if accept(match):
                named = "s" in rule.pattern.groupindex and match["s"] is not None
                start, end = match.span("s") if named else match.span()
                # Some patterns stop at a fixed length; the rest of the word belongs to the secret.
                yield start, end if named else _WORD.match(text, end).end(), rule.kind  # type: ignore[union-attr]  # a word starts there: it was found above

    return _Finder(_re2(rule.pattern), find)


_WORD = re.compile(r"[A-Za-z0-9_=-]*")


def _always(match: re.Match[str]) -> bool:
    return "Encryption: aes" not in match[0]


def _in_data_uri(match: re.Match[str]) -> bool:
    """Whether a match is inside `data:…;base64,…`, an image; a chunk may begin in the middle of it."""
    start = match.string.rfind(";base64,", max(0, match.start() - 200_000), match.start())
    begins = start + 8 if start >= 0 else 0 if match.start() >= _IMAGE else None
    return begins is not None and bool(_BASE64.fullmatch(match.string, begins, match.start()))


_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_IMAGE = 400
"""A text that begins with this many unbroken base64 characters is part of an image: no token is that long."""


def _is_assigned(match: re.Match[str]) -> bool:
    return is_generated(match["s"]) and not _in_data_uri(match)


def _is_stated(match: re.Match[str]) -> bool:
    return is_mixed(match["s"]) and not _in_data_uri(match)


_CHECKS: dict[str, Callable[[re.Match[str]], bool]] = {
    "basic": lambda match: is_basic(match["s"]),
    "chosen": lambda match: is_chosen(match["s"]),
    "jumbled": lambda match: is_jumbled(match["s"]),
}
"""Conditions on a value that is recognized only by its position."""


def _is_jwt(match: re.Match[str]) -> bool:
    return importlib.import_module("detect_secrets.plugins.jwt").JwtTokenDetector.is_formally_valid(match[0])


@cache
def _plugin_rules() -> tuple[SecretRule, ...]:
    """The patterns of the detect-secrets plugins in use; the kind is the plugin's name of the secret."""
    rules: list[SecretRule] = []
    for module, name in PLUGINS:
        plugin = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)()
        kind = re.sub(r"[^a-z0-9]+", "-", plugin.secret_type.lower()).strip("-")
        rules += [SecretRule(kind, pattern) for pattern in plugin.denylist]
    return tuple(rules)


_GROUP = 24
_SHORTEST = 12
"""Minimum length of a secret with its context, in bytes."""
_TEXT_COST, _SETUP_COST = 100, 6_000
"""Setting up RE2 costs as much as a full check of 6,000 characters; each text costs another 100."""
_COPIED = 1 << 24
"""Size in bytes up to which columns are combined rather than scanned one by one: RE2 is set up for each."""


@cache
def _groups() -> tuple[str, ...]:
    """The prefilters, joined in groups: one automaton for all of them would exceed RE2's cache."""
    patterns = [finder.prefilter for finder in _finders()]
    return tuple("|".join(patterns[i : i + _GROUP]) for i in range(0, len(patterns), _GROUP))


def _suspects(texts: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    suspect = np.zeros(len(texts), dtype=bool)
    for pattern in _groups():
        suspect |= _matches(texts, pattern)
    return suspect


def _matches(texts: pa.Array | pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), False), dtype=bool)


def _re2(pattern: re.Pattern[str]) -> str:
    """An RE2 pattern that matches wherever `pattern` does; long repetitions are cut for a small automaton."""
    text = _LOOKAROUND.sub("", pattern.pattern).removeprefix("(?i)")
    text = _REPETITION.sub(lambda m: f"{{{min(int(m[1]), 5)},}}" if int(m[2] or m[1]) > 5 else m[0], text)
    text = re.sub(r"\(\?P<\w+>", "(?:", text)
    return f"(?i:{text})" if pattern.flags & re.IGNORECASE else f"(?:{text})"


_LOOKAROUND = re.compile(r"\(\?<?[!=](?:[^()\[\]\\]|\\.|\[[^\]]*\])*\)")
_REPETITION = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}")


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
