"""Recorded model inputs, each a line of LOG, and the erasure of texts of evidence from them.

A line names the tables of a record, which are shared, and the file of its texts, which has the lines of each source by
SHA-256, which vouches for them: the lines of an erased row are removed from the file, and tables and line stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import TEXTS
from ...nodes.columns.keys import flat
from ...nodes.context_tables import CONTEXT_DECISIONS
from ...nodes.errors import StoreError
from ..storage.places import Place
from .files import read_parquet, write_parquet
from .log import RunFolder, of_kind

KIND = "context"
"""The kind of their lines."""
CONTEXTS = "contexts"
"""The folder of their texts below a folder of runs."""


def records_in(store: RunFolder, text: str = f'"kind":"{KIND}"') -> list[Mapping[str, Any]]:
    """What the lines of the records that contain a text say, oldest first; a line that was changed hides no other."""
    lines = (line for line in store.log.each(text) if not isinstance(line, bytes))
    return [line.body for line in of_kind(lines, KIND)]


def texts_of(store: RunFolder, record: Mapping[str, Any]) -> Place:
    """The file of the texts of a record."""
    return store.path / CONTEXTS / record["texts"]


def erase_from_inputs(store: RunFolder, evidence_ids: Collection[str]) -> int:
    """Remove the texts of rows of evidence from every record; returns the number of texts. A sweep comes before, so that the
    writer of a record adds no line after it.

    Repeating an interrupted erasure completes it.

    Raises:
        StoreError: a record cannot be read; the others were processed.
    """
    count, failed, wanted = 0, None, pa.array(sorted(evidence_ids), pa.string())
    for record in records_in(store):
        try:
            count += _erase_from(store, record, wanted)
        except StoreError as error:
            failed = failed or error
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
