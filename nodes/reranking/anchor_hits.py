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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import gathered_columns
from ..columns.numbers import quantise
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
_BY_KIND = {"identifier": ("symbols", "calls"), "test": ("symbols", "calls"), "id": ("evidence_id", "entity", "uri"),
            "path": ("path",)}  # fmt: skip
"""The columns that are read beside the text, where a request has an anchor of the kind."""
_BEFORE_NAME = re.compile(r"^.*(?:::| > )|\[[^\]]*\]$")
_LEAST = 3
"""Characters of an anchor that is looked for in texts."""

Row = Mapping[str, Any]


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
    of_request: list[list[_Anchor]] = [[] for _ in range(requests)]
    weights = quantise(anchors["weight"].to_numpy()).tolist()
    columns = (anchors[name].to_pylist() for name in ("kind", "origin", "value"))
    for number, kind, origin, value, weight in zip(anchor_owner.tolist(), *columns, weights, strict=True):
        of_request[number].append(_Anchor(kind, origin, value, weight))
    value, quoted = np.zeros(len(owner)), np.zeros(len(owner))
    signal: list[str | None] = [None] * len(owner)
    anchored = [at for at, number in enumerate(owner.tolist()) if of_request[number]]
    if not anchored:
        return AnchorTerm(value, quoted, pa.array(signal, pa.string()))
    kinds = {anchor.kind for own in of_request for anchor in own}
    read = dict.fromkeys(("text", *(name for kind in kinds for name in _BY_KIND.get(kind, ()))))
    stored = {name: column.to_pylist() for name, column in gathered_columns(evidence, read, row[anchored]).items()}
    rows = [dict(zip(stored, values, strict=True)) for values in zip(*stored.values(), strict=True)]
    bounds = np.searchsorted(owner[anchored], np.arange(requests + 1)).tolist()
    for number, own in enumerate(of_request):
        members = range(bounds[number], bounds[number + 1])
        total = max(sum([anchor.weight for anchor in own]), 2.0**-30)
        for member, hits in zip(members, _hits([rows[member] for member in members], own), strict=True):
            if hits:
                at = anchored[member]
                gains = quantise(np.array([own[place].weight * quality for place, quality in hits])).tolist()
                value[at], quoted[at], signal[at] = _term(own, hits, gains, total)
    return AnchorTerm(quantise(value), quoted, pa.array(signal, pa.string()))


def _term(
    anchors: Sequence[_Anchor], hits: Sequence[tuple[int, float]], gains: Sequence[float], total: float
) -> tuple[float, float, str]:
    """The anchor term of a candidate, before rounding; the weight of its strongest literal; its strongest hit in words."""
    ordered = sorted(
        (-gain, _KINDS.index(anchors[place].kind), place, quality)
        for (place, quality), gain in zip(hits, gains, strict=True)
    )
    gain, _, lead, quality = ordered[0]
    best = min(-gain, 1.0) * STRONGEST_SHARE
    literals = [min(-gain, 1.0) for gain, _, place, _ in ordered if anchors[place].kind == "literal"]
    words = CALLEE_SIGNAL if quality == CALLEE else anchors[lead].words
    return best + (1 - best) * min(sum(gains) / total, 1.0), max(literals, default=0.0), words


def _hits(rows: Sequence[Row], anchors: Sequence[_Anchor]) -> Iterator[list[tuple[int, float]]]:
    """For each candidate of a request the anchors that it hits, by place, each with the best quality."""
    names = [{anchor.value, anchor.name} if anchor.kind in _NAMED else set[str]() for anchor in anchors]
    called = [_called(rows, own) for own in names]
    for row in rows:
        found = (
            (place, max(_qualities(row, anchor, own, callees), default=0.0))
            for place, (anchor, own, callees) in enumerate(zip(anchors, names, called, strict=True))
        )
        yield [(place, quality) for place, quality in found if quality]


def _qualities(row: Row, anchor: _Anchor, names: set[str], callees: set[str]) -> Iterator[float]:
    """The ways in which a candidate hits an anchor."""
    kind, value = anchor.kind, anchor.value
    if kind in _NAMED:
        symbols = row["symbols"] or ()
        if not names.isdisjoint(symbols):
            yield DEFINED
        if not names.isdisjoint(row["calls"] or ()):
            yield CALLED
        if callees and any(not callees.isdisjoint(definition_keys(symbol)) for symbol in symbols):
            yield CALLEE
    elif kind == "id" and value.lower() in [(row[name] or "").lower() for name in _BY_KIND["id"]]:
        yield DEFINED
    elif kind == "path" and row["path"] is not None:
        path, wanted = f"/{row['path']}", f"/{value}"
        if path.endswith(wanted) or wanted.endswith(path):
            yield DEFINED
    mention = anchor.name if kind == "test" else value
    if len(mention) >= _LEAST and mention in row["text"]:
        yield _MENTIONED.get(kind, 1.0)


def _called(rows: Sequence[Row], names: set[str]) -> set[str]:
    """The closest key of each call of the candidates that define one of some names."""
    defining = (row for row in rows if names and not names.isdisjoint(row["symbols"] or ()))
    return {key for row in defining for call in row["calls"] or () for key in definition_keys(call)[:1]}
