"""Which candidates hit which anchors of their request, and how well: a helper of task-aware reranking.

Reads the stored rows of candidates and `anchors`. Gives `AnchorTerm`: per candidate the anchor term, 0 to 1, and its
strongest hit in words. A hit has a quality: 1 for a definition, a path, an error line, a test or an id as written; less
for a mention.

Note: with b = 0.6 of the strongest hit's weight and quality, and s the weighted share of the request's anchors that
were hit, the term is b + (1 - b) * s. So one declared anchor, such as the failing test's file, outweighs any number of
mentions found in prose, whose weights are smaller.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import contains
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flattened, gathered_columns
from ..columns.numbers import quantise
from ..text.index_keys import definition_keys

Int = NDArray[np.int64]
Float = NDArray[np.float64]

STRONGEST_SHARE = 0.6
DEFINED, TEST_MENTIONED, PATH_MENTIONED, CALLED, NAME_MENTIONED, CALLEE = 1.0, 0.9, 0.8, 0.7, 0.5, 0.4
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
    ("regex", ""): "matches the regular expression",
    ("identifier", ""): "matched a named identifier",
    ("id", ""): "matched a named id",
}
"""Words of a hit by the anchor's kind and origin; origin "" matches any other."""

CALLEE_SIGNAL = "called by what is named"

_KINDS = ("test", "path", "error", "regex", "literal", "identifier", "id")
"""Of equally strong hits, that of the first of these kinds is named."""
_NAMED = ("identifier", "test")
_WRITTEN = ("test", "regex", "literal")
"""Kinds of what is asked for as it is written. A path is of many rows, and a name may be used by many."""
_MENTIONED = {"path": PATH_MENTIONED, "identifier": NAME_MENTIONED, "test": TEST_MENTIONED}
_IDS = ("evidence_id", "entity", "uri")
_BY_KIND = {"identifier": ("symbols", "calls"), "test": ("symbols", "calls"), "id": _IDS, "path": ("path",)}
"""The columns that are read beside the text, where a request has an anchor of the kind."""
_BEFORE_NAME = re.compile(r"^.*(?:::| > )|\[[^\]]*\]$")
_LEAST = 3
"""Characters of an anchor that is looked for in texts."""


@dataclass(frozen=True)
class AnchorTerm:
    """`value` is float64, 0 to 1; `written` is the weight of the strongest test that it defines, or literal or regular
    expression that it has, 0 to 1; `signal` is the strongest hit in words, null without a hit."""

    value: Float
    written: Float
    signal: pa.Array


class _Anchor(NamedTuple):
    kind: str
    origin: str
    value: str
    weight: float

    @property
    def name(self) -> str:
        """A test's own name: the last part of `tests/app.py::Suite::test_x[param]`."""
        return _BEFORE_NAME.sub("", self.value)

    @property
    def words(self) -> str:
        """A hit in words."""
        return SIGNALS.get((self.kind, self.origin)) or SIGNALS.get((self.kind, "")) or "matched a named anchor"


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
    of_request: list[list[_Anchor]] = [[] for _ in range(requests)]
    weights = quantise(anchors["weight"].to_numpy()).tolist()
    columns = (anchors[name].to_pylist() for name in ("kind", "origin", "value"))
    for number, kind, origin, value, weight in zip(anchor_owner.tolist(), *columns, weights, strict=True):
        of_request[number].append(_Anchor(kind, origin, value, weight))
    value, written = np.zeros(len(owner)), np.zeros(len(owner))
    signal: list[str | None] = [None] * len(owner)
    anchored = [at for at, number in enumerate(owner.tolist()) if of_request[number]]
    if not anchored:
        return AnchorTerm(value, written, pa.array(signal, pa.string()))
    kinds = {anchor.kind for own in of_request for anchor in own}
    read = dict.fromkeys(("text", *(name for kind in kinds for name in _BY_KIND.get(kind, ()))))
    stored = gathered_columns(evidence, read, row[anchored])
    bounds = np.searchsorted(owner[anchored], np.arange(requests + 1)).tolist()
    found = _hits(stored, of_request, bounds)
    for number, own in enumerate(of_request):
        total = max(sum([anchor.weight for anchor in own]), 2.0**-30)
        for member in range(bounds[number], bounds[number + 1]):
            if hits := list(found[member].items()):
                at = anchored[member]
                gains = quantise(np.array([own[place].weight * quality for place, quality in hits])).tolist()
                value[at], written[at], signal[at] = _term(own, hits, gains, total)
    return AnchorTerm(quantise(value), written, pa.array(signal, pa.string()))


