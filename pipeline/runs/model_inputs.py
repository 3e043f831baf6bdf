"""Recorded model inputs, each a line of LOG, and the erasure of texts of evidence from them.

A line names the tables of a record, which are shared, and the file of its texts, which has the lines of each source by
SHA-256, which vouches for them: the lines of an erased row are removed from the file, and tables and line stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ...nodes.context_tables import CONTEXT_DECISIONS
from ...nodes.errors import StoreError
from ..storage.durable import entries
from ..storage.places import Place
from .files import read_parquet, write_parquet
from .log import RunFolder

KIND = "context"
"""The kind of their lines."""
CONTEXTS = "contexts"
"""The folder of their texts below a folder of runs."""
TEXTS = pa.schema([pa.field("sha256", pa.string(), False), pa.field("text", pa.large_string(), False)])


def records_in(store: RunFolder) -> list[Mapping[str, Any]]:
    """What the lines of the records say, oldest first; a line that was changed hides no other."""
    lines = (line for line in store.log.each() if not isinstance(line, bytes))
    return [line.body for line in lines if line.body["kind"] == KIND]


def texts_of(store: RunFolder, record: Mapping[str, Any]) -> Place:
    """The file of the texts of a record."""
    return store.path / CONTEXTS / record["texts"]


def erase_from_inputs(store: RunFolder, evidence_ids: Collection[str]) -> int:
    """Remove the texts of rows of evidence from every record, and files that no line names; returns the number of texts. A
    sweep comes before, so that the writer of a record adds no line after it.

    Repeating an interrupted erasure completes it.

    Raises:
        StoreError: a record cannot be read; the others were processed.
    """
    count, failed, wanted = 0, None, pa.array(sorted(evidence_ids), pa.string())
    records = records_in(store)
    for record in records:
        try:
            count += _erase_from(store, record, wanted)
        except StoreError as error:
            failed = failed or error
    kept = {record["texts"] for record in records}
    for file in entries(store.path / CONTEXTS):
        if file.name not in kept:
            file.unlink(missing_ok=True)
    if failed is not None:
        raise failed
    return count


def _erase_from(store: RunFolder, record: Mapping[str, Any], wanted: pa.Array) -> int:
    """Remove texts from one record."""
    tables, file = record["tables"], texts_of(store, record)
    decisions = read_parquet(store.shared(tables[CONTEXT_DECISIONS.name]), CONTEXT_DECISIONS.stored_schema)
    shown = decisions.filter(pc.is_in(decisions["evidence_id"], value_set=wanted))
    texts = read_parquet(file, TEXTS)
    left = texts.filter(pc.invert(pc.is_in(texts["sha256"], value_set=flat(shown["lines"]).drop_null())))
    if left.num_rows < texts.num_rows:
        write_parquet(file, left, sync=True)
    return texts.num_rows - left.num_rows
