"""Budget trimming: the hard limit. The rendered block, labels and fences included, never exceeds it, from 1 token up.

Reads packs, contracts and stored rows. Gives `fits` (the part of every item that stays, and the limit that bound),
`trimmed` (the items that fit, with the text the model will see) and `trims` (the byte ranges that were cut). The
trimming rules are in `greedy_fit`.

Note: an item's ranges are bytes of the item's text, which for merged rows is their joined text. The line break that
ends a text is not shown, and its absence does not count as a cut. For counters that are not additive over lines, the
whole block is rendered and counted, and the last item is dropped until the block fits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.greedy_fit import Fit, fit, parted_sets
from .blocks.item_costs import BOUNDS, DETAIL, DISPUTE, TOKENS, Budgets, Costs
from .blocks.item_rendering import Items, fenced, group_lines, printed, rendered, shared_days
from .blocks.item_texts import ItemTexts, item_texts, slices
from .blocks.masking import DETECTOR, class_lists, clipped, masked_with_spans
from .blocks.passages import RequestTerms
from .blocks.token_counting import Counters
from .columns.digests import text_sha256
from .columns.keys import (
    FEW_ROWS,
    codes_of,
    constants,
    flags_at,
    flat,
    gathered,
    gathered_columns,
    last_of_runs,
    literal,
    objects,
    pair_codes,
    pair_positions,
    positions,
    rank_within,
    take_or,
)
from .facts.fact_notes import fact_notes
from .frames import micros
from .rendering import GROUPS, TRIMMING_POLICY, labels
from .schema import SPAN
from .tables import (
    FITS,
    TRIMMED,
    TRIMS,
    Contracts,
    Evidence,
    FactChecks,
    Fits,
    MatchTerms,
    Packs,
    Placements,
    Ranked,
    Trimmed,
    Trims,
)

Int = NDArray[np.int64]


def fits(
    packs: Packs,
    fact_checks: FactChecks,
    ranked: Ranked,
    contracts: Contracts,
    evidence: Evidence,
    placements: Placements,
    match_terms: MatchTerms,
    counters: Counters,
) -> Fits:
    """Every item that reached trimming, by request and position, with the part of its text that fits."""
    kept = packs.filter(packs["kept"])
    owner = positions(kept["request_id"], contracts["request_id"])
    shapes = objects(contracts["output_shape"])
    masks = class_lists(contracts["mask"])
    mask = masks.take(pa.array(owner))
    texts, covered = _masked(item_texts(kept, packs, evidence, placements), mask)
    notes, styles = fact_notes(kept, fact_checks), objects(contracts["citation_style"])
    happened = _happened(kept, owner, contracts, evidence, placements)
    work = _Work(kept, owner, shapes, styles, texts, _reasons(kept, ranked), notes, happened, evidence, mask)
    budgets = Budgets.of(contracts, shapes)
    kinds = work.kind
    brief = work.shape == "model-brief"
    heading = pc.if_else(pa.array(brief), group_lines(kinds), literal("")) if brief.any() else None
    shown = fenced(work.shape)
    # Any member may be the first shown, which names the section: each is measured, and the longest is reserved.
    items, member = work.worst_case(), texts.item
    one = way = np.arange(len(member))
    if len(member) > FEW_ROWS:  # most requests print the same rows alike: each distinct form is measured once
        asked = codes_of([contracts["output_shape"], contracts["citation_style"], contracts["tokenizer"], masks])
        ways = codes_of([pa.array(asked[owner[member]]), *items.ways()])
        _, one, way = np.unique(ways, return_index=True, return_inverse=True)
        items = items.take(one)
    at = pa.array(member[one])
    costs = Costs.of(
        printed(items, evidence),
        heading.take(at) if heading is not None else None,
        kinds.take(at),
        counters,
        budgets.names,
        budgets.which[owner[member[one]]],
    )
    costs = costs.take(way).most(texts.first)
    terms = RequestTerms.of(match_terms, contracts["request_id"])
    result = _counted_whole(fit(owner, work.sets(), texts, costs, budgets, counters, terms), work, budgets, counters)
    chosen = pa.array(result.number > 0)
    visible = slices(texts.text, result.start, result.end)
    return FITS.build(
        {
            "request_id": kept["request_id"],
            "evidence_id": kept["evidence_id"],
            "position": kept["position"],
            "number": result.number.astype(np.int32),
            "place": work.places(result.number).astype(np.int32),
            "visible_text": pc.if_else(chosen, visible, None),
            "kept_start": result.start,
            "kept_end": result.end,
            "size": texts.size,
            "line_start": _int32(pc.add(texts.line_start, pa.array(result.before))),
            "line_end": _int32(
                pc.if_else(
                    pa.array(shown),
                    pc.add(texts.line_start, pa.array(result.before + result.inside)),
                    texts.line_end,
                )
            ),
            "byte_start": pc.add(texts.byte_start, pa.array(result.start)),
            "byte_end": pc.add(texts.byte_start, pa.array(np.where(shown, result.end, texts.size))),
            "merged_rows": _shown_rows(texts, _shown(texts, result, shown), kept.num_rows),
            "form": work.forms(result),
            "conflict_note": work.conflict_notes(result.number),
            "fact_note": notes,
            "lines_above": result.before.astype(np.int32),
            "lines_below": result.after.astype(np.int32),
            "masked": clipped(covered, result.start, result.end),
            "bound_by": constants(BOUNDS).take(pa.array(result.bound, mask=result.bound < 0)),
        }
    )


def trimmed(fits: Fits, packs: Packs, contracts: Contracts, evidence: Evidence, counters: Counters) -> Trimmed:
    """The items that fit, by request and place in the block, with the text that the model will see."""
    chosen = fits.filter(pc.greater(fits["number"], 0))
    owner = positions(chosen["request_id"], contracts["request_id"])
    order = np.lexsort((chosen["place"].to_numpy(), owner))
    chosen, owner = chosen.take(pa.array(order)), owner[order]
    pack = pa.array(
        pair_positions((chosen["request_id"], chosen["evidence_id"]), (packs["request_id"], packs["evidence_id"]))
    )
    text = flat(chosen["visible_text"])
    names = flat(contracts["tokenizer"]).dictionary_encode()
    which = np.asarray(names.indices).astype(np.int64)[owner]
    row = packs["row"].take(pack)
    label = labels(gathered(evidence["evidence_kind"], row), chosen["number"].to_numpy())
    columns = ("request_id", "evidence_id", "form", "merged_rows", "line_start", "line_end", "byte_start", "byte_end",
               "lines_above", "lines_below")  # fmt: skip
    return TRIMMED.build(
        {
            **{name: chosen[name] for name in columns},
            "row": row,
            "placement": packs["placement"].take(pack),
            "position": chosen["place"],
            "label": label,
            "standing": packs["standing"].take(pack),
            "visible_text": text,
            "visible_sha256": text_sha256(text),
            "tokens": counters.count(text, names.dictionary.to_pylist(), which).astype(np.int32),
            "chars": pc.cast(pc.utf8_length(text), pa.int32()),
            "conflict_note": chosen["conflict_note"],
            "fact_note": chosen["fact_note"],
            "history": packs["history"].take(pack),
            "masked": chosen["masked"],
            "masked_by": pc.if_else(
                pc.greater(pc.list_value_length(flat(chosen["masked"])), 0), DETECTOR, pa.scalar(None, pa.string())
            ),
        }
    )


def trims(fits: Fits) -> Trims:
    """What was cut or dropped, by request and evidence id; kept and dropped ranges cover the item's text."""
    cut = fits.filter(pc.is_valid(fits["bound_by"]))
    start, end, size = (cut[name].to_numpy() for name in ("kept_start", "kept_end", "size"))
    zero = np.zeros(len(size), dtype=np.int64)
    dropped = end <= start
    table = TRIMS.build(
        {
            "request_id": cut["request_id"],
            "evidence_id": cut["evidence_id"],
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
        owner: Int,
        shapes: NDArray[np.object_],
        styles: NDArray[np.object_],
        texts: ItemTexts,
        reason: pa.Array,
        fact_note: pa.Array,
        happened: Int,
        evidence: pa.Table,
        mask: pa.Array,
    ) -> None:
        self.kept, self.owner, self.texts, self.evidence, self.reason = kept, owner, texts, evidence, reason
        self.fact_note, self.happened, self.mask = fact_note, happened, mask
        self.shape, self.style = shapes[owner], styles[owner]
        self.requests = len(shapes)
        self.form = objects(kept["form"])
        days = shared_days(owner, flat(kept["row"]), evidence, self.requests)
        self.dated = np.array([day is None for day in days], dtype=bool)[owner]
        stored = gathered_columns(evidence, ("evidence_kind", "conflict_set"), kept["row"])
        self.kind, sets = stored.values()
        self.group = np.asarray(pc.index_in(self.kind, value_set=constants(tuple(GROUPS)))).astype(np.int64)
        self.disputed = np.asarray(sets.is_valid())
        self.dispute = np.zeros(len(owner), dtype=np.int64)
        if sets.null_count < len(sets):
            self.dispute = np.unique(pair_codes((kept["request_id"], sets.fill_null("")))[0], return_inverse=True)[1]

    def sets(self) -> Int:
        """A number per request and conflict set, -1 for items outside any set."""
        return np.where(self.disputed, self.dispute, -1)

    def worst_case(self) -> Items:
        """Every member of every item as if shown first, with the longest label, line number and notes possible."""
        member = self.texts.item
        count = np.bincount(self.owner, minlength=self.requests)
        widest = 10 ** np.char.str_len(count.astype(str)).astype(np.int64) - 1
        form = np.where(self.form == "full", "excerpt", self.form)
        line = self.texts.line_end.take(pa.array(member))
        none = np.zeros(len(member), dtype=np.int64)  # what a cut says of it is counted where it is made
        return self._items(
            member, self.texts.member_row, widest[self.owner[member]], (line, pc.add(line, 1)), (none, none), form[member],
            self.disputed[member],
        )  # fmt: skip

    def chosen(self, result: Fit) -> tuple[Items, pa.Array]:
        """The chosen items in the order of their blocks, and their texts."""
        index = result.number.nonzero()[0]
        index = index[np.lexsort((self.places(result.number)[index], self.owner[index]))]
        at = pa.array(index)
        line = pc.add(self.texts.line_start, pa.array(result.before)).take(at)
        lines = line, pc.add(line, pa.array(result.inside[index]))
        notes = self.conflict_notes(result.number)
        here = _shown(self.texts, result, fenced(self.shape))
        first = self.texts.member_row[_first_shown(self.texts, here)]
        items = self._items(
            index, first[index], result.number[index], lines, (result.before[index], result.after[index]),
            objects(self.forms(result))[index], notes[index],
        )  # fmt: skip
        return items, slices(self.texts.text, result.start, result.end).take(at)

    def places(self, number: Int) -> Int:
        """Place in the block: newest first where the contract requires it, else order of choice; 0 = dropped.

        A model-brief is ordered by group, then in this order within each group.
        """
        index = number.nonzero()[0]
        group = np.where(self.shape[index] == "model-brief", self.group[index], 0)
        order = index[np.lexsort((number[index], -self.happened[index], group, self.owner[index]))]
        place = np.zeros(len(number), dtype=np.int64)
        place[order] = rank_within(self.owner[order]) + 1
        return place

    def forms(self, result: Fit) -> pa.Array:
        """A cut original is an excerpt, or an outline if `detail` cut it; other forms keep their name."""
        cut = (self.form == "full") & (result.number > 0) & (result.bound >= 0)
        form = np.where(cut, np.where(result.bound == DETAIL, "outline", "excerpt"), self.form)
        return pa.array(form.astype(object), pa.string())

    def conflict_notes(self, number: Int) -> NDArray[np.bool_]:
        """Members of a conflict set that have no other member of the set shown."""
        shown = np.bincount(self.dispute[number > 0], minlength=int(self.dispute.max(initial=0)) + 1)
        return self.disputed & (shown[self.dispute] < 2)

    def _items(
        self,
        index: Int,
        first_row: Int,
        number: Int,
        lines: tuple[pa.Array, pa.Array],
        left_out: tuple[Int, Int],
        form: NDArray[np.object_],
        note: NDArray[np.bool_],
    ) -> Items:
        at = pa.array(index)
        return Items(
            owner=self.owner[index],
            row=flat(self.kept["row"]).take(at),
            number=number,
            line=lines[0],
            end=lines[1],
            above=pa.array(left_out[0]),
            below=pa.array(left_out[1]),
            dated=self.dated[index],
            section=gathered(self.evidence["section"], first_row),
            form=pa.array(form.astype(object), pa.string()),
            standing=flat(self.kept["standing"]).take(at),
            conflict_note=pa.array(note),
            fact_note=self.fact_note.take(at),
            reason=self.reason.take(at),
            shape=self.shape[index],
            style=self.style[index],
            mask=self.mask.take(at),
        )


def _counted_whole(result: Fit, work: _Work, budgets: Budgets, counters: Counters) -> Fit:
    """While a non-additive counter finds a block too long, drop its last item and that item's rivals."""
    additive = np.array([counters.get(name).additive for name in budgets.names], dtype=bool)
    if additive.all():
        return result
    number, bound = result.number.copy(), result.bound.copy()
    while True:
        result = replace(result, number=number, bound=bound)
        items, texts = work.chosen(result)
        blocks = rendered(items, texts, work.evidence, work.requests)
        tokens = counters.count(blocks.text, budgets.names, budgets.which)
        last = np.zeros(work.requests, dtype=np.int64)
        np.maximum.at(last, work.owner, number)
        over = (tokens > budgets.max_tokens) & ~additive[budgets.which] & (last > 0)
        if not over.any():
            return result
        gone = over[work.owner] & (number == last[work.owner])
        number[gone], bound[gone] = 0, TOKENS
        rivals = parted_sets(number, work.sets()) & (number > 0)
        number[rivals], bound[rivals] = 0, DISPUTE
        result.start[gone | rivals] = result.end[gone | rivals] = 0


def _masked(texts: ItemTexts, mask: pa.Array) -> tuple[ItemTexts, pa.Array]:
    """The texts with the masks of each item's contract applied, and the byte ranges of the masks."""
    covered, spans = masked_with_spans(texts.text, mask)
    if covered is texts.text:
        return texts, spans
    # The same row under two contracts reads differently, so it no longer counts as the same text.
    codes = pc.fill_null(mask.dictionary_encode().indices, -1).to_numpy().astype(np.int64) + 1
    return replace(texts, text=covered, same=texts.same * (int(codes.max(initial=0)) + 1) + codes), spans


def _happened(kept: pa.Table, owner: Int, contracts: pa.Table, evidence: pa.Table, placements: pa.Table) -> Int:
    """When each item happened, microseconds; 0 under contracts that do not order blocks by time."""
    wanted = flags_at(contracts["newest_first"], owner)
    if not wanted.any():
        return np.zeros(len(owner), dtype=np.int64)
    event = gathered(evidence["event_time"], kept["row"])
    time = micros(pc.coalesce(event, gathered(placements["recorded_time"], kept["placement"])), 0)
    return np.where(wanted, time, 0)


def _reasons(kept: pa.Table, ranked: pa.Table) -> pa.Array:
    at = pair_positions((kept["request_id"], kept["evidence_id"]), (ranked["request_id"], ranked["evidence_id"]))
    return take_or(ranked["selected_reason"], at)


def _shown(texts: ItemTexts, result: Fit, fenced: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The members that are shown at least in part; all members of an item that is cited whole."""
    after, last = np.empty_like(texts.start), last_of_runs(texts.item)
    after[:-1] = texts.start[1:]
    after[last] = texts.size[texts.item[last]]
    return ~fenced[texts.item] | ((texts.start < result.end[texts.item]) & (after > result.start[texts.item]))


def _first_shown(texts: ItemTexts, here: NDArray[np.bool_]) -> Int:
    """The first member shown of each item; the first member where none is shown."""
    members = np.arange(len(here))
    if not len(members):
        return members
    first = np.minimum.reduceat(np.where(here, members, len(members)), texts.first)
    return np.where(first < len(members), first, texts.first)


def _shown_rows(texts: ItemTexts, here: NDArray[np.bool_], count: int) -> pa.ListArray:
    """The ids of the members shown, by item."""
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.bincount(texts.item[here], minlength=count).cumsum(out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), texts.member_id.filter(pa.array(here)))


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
