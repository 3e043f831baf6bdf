"""Citation binding: every label of a block resolves to source, version, span and hash.

Reads the trimmed items and their stored rows. Gives `citations`, one row per label, equal to the labels in the block,
and `item_details`, the other fields of a bundle's items.

Note: lines and bytes are those of the text *shown*. A cut item starts later or ends earlier than its row. `text_sha256`
is that of the row as stored, `visible_sha256` that of the visible text. The contract's masks also apply to source, path, section, locator and
details; a reader with access to the row finds all of it by evidence id.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.masking import class_lists, masked
from .blocks.rendering import authority_word, locator
from .columns.keys import flat, gathered, gathered_columns, integers
from .tables import (
    CITATIONS,
    ITEM_DETAILS,
    Citations,
    Contracts,
    Evidence,
    ItemDetails,
    Pool,
    ScoreTerms,
    Trimmed,
)

_DETAILS = ("entity", "title", "uri", "content_type", "document_type", "domain", "tags",
            "applicable_roles", "excluded_roles")  # fmt: skip
"""Columns of a stored row that a bundle shows. All of them come from sources, so they are masked like the text."""
_GUARDED = ("origin_class", "lifecycle", "owner_project", "owner_user", "namespace", "zone", "principals")
"""Columns by which later grants admit an item, beside its source and path."""
_POOLED = ("source_id", "path", "text_sha256", "authority", "evidence_kind")
_CITED = ("title", "section", "captured_time", "source_refs")
"""What a citation says of its row: columns of the pool, and those that are read for items alone."""

Int = NDArray[np.int64]


def citations(trimmed: Trimmed, pool: Pool, contracts: Contracts, evidence: Evidence) -> Citations:
    """The citation map, by request and place in the block. A locator names the first line shown, and its section.

    A citation resolves by lines, by bytes, or by the version of the text; a record without a path needs none. Where the
    contract requires citations, packing drops what has none of them.
    """
    rows = gathered_columns(pool, ("contract", "row", "version", *_POOLED), trimmed["place"])
    stored = {name: rows[name] for name in _POOLED} | gathered_columns(evidence, _CITED, rows["row"])
    line, byte = flat(trimmed["line_start"]), flat(trimmed["byte_start"])
    placed = pc.or_(line.is_valid(), byte.is_valid())
    resolves = pc.or_(placed, pc.or_(rows["version"].is_valid(), stored["path"].is_null()))
    shared = ("request_id", "position", "label", "evidence_id", "place", "line_start", "line_end", "byte_start",
              "byte_end", "visible_sha256", "standing")  # fmt: skip
    owner = integers(rows["contract"])
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    named = (stored["path"], stored["title"], stored["source_id"], line, stored["section"])
    places = [locator(*values) for values in zip(*(column.to_pylist() for column in named), strict=True)]
    for name in ("source_id", "path", "section"):
        stored[name] = masked(stored[name], mask)
    return CITATIONS.build(
        {
            **{name: trimmed[name] for name in shared},
            **{name: column for name, column in stored.items() if name not in ("title", "authority")},
            "version": rows["version"],
            "locator": masked(pa.array(places, pa.large_string()), mask),
            "authority": [authority_word(rank) for rank in stored["authority"].to_pylist()],
            "resolves": resolves,
        }
    )


def item_details(
    trimmed: Trimmed, score_terms: ScoreTerms, pool: Pool, contracts: Contracts, evidence: Evidence
) -> ItemDetails:
    """Fields of the items' stored rows, by request and place in the block; a null authority reads as 0."""
    place = integers(trimmed["place"])
    row, owner = (integers(pool[name])[place] for name in ("row", "contract"))
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    of_row = ("authority", "confidence", "conflict_set", "event_time", "importance")
    recorded = gathered(pool["recorded_time"], place)
    stored = gathered_columns(evidence, (*_DETAILS, *_GUARDED, *of_row), row)
    return ITEM_DETAILS.build(
        {
            **{name: trimmed[name] for name in ("request_id", "evidence_id", "place", "position")},
            **{name: masked(stored[name].cast(ITEM_DETAILS.columns[name].type), mask) for name in _DETAILS},
            **{name: stored[name] for name in _GUARDED},
            "authority": pc.fill_null(stored["authority"], 0),
            "confidence": stored["confidence"].cast(pa.float64()),
            "disputed": stored["conflict_set"].is_valid(),
            "freshness": gathered(score_terms["freshness"], place),
            "importance": stored["importance"],
            "updated_at": pc.coalesce(stored["event_time"], recorded),
            "recorded_at": recorded,
        }
    )
