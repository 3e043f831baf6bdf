"""Timings of the line per snapshot, stored beside its tables and in no digest: `LineTimings` and its stored forms.

An interactive file contains `[seconds, requests, {node: seconds}]`. The manifest of a compacted run names its nodes
once and holds `[seconds, requests, [microseconds, ...]]` per snapshot, null for a node that did not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["LineTimings", "in_manifest", "of_manifest", "read_took", "seconds_of_nodes"]

TIMED = "timed_nodes"
SECONDS = "request_seconds"
"""Keys of the manifest."""


class LineTimings(NamedTuple):
    """The seconds of a pass, how many requests it answered together, and the seconds of each node."""

    seconds: float
    requests: int = 1
    nodes: Mapping[str, float] = {}


def read_took(stored: Any) -> LineTimings | None:
    """Parse the timings in an interactive file.

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """
    if stored is None:
        return None
    seconds, requests, nodes = stored
    return LineTimings(float(seconds), int(requests), {str(node): float(spent) for node, spent in dict(nodes).items()})


def in_manifest(took: Mapping[str, LineTimings]) -> dict[str, Any]:
    """The timings of snapshots as stored in a manifest; empty if none was measured."""
    names = sorted({node for one in took.values() for node in one.nodes})
    rows = {
        name: [one.seconds, one.requests, [_micros(one.nodes.get(node)) for node in names]]
        for name, one in took.items()
    }
    return {SECONDS: rows, TIMED: names} if rows else {}


def of_manifest(manifest: Mapping[str, Any]) -> dict[str, LineTimings]:
    """Parse the timings in a manifest, by snapshot.

    Raises:
        LookupError, TypeError, ValueError: it is damaged.
    """
    names = manifest.get(TIMED, ())
    return {
        name: LineTimings(
            float(seconds),
            int(requests),
            {node: spent / 1e6 for node, spent in zip(names, micros, strict=True) if spent is not None},
        )
        for name, (seconds, requests, micros) in manifest.get(SECONDS, {}).items()
    }


def seconds_of_nodes(took: Iterable[LineTimings]) -> dict[str, float]:
    """The total seconds of each node over snapshots; a pass that answered several counts once."""
    total: dict[str, float] = {}
    for one in took:
        for node, spent in one.nodes.items():
            total[node] = total.get(node, 0.0) + spent / one.requests
    return {node: round(spent, 6) for node, spent in sorted(total.items())}


def _micros(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)
