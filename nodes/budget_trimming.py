"""Budget trimming: the hard limit. The rendered block, labels and fences included, never exceeds it, from 1 token up.

Reads packs, contracts, the pool and stored texts. Gives `fits` (the part of every item that stays, and the limit that bound),
`trimmed` (the items that fit, with the text the model will see) and `trims` (the byte ranges that were cut). The
trimming rules are in `greedy_fit`.

Note: an item's ranges are bytes of the item's text, which for merged rows is their joined text. The line break that
ends a text is not shown, and its absence does not count as a cut. For counters that are not additive over lines, the
whole block is rendered and counted, and the last item is dropped until the block fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.greedy_fit import BOUNDS, DETAIL, DISPUTE, TOKENS, Fit, Wanted, budgets_of, fit, parted_sets
from .blocks.item_rendering import Item, ambiguous_paths, lines_of, looks_of, reasons, rendered, rows_at
from .blocks.item_texts import ItemTexts, item_texts, slices
from .blocks.masking import DETECTOR, class_lists, clipped, masked_with_spans
from .blocks.passages import RequestTerms
from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import constants, flags_at, flat, gathered, gathered_columns, integers, last_of_runs, truth
from .columns.ragged import starts_of
from .facts.fact_notes import fact_notes
from .frames import MICROS_PER_DAY, OPEN_START, micros
from .rendering import GROUPS, TRIMMING_POLICY
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

_READ = ("contract", "row", "evidence_kind", "conflict_set", "event_time", "recorded_time", "path", "source_id")

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
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    texts, covered = _masked(item_texts(kept, pool, evidence), mask)
    notes = fact_notes(kept, fact_checks)
    work = _Work(kept, rows, owner, contracts, texts, notes, ranked, evidence)
    terms = RequestTerms.of(match_terms, contracts["request_id"]).quoting(anchors, contracts["request_id"])
    found = _counted_whole(fit(work.wanted, counters, terms), work, counters)
    number, start, end, before, inside, after, bound = (np.array(each, np.int64) for each in vars(found).values())
    chosen, shown = pa.array(number > 0), np.array([look.fenced for look in work.wanted.looks], dtype=bool)[owner]
    here = _shown(texts, start, end, shown)
    members = pa.array(starts_of(np.bincount(texts.item[here], minlength=len(owner))), pa.int32())
    return FITS.build(
        {
            "request_id": kept["request_id"],
            "evidence_id": kept["evidence_id"],
            "pack": pack,
            "position": kept["position"],
            "number": number.astype(np.int32),
            "place": work.places(found),
            "visible_text": pc.if_else(chosen, slices(texts.text, start, end), None),
            "kept_start": start,
            "kept_end": end,
            "size": texts.size,
            "line_start": _int32(pc.add(texts.line_start, pa.array(before))),
            "line_end": _int32(
                pc.if_else(pa.array(shown), pc.add(texts.line_start, pa.array(before + inside)), texts.line_end)
            ),
            "byte_start": pc.add(texts.byte_start, pa.array(start)),
            "byte_end": pc.add(texts.byte_start, pa.array(np.where(shown, end, texts.size))),
            "merged_rows": pa.ListArray.from_arrays(members, texts.member_id.filter(pa.array(here))),
            "members": pa.ListArray.from_arrays(members, pa.array(texts.member_place[here])),
            "form": work.forms(found),
            "conflict_note": [note for items in work.wanted.items for note in work.conflict_notes(items, found)],
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


class _Work:
    """The items being trimmed, and how they will be printed."""

    def __init__(
        self,
        kept: pa.Table,
        rows: dict[str, pa.Array],
        owner: Int,
        contracts: pa.Table,
        texts: ItemTexts,
        notes: pa.Array,
        ranked: pa.Table,
        evidence: pa.Table,
    ) -> None:
        self.texts, self.evidence = texts, evidence
        self.row, self.form, self.standing = (
            column.to_pylist() for column in (rows["row"], kept["form"], kept["standing"])
        )
        self.line_start, self.line_end, self.notes = (
            column.to_pylist() for column in (texts.line_start, texts.line_end, notes)
        )
        looks = looks_of(contracts)
        self.reason = reasons(kept, ranked, looks)
        self.happened = _happened(rows, owner, contracts).tolist()
        edges = np.searchsorted(owner, np.arange(contracts.num_rows + 1)).tolist()
        items = [range(first, stop) for first, stop in pairwise(edges)]
        self.request = owner.tolist()
        days = (micros(rows["event_time"], OPEN_START) // MICROS_PER_DAY).tolist()
        self.dated = [len(set(days[own.start : own.stop])) > 1 for own in items]
        self.names = list(zip(rows["path"].to_pylist(), rows["source_id"].to_pylist(), strict=True))
        self.ambiguous = [ambiguous_paths(self.names[own.start : own.stop]) for own in items]
        sets: dict[tuple[int, str], int] = {}
        disputes = zip(self.request, rows["conflict_set"].to_pylist(), strict=True)
        self.wanted = Wanted(
            items=items,
            kind=rows["evidence_kind"].to_pylist(),
            dispute=[-1 if name is None else sets.setdefault((of, name), len(sets)) for of, name in disputes],
            texts=texts,
            frames=self.frames,
            budgets=budgets_of(contracts),
            looks=looks,
        )

    def frames(self, items: list[int]) -> list[list[str]]:
        """What is printed around each item with the longest label, line number and notes possible.

        Any member may be the first shown, which names the section: there is a text for each.
        """
        edges = np.append(self.texts.first, len(self.texts.item)).tolist()
        members = [range(edges[item], edges[item + 1]) for item in items]
        first = self.texts.member_row[[member for own in members for member in own]]
        sections = iter(gathered(self.evidence["section"], first).to_pylist())
        rows = rows_at(self.evidence, np.array([self.row[item] for item in items], np.int64))
        found = []
        for item, row, own in zip(items, rows, members, strict=True):
            request, line, form = self.request[item], self.line_end[item], self.form[item]
            width = 10 ** len(str(len(self.wanted.items[request]))) - 1
            last = None if line is None else line + 1
            beside = (form, self.standing[item], self.wanted.dispute[item] >= 0, self.notes[item], self.reason[item])
            # What a cut says of itself is counted where it is made.
            ways = [Item(row, width, line, last, 0, 0, False, next(sections), *beside) for _ in own]
            look, dated = self.wanted.looks[request], self.dated[request]
            sourced = self.names[item][0] in self.ambiguous[request]
            lines = [lines_of(one, look, dated=dated, sourced=sourced) for one in ways]
            found.append([one.head + one.foot for one in lines])
        return found

    def block(self, request: int, found: Fit) -> str:
        """The block of a request's chosen items."""
        items = self.order(request, found)
        own, look = self.wanted.items[request], self.wanted.looks[request]
        index = np.array(items, np.int64)
        start, end = (np.array(each, np.int64) for each in (found.start, found.end))
        here = _shown(self.texts, start, end, np.full(len(start), look.fenced))
        sections = gathered(self.evidence["section"], self.texts.member_row[_first_shown(self.texts, here)][index])
        texts = slices(self.texts.text.take(pa.array(index)), start[index], end[index]).to_pylist()
        rows = rows_at(self.evidence, np.array([self.row[item] for item in items], np.int64))
        forms, notes = self.forms(found), dict(zip(own, self.conflict_notes(own, found), strict=True))
        shown = []
        for item, row, section in zip(items, rows, sections.to_pylist(), strict=True):
            line, above = self.line_start[item], found.before[item]
            first = None if line is None else line + above
            shown.append(
                Item(
                    row, found.number[item], first, None if first is None else first + found.inside[item], above,
                    found.after[item], found.bound[item] >= 0, section, forms[item], self.standing[item], notes[item],
                    self.notes[item], self.reason[item],
                )
            )  # fmt: skip
        return rendered(shown, texts, look)[0]

    def order(self, request: int, found: Fit) -> list[int]:
        """The chosen items in the order of their block: newest first where the contract requires it, else as chosen.

        A model-brief is ordered by group, then in this order within each group.
        """
        groups = list(GROUPS) if self.wanted.looks[request].shape == "model-brief" else None

        def place(item: int) -> tuple[int, int, int]:
            return groups.index(self.wanted.kind[item]) if groups else 0, -self.happened[item], found.number[item]

        return sorted((item for item in self.wanted.items[request] if found.number[item]), key=place)

    def places(self, found: Fit) -> list[int]:
        """Place of each item in the block; 0 = dropped."""
        place = [0] * len(found.number)
        for request in range(len(self.wanted.items)):
            for n, item in enumerate(self.order(request, found), 1):
                place[item] = n
        return place

    def forms(self, found: Fit) -> list[str]:
        """A cut original is an excerpt, or an outline if `detail` cut it; other forms keep their name."""
        return [
            form if form != "full" or not number or bound < 0 else "outline" if bound == DETAIL else "excerpt"
            for form, number, bound in zip(self.form, found.number, found.bound, strict=True)
        ]

    def conflict_notes(self, items: range, found: Fit) -> list[bool]:
        """Members of a conflict set that have no other member of the set shown, of a request's items."""
        sets = [self.wanted.dispute[item] for item in items]
        shown = Counter(of for of, item in zip(sets, items, strict=True) if found.number[item])
        return [of >= 0 and shown[of] < 2 for of in sets]


