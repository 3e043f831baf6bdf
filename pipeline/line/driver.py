"""The driver: the step modules as one Hamilton graph, built once, and `run_line`, the only way to run it.

Reads resolved requests, a corpus, policies and grants. Gives the line's tables.

Note: a request that breaks the line must not fail its shard. The shard is halved until the request is alone; then a
failed lane is left out, or the request becomes a failed snapshot. An error of the corpus is not caused by a request: it
ends the shard.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import RECORD, VIEWED, Recorded
from ...nodes.blocks.token_counting import Counters
from ...nodes.columns.keys import flat
from ...nodes.errors import public_text
from ...nodes.lanes import LANE_NAMES as LANES
from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.recall.bm25 import Bm25
from ...nodes.recall.file_recall import NO_FILES
from ...nodes.recall.lane_recall import NO_LEXICAL
from ...nodes.tables import CAPTURES, FAILURES, LANE_HITS, QUERY_VECTORS, REQUESTS, SNAPSHOTS, TABLES
from ..corpus import Corpus, CorpusFrame
from ..encoders.cross_encoder import CROSS_ENCODER, PairScores
from .planned_driver import PlannedDriver, declared_table, driver_of, failed_node
from .query_vectors import QueryVectors

STEPS = (
    "scope_resolution",
    "query_planning",
    "boundary_gates",
    "session_trail",
    "candidate_recall",
    "boundary_filtering",
    "task_aware_reranking",
    "evidence_packing",
    "fact_verification",
    "budget_trimming",
    "citation_binding",
    "context_projection",
    "audit_snapshot",
)
"""The step modules in the order of the line."""

SCOPED = ("contracts", "contract_bounds")
"""Nodes that need no corpus: they run first, and determine the part of it that is opened."""

_NOTHING: dict[str, dict[str, Any]] = {lane: {f"{lane}_hits": LANE_HITS.empty()} for lane in LANES}
_NOTHING |= {"lexical": {"lexical_recall": NO_LEXICAL}, "file": {"file_recall": NO_FILES}}
"""The node of each lane, and what it gives where the lane is left out."""

ENCODING = "query_vectors"
"""The node that asks the encoder."""


@dataclass(frozen=True)
class Line:
    """Everything that is fixed within a run: the common settings of all shards.

    `corpus` is a view of one generation: it must not change when the corpus is written.
    """

    corpus: Corpus
    policies: Mapping[str, pa.Table]
    grants: pa.Table
    provenance: pa.Table
    lanes: tuple[str, ...] = LANES
    bm25: Bm25 = field(default_factory=Bm25)
    vectors: QueryVectors = field(default_factory=lambda: QueryVectors(None))
    lanes_off: Mapping[str, str] = field(default_factory=dict)
    """Lanes that are not available, with the reason; this is part of digests, and `provenance` names the encoder."""
    counters: Counters = field(default_factory=Counters)
    pairs: PairScores = field(default_factory=lambda: PairScores(None))
    """Scores of the cross-encoder, if one is set; `provenance` names it."""
    plugins: Plugins = NO_PLUGINS
    """Gates, lanes and score terms of plugins; the code digest in `provenance` covers them too."""

    @property
    def inputs(self) -> dict[str, pa.Table]:
        """The tables that a run stores once: policies, grants and provenance, by name."""
        return {**self.policies, "grants": self.grants, "provenance": self.provenance}


@lru_cache(maxsize=1)
def build_driver() -> PlannedDriver:
    """The driver of the line. One is enough: it may run in several threads."""
    return driver_of(STEPS)


@lru_cache(maxsize=1)
def outputs() -> tuple[str, ...]:
    """The nodes whose tables a run has, sorted."""
    kept = {*VIEWED, SNAPSHOTS.name}
    return tuple(sorted(node.name for node in build_driver().made() if node.name in kept))


def run_line(requests: pa.Table, failures: pa.Table, captures: pa.Table, line: Line) -> dict[str, pa.Table]:
    """The tables of the line for one shard: every node that a run stores, `requests` and `failures` themselves, their record
    with its `texts`, and the vectors of sub-queries (QUERY_VECTORS).

    `failures` are requests refused on arrival; each gets a failed snapshot. So does a request that breaks the line; one
    that breaks a lane continues without it, with status partial. Errors of the corpus belong to no request and are
    raised.
    """
    parts = []
    if requests.num_rows:
        parts += _run(requests, captures, line)
    if failures.num_rows or not parts:
        parts.append(_failed(REQUESTS.empty(), failures, captures, line))
    if len(parts) == 1:
        return parts[0]
    return {name: together([part[name] for part in parts]) for name in parts[0]}


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Parts of a table as one; those of requests that failed have no rows, and no columns of plugins."""
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled, promote_options="default").combine_chunks()


def failed_line(requests: pa.Table, error: Exception, captures: pa.Table, line: Line) -> dict[str, pa.Table]:
    """The tables of requests that the line did not answer, or not consistently: they contain no part of an answer."""
    failures = FAILURES.build({"request_id": requests["request_id"], "error": [_reason(error)] * requests.num_rows})
    return _failed(requests, failures, captures, line)


def _frame_of(planned: Mapping[str, pa.Table], line: Line) -> CorpusFrame:
    """The part of the corpus that the contracts of a shard may reach."""
    bounds = planned["contract_bounds"]
    users = pc.unique(pc.list_flatten(flat(bounds["users"]))).to_pylist()
    return line.corpus.frame(pc.unique(bounds["project"]).to_pylist(), users)