def _term(
    anchors: Sequence[_Anchor], hits: Sequence[tuple[int, float]], gains: Sequence[float], total: float
) -> tuple[float, float, str]:
    """The anchor term of a candidate, before rounding; the weight of its strongest hit as written; its strongest hit in words."""
    ordered = sorted(
        (-gain, _KINDS.index(anchors[place].kind), place, quality)
        for (place, quality), gain in zip(hits, gains, strict=True)
    )
    gain, _, lead, quality = ordered[0]
    best = min(-gain, 1.0) * STRONGEST_SHARE
    written = [-gain for gain, _, at, hit in ordered if hit == DEFINED and anchors[at].kind in _WRITTEN]
    words = CALLEE_SIGNAL if quality == CALLEE else anchors[lead].words
    return best + (1 - best) * min(sum(gains) / total, 1.0), min(max(written, default=0.0), 1.0), words


def _hits(
    stored: dict[str, pa.Array], of_request: Sequence[Sequence[_Anchor]], bounds: Sequence[int]
) -> list[dict[int, float]]:
    """For each candidate the anchors of its request that it hits, by place, each with the best quality."""
    found: list[dict[int, float]] = [{} for _ in range(bounds[-1])]

    def hit(members: Iterable[int], place: int, quality: float) -> None:
        for at in members:
            if quality > found[at].get(place, 0.0):
                found[at][place] = quality

    beside = {name: stored[name].to_pylist() for name in ("text", "path", *_IDS) if name in stored}
    named = defaultdict[tuple[int, str], list[int]](list)
    for number, own in enumerate(of_request):
        rows = range(bounds[number], bounds[number + 1])
        for place, anchor in enumerate(own):
            kind, value = anchor.kind, anchor.value
            mention = anchor.name if kind == "test" else value
            if kind == "regex":
                found_in = pc.match_substring_regex(stored["text"].slice(rows.start, len(rows)), value)
                hit((rows.start + np.asarray(found_in).nonzero()[0]).tolist(), place, 1.0)
            elif len(mention) >= _LEAST:
                said = _says if kind in _NAMED else contains
                hit([at for at in rows if said(beside["text"][at], mention)], place, _MENTIONED.get(kind, 1.0))
            if kind == "id":
                hit(
                    [at for at in rows if value.lower() in [(beside[c][at] or "").lower() for c in _IDS]],
                    place,
                    DEFINED,
                )
            elif kind == "path":
                hit([at for at in rows if _same_file(beside["path"][at], value)], place, DEFINED)
            for name in {value, anchor.name} if kind in _NAMED else ():
                named[number, name].append(place)
    if named:
        for quality, place, rows in _named_hits(stored, named, bounds):
            hit(rows, place, quality)
    return found


def _says(text: str, name: str) -> bool:
    """Whether a text has a name that is not a part of a longer one."""
    at = text.find(name)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        if not any(sign == "_" or sign.isalnum() for sign in around):
            return True
        at = text.find(name, at + 1)
    return False


def _same_file(path: str | None, value: str) -> bool:
    """Whether one of two paths ends in the other."""
    return path is not None and (f"/{path}".endswith(f"/{value}") or f"/{value}".endswith(f"/{path}"))


def _named_hits(
    stored: dict[str, pa.Array], named: Mapping[tuple[int, str], list[int]], bounds: Sequence[int]
) -> Iterator[tuple[float, int, Sequence[int]]]:
    """The candidates that define or call what anchors name, and those that define what the first of these call."""
    names = pa.array([name for _, name in named], pa.string())
    request = np.arange(len(bounds) - 1).repeat(np.diff(bounds)).tolist()
    defining = defaultdict[tuple[int, int], list[int]](list)
    for column, quality in (("symbols", DEFINED), ("calls", CALLED)):
        of_row, values = flattened(stored[column])
        at = np.asarray(pc.is_in(values.cast(pa.string()), value_set=names)).nonzero()[0]
        for row, name in zip(of_row[at].tolist(), values.take(pa.array(at)).to_pylist(), strict=True):
            for place in named.get((request[row], name), ()):
                yield quality, place, (row,)
                if column == "symbols":
                    defining[request[row], place].append(row)
    of_row, values = flattened(stored["symbols"])
    edges, symbols, rows = of_row.searchsorted(bounds).tolist(), values.to_pylist(), of_row.tolist()
    for (number, place), leads in defining.items():
        calls = stored["calls"].take(pa.array(leads)).to_pylist()
        callees = {key for own in calls for call in own or () for key in _keys(call)[:1]}
        own = range(edges[number], edges[number + 1]) if callees else ()
        yield CALLEE, place, [rows[n] for n in own if not callees.isdisjoint(_keys(symbols[n]))]


_keys = lru_cache(maxsize=1 << 14)(definition_keys)
