"""Tables as a run stores them, and back; and whether those of some snapshots fit together.

Free text is in no table: a column that holds it is stored under its own name as SHA-256 hex digits (type string,
or a list of them), and the texts go to `texts/` once each, with the query vector where one was computed. Erasing a text
leaves every table as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.audit.records import ANSWER_RECORD, CANDIDATE_RECORD, COVERED, RECORDS, VIEWED, snapshot_digests, view
from ...nodes.columns.digests import innermost, relisted, stored_form, text_sha256, texts_in
from ...nodes.columns.keys import flat, positions
from ...nodes.errors import StoreError, VerificationError, kind_of
from ...nodes.schema import Table
from ...nodes.tables import SNAPSHOTS, TABLES
from ...nodes.vocabulary import OUTCOMES

FORMAT = "scoped-retrieval/run/33"
"""The format of runs; no other is read. Its number is raised with every change of a stored column or of a line."""

PER_RUN = ("grants", "purpose_policies", "kind_policies", "plan_rules", "mode_policies", "role_policies", "role_rules",
           "provenance")  # fmt: skip
"""Tables that are the same for all requests of a run, stored once."""
DECLARED = TABLES | {record.name: record for record in RECORDS}
"""The tables of the line and the records by name."""
VIEWS = (*(TABLES[name] for name in VIEWED), SNAPSHOTS)
"""Every table of the line that a run has, most as views of records."""
READABLE = (*VIEWS, *RECORDS, *(TABLES[name] for name in PER_RUN))
"""Every table that is read from a run."""

TEXTS = pa.schema(
    [
        pa.field("sha256", pa.string(), False),
        pa.field("text", pa.large_string(), False),
        pa.field("vector", pa.list_(pa.int16())),
    ]
)
"""`vector` is the query vector of a sub-query's text, components times 2**15; null for every other text."""
TIMINGS = pa.schema(
    [
        pa.field("name", pa.string(), False),
        pa.field("seconds", pa.float64(), False),
        pa.field("requests", pa.int32(), False),
        pa.field("nodes", pa.map_(pa.string(), pa.float64()), False),
    ]
)
"""The seconds of the line, in no digest: of a snapshot by its id, or of a shard; a pass that answered several snapshots is
there for each of them."""
SETTINGS = pa.schema([pa.field("settings", pa.string(), False)])
"""The settings that a run began with, as JSON: one row."""
_UNDECLARED = {"texts": TEXTS, "timings": TIMINGS, "settings": SETTINGS}


Vectors = Mapping[str, NDArray[np.int16]]
"""The query vectors that the line used for these tables, by text."""


class LineTimings(NamedTuple):
    """The seconds of a pass, how many requests it answered together, and the seconds of each node."""

    seconds: float
    requests: int = 1
    nodes: Mapping[str, float] = {}


def expect_format(found: Any, at: str) -> None:
    """Refuse a record that names another format.

    Raises:
        StoreError: it does.
    """
    if not isinstance(found, Mapping):
        raise StoreError(f"Expected an object, got {kind_of(found)} - at {at}")
    if (got := found.get("format")) != FORMAT:
        hint = "another version wrote it: read it with that one"
        raise StoreError(f"Expected format {FORMAT}, got {got or 'none'} - at {at}", hint=hint)


def stored_schema(name: str, columns: Iterable[str] = ()) -> pa.Schema:
    """The schema of a table as it is stored; including those `columns` that plugins may add."""
    if name in _UNDECLARED:
        return _UNDECLARED[name]
    return DECLARED[name].widened(DECLARED[name].stored_schema, columns)


def home_of(name: str) -> str:
    """The stored table that has the rows of a table: its record, else itself."""
    return VIEWED[name][0].name if name in VIEWED else name


def viewed(stored: pa.Table, name: str) -> pa.Table:
    """A table of a run from the stored one that has its rows."""
    return view(stored, name) if name in VIEWED else stored


def reading(name: str, columns: Collection[str] | None = None) -> Callable[[Sequence[str]], list[str]]:
    """A function that chooses among the columns of a stored part those of a table, or of some of its columns."""

    def of(stored: Sequence[str]) -> list[str]:
        if name not in VIEWED:
            return [column for column in stored if columns is None or column in columns]
        member = VIEWED[name][1]
        wanted = {column: known for column, known in member.own(stored).items() if columns is None or column in columns}
        return [column for column in stored if column == member.marker or column in wanted.values()]

    return of


def stored_tables(tables: Mapping[str, pa.Table], declared: Iterable[Table]) -> dict[str, pa.Table]:
    """The given tables in stored form; a missing one is empty."""
    return {
        t.name: stored_form(tables[t.name], t) if t.name in tables else t.stored_schema.empty_table() for t in declared
    }


def stored_whole(
    tables: Mapping[str, pa.Table],
    declared: Iterable[Table],
    vectors: Vectors | None = None,
    took: Mapping[str, LineTimings] | None = None,
) -> dict[str, pa.Table]:
    """What is stored of some tables: they in stored form, their texts, and the timings by name."""
    stored = stored_tables(tables, declared)
    timings = [
        {"name": name, "seconds": one.seconds, "requests": one.requests, "nodes": [*one.nodes.items()]}
        for name, one in (took or {}).items()
    ]
    return stored | {
        "texts": texts_of({name: tables[name] for name in stored if name in tables}, vectors),
        "timings": pa.Table.from_pylist(timings, TIMINGS),
    }


