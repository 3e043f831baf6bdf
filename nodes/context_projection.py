"""Context projection: the bytes the model may read, and nothing that was not selected.

Reads trimmed items and their citations. Gives `blocks`, one row per contract, an empty block included.

Note: projection has no authority of its own. It prints cited items with the texts that trimming left; stored rows
provide only the frame of a text (path, section, kind, date). It writes no messages: `context-block`, `citation-pack`
and `model-brief` are shapes of one block, not prompts.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.item_rendering import Item, looks_of, reasons, rendered, rows_at
from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import constants, flat, integers, positions, take_or
from .tables import BLOCKS, Blocks, Citations, Contracts, Evidence, Fits, Pool, Ranked, Trimmed


def blocks(
    trimmed: Trimmed,
    citations: Citations,
    contracts: Contracts,
    fits: Fits,
    ranked: Ranked,
    pool: Pool,
    evidence: Evidence,
    counters: Counters,
) -> Blocks:
    """One block per contract, by request id. No items, no text: the reference is then null.

    `tokens` and `chars` count the whole rendering; `bound_by` is the first limit that bound, by order of the items.
    """
    cited = np.full(pool.num_rows, -1)
    cited[integers(citations["place"])] = np.arange(citations.num_rows)
    cited = cited[integers(trimmed["place"])]
    shown = trimmed.filter(pa.array(cited >= 0))
    place, looks = integers(shown["place"]), looks_of(contracts)
    owner = integers(pool["contract"])[place]
    columns = (
        shown["line_start"], shown["line_end"], shown["lines_above"], shown["lines_below"], shown["cut"],
        citations["section"].take(pa.array(cited[cited >= 0])), shown["form"], shown["standing"],
        shown["conflict_note"], shown["fact_note"],
    )  # fmt: skip
    labels, rows = shown["label"].to_pylist(), rows_at(evidence, integers(pool["row"])[place])
    items = [
        Item._make((row, int(label.rpartition("#")[2]), *values, reason))
        for row, label, *values, reason in zip(
            rows, labels, *(column.to_pylist() for column in columns), reasons(shown, ranked, looks), strict=True
        )
    ]
    texts = shown["visible_text"].to_pylist()
    edges = np.searchsorted(owner, np.arange(contracts.num_rows + 1)).tolist()
    made = [
        rendered(items[first:stop], texts[first:stop], look)
        for look, (first, stop) in zip(looks, pairwise(edges), strict=True)
    ]
    text = pa.array([text for text, _ in made], pa.large_string())
    names = flat(contracts["tokenizer"]).dictionary_encode()
    tokens = counters.count(text, names.dictionary.to_pylist(), np.asarray(names.indices).astype(np.int64))
    # A conflict set is left out because one of its members met a limit: that limit is reported. An outline met none.
    reported = pc.invert(pc.is_in(fits["bound_by"], value_set=constants(("conflict_set", "detail"))))
    bound = fits.filter(pc.and_(reported, fits["bound_by"].is_valid()))
    return BLOCKS.build(
        {
            "request_id": contracts["request_id"],
            "block_ref": [ref for _, ref in made],
            "text": text,
            "text_sha256": text_sha256(text),
            "shape": contracts["output_shape"],
            "items": np.diff(edges).astype(np.int32),
            "tokens": tokens.astype(np.int32),
            "chars": pc.cast(pc.utf8_length(text), pa.int32()),
            "tokenizer": contracts["tokenizer"],
            "bound_by": take_or(bound["bound_by"], positions(contracts["request_id"], bound["request_id"])),
        }
    )
