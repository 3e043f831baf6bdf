"""What a lane looks up: keys with weights, for the sub-queries of a scope.

Made by `lane_recall`; read by `posting_recall` and `compiled_recall`, which score the postings that the keys have.
"""

from __future__ import annotations

from dataclasses import dataclass

from .recall_scope import Bool, Float, Int


@dataclass(frozen=True)
class Entries:
    """Look-ups of a scope: `sub` (position in `scope.sub`, ascending), `key` (position in `keys`), `weight`.

    `hop` marks look-ups that the request did not make itself: they score admissible rows only.
    """

    keys: list[str]
    sub: Int
    key: Int
    weight: Float
    hop: Bool | None = None
