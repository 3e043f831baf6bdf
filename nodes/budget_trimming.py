"""Budget trimming: the hard limit. The rendered block, labels and fences included, never exceeds it, from 1 token up.

Reads packs, contracts, the pool and stored texts. Gives `trims` (the part of every item that stays, and the limit that
bound) and `trimmed` (the items that fit, with the text the model will see). The trimming rules are in `greedy_fit`.

Note: an item's range is in bytes of the item's text, which for merged rows is their joined text. The line break that
ends a text is not shown, and its absence does not count as a cut. For counters that are not additive over lines, the
whole block is rendered and counted, and the last item is dropped until the block fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.greedy_fit import BOUNDS, Budget, Fitting, Wanted, form_of, measure, shown_alone
from .blocks.item_texts import ItemText, item_texts
from .blocks.masking import DETECTOR
from .blocks.passages import asked_by
from .blocks.rendering import Item, clean, looks_of, reasons, stored_parts
from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import constants, flags_at, flat, flattened, gathered, gathered_columns, integers, order_by
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

Int = NDArray[np.int64]


def trims(
    packs: Packs,
    fact_checks: FactChecks,
    ranked: Ranked,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    lexical_recall: LexicalRecall,
    anchors: Anchors,
    counters: Counters,
) -> Trims:
    """Every item that reached trimming, by request and position, with the part of its text that fits."""
    kept = packs.filter(pc.greater(packs["position"], 0))
    rows = gathered_columns(pool, _READ, kept["place"])
    owner, looks = integers(rows["contract"]), looks_of(contracts)
    masks = [looks[at].mask for at in owner.tolist()]
    texts = [text.masked(mask)[0] for text, mask in zip(item_texts(kept, pool, evidence), masks, strict=True)]
    # Blocks are ordered by time only under contracts that say so.
    event = micros(pc.coalesce(rows["event_time"], rows["recorded_time"]), 0)
    happened = np.where(flags_at(contracts["newest_first"], owner), event, 0)
    why, notes = reasons(kept, ranked), _notes(kept, fact_checks)
    items = [*_wanted(kept, rows, texts, evidence, notes, why, happened)]
    edges = np.searchsorted(owner, np.arange(contracts.num_rows + 1)).tolist()
    asked, ids = asked_by(lexical_recall.words, anchors), contracts["request_id"].to_pylist()
    budgets = zip(*(contracts[name].to_pylist() for name in Budget._fields), strict=True)
    requests = [
        Fitting(items[first:stop], Budget(*budget), look, asked[request])
        for (first, stop), budget, look, request in zip(pairwise(edges), budgets, looks, ids, strict=True)
    ]
    measure(requests, counters)
    found = [request.fit(counters) for request in requests]
    number, start, end, bound = np.array([one for own in found for one in own], np.int64).reshape(-1, 4).T
    return TRIMS.build(
        {
            **{name: kept[name] for name in ("request_id", "evidence_id", "place", "position")},
            "number": number.astype(np.int32),
            "shown": [place for request, own in zip(requests, found, strict=True) for place in request.places(own)],
            "kept_start": start,
            "kept_end": end,
            "size": [text.size for text in texts],
            "bound_by": constants(BOUNDS).take(pa.array(bound, mask=bound < 0)),
        }
    )


def trimmed(
    trims: Trims,
    packs: Packs,
    fact_checks: FactChecks,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    counters: Counters,
) -> Trimmed:
    """The items that fit, by request and place in the block, with the text that the model will see."""
    shown, owner = integers(trims["shown"]), integers(pool["contract"])[integers(trims["place"])]
    index = order_by(owner, shown)
    index = index[shown[index] > 0]
    owner, cuts, items = owner[index], trims.take(index), packs.filter(pc.greater(packs["position"], 0)).take(index)
    looks, rows = looks_of(contracts), gathered_columns(pool, ("evidence_kind", "conflict_set"), items["place"])
    parts, masks, members, texts = [], [], [], list[str]()
    ranges = zip(*(cuts[name].to_pylist() for name in ("kept_start", "kept_end")), owner.tolist(), strict=True)
    for text, (start, end, of) in zip(item_texts(items, pool, evidence), ranges, strict=True):
        visible, covered = text.masked(looks[of].mask)
        part = visible.part(start, end)
        parts.append(part if looks[of].fenced else part._replace(last=text.line_end))
        texts.append(part.text if looks[of].fenced else "")
        clipped = [(max(low, start) - start, min(high, end) - start) for low, high in covered]
        masks.append([span for span in clipped if span[0] < span[1]])
        members.append(text.within(start, end))
    text, members = pa.array(texts, pa.large_string()), pa.array(members, pa.list_(pa.int64()))
    names = flat(contracts["tokenizer"]).dictionary_encode()
    tokens = counters.count(text, names.dictionary.to_pylist(), integers(names.indices)[owner])
    sets = zip(owner.tolist(), rows["conflict_set"].to_pylist(), strict=True)
    labels = zip(rows["evidence_kind"].to_pylist(), cuts["number"].to_pylist(), strict=True)
    forms = zip(items["form"].to_pylist(), cuts["bound_by"].to_pylist(), strict=True)
    byte_start = pa.array([part.byte_start for part in parts], pa.int64())
    return TRIMMED.build(
        {
            **{name: items[name] for name in ("request_id", "evidence_id", "place", "standing", "history")},
            "position": cuts["shown"],
            "label": [f"{kind}#{number}" for kind, number in labels],
            "merged_rows": pa.ListArray.from_arrays(members.offsets, gathered(pool["evidence_id"], members.values)),
            "members": members,
            "visible_text": text,
            "visible_sha256": text_sha256(text),
            "tokens": tokens.astype(np.int32),
            "chars": pc.cast(pc.utf8_length(text), pa.int32()),
            "line_start": [part.first for part in parts],
            "line_end": [part.last for part in parts],
            "byte_start": byte_start,
            "byte_end": pc.add(byte_start, pc.subtract(flat(cuts["kept_end"]), flat(cuts["kept_start"]))),
            "lines_above": [part.above for part in parts],
            "lines_below": [part.below for part in parts],
            "cut": pc.is_valid(cuts["bound_by"]),
            "form": [form_of(form, bound) for form, bound in forms],
            "conflict_note": shown_alone([None if name is None else (of, name) for of, name in sets]),
            "fact_note": _notes(items, fact_checks),
            "masked": masks,
            "masked_by": [DETECTOR if spans else None for spans in masks],
        }
    )


def _wanted(
    kept: pa.Table,
    rows: dict[str, pa.Array],
    texts: Sequence[ItemText],
    evidence: pa.Table,
    notes: Sequence[str | None],
    why: Sequence[str | None],
    happened: Int,
) -> Iterator[Wanted]:
    """The items, by request and position, each as it is printed at its longest."""
    members = np.array([row for text in texts for row in text.rows], np.int64)
    edges = np.cumsum([0, *(len(text.rows) for text in texts)])
    of_line, level = flattened(gathered(evidence["statements"], members))
    lines, levels = of_line.searchsorted(edges).tolist(), level.tolist()
    sections, disputes = gathered(evidence["section"], members).to_pylist(), rows["conflict_set"].to_pylist()
    said = (*(kept[name].to_pylist() for name in ("form", "standing")), notes, why)
    printed = zip(*stored_parts(evidence, rows["row"]), *said, strict=True)
    places = zip(pairwise(lines), pairwise(edges.tolist()), strict=True)
    own = zip(texts, printed, disputes, happened.tolist(), places, strict=True)
    for text, item, dispute, when, ((low, high), (first, stop)) in own:
        last = text.line_end
        lines_to = (last, None if last is None else last + 1)
        longest = Item._make((*item, dispute is not None, 0, *lines_to, None, 0, 0, False))
        yield Wanted(longest, dispute, when, text, levels[low:high], sections[first:stop])


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
