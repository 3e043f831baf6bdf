"""Masks secrets, so that neither the corpus nor a question contains any.

Reads: texts. Gives: the texts with each secret replaced by `[REDACTED:<kind>]`, and the byte ranges of those tokens.
Secrets are what `rules` find. Masking is a function of one text alone, takes time linear in it, and a
second pass changes nothing: where a text already carries a token, the rules see blanks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.schema import SPAN
from .rules import KEY_EDGES, RULES_DIGEST, Finding, rule_findings

REDACTOR = f"rules/{RULES_DIGEST}"
"""Identifies the rules, recorded with a corpus: if they change, the corpus must be indexed again."""

MASK = re.compile(rb"\[REDACTED:[a-z0-9-]+\]")
_SHORTEST = 12
"""Least length of a secret with its context, in bytes."""
_PASSES = 4
"""Most passes over a text: the second finds what the first one's masks uncover, and rarely anything."""


@lru_cache(maxsize=1024)
def redact_text(text: str) -> str:
    """`text` with its secrets masked: for questions, anchors and single strings."""
    data = text.encode("utf-8", "surrogatepass")
    masked = _redacted(data)
    return text if masked is data else masked.decode("utf-8", "surrogatepass")


def masked_digest(text: str, found: Sequence[Finding] | None = None) -> str:
    """`sha256:` and 16 hex digits of the masked text: with a digest of the text itself a short secret could be guessed.

    `found` is what `secrets_in` finds in the text, if that is known.
    """
    return f"sha256:{sha256(_redacted(text.encode('utf-8', 'surrogatepass'), found)).hexdigest()[:16]}"


def redact_columns(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[pa.Array]:
    """String columns, or columns of lists of strings, with the secrets of each string masked; equal strings once."""
    done = []
    for column in columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        strings = array.flatten() if pa.types.is_list(array.type) else array
        encoded = strings.dictionary_encode()
        given = encoded.dictionary.cast(pa.large_binary()).to_pylist()
        masked = [_redacted(data) for data in given]
        if any(own is not data for own, data in zip(masked, given, strict=True)):
            strings = pa.array(masked, pa.large_binary()).cast(strings.type).take(encoded.indices)
            array = _listed(strings, array) if pa.types.is_list(array.type) else strings
        done.append(array)
    return done


def _listed(strings: pa.Array, lists: pa.ListArray) -> pa.ListArray:
    """The lists with their strings replaced."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, strings, type=lists.type, mask=lists.is_null())


def mask_spans(values: pa.Array) -> pa.Array:
    """The byte ranges of the masks in each string, ascending: list<struct<start, end>>, empty if there are none."""
    marked = pc.fill_null(pc.match_substring(values, "[REDACTED:"), False)
    found = [[m.span() for m in MASK.finditer(t.encode())] for t in values.filter(marked).to_pylist()]
    counts = np.zeros(len(values) + 1, dtype=np.int32)
    counts[1:][marked.to_numpy(zero_copy_only=False)] = [len(spans) for spans in found]
    bounds = np.array([span for spans in found for span in spans], dtype=np.int64).reshape(-1, 2)
    spans = pa.StructArray.from_arrays([pa.array(bounds[:, 0]), pa.array(bounds[:, 1])], fields=list(SPAN))
    return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), spans)


def secrets_in(data: bytes) -> list[Finding]:
    """The secrets of a text in UTF-8, ascending and disjoint; of two that overlap, one from the start of the earlier."""
    if len(data) < _SHORTEST:
        return []
    if b"[REDACTED:" in data:
        data = MASK.sub(lambda mask: b"\f" * len(mask[0]), data)
    return _disjoint(rule_findings(data.replace(b"\0", b"\f")))  # a zero byte ends a row


def _disjoint(findings: Iterable[Finding]) -> list[Finding]:
    disjoint = list[Finding]()
    for start, end, kind in sorted(findings, key=lambda finding: (finding[0], -finding[1])):
        if disjoint and start < disjoint[-1][1]:
            disjoint[-1] = (disjoint[-1][0], max(end, disjoint[-1][1]), disjoint[-1][2])
        else:
            disjoint.append((start, end, kind))
    return disjoint


def _redacted(data: bytes, found: Sequence[Finding] | None = None) -> bytes:
    for _ in range(_PASSES):
        if not (found := secrets_in(data) if found is None else found):
            break
        data, found = mask(data, found), None
    return data


def mask(data: bytes, findings: Iterable[Finding]) -> bytes:
    """The text with each of some secrets, ascending and disjoint, replaced by its token."""
    parts, at = list[bytes](), 0
    for start, end, kind in findings:
        parts += [data[at:start], f"[REDACTED:{kind}]".encode()]
        at = end
    return b"".join([*parts, data[at:]])


def without_keys_over_rows(texts: pa.Array, documents: Callable[[], pa.Array]) -> pa.Array:
    """The texts of rows, with keys masked that extend over several rows: each row counts as a line of its document.

    Args:
        texts: string[rows].
        documents: returns the document of each row, int[rows]; called only if a row may begin or end a key.
    """
    edges = np.flatnonzero(pc.fill_null(pc.match_substring_regex(texts, KEY_EDGES), False))
    if not len(edges) or len(texts) < 2:
        return texts
    document = documents().to_numpy()
    order, masked = np.argsort(document, kind="stable"), dict[int, bytes]()
    for number in np.unique(document[edges]):
        rows = order[slice(*np.searchsorted(document, (number, number + 1), sorter=order))]
        own = texts.take(pa.array(rows)).cast(pa.large_binary()).to_pylist()
        found = rule_findings(b"\n\0".join(row.translate(bytes.maketrans(b"\n\0", b"  ")) for row in own))
        keys = _disjoint(finding for finding in found if finding[2] == "private-key")
        at = 0
        for row, text in zip(rows.tolist(), own, strict=True):
            within = [(max(start - at, 0), min(end - at, len(text)), "private-key") for start, end, _ in keys]
            if own[1:] and (spans := [span for span in within if span[0] < span[1]]):
                masked[row] = mask(text, spans)
            at += len(text) + 2
    if not masked:
        return texts
    chosen = pa.array(np.isin(np.arange(len(texts)), list(masked)))
    values = pa.array([masked[row] for row in sorted(masked)], pa.large_binary()).cast(texts.type)
    return pc.replace_with_mask(texts, chosen, values)
