"""Citation binding: every label of a block resolves to source, version, span and hash, or it is dropped.

Reads the trimmed items and their stored rows. Gives `citations`, one row per label, equal to the labels in the block,
and `item_details`, the other fields of a bundle's items.

Note: lines and bytes are those of the text *shown*. A cut item starts later or ends earlier than its row, and neighbors
merged into one item may belong to different sections. `text_sha256` is that of the leading row as stored,
`visible_sha256` that of the visible text. The contract's masks also apply to source, path, section, locator and
details; a reader with access to the row finds all of it by evidence id.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.item_texts import resolvable
from .blocks.masking import class_lists, masked, masked_column
from .columns.keys import flags_at, flat, gathered, gathered_columns, pair_positions, positions, take_or
from .rendering import authority_word, locator
from .tables import (
    CITATIONS,
    ITEM_DETAILS,
    Citations,
    Contracts,
    Evidence,
    ItemDetails,
    Packs,
    Placements,
    ScoreTerms,
    Trimmed,
)

_DETAILS = ("entity", "title", "uri", "content_type", "document_type", "domain", "tags",
            "applicable_roles", "excluded_roles")  # fmt: skip
"""Columns of a stored row that a bundle shows. All of them come from sources, so they are masked like the text."""
_GUARDED = ("origin_class", "lifecycle", "owner_project", "owner_user", "zone", "principals")
"""Columns by which later grants admit an item, beside its source and path."""
_CITED = ("source_id", "path", "title", "text_sha256", "authority", "evidence_kind", "captured_time", "source_refs")


def citations(
    trimmed: Trimmed, packs: Packs, contracts: Contracts, evidence: Evidence, placements: Placements
) -> Citations:
    """The citation map, by request and place in the block. A locator names the first line shown, and its section.

    Where the contract requires citations, one that does not resolve is left out together with its item.
    """
    row, placement = trimmed["row"], trimmed["placement"]
    stored = gathered_columns(evidence, _CITED, row)
    stored["section"] = gathered(evidence["section"], _first_rows(trimmed, packs))
    version = gathered(placements["version"], placement)
    line, byte = flat(trimmed["line_start"]), flat(trimmed["byte_start"])
    resolves = resolvable(line, byte, version, stored["path"], stored["text_sha256"])
    shared = ("request_id", "position", "label", "evidence_id", "line_start", "line_end", "byte_start", "byte_end")
    owner = positions(trimmed["request_id"], contracts["request_id"])
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    named = (stored["path"], stored["title"], stored["source_id"], line, stored["section"])
    places = [locator(*values) for values in zip(*(column.to_pylist() for column in named), strict=True)]
    for name in ("source_id", "path", "section"):
        stored[name] = masked(stored[name], mask)
    table = CITATIONS.build(
        {
            **{name: trimmed[name] for name in shared},
            **{name: column for name, column in stored.items() if name not in ("title", "authority")},
            "version": version,
            "locator": masked(pa.array(places, pa.large_string()), mask),
            "visible_sha256": trimmed["visible_sha256"],
            "authority": [authority_word(rank) for rank in stored["authority"].to_pylist()],
            "standing": trimmed["standing"],
            "resolves": resolves,
        }
    )
    required = flags_at(contracts["require_citation"], owner)
    return table.filter(pc.or_(resolves, pa.array(~required)))


def item_details(
    trimmed: Trimmed, score_terms: ScoreTerms, contracts: Contracts, evidence: Evidence, placements: Placements
) -> ItemDetails:
    """Fields of the items' stored rows, by request and place in the block; a null authority reads as 0."""
    row = trimmed["row"]
    tables = (trimmed, score_terms)
    term = pair_positions(*((table["request_id"], table["evidence_id"]) for table in tables))
    recorded = gathered(placements["recorded_time"], trimmed["placement"])
    owner = positions(trimmed["request_id"], contracts["request_id"])
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    of_row = ("authority", "confidence", "conflict_set", "event_time")
    stored = gathered_columns(evidence, (*_DETAILS, *_GUARDED, *of_row), row)
    return ITEM_DETAILS.build(
        {
            **{name: trimmed[name] for name in ("request_id", "evidence_id", "position")},
            **{name: masked_column(stored[name].cast(ITEM_DETAILS.columns[name].type), mask) for name in _DETAILS},
            **{name: stored[name] for name in _GUARDED},
            "authority": pc.fill_null(stored["authority"], 0),
            "confidence": stored["confidence"].cast(pa.float64()),
            "disputed": stored["conflict_set"].is_valid(),
            "freshness": take_or(score_terms["freshness"], term, "undated"),
            "updated_at": pc.coalesce(stored["event_time"], recorded),
        }
    )


def _first_rows(trimmed: pa.Table, packs: pa.Table) -> pa.Array:
    """The frame row of the first row shown of each item; for an item without shown text, its leading row."""
    items = zip(trimmed["evidence_id"].to_pylist(), trimmed["merged_rows"].to_pylist(), strict=True)
    other = {item: members[0] for item, (lead, members) in enumerate(items) if members and members[0] != lead}
    index = np.array(list(other), np.int64)
    wanted = flat(trimmed["request_id"]).take(pa.array(index)), pa.array(other.values(), pa.string())
    rows = trimmed["row"].to_numpy().copy()
    rows[index] = packs["row"].to_numpy()[pair_positions(wanted, (packs["request_id"], packs["evidence_id"]))]
    return pa.array(rows)
