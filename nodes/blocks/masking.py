"""E-mail addresses and absolute paths masked at projection, where the purpose's policy requires it.

Reads texts and the classes to mask in each. Gives the masked texts and the byte ranges of the masks. Secrets are not
handled here: they are masked at import and are stored nowhere.

Note: a mask is as long as what it covers, in bytes. So every line and byte position of a citation stays correct, the
budget is counted on the text shown, and no cut depends on whether a text was masked. A mask discloses only the position
and length of the covered text.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.list_columns import flattened
from ..columns.ragged import spread, starts_of
from ..schema import SPAN

DETECTOR = "mask/2"
"""Name and version of the patterns below, recorded with every masked item; another pattern is another version."""

_ROOTS = "Users|Volumes|bin|builds|data|dev|etc|home|lib|media|mnt|opt|private|proc|project|root|run|sbin|srv|sys|tmp|usr|var|work|workspaces?"
_PATTERNS = {
    "email": (
        r"@",
        re.compile(r"(?<![\w.%+-])[\w.%+-]*[\w%+-]@(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}(?![\w-])"),
    ),
    "absolute-path": (
        r"/[\w.]|\\",
        re.compile(
            rf"(?<![\w.:/~\\-])(?:file://)?/(?:(?:{_ROOTS})(?:/[\w.@%+~-]+)+/?|(?:[\w.@%+~-]+/)+[\w@%+~-][\w.@%+~-]*\.[A-Za-z]\w{{0,7}}\b)"
            r"|\A(?:home|Users|root)/[\w.@%+~-]+(?:/[\w.@%+~-]+)*"
            r"|(?<!\w)[A-Za-z]:[\\/](?:[^\s\\/:*?\"<>|`'(),;\[\]]+[\\/])*[^\s\\/:*?\"<>|`'(),;\[\]]{3,}"
            r"|(?<![\w\\])\\\\[\w.$-]+(?:\\[^\s\\/:*?\"<>|`'(),;\[\]]+)+"
        ),
    ),
}
"""By class: an RE2 pattern that matches every text with a finding, and the pattern of a finding. A path counts if it
begins at a usual root or ends in a file, because `/api/users` is a route. Stored paths have lost their leading slash:
at the beginning of a text, a home folder counts without it."""
_NAMES = {"email": "email", "absolute-path": "path"}

Int = NDArray[np.int64]


def class_lists(masks: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The classes of each row as one string, null where nothing is masked."""
    array = masks.combine_chunks() if isinstance(masks, pa.ChunkedArray) else masks
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.string())
    joined = pc.binary_join(array, " ")
    return pc.if_else(
        pc.fill_null(pc.greater(pc.binary_length(joined), 0), False), joined, pa.scalar(None, pa.string())
    )


def masked(texts: pa.Array, classes: pa.Array) -> pa.Array:
    """Each text with its classes masked; the array itself where nothing is masked. Nulls stay null."""
    return texts if classes.null_count == len(classes) else masked_with_spans(texts, classes)[0]


def masked_text(text: str, classes: str) -> str:
    """A text with some classes masked."""
    return _masked(text, classes.split())[0]


def masked_column(values: pa.Array, classes: pa.Array) -> pa.Array:
    """`masked` for a column of texts or of lists of texts."""
    if not pa.types.is_list(values.type):
        return masked(values, classes)
    owner, items = flattened(values)
    found = masked(items, classes.take(pa.array(owner)))
    if found is items:
        return values
    starts = starts_of(np.bincount(owner, minlength=len(values)))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), found, mask=values.is_null())


def masked_with_spans(texts: pa.Array, classes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The masked texts, and the byte ranges of the masks in each: list<struct<start, end>>, ascending."""
    if classes.null_count == len(classes):
        return texts, _no_masks(len(texts))
    rows, bounds = [np.empty(0, np.int64)], [np.empty((0, 2), np.int64)]
    for names in pc.unique(classes.drop_null()).to_pylist():
        prefilter = "|".join(_PATTERNS[name][0] for name in names.split())
        hit = pc.and_(pc.equal(classes, names), pc.match_substring_regex(texts, pattern=prefilter))
        at = pc.fill_null(hit, False).to_numpy(zero_copy_only=False).nonzero()[0]
        encoded = texts.take(pa.array(at)).dictionary_encode()  # each distinct text is read once
        found = [_masked(text, names.split()) for text in encoded.dictionary.to_pylist()]
        cleaned = pa.array([text for text, _ in found], texts.type).take(encoded.indices)
        if any(spans for _, spans in found):
            texts = pc.replace_with_mask(texts, pc.fill_null(hit, False), cleaned)
        counts, code = np.array([len(spans) for _, spans in found], dtype=np.int64), np.asarray(encoded.indices)
        which, place = spread(starts_of(counts)[code], counts[code])
        rows.append(at[which])
        bounds.append(np.array([span for _, spans in found for span in spans], np.int64).reshape(-1, 2)[place])
    owner, pairs = np.concatenate(rows), np.concatenate(bounds)
    order = owner.argsort(kind="stable")
    return texts, _lists(owner[order], pairs[order], len(texts))


def clipped(spans: pa.Array, start: Int, end: Int) -> pa.Array:
    """The parts of each row's ranges that lie in [start, end) of its text, counted from there."""
    owner, values = flattened(spans)
    if not len(values):
        return spans
    first, last = (np.asarray(part).astype(np.int64) for part in values.flatten())
    pairs = np.stack([np.maximum(first, start[owner]), np.minimum(last, end[owner])], axis=1) - start[owner][:, None]
    inside = pairs[:, 1] > pairs[:, 0]
    return _lists(owner[inside], pairs[inside], len(start))


def _masked(text: str, names: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text with every finding covered, and where; of two that overlap, the one that begins first."""
    findings = sorted((*m.span(), name) for name in names for m in _PATTERNS[name][1].finditer(text))
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
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


def _no_masks(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), pa.array([], SPAN))


def _lists(owner: Int, pairs: NDArray[np.int64], count: int) -> pa.Array:
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.bincount(owner, minlength=count).cumsum(out=offsets[1:])
    spans = pa.StructArray.from_arrays([pa.array(pairs[:, 0]), pa.array(pairs[:, 1])], fields=list(SPAN))
    return pa.ListArray.from_arrays(pa.array(offsets), spans)
