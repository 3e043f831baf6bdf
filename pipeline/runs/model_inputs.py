"""Erases texts of evidence from recorded model inputs, which are in `contexts` beside the runs.

A record keeps the lines of each source by SHA-256, which vouches for them: the lines of an erased row are removed, and ledger and
manifest stay. `context.store` reads
and writes records; this module has only what an erasure needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ...nodes.context_tables import CONTEXT_DECISIONS
from ...nodes.errors import StoreError
from ..storage.durable import entries, exists, remove_leftovers, remove_tree
from ..storage.places import Place
from .files import read_parquet, write_parquet

CONTEXTS = "contexts"
"""The folder of records below a folder of runs."""
TEXTS = pa.schema([pa.field("sha256", pa.string(), False), pa.field("text", pa.large_string(), False)])


def records_in(contexts: Place) -> Iterator[Place]:
    """The folders of complete records."""
    if exists(contexts):
        yield from (
            each for each in entries(contexts) if each.name.startswith("ctx-") and exists(each / "manifest.json")
        )


def erase_from_inputs(contexts: Place, evidence_ids: Collection[str]) -> int:
    """Remove the texts of rows of evidence from every record; returns the number of texts. Ledgers and digests stay.

    Repeating an interrupted erasure completes it. Incomplete records are removed; their writers, if alive, fail, as their texts may be erased ones.

    Raises:
        StoreError: a record cannot be read; the others were processed.
    """
    count, failed = 0, None
    wanted = pa.array(sorted(evidence_ids), pa.string())
    for folder in entries(contexts):
        if folder.name.startswith("ctx-") and not exists(folder / "manifest.json"):
            remove_tree(folder)
    for folder in records_in(contexts):
        remove_leftovers(folder)
        try:
            count += _erase_from(folder, wanted)
        except StoreError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return count


def _erase_from(folder: Place, wanted: pa.Array) -> int:
    """Remove texts from one record."""
    decisions = read_parquet(folder / "context_decisions.parquet", CONTEXT_DECISIONS.stored_schema)
    shown = decisions.filter(pc.is_in(decisions["evidence_id"], value_set=wanted))
    texts = read_parquet(folder / "texts.parquet", TEXTS)
    left = texts.filter(pc.invert(pc.is_in(texts["sha256"], value_set=flat(shown["lines"]).drop_null())))
    if left.num_rows < texts.num_rows:
        write_parquet(folder / "texts.parquet", left, sync=True)
    return texts.num_rows - left.num_rows
