"""Citation binding: every label of a block leads to source, version, span and hash, or it does not leave.

Reads the trimmed items and their stored rows. Gives `citations`, one row per label, equal to the labels in the block,
and `item_details`, what else a bundle says of each item.

What one would otherwise get wrong: lines and bytes are those of the text *shown*. A cut item starts later or ends
earlier than its row. `text_sha256` is that of the leading row as stored, `visible_sha256` that of what is visible.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .item_texts import resolvable
from .keys import flags_at, flat, gathered, pair_positions, positions, take_or
from .rendering import authority_words, locators
from .tables import (
    CITATIONS,
    ITEM_DETAILS,
    Citations,
    Contracts,
    Evidence,
    ItemDetails,
    Placements,
    ScoreTerms,
    Trimmed,
)

_DETAILS = ("entity", "origin_class", "title", "uri", "content_type", "document_type", "domain", "tags",
            "applicable_roles", "excluded_roles")  # fmt: skip


def citations(trimmed: Trimmed, contracts: Contracts, evidence: Evidence, placements: Placements) -> Citations:
    """The citation map, by request and place in the block.

    Where the contract requires citations, what does not resolve is left out, and with it its item.
    """
    row, placement = trimmed["row"], trimmed["placement"]
    stored = {
        name: gathered(evidence[name], row)
        for name in (
            "source_id", "path", "title", "section", "text_sha256", "authority", "evidence_kind", "captured_time",
            "source_refs",
        )
    }  # fmt: skip
    version = gathered(placements["version"], placement)
    line, byte = flat(trimmed["line_start"]), flat(trimmed["byte_start"])
    resolves = resolvable(line, byte, version, stored["path"], stored["text_sha256"])
    shared = ("request_id", "position", "label", "evidence_id", "line_start", "line_end", "byte_start", "byte_end")
    table = CITATIONS.build(
        {
            **{name: trimmed[name] for name in shared},
            **{name: column for name, column in stored.items() if name not in ("title", "authority")},
            "version": version,
            "locator": pc.cast(
                locators(stored["path"], stored["title"], stored["source_id"], line, stored["section"]), pa.string()
            ),
            "visible_sha256": trimmed["visible_sha256"],
            "authority": authority_words(stored["authority"]),
            "standing": trimmed["standing"],
            "resolves": resolves,
        }
    )
    required = flags_at(contracts["require_citation"], positions(trimmed["request_id"], contracts["request_id"]))
    return table.filter(pc.or_(resolves, pa.array(~required)))


def item_details(trimmed: Trimmed, score_terms: ScoreTerms, evidence: Evidence, placements: Placements) -> ItemDetails:
    """What the stored rows say of the items, by request and place in the block; a null authority reads as 0."""
    row = trimmed["row"]
    tables = (trimmed, score_terms)
    term = pair_positions(*((table["request_id"], table["evidence_id"]) for table in tables))
    recorded = gathered(placements["recorded_time"], trimmed["placement"])
    return ITEM_DETAILS.build(
        {
            **{name: trimmed[name] for name in ("request_id", "evidence_id", "position")},
            **{name: gathered(evidence[name], row) for name in _DETAILS},
            "authority": pc.fill_null(gathered(evidence["authority"], row), 0),
            "freshness": take_or(score_terms["freshness"], term, "undated"),
            "updated_at": pc.coalesce(gathered(evidence["event_time"], row), recorded),
        }
    )
