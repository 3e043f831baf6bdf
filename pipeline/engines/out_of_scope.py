"""The auditors' capture: the best matches that an access gate stopped, by id and gate.

Reads: the tables of a finished shard, the corpus, the projects that the principal audits. Gives: OUT_OF_SCOPE, which
`runs/captures.py` stores apart from every snapshot.

Note: it runs after the line has answered, over rows that the line never opened, with statistics of only those rows.
Nothing visible to a model or caller depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import gathered, rank_within
from ...nodes.errors import AccessError, StoreError
from ...nodes.tables import OUT_OF_SCOPE, QUERY_VECTORS, REACHABLE
from ...nodes.walls.gates import GATES, NUMBER
from ..line.driver import Line, build_driver
from ..runs.captures import keep_captured
from ..storage.places import Place

__all__ = ["audited", "capture", "expect_auditor"]

KEPT = 20
"""Matches kept per request."""
_LANES = ("lexical", "symbol", "exact")
"""Chosen by hand: the lanes that match the text of a request, without a model, a plugin or other hits."""
_TAKEN_OVER = ("contracts", "contract_bounds", "sub_queries", "anchors")


def audited(grants: pa.Table, principal: str, at: datetime) -> frozenset[str]:
    """The projects that a principal audits at an instant; for a request, at its `asked_at`."""
    in_force = pc.fill_null(pc.greater(grants["expires"], pa.scalar(at)), True)
    mine = grants.filter(pc.and_(pc.and_(pc.equal(grants["principal"], principal), grants["audit"]), in_force))
    return frozenset(mine["project"].to_pylist())


def expect_auditor(grants: pa.Table, principal: str, now: datetime) -> None:
    """Check that the principal who captures withheld matches audits a project when the run begins.

    Raises:
        AccessError: the principal audits nothing.
    """
    if not audited(grants, principal, now):
        raise AccessError(
            f"Permission denied: {principal!r} needs an audit grant - at capture_withheld",
            hint="`audit: true` of a principal in the grants file; only auditors may keep what a contract withholds",
        )


def out_of_scope(tables: Mapping[str, pa.Table], line: Line, projects: Collection[str]) -> pa.Table:
    """OUT_OF_SCOPE of a shard: for each request in one of these projects, their best rows that it may not reach.

    Args:
        tables: the tables of the line for the shard, with texts.
        line: the line that ran the shard.
        projects: the projects that the principal audits when the requests are asked.
    """
    frame = line.corpus.frame(sorted(projects), None)
    planned = {name: _asked_in(tables[name], tables["contracts"], projects) for name in _TAKEN_OVER}
    inputs = {
        **frame.inputs(),
        "lanes": tuple(lane for lane in _LANES if lane in line.lanes),
        "bm25": line.bm25,
        "plugins": line.plugins,
        "vectors": None,
        "query_vectors": QUERY_VECTORS.empty(),
    }
    driver = build_driver()
    walled = driver.execute(["row_groups", "reachable"], inputs=inputs, overrides=planned)
    given = planned | {
        "row_groups": walled["row_groups"],
        "reachable": _unreachable(walled["reachable"], walled["row_groups"], frame.evidence.num_rows),
    }
    candidates = driver.execute(["candidates"], inputs=inputs, overrides=given)["candidates"]
    candidates = candidates.filter(
        pc.and_(pc.invert(candidates["withheld"]), pc.less_equal(candidates["pool_rank"], KEPT))
    )
    verdicts = driver.execute(["verdicts"], inputs=inputs, overrides={**given, "candidates": candidates})["verdicts"]
    # Only the first wall applies shadowing by a work tree: the second lets such a row through.
    shadowed = GATES[NUMBER["workspace"] - 1]
    stored = {
        name: gathered(frame.evidence[name], candidates["row"]) for name in ("owner_project", "source_id", "path")
    }
    owner = candidates["request_id"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return OUT_OF_SCOPE.build(
        {
            "request_id": candidates["request_id"],
            "rank": (rank_within(owner) + 1).astype(np.int32),
            "evidence_id": candidates["evidence_id"],
            **stored,
            "lanes": candidates["lanes"],
            "decided_by": pc.fill_null(verdicts["decided_by"], shadowed.name),
            "reason_code": pc.fill_null(verdicts["reason_code"], shadowed.reason_code),
        }
    )


def capture(runs: Place, run_id: str, part: str, tables: Mapping[str, pa.Table], line: Line, auditor: str) -> None:
    """Store an auditor's capture of one part of a run, for projects audited whenever its requests are asked.

    Raises:
        StoreError: it could not be computed or written.
    """
    asked = pc.unique(tables["requests"]["asked_at"]).to_pylist()
    projects = [audited(line.grants, auditor, at) for at in asked]
    if projects and (everywhere := frozenset.intersection(*projects)):
        try:
            keep_captured(runs, run_id, part, out_of_scope(tables, line, everywhere))
        except StoreError:
            raise
        except Exception as error:  # rows that nothing else reads may be damaged in any way
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise StoreError(f"Expected to keep a capture, got {why} - at {run_id}") from error


def _asked_in(table: pa.Table, contracts: pa.Table, projects: Collection[str]) -> pa.Table:
    """The rows of requests in one of these projects."""
    asked = pc.is_in(contracts["project"], value_set=pa.array(sorted(projects), pa.string()))
    return table.filter(pc.is_in(table["request_id"], value_set=contracts["request_id"].filter(asked).combine_chunks()))


def _unreachable(reachable: pa.Table, row_groups: pa.Table, rows_in_all: int) -> pa.Table:
    """The complement of REACHABLE: per row group, every row that an access gate stops or whose segment is not open."""
    group, row = reachable["scope_group"].to_numpy(), reachable["row"].to_numpy()
    everything = np.arange(rows_in_all)
    groups = np.unique(row_groups["scope_group"].to_numpy())
    shut = {number: np.setdiff1d(everything, row[group == number]) for number in groups[groups >= 0].tolist()}
    rows = np.concatenate(list(shut.values())) if shut else np.empty(0, np.int64)
    return REACHABLE.build(
        {
            "scope_group": np.repeat(np.array(list(shut), np.int32), [len(each) for each in shut.values()]),
            "row": rows,
            "withheld_by": np.zeros(len(rows), np.int32),
        }
    )
