"""Budget trimming: the hard limit. The rendered block, labels and fences included, never exceeds it, from 1 token up.

Reads packs, contracts, the pool and stored texts. Gives `items`, which are two tables: `trims` (the part of every item that
stays, and the limit that bound) and `trimmed` (the items that fit, with the text the model will see). The trimming rules are
in `greedy_fit`.

Note: an item's range is in bytes of its row's text. The line break that ends a text is not shown, and its absence does not count as a cut. For counters that are not additive over lines, the
whole block is rendered and counted, and the last item is dropped until the block fits.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.greedy_fit import BOUNDS, Budget, Fitting, Wanted, measure
from .blocks.item_texts import item_texts
from .blocks.masking import DETECTOR
from .blocks.passages import asked_by
from .blocks.rendering import Item, clean, looks_of, reasons, stored_parts
from .blocks.token_counting import Counters
from .columns.keys import constants, flat, flattened, gathered, gathered_columns, integers, truth
from .frames import micros
from .recall.lane_recall import LexicalRecall
from .tables import (
    TRIMMED,
    TRIMS,
    Anchors,
    Contracts,
    Evidence,
    FactChecks,
    Packs,
    Pool,
    Ranked,
    Trimmed,
    Trims,
)

NOTES = 3
"""Maximum number of values noted next to one item; every finding is in `fact_checks`."""
_WORDS = 60
"""Maximum characters of a field, a value or a locator in a note."""
_READ = ("contract", "row", "conflict_set", "event_time", "recorded_time")


class Items(NamedTuple):
    """The tables `trims` and `trimmed`."""

    trims: pa.Table
    trimmed: pa.Table


def items(
    packs: Packs,
    fact_checks: FactChecks,
    ranked: Ranked,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    lexical_recall: LexicalRecall,
    anchors: Anchors,
    counters: Counters,
) -> Items:
    """Every item that reached trimming, with the part of its text that fits; and those that are shown."""
    kept = packs.filter(pc.greater(packs["position"], 0))
    owner = integers(pool["contract"])[integers(kept["place"])]
    edges = [*pairwise(np.searchsorted(owner, np.arange(contracts.num_rows + 1)).tolist())]
    wanted = _wanted(kept, fact_checks, ranked, pool, contracts, evidence)
    asked, ids = asked_by(lexical_recall.words, anchors), contracts["request_id"].to_pylist()
    budgets = zip(*(contracts[name].to_pylist() for name in Budget._fields), strict=True)
    requests = [
        Fitting(wanted[first:stop], Budget(*budget), look, asked[request])
        for (first, stop), budget, look, request in zip(edges, budgets, looks_of(contracts), ids, strict=True)
    ]
    measure(requests, counters)
    found = [request.fit(counters) for request in requests]
    blocks = [request.shown(own) for request, own in zip(requests, found, strict=True)]
    shown = [one for block in blocks for one in block]
    position = [place for block in blocks for place, _ in enumerate(block, 1)]
    at = np.array([first + one.n for (first, _), block in zip(edges, blocks, strict=True) for one in block], np.int64)
    places = np.zeros(len(owner), np.int32)
    places[at] = position
    number, start, end, bound = np.array([one for own in found for one in own], np.int64).reshape(-1, 4).T
    cut = TRIMS.build(
        {
            **{name: kept[name] for name in ("request_id", "evidence_id", "place", "position")},
            "number": number.astype(np.int32),
            "shown": places,
            "kept_start": start,
            "kept_end": end,
            "size": [one.text.size for one in wanted],
            "bound_by": constants(BOUNDS).take(pa.array(bound, mask=bound < 0)),
        }
    )
    leading, texts = kept.take(at), [one.part.text for one in shown]
    names = flat(contracts["tokenizer"]).dictionary_encode()
    tokens = counters.count(
        pa.array(texts, pa.large_string()), names.dictionary.to_pylist(), integers(names.indices)[owner[at]]
    )
    fitting = TRIMMED.build(
        {
            **{name: leading[name] for name in ("request_id", "evidence_id", "place", "standing", "history")},
            "position": position,
            "label": [f"{one.item.kind}#{one.item.number}" for one in shown],
            "visible_text": texts,
            "visible_sha256": [sha256(text.encode()).hexdigest() for text in texts],
            "tokens": tokens.astype(np.int32),
            "chars": [len(text) for text in texts],
            "line_start": [one.part.first for one in shown],
            "line_end": [one.part.last for one in shown],
            "byte_start": [one.part.byte_start for one in shown],
            "byte_end": [one.byte_end for one in shown],
            "lines_above": [one.part.above for one in shown],
            "lines_below": [one.part.below for one in shown],
            "cut": [one.item.cut for one in shown],
            "form": [one.item.form for one in shown],
            "conflict_note": [one.item.conflict_note for one in shown],
            "fact_note": [one.item.fact_note for one in shown],
            "masked": [one.masked for one in shown],
            "masked_by": [DETECTOR if one.masked else None for one in shown],
        }
    )
    return Items(cut, fitting)


def trims(items: Items) -> Trims:
    """Every item that reached trimming, by request and position, with the part of its text that fits."""
    return items.trims


def trimmed(items: Items) -> Trimmed:
    """The items that fit, by request and place in the block, with the text that the model will see."""
    return items.trimmed


def _wanted(
    kept: pa.Table, fact_checks: pa.Table, ranked: pa.Table, pool: pa.Table, contracts: pa.Table, evidence: pa.Table
) -> list[Wanted]:
    """The items, by request and position, each as it is printed at its longest."""
    rows = gathered_columns(pool, _READ, kept["place"])
    owner, texts = integers(rows["contract"]), item_texts(kept, pool, evidence, contracts)
    # Blocks are ordered by time only under contracts that say so.
    event = micros(pc.coalesce(rows["event_time"], rows["recorded_time"]), 0)
    happened = np.where(truth(contracts["newest_first"])[owner], event, 0).tolist()
    counts = np.bincount(owner, minlength=contracts.num_rows)
    numbers = [10 ** len(str(count)) - 1 for count in counts.tolist()]
    of_line, level = flattened(gathered(evidence["statements"], rows["row"]))
    lines, levels = pairwise(of_line.searchsorted(np.arange(len(texts) + 1)).tolist()), level.tolist()
    sections, disputes = gathered(evidence["section"], rows["row"]).to_pylist(), rows["conflict_set"].to_pylist()
    said = (
        *(kept[name].to_pylist() for name in ("form", "standing")),
        _notes(kept, fact_checks),
        reasons(kept, ranked),
    )
    printed, wanted = zip(*stored_parts(evidence, rows["row"]), *said, strict=True), list[Wanted]()
    own = zip(texts, printed, disputes, happened, owner.tolist(), lines, sections, strict=True)
    for text, item, dispute, when, of, (low, high), section in own:
        last = text.line_end
        lines_to = (last, None if last is None else last + 1)
        values: tuple[Any, ...] = (*item, dispute is not None, numbers[of], *lines_to, section, 0, 0, False)
        wanted.append(Wanted(Item(*values), dispute, when, text, levels[low:high]))
    return wanted


def _notes(items: pa.Table, fact_checks: pa.Table) -> list[str | None]:
    """The note of each item, a row of `packs`: the values and places of the records that contradict it, shortened and cleaned
    of what could pass for part of the frame; None where none does.
    """
    notes = defaultdict[int, list[str]](list)
    for row in fact_checks.to_pylist():
        if row["finding"] == "mismatch":
            field, value, place = ((clean(row[name]) or "")[:_WORDS] for name in ("field", "canonical", "locator"))
            notes[row["place"]].append(f"{field} is {value} in {place}")
    return ["; ".join(notes[place][:NOTES]) if place in notes else None for place in items["place"].to_pylist()]