def _counted_whole(found: Fit, work: _Work, counters: Counters) -> Fit:
    """While a non-additive counter finds a block too long, drop its last item and that item's rivals."""
    for request, (own, budget) in enumerate(zip(work.wanted.items, work.wanted.budgets, strict=True)):
        counter = counters.get(budget.counter)
        while not counter.additive and any(found.number[item] for item in own):
            block = pa.array([work.block(request, found)], pa.large_string())
            if counter.count(block)[0] <= budget.max_tokens:
                break
            found.drop(max(own, key=found.number.__getitem__), TOKENS)
            for rival in parted_sets(own, found.number, work.wanted.dispute):
                if found.number[rival]:
                    found.drop(rival, DISPUTE)
    return found


def _masked(texts: ItemTexts, mask: pa.Array) -> tuple[ItemTexts, pa.Array]:
    """The texts with the masks of each item's contract applied, and the byte ranges of the masks."""
    covered, spans = masked_with_spans(texts.text, mask)
    if covered is texts.text:
        return texts, spans
    # The same row under two contracts reads differently, so it no longer counts as the same text.
    codes = pc.fill_null(mask.dictionary_encode().indices, -1).to_numpy().astype(np.int64) + 1
    return replace(texts, text=covered, same=texts.same * (int(codes.max(initial=0)) + 1) + codes), spans


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


def _first_shown(texts: ItemTexts, here: NDArray[np.bool_]) -> Int:
    """The first member shown of each item; the first member where none is shown."""
    members = np.arange(len(here))
    if not len(members):
        return members
    first = np.minimum.reduceat(np.where(here, members, len(members)), texts.first)
    return np.where(first < len(members), first, texts.first)


def _ranges(*pairs: tuple[Int, Int]) -> pa.ListArray:
    """Lists of the non-empty ranges [start, end), in the order given."""
    start, end = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
    some = end > start
    offsets = np.zeros(len(start) + 1, dtype=np.int32)
    some.sum(axis=1).cumsum(out=offsets[1:])
    spans = pa.StructArray.from_arrays([pa.array(start[some]), pa.array(end[some])], fields=list(SPAN))
    return pa.ListArray.from_arrays(pa.array(offsets), spans)


def _int32(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.int32())
