"""The lanes: every way of finding rows, by name and in the order of their nodes.

`LANES` is the one list; settings, vocabulary, driver and tables read it. A lane of the package is a line here and a node
`NAME_hits` in `candidate_recall`. A lane of a plugin is a `Lane` with a `recall` of its own, see `docs/how-to/extend.md`.

Note: nothing of the data stack is imported here, because settings are read for every command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lane:
    """One way of finding rows.

    `recall` is that of a plugin: it is given a `LaneScope` and returns a `Scored`. Rows are those that pass every gate, and of
    what it returns the best `lane_k` of each query become hits.
    """

    name: str
    doc: str
    columns: tuple[str, ...] = ()
    """The columns of EVIDENCE that `recall` reads."""
    recall: Callable[[Any], Any] | None = None
    measured: bool = True
    """Whether `eval` measures its ranking; of every lane it measures what it recalled."""


LANES = (
    Lane("lexical", "BM25 of the words of a query"),
    Lane("semantic", "the nearest vectors"),
    Lane("symbol", "definitions and references of what a request names, and one hop of calls"),
    Lane("file", "the best chunks of the files of code that answer best as a whole", measured=False),
    Lane("recent", "the newest rows of the sources and kinds of a query", measured=False),
    Lane("exact", "rows whose id a request names", measured=False),
    Lane(
        "expansion",
        "what the best hits lead to: neighbours, parents, conflict partners, cited documents, records",
        measured=False,
    ),
    Lane("graph", "a walk from the best hits over links, imports, calls and common changes", measured=False),
)
"""Every lane, in the order of their nodes."""

LANE_NAMES = tuple(lane.name for lane in LANES)
