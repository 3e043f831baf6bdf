"""Tables as a run stores them, and back.

Free text is in no table: a column that holds it is stored under its own name as SHA-256 hex digits (type string,
or a list of them), and the texts go to `texts/` once each, with the query vector where one was computed. Erasing a text
leaves every table as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.digests import free_texts, named_digest, stored_form, table_digest, text_sha256
from ...nodes.columns.keys import flat, pair_codes
from ...nodes.errors import StoreError, VerificationError, kind_of
from ...nodes.schema import Table
from ...nodes.tables import TABLES
from ..progress import counted

VERSION = 19
"""Raised with every change of a stored column or of the manifest."""
FORMAT = f"scoped-retrieval/run/{VERSION}"
"""The format of runs; no other is read."""

PERSISTED = tuple(t for t in TABLES.values() if t.persist)
"""Every table a run stores."""

PER_RUN = ("grants", "purpose_policies", "kind_policies", "plan_rules", "mode_policies", "role_policies", "role_rules",
           "provenance")  # fmt: skip
"""Tables that are the same for all requests of a run, stored once."""

PER_REQUEST = tuple(t for t in PERSISTED if t.name not in PER_RUN)

TEXTS = pa.schema(
    [
        pa.field("sha256", pa.string(), False),
        pa.field("text", pa.large_string(), False),
        pa.field("vector", pa.list_(pa.int16())),
    ]
)
"""`vector` is the query vector of a sub-query's text, components times 2**15; null for every other text."""


Vectors = Mapping[str, NDArray[np.int16]]
"""The query vectors that the line used for these tables, by text."""


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
    """The schema of a table in stored form, or of the texts; including those `columns` that plugins may add."""
    return TEXTS if name == "texts" else TABLES[name].widened(TABLES[name].stored_schema, columns)


def values_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values of a column, or of its lists, in order."""
    array = flat(column)
    return flat(pc.list_flatten(array)) if pa.types.is_list(array.type) else array


def stored_tables(tables: Mapping[str, pa.Table], declared: Iterable[Table]) -> dict[str, pa.Table]:
    """The given tables in stored form; a missing one is empty."""
    return {
        t.name: stored_form(tables[t.name], t) if t.name in tables else t.stored_schema.empty_table() for t in declared
    }


def texts_of(
    tables: Mapping[str, pa.Table], stored: Mapping[str, pa.Table], vectors: Vectors | None = None
) -> pa.Table:
    """Every distinct free text of the tables with its hash, by hash; `vectors` maps texts to int16 arrays."""
    texts, hashes = [], []
    for name, table in tables.items():
        for column in free_texts(TABLES[name]) if name in stored else ():
            if table[column].null_count < table.num_rows:
                texts.append(values_of(table[column]).cast(pa.large_string()))
                hashes.append(values_of(stored[name][column]))
    if not texts:
        return TEXTS.empty_table()
    text, sha256 = pa.concat_arrays(texts), pa.concat_arrays(hashes)
    distinct = pc.unique(sha256.drop_null())
    distinct = distinct.take(pc.sort_indices(distinct))
    text = text.take(pc.index_in(distinct, value_set=sha256))
    vector = pa.nulls(len(distinct), TEXTS.field("vector").type)
    if vectors:
        found = (vectors.get(t) for t in text.to_pylist())
        vector = pa.array([None if v is None else v.tolist() for v in found], TEXTS.field("vector").type)
    return pa.Table.from_arrays([distinct, text, vector], schema=TEXTS)


def with_texts(table: pa.Table, declared: Table, texts: pa.Table) -> pa.Table:
    """A stored table with its free text restored; an erased text is null.

    Raises:
        VerificationError: a text does not match its hash.
    """
    for index, (name, column) in enumerate(declared.columns.items()):
        if column.free_text:
            stored = flat(table[name])
            hashes = values_of(stored)
            found = flat(texts["text"]).take(pc.index_in(hashes, value_set=flat(texts["sha256"])))
            if pc.any(pc.not_equal(text_sha256(found), hashes)).as_py():
                raise VerificationError(f"Expected the text that was hashed, got another - at {declared.name}.{name}")
            if pa.types.is_list(stored.type):
                counts = np.asarray(pc.fill_null(pc.list_value_length(stored), 0))
                ends = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
                found = pa.ListArray.from_arrays(ends, found, mask=pc.is_null(stored))
            table = table.set_column(index, pa.field(name, found.type, column.nullable or found.null_count > 0), found)
    return table


def logical_digest(name: str, table: pa.Table) -> str:
    """The logical digest of a stored part, which binds the ids of its requests, too.

    Texts contribute their hashes, as everywhere: `changed_texts` verifies the texts.
    """
    if name == "texts":
        return table_digest(table.drop_columns("text"))
    ids = table.select([name for name in table.column_names if name == "request_id"])
    return named_digest({"rows": table_digest(table, TABLES[name]), "requests": table_digest(ids)})


def references(tables: Mapping[str, pa.Table]) -> pa.Array:
    """The distinct text hashes that stored tables refer to."""
    found = [
        values_of(table[name]).drop_null()
        for table_name, table in tables.items()
        for name, column in TABLES[table_name].columns.items()
        if column.free_text
    ]
    return pc.unique(pa.concat_arrays(found)) if found else pa.array([], pa.string())


def changed_texts(texts: pa.Table) -> pa.Array:
    """Hashes that do not match their stored text."""
    return flat(texts["sha256"]).filter(pc.not_equal(text_sha256(texts["text"]), flat(texts["sha256"])))


def check_conservation(tables: Mapping[str, pa.Table], at: str) -> None:
    """Check that every candidate has exactly one decision, and recalled = selected + hidden + rejected per request.

    Raises:
        VerificationError: a candidate has none or two, or the counts do not add up.
    """
    candidates, decisions, snapshots = (tables[name] for name in ("candidates", "decisions", "snapshots"))
    pairs = pair_codes(*((table["request_id"], table["evidence_id"]) for table in (candidates, decisions)))
    wanted, decided = (np.sort(np.asarray(codes)) for codes in pairs)
    if np.any(decided[1:] == decided[:-1]) or not np.array_equal(wanted, decided):
        raise VerificationError(
            f"Expected one decision for each of {len(wanted)} candidates, got {len(decided)} - at {at}/decisions"
        )
    names = ("selected_rows", "hidden", "rejected", "recalled")
    selected, hidden, rejected, recalled = (flat(snapshots[name]).to_numpy(zero_copy_only=False) for name in names)
    if (selected + hidden + rejected != recalled).any():
        raise VerificationError(
            f"Expected recalled = selected + hidden + rejected, got another sum - at {at}/snapshots"
        )
    if recalled.sum() != len(decided):
        raise VerificationError(
            f"Expected {counted(len(decided), 'recalled row')}, got another sum - at {at}/snapshots"
        )
