"""Which candidates hit which anchors of their request, and how well: a helper of task-aware reranking.

Reads the stored rows of candidates and `anchors`. Gives `AnchorTerm`: per candidate the anchor term, 0 to 1, and its
strongest hit in words. A hit has a quality: 1 for a definition, a path, an error line, a test or an id as written; less
for a mention.

Note: with b = 0.6 of the strongest hit's weight and quality, and s the weighted share of the request's anchors that
were hit, the term is b + (1 - b) * s. So one declared anchor, such as the failing test's file, outweighs any number of
mentions found in prose, whose weights are smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes
from ..columns.keys import NOWHERE, constants, first_of_runs, flat, gathered_columns
from ..columns.list_columns import flattened
from ..columns.numbers import quantise
from ..columns.ragged import Ragged, expand_ranges
from ..text.index_keys import definition_keys
from .row_terms import Rows

Int = NDArray[np.int64]
Float = NDArray[np.float64]

STRONGEST_SHARE = 0.6
DEFINED, CALLED, PATH_MENTIONED, NAME_MENTIONED, CALLEE = 1.0, 0.7, 0.8, 0.5, 0.4
"""Quality of a hit; hits not named here have quality 1, including a row's own id. A callee is what a definition of the
named identifier calls: one hop down its call chain (S0.98); `CALLED` is one hop up."""

SIGNALS = {
    ("test", ""): "matched failing test name",
    ("path", "failing_test"): "matched failing test file",
    ("path", "current_files"): "a file being worked on",
    ("path", "stack_trace"): "named in the stack trace",
    ("path", ""): "matched a named path",
    ("error", ""): "matched the error text",
    ("literal", ""): "contains the quoted text",
    ("identifier", ""): "matched a named identifier",
    ("id", ""): "matched a named id",
}
"""Words of a hit by the anchor's kind and origin; origin "" matches any other."""

CALLEE_SIGNAL = "called by what is named"

_KINDS = ("test", "path", "error", "literal", "identifier", "id")
_READ = ("evidence_id", "entity", "uri", "path", "symbols", "calls", "text")


@dataclass(frozen=True)
class AnchorTerm:
    """`value` is float64, 0 to 1; `quoted` is the weight of the strongest literal that was hit, 0 to 1; `signal` is the
    strongest hit in words, null without a hit."""

    value: Float
    quoted: Float
    signal: pa.Array


