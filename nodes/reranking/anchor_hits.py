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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import gathered_columns
from ..columns.numbers import RESOLUTION, quantise
from ..text.index_keys import definition_keys

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
"""Of equally strong hits, that of the first of these kinds is named."""
_NAMED = ("identifier", "test")
_MENTIONED = {"path": PATH_MENTIONED, "identifier": NAME_MENTIONED}
_IDS = ("evidence_id", "entity", "uri")
_BY_KIND = {"identifier": ("symbols", "calls"), "test": ("symbols", "calls"), "id": _IDS, "path": ("path",)}
"""The columns that are read beside the text, where a request has an anchor of the kind."""
_BEFORE_NAME = re.compile(r"^.*(?:::| > )|\[[^\]]*\]$")
_LEAST = 3
"""Characters of an anchor that is looked for in texts."""


@dataclass(frozen=True)
class AnchorTerm:
    """`value` is float64, 0 to 1; `quoted` is the weight of the strongest literal that was hit, 0 to 1; `signal` is the
    strongest hit in words, null without a hit."""

    value: Float
    quoted: Float
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
    value, quoted = np.zeros(len(owner)), np.zeros(len(owner))
    signal: list[str | None] = [None] * len(owner)
    of_request: dict[int, list[_Anchor]] = {}
    weights = quantise(anchors["weight"].to_numpy()).tolist()
    columns = (anchors[name].to_pylist() for name in ("kind", "origin", "value"))
    for number, kind, origin, text, weight in zip(anchor_owner.tolist(), *columns, weights, strict=True):
        of_request.setdefault(number, []).append(_Anchor(kind, origin, text, weight))
    bounds = owner.searchsorted(np.arange(requests + 1)).tolist()
    kinds = {anchor.kind for own in of_request.values() for anchor in own}
    read = dict.fromkeys(("text", *(name for kind in kinds for name in _BY_KIND.get(kind, ()))))
    anchored = np.isin(owner, [*of_request]).nonzero()[0]
    stored = {name: column.to_pylist() for name, column in gathered_columns(evidence, read, row[anchored]).items()}
    low = 0
    for number, own in sorted(of_request.items()):
        places = range(bounds[number], bounds[number + 1])
        rows = {name: values[low : low + len(places)] for name, values in stored.items()}
        low += len(places)
        total = max(sum([anchor.weight for anchor in own]), RESOLUTION)
        for at, qualities in zip(places, zip(*(_qualities(anchor, rows) for anchor in own), strict=True), strict=True):
            if any(qualities):
                value[at], quoted[at], signal[at] = _term(own, qualities, total)
    return AnchorTerm(quantise(value), quoted, pa.array(signal, pa.string()))


def _term(anchors: Sequence[_Anchor], qualities: Sequence[float], total: float) -> tuple[float, float, str]:
    """The anchor term of a candidate, before rounding; the weight of its strongest literal; its strongest hit in words."""
    gains = [
        round(one.weight * quality / RESOLUTION) * RESOLUTION for one, quality in zip(anchors, qualities, strict=True)
    ]
    hits = [place for place, quality in enumerate(qualities) if quality]
    lead = min(hits, key=lambda place: (-gains[place], _KINDS.index(anchors[place].kind), place))
    best = min(gains[lead], 1.0) * STRONGEST_SHARE
    literals = [min(gains[place], 1.0) for place in hits if anchors[place].kind == "literal"]
    words = CALLEE_SIGNAL if qualities[lead] == CALLEE else anchors[lead].words
    return best + (1 - best) * min(sum(gains) / total, 1.0), max(literals, default=0.0), words


def _qualities(anchor: _Anchor, rows: Mapping[str, list[Any]]) -> list[float]:
    """How well each of a request's candidates hits an anchor, 0 where it does not; `rows` are their columns."""
    kind, value, mention = anchor.kind, anchor.value, anchor.name if anchor.kind == "test" else anchor.value
    mentioned = _MENTIONED.get(kind, 1.0) if len(mention) >= _LEAST else 0.0
    found = [mentioned if mentioned and mention in text else 0.0 for text in rows["text"]]
    if kind == "path":
        named = [_same_file(path, value) for path in rows["path"]]
    elif kind == "id":
        named = [
            value.lower() in [(id_ or "").lower() for id_ in ids]
            for ids in zip(*(rows[name] for name in _IDS), strict=True)
        ]
    elif kind in _NAMED:
        names = {value, anchor.name}
        named = [not names.isdisjoint(symbols or ()) for symbols in rows["symbols"]]
        leads = [calls for calls, defines in zip(rows["calls"], named, strict=True) if defines]
        callees = {key for calls in leads for call in calls or () for key in _keys(call)[:1]}
        defined = (name for symbols in (rows["symbols"] if callees else ()) for name in symbols or ())
        called = {name for name in defined if not callees.isdisjoint(_keys(name))}
        for at, (calls, symbols) in enumerate(zip(rows["calls"], rows["symbols"], strict=True)):
            if not names.isdisjoint(calls or ()):
                found[at] = max(found[at], CALLED)
            elif not called.isdisjoint(symbols or ()):
                found[at] = max(found[at], CALLEE)
    else:
        return found
    return [DEFINED if hit else quality for hit, quality in zip(named, found, strict=True)]


def _same_file(path: str | None, value: str) -> bool:
    """Whether one of two paths ends in the other."""
    return path is not None and (f"/{path}".endswith(f"/{value}") or f"/{value}".endswith(f"/{path}"))


_keys = lru_cache(maxsize=1 << 14)(definition_keys)
