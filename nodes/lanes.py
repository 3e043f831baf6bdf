"""The lanes: every way of finding rows, by name and in the order of their nodes.

`LANES` is the only list; settings, vocabulary, driver and tables read it. A built-in lane is an entry here and a node
`NAME_hits` in `candidate_recall`, `NAME_recall` if it gives more than hits. A plugin lane is a `Lane` with its own `recall`, see `docs/how-to/extend.md`.

Note: this module imports nothing from the data stack, because every command reads the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lane:
    """One way of finding rows.

    `recall` belongs to a plugin: it receives a `LaneScope`, with the rows that pass every gate, and returns a `Scored`;
    the best `lane_k` results of each query become hits.
    """

    name: str
    doc: str
    columns: tuple[str, ...] = ()
    """The columns of EVIDENCE that `recall` reads."""
    recall: Callable[[Any], Any] | None = None
    measured: bool = True
    """Whether `eval` measures its ranking; recall is measured for every lane."""


LANES = (
    Lane("lexical", "BM25 of the words of a query"),
    Lane("semantic", "the nearest vectors"),
    Lane("symbol", "definitions and references of what a request names, and one hop of calls"),
    Lane("file", "the best chunks of the files of code that answer best as a whole", measured=False),
    Lane("recent", "the newest rows of the sources and kinds of a query", measured=False),
    Lane("exact", "rows whose id a request names, or whose text it quotes", measured=False),
    Lane(
        "expansion",
        "what the best hits lead to: neighbors, parents, conflict partners, cited documents, records",
        measured=False,
    ),
    Lane("graph", "a walk from the best hits over links, imports and calls", measured=False),
)
"""All lanes, in the order of their nodes."""

LANE_NAMES = tuple(lane.name for lane in LANES)

NO_VECTORS = (
    "the rows that this contract reaches were indexed without vectors; `index` makes them with the extra `semantic`"
)
SOME_VECTORS = f"some of {NO_VECTORS}"
"""Why the semantic lane does not reach the rows of a request, or some of them."""
