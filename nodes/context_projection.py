"""Context projection: the bytes the model may read, and nothing that was not selected.

Reads trimmed items and their citations. Gives `blocks`, one row per contract, an empty block included.

Note: projection has no authority of its own. It prints the cited items with the texts that trimming left; stored rows
provide only the frame of a text (path, section, kind, date). It writes no messages: `context-block`, `citation-pack`
and `model-brief` are shapes of one block, not prompts.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.rendering import Item, looks_of, reasons, rendered, stored_parts
from .blocks.token_counting import Counters
from .columns.keys import flat, integers, positions, take_or
from .tables import BLOCKS, Blocks, Citations, Contracts, Evidence, Pool, Ranked, Trimmed, Trims

_SHOWN = (
    "form", "standing", "fact_note", "conflict_note", "label", "line_start", "line_end", "lines_above", "lines_below", "cut",
    "visible_text",
)  # fmt: skip


def blocks(
    trimmed: Trimmed,
    citations: Citations,
    contracts: Contracts,
    trims: Trims,
    ranked: Ranked,
    pool: Pool,
    evidence: Evidence,
    counters: Counters,
) -> Blocks:
    """One block per contract, by request id. No items, no text: the reference is then null.

    `tokens` and `chars` count the whole rendering; `bound_by` is the first limit that bound, by order of the items.
    """
    place, looks = integers(trimmed["place"]), looks_of(contracts)
    owner = integers(pool["contract"])[place]
    form, standing, fact, alone, label, first, last, above, below, cut, texts = (
        trimmed[name].to_pylist() for name in _SHOWN
    )
    numbers = [int(name.rpartition("#")[2]) for name in label]
    sections = citations["section"].to_pylist()
    said = (form, standing, fact, reasons(trimmed, ranked), alone, numbers, first, last, sections, above, below, cut)
    rows = stored_parts(evidence, integers(pool["row"])[place])
    items = [Item(*values) for values in zip(*rows, *said, strict=True)]
    edges = np.searchsorted(owner, np.arange(contracts.num_rows + 1)).tolist()
    made = [
        rendered(items[first:stop], texts[first:stop], look)
        for look, (first, stop) in zip(looks, pairwise(edges), strict=True)
    ]
    text = pa.array([text for text, _ in made], pa.large_string())
    names = flat(contracts["tokenizer"]).dictionary_encode()
    tokens = counters.count(text, names.dictionary.to_pylist(), np.asarray(names.indices).astype(np.int64))
    # A conflict set is left out because one of its members met a limit: that limit is reported.
    bound = trims.filter(pc.not_equal(trims["bound_by"], "conflict_set"))
    return BLOCKS.build(
        {
            "request_id": contracts["request_id"],
            "block_ref": [ref for _, ref in made],
            "text": text,
            "text_sha256": [sha256(text.encode()).hexdigest() for text, _ in made],
            "shape": contracts["output_shape"],
            "items": np.diff(edges).astype(np.int32),
            "tokens": tokens.astype(np.int32),
            "chars": [len(text) for text, _ in made],
            "tokenizer": contracts["tokenizer"],
            "bound_by": take_or(bound["bound_by"], positions(contracts["request_id"], bound["request_id"])),
        }
    )
