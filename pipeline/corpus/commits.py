"""The commit tables of a corpus: when each commit of an indexed history was recorded, per owner project.

    packs/<id>/commits.arrow    COMMITS of every project, by project, source and time; the manifest names the pack

Gives: `COMMITS`, `commits_after` and `commit_hash`. A commit that changed no stored text,
such as a merge, is recorded only here.
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
    ]
)
"""One row per commit of a source's line; `version` is its full id."""


def commits_after(stored: pa.Table, project: str, read: Mapping[str, pa.Table]) -> pa.Table:
    """COMMITS after an import of a project that read these sources: `version` and `recorded_time` by source id."""
    again = pc.and_(
        pc.equal(stored["owner_project"], project), pc.is_in(stored["source_id"], pa.array([*read], pa.string()))
    )
    tables = [stored.filter(pc.invert(again))]
    for source, table in read.items():
        owner, named = (pa.repeat(pa.scalar(value), table.num_rows) for value in (project, source))
        columns = [owner, named, *(table[name].cast(COMMITS.field(name).type) for name in ("version", "recorded_time"))]
        tables.append(pa.table(columns, schema=COMMITS))
    order = [(name, "ascending") for name in ("owner_project", "source_id", "recorded_time", "version")]
    return pa.concat_tables(tables).sort_by(order).combine_chunks()


def commit_hash(commits: pa.Table, other: pa.Table | None = None) -> MultisetHash:
    """The multiset hash of a commit table, a part of its generation's content; only of the commits that another lacks."""
    if other is not None:
        known = row_keys(other, COMMITS.names)
        commits = commits.filter(pc.invert(pc.is_in(row_keys(commits, COMMITS.names), value_set=known)))
    times = commits["recorded_time"].cast(pa.int64())
    rows = zip(*(column.to_pylist() for column in (*commits.columns[:3], times)), strict=True)
    return MultisetHash.of(["\0".join(("commit", *map(str, row))).encode() for row in rows])
