"""Budget trimming: the hard limit. The rendered block, labels and fences included, never exceeds it, from 1 token up.

Reads packs, contracts, the pool and stored texts. Gives `fits` (the part of every item that stays, and the limit that bound),
`trimmed` (the items that fit, with the text the model will see) and `trims` (the byte ranges that were cut). The
trimming rules are in `greedy_fit`.

Note: an item's ranges are bytes of the item's text, which for merged rows is their joined text. The line break that
ends a text is not shown, and its absence does not count as a cut. For counters that are not additive over lines, the
whole block is rendered and counted, and the last item is dropped until the block fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.greedy_fit import (
    BOUNDS,
    Choice,
    Fitting,
    Wanted,
    budgets_of,
    measure,
)
from .blocks.item_rendering import looks_of, reasons, rows_at
from .blocks.item_texts import ItemTexts, item_texts, slices
from .blocks.masking import DETECTOR, class_lists, clipped, masked_with_spans
from .blocks.passages import asked_by
from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import (
    constants,
    flags_at,
    flat,
    flattened,
    gathered,
    gathered_columns,
    integers,
    last_of_runs,
    truth,
)
from .columns.ragged import starts_of
from .frames import micros
from .rendering import TRIMMING_POLICY, clean
from .schema import SPAN
from .tables import (
    FITS,
    TRIMMED,
    TRIMS,
    Anchors,
    Contracts,
    Evidence,
    FactChecks,
    Fits,
    MatchTerms,
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


def fits(
    packs: Packs,
    fact_checks: FactChecks,
    ranked: Ranked,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    match_terms: MatchTerms,
    anchors: Anchors,
    counters: Counters,
) -> Fits:
    """Every item that reached trimming, by request and position, with the part of its text that fits."""
    pack = truth(packs["kept"]).nonzero()[0]
    kept = packs.take(pa.array(pack))
    rows = gathered_columns(pool, _READ, integers(kept["place"]))
    owner = integers(rows["contract"])
    texts = item_texts(kept, pool, evidence)
    masked, covered = masked_with_spans(texts.text, class_lists(contracts["mask"]).take(pa.array(owner)))
    texts = replace(texts, text=masked)
    looks, notes = looks_of(contracts), _notes(kept, fact_checks)
    items = _items(kept, rows, texts, evidence, notes, reasons(kept, ranked, looks), _happened(rows, owner, contracts))
    edges = np.searchsorted(owner, np.arange(contracts.num_rows + 1)).tolist()
    asked, ids = asked_by(match_terms, anchors), contracts["request_id"].to_pylist()
    requests = [
        Fitting(items[first:stop], budget, look, asked[request])
        for (first, stop), budget, look, request in zip(pairwise(edges), budgets_of(contracts), looks, ids, strict=True)
    ]
    measure(requests, counters)
    choices: list[Choice] = []
    places: list[int] = []
    alone: list[bool] = []
    for request in requests:
        found = request.fit(counters)
        choices += found
        places += request.places(found)
        alone += request.alone(found)
    columns = np.array(choices, np.int64).reshape(-1, len(Choice._fields)).T
    number, start, end, before, inside, after, bound = columns
    shown = np.array([look.fenced for look in looks], dtype=bool)[owner]
    here = _shown(texts, start, end, shown)
    members = pa.array(starts_of(np.bincount(texts.item[here], minlength=len(owner))), pa.int32())
    return FITS.build(
        {
            "request_id": kept["request_id"],
            "evidence_id": kept["evidence_id"],
            "pack": pack,
            "position": kept["position"],
            "number": number.astype(np.int32),
            "place": places,
            "visible_text": pc.if_else(pa.array(number > 0), slices(texts.text, start, end), None),
            "kept_start": start,
            "kept_end": end,
            "size": texts.size,
            "line_start": _line(texts, before),
            "line_end": pc.if_else(pa.array(shown), _line(texts, before + inside), _int32(texts.line_end)),
            "byte_start": pc.add(texts.byte_start, pa.array(start)),
            "byte_end": pc.add(texts.byte_start, pa.array(np.where(shown, end, texts.size))),
            "merged_rows": pa.ListArray.from_arrays(members, texts.member_id.filter(pa.array(here))),
            "members": pa.ListArray.from_arrays(members, pa.array(texts.member_place[here])),
            "form": [choice.form(item.form) for item, choice in zip(items, choices, strict=True)],
            "conflict_note": alone,
            "fact_note": notes,
            "lines_above": before.astype(np.int32),
            "lines_below": after.astype(np.int32),
            "masked": clipped(covered, start, end),
            "bound_by": constants(BOUNDS).take(pa.array(bound, mask=bound < 0)),
        }
    )


def trimmed(fits: Fits, packs: Packs, pool: Pool, contracts: Contracts, counters: Counters) -> Trimmed:
    """The items that fit, by request and place in the block, with the text that the model will see."""
    owner = integers(pool["contract"])[integers(packs["place"])[integers(fits["pack"])]]
    index = np.lexsort((fits["place"].to_numpy(), owner))
    index = index[fits["number"].to_numpy()[index] > 0]
    chosen, owner = fits.take(pa.array(index)), owner[index]
    pack = gathered_columns(packs, ("place", "standing", "history"), chosen["pack"])
    text = flat(chosen["visible_text"])
    names = flat(contracts["tokenizer"]).dictionary_encode()
    which = integers(names.indices)[owner]
    kinds = gathered(pool["evidence_kind"], pack["place"]).to_pylist()
    label = [f"{kind}#{number}" for kind, number in zip(kinds, chosen["number"].to_pylist(), strict=True)]
    columns = ("request_id", "evidence_id", "form", "merged_rows", "members", "line_start", "line_end", "byte_start",
               "byte_end", "lines_above", "lines_below", "conflict_note", "fact_note", "masked")  # fmt: skip
    return TRIMMED.build(
        {
            **{name: chosen[name] for name in columns},
            **pack,
            "position": chosen["place"],
            "label": label,
            "cut": pc.is_valid(chosen["bound_by"]),
            "visible_text": text,
            "visible_sha256": text_sha256(text),
            "tokens": counters.count(text, names.dictionary.to_pylist(), which).astype(np.int32),
            "chars": pc.cast(pc.utf8_length(text), pa.int32()),
            "masked_by": pc.if_else(
                pc.greater(pc.list_value_length(flat(chosen["masked"])), 0), DETECTOR, pa.scalar(None, pa.string())
            ),
        }
    )


def trims(fits: Fits, packs: Packs) -> Trims:
    """What was cut or dropped, by request and evidence id; kept and dropped ranges cover the item's text."""
    cut = fits.filter(pc.is_valid(fits["bound_by"]))
    start, end, size = (cut[name].to_numpy() for name in ("kept_start", "kept_end", "size"))
    zero = np.zeros(len(size), dtype=np.int64)
    dropped = end <= start
    table = TRIMS.build(
        {
            "request_id": cut["request_id"],
            "evidence_id": cut["evidence_id"],
            "place": gathered(packs["place"], cut["pack"]),
            "policy": pa.repeat(TRIMMING_POLICY, cut.num_rows),
            "bound_by": cut["bound_by"],
            "kept_ranges": _ranges((start, end)),
            "dropped_ranges": _ranges((zero, np.where(dropped, size, start)), (np.where(dropped, size, end), size)),
        }
    )
    return table.sort_by([("request_id", "ascending"), ("evidence_id", "ascending")])