def timings_in(stored: pa.Table) -> dict[str, LineTimings]:
    """The timings of a stored table by name."""
    rows = stored.to_pylist()
    return {row["name"]: LineTimings(row["seconds"], row["requests"], dict(row["nodes"])) for row in rows}


def texts_of(tables: Mapping[str, pa.Table], vectors: Vectors | None = None) -> pa.Table:
    """Every distinct free text of the tables with its hash, by hash; `vectors` maps texts to int16 arrays."""
    known = dict[str, bytes]()
    for name, table in tables.items():
        known |= texts_in(table, DECLARED[name])
    distinct = sorted(known)
    text = pa.array([known[sha256] for sha256 in distinct], pa.large_binary()).cast(pa.large_string())
    vector = pa.nulls(len(distinct), TEXTS.field("vector").type)
    if vectors:
        found = (vectors.get(t) for t in text.to_pylist())
        vector = pa.array([None if v is None else v.tolist() for v in found], TEXTS.field("vector").type)
    return pa.Table.from_arrays([pa.array(distinct, pa.string()), text, vector], schema=TEXTS)


def with_texts(table: pa.Table, declared: Table, texts: pa.Table) -> pa.Table:
    """A stored table with its free text restored; an erased text is null.

    Raises:
        VerificationError: a text does not match its hash.
    """
    for name, column in declared.columns.items():
        if column.free_text:
            stored = flat(table[name])
            hashes = innermost(stored)
            found = flat(texts["text"]).take(pc.index_in(hashes, value_set=flat(texts["sha256"])))
            if pc.any(pc.not_equal(text_sha256(found), hashes)).as_py():
                raise VerificationError(f"Expected the text that was hashed, got another - at {declared.name}.{name}")
            found = relisted(stored, found)
            index = table.schema.get_field_index(name)
            table = table.set_column(index, pa.field(name, found.type, column.nullable or found.null_count > 0), found)
    return table


def references(tables: Mapping[str, pa.Table]) -> pa.Array:
    """The distinct text hashes that stored tables refer to."""
    found = [
        innermost(flat(table[name])).drop_null()
        for table_name, table in tables.items()
        for name, column in DECLARED[table_name].columns.items()
        if column.free_text
    ]
    return pc.unique(pa.concat_arrays(found)) if found else pa.array([], pa.string())


def changed_texts(texts: pa.Table) -> pa.Array:
    """Hashes that do not match their stored text."""
    return flat(texts["sha256"]).filter(pc.not_equal(text_sha256(texts["text"]), flat(texts["sha256"])))


Kind = Literal["changed", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class RunProblem:
    """One difference: its kind, the part, and the expectation."""

    kind: Kind
    part: str
    detail: str


def problems_in(
    tables: Mapping[str, pa.Table], texts: pa.Table, provenance: pa.Table, erased: Collection[str]
) -> Iterator[RunProblem]:
    """What does not fit together in the stored tables of some snapshots and their texts, some of which were `erased`: texts and
    blocks have their hashes, digests follow from the tables and cover every row, and recalled = selected + hidden + rejected.
    """
    for sha256 in changed_texts(texts).to_pylist():
        yield RunProblem("changed", f"texts/{sha256}", "Expected the text that was hashed, got another")
    wanted, present = ({*some.to_pylist()} for some in (references(tables), texts["sha256"]))
    for sha256 in sorted(wanted - present - {*erased}):
        yield RunProblem("missing", f"texts/{sha256}", "Expected a text or the receipt of its erasure, got neither")
    for sha256 in sorted(present - wanted):
        yield RunProblem("extra", f"texts/{sha256}", "Expected a text that a table refers to, got another")
    for sha256 in sorted({*erased} - (wanted - present)):
        yield RunProblem("extra", f"texts/{sha256}", "Expected no text that was erased, got it or its receipt alone")
    snapshots = tables["snapshots"].combine_chunks()
    owners = {table.name: positions(tables[table.name]["request_id"], snapshots["request_id"]) for table in COVERED}
    for name, owner in owners.items():
        if (owner < 0).any():  # no digest covers them
            yield RunProblem("extra", name, "Expected rows of the requests of snapshots, got those of another request")
    digests = snapshot_digests(tables, provenance, flat(snapshots["request_id"]))
    blocks = view(tables[ANSWER_RECORD.name], "blocks").select(["request_id", "text"]).to_pylist()
    shown = {block["request_id"]: block["text"] for block in blocks}
    for row, digest in zip(snapshots.to_pylist(), digests, strict=True):
        part = f"snapshots/{row['snapshot_id']}"
        if digest != row["snapshot_digest"]:
            yield RunProblem("changed", part, "Expected the snapshot digest to follow from the tables, got another")
        if shown.get(row["request_id"], row["visible_sha256"]) != row["visible_sha256"]:
            yield RunProblem("changed", part, "Expected the block that was hashed, got another")
    owner, outcome = owners[CANDIDATE_RECORD.name], tables[CANDIDATE_RECORD.name]["decisions.outcome"]
    counted = {"recalled": owner}
    counted |= {
        f"{name}{'_rows' * (name == 'selected')}": owner[np.asarray(pc.equal(outcome, name))]
        for name in OUTCOMES.values
    }
    for name, rows in counted.items():
        if np.bincount(rows[rows >= 0], minlength=snapshots.num_rows).tolist() != snapshots[name].to_pylist():
            yield RunProblem(
                "changed", "decisions", f"Expected as many {name} as candidates of that outcome, got others"
            )
