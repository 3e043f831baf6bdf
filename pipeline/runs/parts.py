"""Tables as a run stores them, and back; and whether those of some snapshots fit together.

Free text is in no table: a column that holds it is stored under its own name as SHA-256 hex digits (type string,
or a list of them), and the texts go to `texts/` once each, with the query vector where one was computed. Erasing a text
leaves every table as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.audit.records import RECORD, SCHEMA, VIEWED, hashes_in, snapshot_digests, view
from ...nodes.audit.records import TEXTS as TEXTS_OF_RECORD
from ...nodes.columns.digests import innermost, relisted, stored_form, text_sha256
from ...nodes.columns.keys import flat
from ...nodes.errors import StoreError, VerificationError
from ...nodes.schema import Table
from ...nodes.tables import SNAPSHOTS, TABLES
from ...nodes.vocabulary import OUTCOMES

FORMAT = "scoped-retrieval/run/39"
"""The format of runs; no other is read. Its number is raised with every change of a stored column or of a line."""

PER_RUN = ("grants", "purpose_policies", "kind_policies", "plan_rules", "mode_policies", "role_policies", "role_rules",
           "provenance")  # fmt: skip
"""Tables that are the same for all requests of a run, stored once."""
STORED = (RECORD, SNAPSHOTS.name)
"""What a run stores of its requests besides texts and timings."""
VIEWS = (*VIEWED.values(), SNAPSHOTS)
"""Every table of the line that a run has, most as views of its record."""
READABLE = (*VIEWS, *(TABLES[name] for name in PER_RUN))
"""Every table that is read from a run."""

TEXTS = TEXTS_OF_RECORD.append(pa.field("vector", pa.list_(pa.int16())))
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
SCHEMAS = {table.name: table.stored_schema for table in READABLE}
SCHEMAS |= {RECORD: SCHEMA, "texts": TEXTS, "timings": TIMINGS, "settings": SETTINGS}
"""The schema of every stored table and view, without the columns of plugins."""


Vectors = Mapping[str, NDArray[np.int16]]
"""The query vectors that the line used for these tables, by text."""


class LineTimings(NamedTuple):
    """The seconds of a pass, how many requests it answered together, and the seconds of each node."""

    seconds: float
    requests: int = 1
    nodes: Mapping[str, float] = {}


def expect_format(found: Mapping[str, Any], at: str) -> None:
    """Refuse a line that names another format.

    Raises:
        StoreError: it does.
    """
    if (got := found.get("format")) != FORMAT:
        hint = "another version wrote it: read it with that one"
        raise StoreError(f"Expected format {FORMAT}, got {got or 'none'} - at {at}", hint=hint)


def home_of(name: str) -> str:
    """The stored table that has the rows of a table: the record, else itself."""
    return RECORD if name in VIEWED else name


def viewed(stored: pa.Table, name: str) -> pa.Table:
    """A table of a run from the stored one that has its rows."""
    return view(stored, name) if name in VIEWED else stored


def stored_whole(
    tables: Mapping[str, pa.Table], vectors: Vectors | None = None, took: Mapping[str, LineTimings] | None = None
) -> dict[str, pa.Table]:
    """What is stored of the tables of the line: their record, their snapshots, their texts, and the timings by name."""
    timings = [
        {"name": name, "seconds": one.seconds, "requests": one.requests, "nodes": [*one.nodes.items()]}
        for name, one in (took or {}).items()
    ]
    texts = tables["texts"]
    found = [vectors.get(text) for text in texts["text"].to_pylist()] if vectors else [None] * len(texts)
    vector = pa.array([None if one is None else one.tolist() for one in found], TEXTS.field("vector").type)
    return {
        RECORD: tables[RECORD],
        SNAPSHOTS.name: stored_form(tables[SNAPSHOTS.name], SNAPSHOTS),
        "texts": distinct_texts(texts.append_column(TEXTS.field("vector"), vector)),
        "timings": pa.Table.from_pylist(timings, TIMINGS),
    }


def distinct_texts(texts: pa.Table) -> pa.Table:
    """Each text once, by hash, with its vector if it has one."""
    texts = texts.take(pc.sort_indices(pc.is_null(texts["vector"]))).combine_chunks()
    return texts.take(pc.index_in(pc.unique(texts["sha256"]), value_set=flat(texts["sha256"]))).sort_by("sha256")


def timings_in(stored: pa.Table) -> dict[str, LineTimings]:
    """The timings of a stored table by name."""
    rows = stored.to_pylist()
    return {row["name"]: LineTimings(row["seconds"], row["requests"], dict(row["nodes"])) for row in rows}


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


def references(record: pa.Table) -> pa.Array:
    """The distinct text hashes that a record refers to."""
    return pc.unique(pa.concat_arrays([found.drop_null() for found in hashes_in(record)]))


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
    record, snapshots = tables[RECORD], tables[SNAPSHOTS.name]
    wanted, present = ({*some.to_pylist()} for some in (references(record), texts["sha256"]))
    for sha256 in sorted(wanted - present - {*erased}):
        yield RunProblem("missing", f"texts/{sha256}", "Expected a text or the receipt of its erasure, got neither")
    for sha256 in sorted(present - wanted):
        yield RunProblem("extra", f"texts/{sha256}", "Expected a text that a table refers to, got another")
    for sha256 in sorted({*erased} - (wanted - present)):
        yield RunProblem("extra", f"texts/{sha256}", "Expected no text that was erased, got it or its receipt alone")
    if record["request_id"] != snapshots["request_id"]:  # no digest covers its rows
        yield RunProblem("extra", RECORD, "Expected the requests of the snapshots, got those of other requests")
        return
    shown = {
        block["request_id"]: block["text"]
        for block in view(record, "blocks").select(["request_id", "text"]).to_pylist()
    }
    digests = snapshot_digests(record, snapshots, provenance)
    decided = view(record, "decisions")
    outcomes = Counter(zip(decided["request_id"].to_pylist(), decided["outcome"].to_pylist(), strict=True))
    recalled = Counter(view(record, "candidates")["request_id"].to_pylist())
    for row, digest in zip(snapshots.to_pylist(), digests, strict=True):
        part, request = f"snapshots/{row['snapshot_id']}", row["request_id"]
        if digest != row["snapshot_digest"]:
            yield RunProblem("changed", part, "Expected the snapshot digest to follow from the tables, got another")
        if shown.get(request, row["visible_sha256"]) != row["visible_sha256"]:
            yield RunProblem("changed", part, "Expected the block that was hashed, got another")
        for name in OUTCOMES.values:
            if outcomes[request, name] != row[f"{name}{'_rows' * (name == 'selected')}"]:
                detail = f"Expected as many {name} as candidates of that outcome, got others"
                yield RunProblem("changed", "decisions", detail)
        if not recalled[request] == row["recalled"] == sum(outcomes[request, name] for name in OUTCOMES.values):
            yield RunProblem("changed", "decisions", "Expected one decision for each candidate, got others")
