"""Citation binding: every label of a block leads to source, version, span and hash, or it does not leave.

Reads the trimmed items and their stored rows. Gives `citations`, one row per label, equal to the labels in the block.

What one would otherwise get wrong: lines and bytes are those of the text *shown*. A cut item starts later or ends
earlier than its row. `text_sha256` is that of the leading row as stored, `visible_sha256` that of what is visible.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .keys import flags_at, flat, positions
from .rendering import authority_words, locators
from .tables import CITATIONS, Citations, Contracts, Evidence, Placements, Trimmed


def citations(trimmed: Trimmed, contracts: Contracts, evidence: Evidence, placements: Placements) -> Citations:
    """The citation map, by request and place in the block.

    A citation resolves if its source is named, a hash fixes the text, and something says where it is: lines or bytes, or
    the version whose text it is; a record without a path is its own place. Where the contract requires citations, what
    does not resolve is left out, and with it its item.
    """
    row, placement = trimmed["row"], trimmed["placement"]
    stored = {
        name: flat(evidence[name].take(row))
        for name in ("source_id", "path", "title", "section", "text_sha256", "authority", "evidence_kind")
    }
    span = pc.or_(flat(trimmed["line_start"]).is_valid(), flat(trimmed["byte_start"]).is_valid())
    version = flat(placements["version"].take(placement))
    whole = pc.or_(version.is_valid(), stored["path"].is_null())
    resolves = pc.and_(pc.or_(span, whole), stored["text_sha256"].is_valid())
    line = flat(trimmed["line_start"])
    shared = ("request_id", "position", "label", "evidence_id", "line_start", "line_end", "byte_start", "byte_end")
    table = CITATIONS.build(
        {
            **{name: trimmed[name] for name in shared},
            **{name: stored[name] for name in ("source_id", "path", "section", "text_sha256", "evidence_kind")},
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
