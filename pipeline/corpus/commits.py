"""The commit tables of a corpus: when each commit of an indexed history was recorded, per owner project.

    packs/<id>/commits.arrow    COMMITS of every project, those of a project by source, then time; the manifest names the pack

Gives: `COMMITS`, `commits_of`, `commits_with`, `commits_after` and `commit_hash`. A commit that changed no stored text,
such as a merge, is recorded only here.
Note: an import of a source brings all of its commits, so its table is replaced; the tables of other sources stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.schema import TIMESTAMP
from .identity import MultisetHash

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


def commits_of(table: pa.Table, project: str) -> pa.Table:
    """COMMITS of a project, from those of all."""
    return table.filter(pc.equal(table["owner_project"], project))


def commits_with(stored: pa.Table, changed: Mapping[str, pa.Table]) -> pa.Table:
    """COMMITS of all projects, with those of some, by project, replaced."""
    gone = pc.is_in(stored["owner_project"], value_set=pa.array(sorted(changed), pa.string()))
    return pa.concat_tables([stored.filter(pc.invert(gone)), *changed.values()]).combine_chunks()


def commits_after(stored: pa.Table, project: str, read: Mapping[str, pa.Table]) -> pa.Table:
    """COMMITS of a project after an import that read these sources: `version` and `recorded_time` by source id."""
    tables = [without_sources(stored, read.keys())]
    for source, table in read.items():
        owner, named = (pa.repeat(pa.scalar(value), table.num_rows) for value in (project, source))
        columns = [owner, named, *(table[name].cast(COMMITS.field(name).type) for name in ("version", "recorded_time"))]
        tables.append(pa.table(columns, schema=COMMITS))
    order = [(name, "ascending") for name in ("source_id", "recorded_time", "version")]
    return pa.concat_tables(tables).sort_by(order).combine_chunks()


def without_sources(commits: pa.Table, sources: Collection[str]) -> pa.Table:
    """COMMITS of the other sources."""
    gone = pc.is_in(commits["source_id"], value_set=pa.array(sorted(sources), pa.string()))
    return commits.filter(pc.invert(gone)).combine_chunks()


def commit_hash(commits: pa.Table) -> MultisetHash:
    """The multiset hash of a commit table, a part of its generation's content."""
    times = commits["recorded_time"].cast(pa.int64())
    rows = zip(*(column.to_pylist() for column in (*commits.columns[:3], times)), strict=True)
    return MultisetHash.of(["\0".join(("commit", *map(str, row))).encode() for row in rows])