def _items(
    kept: pa.Table,
    rows: dict[str, pa.Array],
    texts: ItemTexts,
    evidence: pa.Table,
    notes: pa.Array,
    reason: Sequence[str | None],
    happened: Int,
) -> list[Wanted]:
    """The items, by request and position."""
    edges = np.append(texts.first, len(texts.item))
    of_line, level = flattened(gathered(evidence["statements"], texts.member_row))
    levels, sections = level.tolist(), gathered(evidence["section"], texts.member_row).to_pylist()
    lines = np.searchsorted(of_line, edges).tolist()
    starts, members = texts.start.tolist(), [slice(*edge) for edge in pairwise(edges.tolist())]
    columns = (
        rows["conflict_set"],
        kept["form"],
        kept["standing"],
        notes,
        texts.line_start,
        texts.line_end,
        texts.text,
    )
    stored = zip(rows_at(evidence, rows["row"]), *(column.to_pylist() for column in columns), strict=True)
    lead = zip(texts.lead_start.tolist(), texts.lead_end.tolist(), strict=True)
    return [
        Wanted._make((*values, why, when, where, levels[first:stop], sections[own], starts[own]))
        for values, why, when, where, (first, stop), own in zip(
            stored, reason, happened.tolist(), lead, pairwise(lines), members, strict=True
        )
    ]


def _notes(items: pa.Table, fact_checks: pa.Table) -> pa.Array:
    """The note of each item, a row of `packs`: the values and places of the records that contradict it, shortened and cleaned
    of what could pass for part of the frame; null where none does.
    """
    notes = defaultdict[int, list[str]](list)
    for row in fact_checks.to_pylist():
        if row["finding"] == "mismatch":
            field, value, place = ((clean(row[name]) or "")[:_WORDS] for name in ("field", "canonical", "locator"))
            notes[row["place"]].append(f"{field} is {value} in {place}")
    noted = ["; ".join(notes[place][:NOTES]) if place in notes else None for place in items["place"].to_pylist()]
    return pa.array(noted, pa.large_string())


def _happened(rows: dict[str, pa.Array], owner: Int, contracts: pa.Table) -> Int:
    """When each item happened, microseconds; 0 under contracts that do not order blocks by time."""
    wanted = flags_at(contracts["newest_first"], owner)
    if not wanted.any():
        return np.zeros(len(owner), dtype=np.int64)
    return np.where(wanted, micros(pc.coalesce(rows["event_time"], rows["recorded_time"]), 0), 0)


def _shown(texts: ItemTexts, start: Int, end: Int, fenced: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The members that are shown at least in part; all members of an item that is cited whole."""
    after, last = np.empty_like(texts.start), last_of_runs(texts.item)
    after[:-1] = texts.start[1:]
    after[last] = texts.size[texts.item[last]]
    return ~fenced[texts.item] | ((texts.start < end[texts.item]) & (after > start[texts.item]))


def _ranges(*pairs: tuple[Int, Int]) -> pa.ListArray:
    """Lists of the non-empty ranges [start, end), in the order given."""
    start, end = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
    some = end > start
    offsets = np.zeros(len(start) + 1, dtype=np.int32)
    some.sum(axis=1).cumsum(out=offsets[1:])
    spans = pa.StructArray.from_arrays([pa.array(start[some]), pa.array(end[some])], fields=list(SPAN))
    return pa.ListArray.from_arrays(pa.array(offsets), spans)


def _line(texts: ItemTexts, below: Int) -> pa.Array:
    """The line this many lines of text below the first of each item; never one below its last in the file, which a record
    with more lines of text than of its own has.
    """
    at = pc.add(texts.line_start, pa.array(below))
    return _int32(pc.min_element_wise(at, pc.coalesce(texts.line_end, at), skip_nulls=False))


def _int32(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.int32())
