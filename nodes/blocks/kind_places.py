"""Places in a block that are reserved for the best item of a kind, so that one kind does not fill it alone.

Reads the places that packing assigned by rank, and the estimated cost of each item. Gives the final places.

Note: ranking is unchanged, and the best matches keep the first places. An item is moved only from behind the estimated
end of the shown items to the last places before that end, and only if its score is near that of the best, or if the
request requires its kind. So variety costs only the weakest items that would be shown. The cost is an estimate: it
affects the order, never a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import among, distinct_rows, first_of_runs, flattened, order_by, run_lengths
from ..vocabulary import EVIDENCE_NEEDS

NEAR = 0.7
"""An item is near if it has at least this share of the best final score of its request."""
KEPT_SHARE = 3
"""At most one part in this many of the budget is reserved for kinds."""
TOKENS_PER_TERM = 2
"""Estimated tokens of a text per index term."""
BESIDE_TEXT = 40
"""Tokens of label, locator and fence."""

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Places:
    """Items in the order of their places, all arrays in item order: request, `place` as `max_items` counts it, kind."""

    owner: Int
    place: Int
    kind: Int
    final: Float
    required: Bool
    """Whether the request requires items of this kind."""
    able: Bool
    """Whether the item may represent its kind; history may not."""
    tokens: Int
    """Estimated tokens of the item."""

    def leads(self) -> Bool:
        """The first able item of each kind of each request, if the kind is required, or its score near the best one's."""
        lead = np.zeros(len(self.owner), dtype=bool)
        index = self.able.nonzero()[0]
        lead[index[distinct_rows(self.owner[index], self.kind[index])[0]]] = True
        starts = first_of_runs(self.owner)
        best = np.maximum.reduceat(self.final, starts).repeat(run_lengths(starts, len(self.owner)))
        return lead & (self.required | (self.final >= NEAR * best))


def kind_classes(items: Places, max_tokens: Int, max_items: Int) -> Int:
    """0 for items that stay in front, 1 for those kept for their kind, 2 for the rest; limits are per item."""
    if not len(items.owner):
        return np.empty(0, dtype=np.int64)
    lead = items.leads()
    order = order_by(items.owner, ~items.required)  # required kinds come first
    cost = np.empty(len(lead), dtype=np.int64)
    used = _running(items.owner, items.tokens)
    kept = np.zeros(len(lead), dtype=bool)
    front = (used <= max_tokens) & (items.place <= max_items)
    for _ in range(2):  # kept items take room, and may push another lead out of the front
        behind = lead & ~front
        cost[order] = _running(items.owner, (items.tokens * behind)[order])
        kept = behind & (cost <= max_tokens // KEPT_SHARE)
        room, places = (max_tokens - _total(items.owner, items.tokens * kept), max_items - _total(items.owner, kept))
        front = (used <= room) & (items.place <= places)
    front[first_of_runs(items.owner)] = True
    return np.where(front, 0, np.where(kept, 1, 2))


def _running(owner: Int, values: Int) -> Int:
    """The running sum of the values within each request, inclusive."""
    sums = values.cumsum()
    starts = first_of_runs(owner)
    return sums - (sums[starts] - values[starts]).repeat(run_lengths(starts, len(owner)))


def _total(owner: Int, values: NDArray[np.generic]) -> Int:
    """The sum of the values of each item's request."""
    starts = first_of_runs(owner)
    return np.add.reduceat(np.asarray(values, dtype=np.int64), starts).repeat(run_lengths(starts, len(owner)))


def required_kinds(contracts: pa.Table, owner: Int, kind: pa.Array) -> Bool:
    """Whether the request of each row requires its kind."""
    request, needs = flattened(contracts["required_evidence"])
    required = np.zeros(len(owner), dtype=bool)
    if not len(needs):
        return required
    for need, (served, _) in EVIDENCE_NEEDS.items():
        asked = np.zeros(contracts.num_rows, dtype=bool)
        asked[request[among(needs, (need,))]] = True
        required |= asked[owner] & among(kind, (served,))
    return required
