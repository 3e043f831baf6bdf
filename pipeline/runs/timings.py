"""Timings of the line, stored beside the tables of a run and in no digest: as `[seconds, requests, {node: seconds}]` in
the file of an interactive snapshot, and of all snapshots or shards of a run with a manifest in `timings.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["LineTimings"]


class LineTimings(NamedTuple):
    """The seconds of a pass, how many requests it answered together, and the seconds of each node."""

    seconds: float
    requests: int = 1
    nodes: Mapping[str, float] = {}

    @classmethod
    def of(cls, stored: Any) -> LineTimings:
        """Parse the stored form.

        Raises:
            LookupError, TypeError, ValueError: it is damaged.
        """
        seconds, requests, nodes = stored
        return cls(float(seconds), int(requests), {str(node): float(spent) for node, spent in dict(nodes).items()})
