"""The commit tables of a corpus: when each commit of an indexed history was recorded, per owner project.

    packs/<id>/commits.arrow    COMMITS of every project, by project, source and time; the manifest names the pack

Gives: `COMMITS`, `commits_after`, `on_branches` and `commit_hash`. A commit that changed no stored text,
such as a merge, is recorded only here; so is the branch, so that another name for the same commits adds no row.
Note: an import of a source brings all of its commits, so they are replaced; those of other sources stay.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.schema import TIMESTAMP
from .identity import MultisetHash, row_keys

FILE = "commits.arrow"
COMMITS = pa.schema(
    [
        pa.field("owner_project", pa.string(), False),
        pa.field("source_id", pa.string(), False),
        pa.field("version", pa.string(), False),
        pa.field("recorded_time", TIMESTAMP, False),
        pa.field("branch", pa.string()),
    ]
)
"""One row per commit of a source's line; `version` is its full id, `branch` the one checked out, null if none is."""
_OF_COMMIT = COMMITS.names[2:]


def commits_after(stored: pa.Table, project: str, read: Mapping[str, pa.Table]) -> pa.Table:
    """COMMITS after an import of a project that read these sources: the other columns by source id."""
    again = pc.and_(
        pc.equal(stored["owner_project"], project), pc.is_in(stored["source_id"], pa.array([*read], pa.string()))
    )
    tables = [stored.filter(pc.invert(again))]
    for source, table in read.items():
        owner, named = (pa.repeat(pa.scalar(value), table.num_rows) for value in (project, source))
        columns = [owner, named, *(table[name].cast(COMMITS.field(name).type) for name in _OF_COMMIT)]
        tables.append(pa.table(columns, schema=COMMITS))
    order = [(name, "ascending") for name in ("owner_project", "source_id", "recorded_time", "version")]
    return pa.concat_tables(tables).sort_by(order).combine_chunks()


def on_branches(evidence: pa.Table, commits: pa.Table) -> pa.Table:
    """The evidence in which a row without a branch is on that of its source's line."""
    named = commits.filter(commits["branch"].is_valid())
    if not named.num_rows:
        return evidence
    sources, rows = (pc.binary_join_element_wise(t["owner_project"], t["source_id"], "\0") for t in (named, evidence))
    found = named["branch"].take(pc.index_in(rows, value_set=sources))
    at = evidence.schema.get_field_index("branch")
    return evidence.set_column(at, evidence.schema.field(at), pc.coalesce(evidence["branch"], found))


def commit_hash(commits: pa.Table, other: pa.Table | None = None) -> MultisetHash:
    """The multiset hash of a commit table, a part of its generation's content; only of the commits that another lacks."""
    if other is not None:
        known = row_keys(other, COMMITS.names)
        commits = commits.filter(pc.invert(pc.is_in(row_keys(commits, COMMITS.names), value_set=known)))
    return MultisetHash.of([b"commit\0" + key for key in row_keys(commits, COMMITS.names).to_pylist()])
