"""Context projection: the bytes the model may read, and nothing that was not selected.

Reads trimmed items and their citations. Gives `blocks`, one row per contract, an empty block included.

Note: projection has no authority of its own. It prints cited items with the texts that trimming left; stored rows
provide only the frame of a text (path, section, kind, date). It writes no messages: `context-block`, `citation-pack`
and `model-brief` are shapes of one block, not prompts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.item_rendering import Items, rendered
from .blocks.masking import class_lists
from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import constants, flat, objects, pair_positions, positions, take_or
from .tables import BLOCKS, Blocks, Citations, Contracts, Evidence, Fits, Ranked, Trimmed


def blocks(
    trimmed: Trimmed,
    citations: Citations,
    contracts: Contracts,
    fits: Fits,
    ranked: Ranked,
    evidence: Evidence,
    counters: Counters,
) -> Blocks:
    """One block per contract, by request id. No items, no text: the reference is then null.

    `tokens` and `chars` count the whole rendering; `bound_by` is the first limit that bound, by order of the items.
    """
    cited = pair_positions((trimmed["request_id"], trimmed["label"]), (citations["request_id"], citations["label"]))
    shown = trimmed.filter(pa.array(cited >= 0))
    shape = flat(contracts["output_shape"])
    owner = positions(shown["request_id"], contracts["request_id"])
    reason = pair_positions((shown["request_id"], shown["evidence_id"]), (ranked["request_id"], ranked["evidence_id"]))
    number = pc.cast(pc.replace_substring_regex(flat(shown["label"]), pattern="^.*#", replacement=""), pa.int64())
    items = Items(
        owner=owner,
        row=flat(shown["row"]),
        number=np.asarray(number),
        line=flat(shown["line_start"]),
        end=flat(shown["line_end"]),
        above=flat(shown["lines_above"]),
        below=flat(shown["lines_below"]),
        dated=np.ones(len(owner), dtype=bool),
        section=flat(citations["section"]).take(pa.array(cited[cited >= 0])),
        form=flat(shown["form"]),
        standing=flat(shown["standing"]),
        conflict_note=flat(shown["conflict_note"]),
        fact_note=flat(shown["fact_note"]),
        reason=take_or(ranked["selected_reason"], reason),
        shape=objects(shape)[owner],
        style=objects(contracts["citation_style"])[owner],
        mask=class_lists(contracts["mask"]).take(pa.array(owner)),
    )
    made = rendered(items, flat(shown["visible_text"]), evidence, contracts.num_rows)
    names = flat(contracts["tokenizer"]).dictionary_encode()
    tokens = counters.count(made.text, names.dictionary.to_pylist(), np.asarray(names.indices).astype(np.int64))
    # A conflict set is left out because one of its members met a limit: that limit is reported. An outline met none.
    reported = pc.invert(pc.is_in(fits["bound_by"], value_set=constants(("conflict_set", "detail"))))
    bound = fits.filter(pc.and_(reported, fits["bound_by"].is_valid()))
    return BLOCKS.build(
        {
            "request_id": contracts["request_id"],
            "block_ref": made.ref,
            "text": made.text,
            "text_sha256": text_sha256(made.text),
            "shape": shape,
            "items": np.bincount(owner, minlength=contracts.num_rows).astype(np.int32),
            "tokens": tokens.astype(np.int32),
            "chars": pc.cast(pc.utf8_length(made.text), pa.int32()),
            "tokenizer": contracts["tokenizer"],
            "bound_by": take_or(bound["bound_by"], positions(contracts["request_id"], bound["request_id"])),
        }
    )