def _run(
    requests: pa.Table, captures: pa.Table, line: Line, broken: Mapping[str, str] | None = None
) -> list[dict[str, pa.Table]]:
    """Run a shard, halving it around a failing request; results in request order."""
    broken = broken or {}
    try:
        inputs, planned = _scoped(requests.combine_chunks(), captures, line)
    except Exception as error:  # of any kind: halving the shard finds the request that causes it
        return _around(error, requests, captures, line, broken)
    # An error of the corpus is not caused by a request: it ends the shard, which can be run again.
    frame = _frame_of(planned, line)
    try:
        return [_execute(inputs, planned, frame, broken)]
    except Exception as error:  # of any kind: halving the shard finds the request that causes it
        return _around(error, requests, captures, line, broken)


def _around(
    error: Exception, requests: pa.Table, captures: pa.Table, line: Line, broken: Mapping[str, str]
) -> list[dict[str, pa.Table]]:
    """The results of requests after a node raised any exception: those that did not cause it continue."""
    if requests.num_rows > 1:
        half = requests.num_rows // 2
        return [*_run(requests.slice(0, half), captures, line), *_run(requests.slice(half), captures, line)]
    node = failed_node(error) or ""
    lane = node.removesuffix("_hits").removesuffix("_recall")
    if (lane == CROSS_ENCODER or (lane in LANES and node != lane)) and lane not in broken:
        return _run(requests, captures, line, {**broken, lane: _reason(error)})
    if sys.flags.dev_mode:
        traceback.print_exception(error)
    return [failed_line(requests, error, captures, line)]


def _scoped(requests: pa.Table, captures: pa.Table, line: Line) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """The line's inputs outside the corpus, and the tables computed before it is opened."""
    inputs: dict[str, Any] = {
        **line.inputs,
        "requests": requests,
        "failures": FAILURES.empty(),
        "lanes": line.lanes,
        "bm25": line.bm25,
        "counters": line.counters,
        "cross_encoder": line.pairs,
        "encoder": line.vectors,
        "lanes_off": line.lanes_off,
        "plugins": line.plugins,
        "captures": _captures_of(requests["request_id"], captures),
    }
    return inputs, build_driver().execute(list(SCOPED), inputs=inputs)


def _execute(
    inputs: dict[str, Any], planned: dict[str, pa.Table], frame: CorpusFrame, broken: Mapping[str, str]
) -> dict[str, pa.Table]:
    driver = build_driver()
    inputs |= frame.inputs() | {"broken": broken}
    if CROSS_ENCODER in broken:
        inputs["cross_encoder"] = PairScores(None)
    overrides = planned | {name: nothing for lane in broken for name, nothing in _NOTHING.get(lane, {}).items()}
    wanted = [name for name in outputs() if name not in planned]
    found = driver.execute([*wanted, RECORD, ENCODING], inputs=inputs, overrides=overrides)
    return {
        "requests": inputs["requests"],
        "failures": FAILURES.empty(),
        **{name: planned[name] for name in outputs() if name in planned},
        **found,
        **_stored(found[RECORD]),
        "query_vectors": found[ENCODING].rows,
    }


def _stored(record: Recorded) -> dict[str, pa.Table]:
    """A record and its texts."""
    return {RECORD: record.rows, "texts": record.texts}


def _failed(requests: pa.Table, failures: pa.Table, captures: pa.Table, line: Line) -> dict[str, pa.Table]:
    """The tables of requests that failed: nothing was recalled, decided or shown, and a snapshot says so."""
    driver = build_driver()
    audit = ("conditions", "decisions", RECORD, "snapshots")
    inputs: dict[str, Any] = {v.name: None for v in driver.list_available_variables() if v.is_external_input}
    inputs |= {name: TABLES[name].empty() for name in inputs if name in TABLES}
    ids = failures["request_id"]
    inputs |= {
        "requests": requests,
        "failures": failures,
        "captures": _captures_of(ids, captures),
        "provenance": line.provenance,
    }
    nodes = (v.name for v in driver.list_available_variables() if not v.is_external_input and v.name not in audit)
    empty = {name: _empty(name) for name in nodes}
    found = driver.execute(list(audit), inputs=inputs, overrides=empty)
    stored = {name: empty[name] for name in outputs() if name not in audit}
    given = {"requests": requests, "failures": failures, "query_vectors": QUERY_VECTORS.empty()}
    return given | stored | found | _stored(found[RECORD])


def _empty(node: str) -> pa.Table:
    variable = next(v for v in build_driver().list_available_variables() if v.name == node)
    table = declared_table(variable.type)
    return table.empty() if table else pa.table({})


def _captures_of(ids: pa.ChunkedArray, captures: pa.Table) -> pa.Table:
    mine = captures.filter(pc.is_in(captures["request_id"], value_set=flat(ids)))
    return CAPTURES.check(mine.sort_by("request_id") if mine.num_rows > 1 else mine)


def _reason(error: Exception) -> str:
    """The part of an error that may be stored: this package's own messages; of any other, its type and node."""
    node = failed_node(error)
    return f"{public_text(error)} - in {node}" if node else public_text(error)


def ordered_lanes(lanes: Iterable[str]) -> tuple[str, ...]:
    """The given lanes in the order of the line."""
    wanted = set(lanes)
    return tuple(lane for lane in LANES if lane in wanted)