def anchor_term(
    owner: Int, row: Int, evidence: pa.Table, anchors: pa.Table, anchor_owner: Int, requests: int
) -> AnchorTerm:
    """The anchor term of each candidate.

    Args:
        owner: request number of each candidate, ascending.
        row: the row of `evidence` of each candidate.
        evidence: stored rows; only those of requests with anchors are read.
        anchors: rows of ANCHORS; `anchor_owner` is the request number of each.
        requests: how many requests there are.
    """
    has_anchors = np.zeros(requests, dtype=bool)
    has_anchors[anchor_owner] = True
    anchored = has_anchors[owner].nonzero()[0]
    if not len(anchored):
        return AnchorTerm(np.zeros(len(owner)), np.zeros(len(owner)), pa.nulls(len(owner), pa.string()))
    weight = quantise(anchors["weight"].to_numpy())
    stored = gathered_columns(evidence, _READ, row[anchored])
    hits = [
        (anchored[candidate], anchor, quality)
        for candidate, anchor, quality in _hits(owner[anchored], stored, anchors, anchor_owner)
    ]
    candidate, anchor, quality = (
        (np.concatenate(part) for part in zip(*hits, strict=True))
        if hits
        else (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    )
    # One row per (candidate, anchor), with the best quality first.
    order = np.lexsort((-quality, anchor, candidate))
    candidate, anchor, quality = candidate[order], anchor[order], quality[order]
    first = first_of_runs(candidate, anchor)
    candidate, anchor, quality = candidate[first], anchor[first], quality[first]
    gain = quantise(weight[anchor] * quality)

    total = np.bincount(anchor_owner, weights=weight, minlength=requests)
    reached = np.bincount(candidate, weights=gain, minlength=len(owner))
    share = np.minimum(reached / np.maximum(total[owner], 2.0**-30), 1.0)
    kind = np.asarray(pc.index_in(flat(anchors["kind"]), value_set=constants(_KINDS)).fill_null(len(_KINDS)))
    order = np.lexsort((anchor, kind[anchor], -gain, candidate))
    lead = order[first_of_runs(candidate[order])]
    best = np.zeros(len(owner))
    best[candidate[lead]] = np.minimum(gain[lead], 1.0) * STRONGEST_SHARE
    strongest = np.full(len(owner), -1, dtype=np.int64)
    strongest[candidate[lead]] = anchor[lead]
    signal = _words(anchors).take(pa.array(strongest, mask=strongest < 0))
    callee = np.zeros(len(owner), dtype=bool)
    callee[candidate[lead]] = quality[lead] == CALLEE
    signal = pc.if_else(pa.array(callee), CALLEE_SIGNAL, signal)
    quoted, literal = np.zeros(len(owner)), kind[anchor] == _KINDS.index("literal")
    np.maximum.at(quoted, candidate[literal], np.minimum(gain[literal], 1.0))
    return AnchorTerm(quantise(best + (1 - best) * share), quoted, signal)


def _hits(owner: Int, rows: Rows, anchors: pa.Table, anchor_owner: Int) -> Iterator[tuple[Int, Int, Float]]:
    """(candidate, anchor, quality) triples; a pair may occur more than once."""
    kind = flat(anchors["kind"]).to_numpy(zero_copy_only=False)
    value = flat(anchors["value"]).cast(pa.large_string())
    # A test is identified by its own name: the last part of `tests/app.py::Suite::test_x[param]`.
    name = pc.replace_substring_regex(value, pattern=r"^.*(?:::| > )|\[[^\]]*\]$", replacement="")
    named = (kind == "identifier") | (kind == "test")
    texts = ((value, named), (name, named & np.asarray(pc.not_equal(name, value))))
    for column, quality in (("symbols", DEFINED), ("calls", CALLED)) if named.any() else ():
        lists, names = flattened(rows[column])
        pairs = [_same(owner[lists], names.cast(pa.large_string()), anchor_owner, *one) for one in texts]
        here, there = (np.concatenate(side) for side in zip(*pairs, strict=True))
        yield lists[here], there, np.full(len(here), quality)
        if column == "symbols" and len(here):
            yield _callees(owner, rows, lists[here], there)
    ids = pc.equal(flat(anchors["kind"]), "id").to_numpy(zero_copy_only=False)
    for column in ("evidence_id", "entity", "uri") if ids.any() else ():
        own, wanted = (pc.utf8_lower(side) for side in (flat(rows[column]).cast(pa.large_string()), value))
        here, there = _same(owner, own, anchor_owner, wanted, ids)
        yield here, there, np.full(len(here), DEFINED)
    if (kind == "path").any():
        yield _paths(owner, flat(rows["path"]).cast(pa.large_string()), anchor_owner, value, kind == "path")
    yield from _mentions(
        owner, flat(rows["text"]), anchor_owner, pc.if_else(pa.array(kind == "test"), name, value), kind
    )


def _callees(owner: Int, rows: Rows, definitions: Int, anchor: Int) -> tuple[Int, Int, Float]:
    """Candidates that define the callees of an anchor's `definitions`, by the closest key of each call."""
    call, names = flattened(rows["calls"].take(pa.array(definitions)))
    called = Ragged.of(names).expand(lambda one: definition_keys(one)[:1])
    row, names = flattened(rows["symbols"])
    # In most candidates no name ends like a called one: their keys are not computed.
    alike = np.asarray(pc.is_in(_ends(names), value_set=_ends(called.vocabulary)))
    row, names = row[alike], names.filter(pa.array(alike))
    defined = Ragged.of(names).expand(definition_keys)
    wanted = called.vocabulary.take(pa.array(called.codes))
    here, there = _same(
        owner[row][defined.rows],
        defined.vocabulary.take(pa.array(defined.codes)),
        owner[definitions][call][called.rows],
        wanted,
        np.ones(len(wanted), dtype=bool),
    )
    return row[defined.rows[here]], anchor[call[called.rows[there]]], np.full(len(here), CALLEE)


def _ends(names: pa.Array) -> pa.Array:
    """The last part of each name in lower case: equal for any two names that share a key."""
    bare = pc.utf8_rtrim(pc.utf8_lower(names.cast(pa.large_string())), characters=".:#/$() \t\r\n")
    return pc.replace_substring_regex(bare, pattern=r"(?s)^.*[.:#/$()\s]", replacement="")


def _same(left: Int, names: pa.Array, right: Int, values: pa.Array, among: NDArray[np.bool_]) -> tuple[Int, Int]:
    """Pairs of positions with equal request and equal text; the right side only where `among`."""
    chosen = among.nonzero()[0]
    if not len(chosen) or not len(names):
        return NOWHERE, NOWHERE
    values = values.take(pa.array(chosen))
    distinct = values.unique()
    code = np.asarray(pc.index_in(names, value_set=distinct).fill_null(-1)).astype(np.int64)
    here = (code >= 0).nonzero()[0]
    width = len(distinct)
    wanted = right[chosen] * width + np.asarray(pc.index_in(values, value_set=distinct)).astype(np.int64)
    order = wanted.argsort(kind="stable")
    keys = left[here] * width + code[here]
    start = wanted[order].searchsorted(keys, "left")
    count = wanted[order].searchsorted(keys, "right") - start
    return here.repeat(count), chosen[order[expand_ranges(start, count)]]


def _paths(
    owner: Int, paths: pa.Array, anchor_owner: Int, values: pa.Array, among: NDArray[np.bool_]
) -> tuple[Int, Int, Float]:
    """Candidates whose path is the anchor's, or where one ends with the other at a `/`."""
    tail = r"^.*/"
    base, wanted = (pc.replace_substring_regex(side, pattern=tail, replacement="") for side in (paths, values))
    here, there = _same(owner, base, anchor_owner, wanted, among)
    # Candidates of one path and anchors of one value are compared once.
    encoded = [side.dictionary_encode() for side in (paths, values)]
    ours, theirs = (np.asarray(side.indices.fill_null(0)).astype(np.int64) for side in encoded)
    width = max(len(encoded[1].dictionary), 1)
    pairs, which = np.unique(ours[here] * width + theirs[there], return_inverse=True)
    left, right = (
        np.strings.add("/", np.asarray(side.dictionary.take(pa.array(at)).to_pylist(), dtype=np.dtypes.StringDType()))
        for side, at in zip(encoded, np.divmod(pairs, width), strict=True)
    )
    same = (np.strings.endswith(left, right) | np.strings.endswith(right, left))[which]
    return here[same], there[same], np.full(int(same.sum()), DEFINED)


def _mentions(
    owner: Int, texts: pa.Array, anchor_owner: Int, values: pa.Array, kind: NDArray[np.object_]
) -> Iterator[tuple[Int, Int, Float]]:
    """Candidates whose text contains an anchor as written; one search per distinct anchor value."""
    distinct = values.dictionary_encode()
    code = np.asarray(distinct.indices).astype(np.int64)
    order = code.argsort(kind="stable")
    bounds = code[order].searchsorted(np.arange(len(distinct.dictionary) + 1))
    quality = np.where(kind == "path", PATH_MENTIONED, np.where(kind == "identifier", NAME_MENTIONED, 1.0))
    first = owner.searchsorted(anchor_owner, "left")
    count = owner.searchsorted(anchor_owner, "right") - first
    # Texts of one request are adjacent, each followed by a NUL, which no anchor contains: a search is one scan of bytes.
    joined = pc.binary_join_element_wise(texts, *(pa.scalar(part, pa.large_string()) for part in ("\0", "")))
    offsets, data = offsets_and_bytes(joined)
    every = data.data
    for number, value in enumerate(distinct.dictionary.to_pylist()):
        asking = order[bounds[number] : bounds[number + 1]]
        if len(value) < 3 or "\0" in value:
            continue
        for low, high, anchors in _stretches(first[asking], count[asking], asking):
            row = (
                _containing(every[offsets[low] : offsets[high]], value.encode(), offsets[low : high + 1] - offsets[low])
                + low
            )
            anchor = anchors[first[anchors].searchsorted(row, "right") - 1]
            yield row, anchor, quality[anchor]


def _containing(stretch: memoryview, value: bytes, offsets: Int) -> Int:
    """The texts that contain `value`, by number; text `i` is `stretch[offsets[i]:offsets[i + 1]]`."""
    between = np.fromiter(map(len, bytes(stretch).split(value)), dtype=np.int64)
    at = (between[:-1] + len(value)).cumsum() - len(value)
    return np.unique(offsets.searchsorted(at, "right") - 1)


def _stretches(first: Int, count: Int, anchors: Int) -> Iterator[tuple[int, int, Int]]:
    """Neighboring requests as one stretch of candidates [low, high), with their anchors in order of request."""
    some = (count > 0).nonzero()[0]
    some = some[first[some].argsort(kind="stable")]
    first, count, anchors = first[some], count[some], anchors[some]
    breaks = (first[1:] != (first + count)[:-1]).nonzero()[0] + 1
    for part in np.split(np.arange(len(first)), breaks) if len(first) else ():
        yield int(first[part[0]]), int(first[part[-1]] + count[part[-1]]), anchors[part]


def _words(anchors: pa.Table) -> pa.Array:
    """Each anchor's hit in words."""
    kind, origin = (flat(anchors[name]).to_numpy(zero_copy_only=False) for name in ("kind", "origin"))
    words = np.full(anchors.num_rows, "matched a named anchor", dtype=object)
    for (of_kind, of_origin), text in sorted(SIGNALS.items()):
        words[(kind == of_kind) & ((origin == of_origin) | (of_origin == ""))] = text
    return pa.array(words, pa.string())
