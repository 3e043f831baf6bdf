"""Budget trimming: the hard limit. The rendered block, labels and fences included, never exceeds it, from 1 up.

Reads packs, contracts and stored rows. Gives `fits` (what of every item stays, and what bound), `trimmed` (the items
that fit, with the text the model will see) and `trims` (what was cut, to the byte range). The rules of cutting are in
`greedy_fit`.

What one would otherwise get wrong: an item's ranges are bytes of the item's text, which of merged rows is their joined
text. The line break that ends a text is not part of what is shown, and its absence is no cut. Counters that do not add
up over lines have the last word here: the whole block is rendered and counted, and the last item dropped until it fits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .digests import text_sha256
from .greedy_fit import LIMITS, TOKENS, Budgets, Costs, Fit, fit
from .item_rendering import Items, fenced, group_lines, printed, rendered
from .item_texts import ItemTexts, item_texts, slices
from .keys import flat, gathered, objects, pair_codes, pair_positions, positions, take_or
from .recall_scope import codes_of
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
    Packs,
    Placements,
    Ranked,
    Trimmed,
    Trims,
)
from .token_counting import Counters

Int = NDArray[np.int64]


def fits(
    packs: Packs,
    fact_checks: FactChecks,
    ranked: Ranked,
    contracts: Contracts,
    evidence: Evidence,
    placements: Placements,
    counters: Counters,
) -> Fits:
    """Every item that reached trimming, by request and position: what of its text fits, and which limit bound."""
    kept = packs.filter(packs["kept"])
    owner = positions(kept["request_id"], contracts["request_id"])
    shapes = objects(contracts["output_shape"])
    texts = item_texts(kept, packs, evidence, placements)
    styles = objects(contracts["citation_style"])
    work = _Work(kept, owner, shapes, styles, texts, _reasons(kept, ranked), evidence)
    budgets = Budgets.of(contracts, shapes)
    kinds = gathered(evidence["evidence_kind"], kept["row"])
    brief = pa.array(shapes[owner] == "model-brief")
    heading = pc.if_else(brief, group_lines(kinds), pa.scalar("", pa.large_string()))
    shown = fenced(work.shape)
    # Most requests print the same rows the same way: each way is measured once.
    items = work.worst_case()
    _, one, way = np.unique(
        codes_of([*items.ways(), pa.array(budgets.which[owner])]), return_index=True, return_inverse=True
    )
    at = pa.array(one)
    costs = Costs.of(
        printed(items.take(one), evidence),
        heading.take(at),
        kinds.take(at),
        counters,
        budgets.names,
        budgets.which[owner[one]],
    ).take(way)
    result = _counted_whole(fit(owner, texts, costs, budgets, counters), work, budgets, counters)
    chosen = pa.array(result.number > 0)
    visible = slices(texts.text, result.start, result.end)
    known = texts.byte_start.is_valid()
    return FITS.build(
        {
            "request_id": kept["request_id"],
            "evidence_id": kept["evidence_id"],
            "position": kept["position"],
            "number": result.number.astype(np.int32),
            "place": work.places(result.number).astype(np.int32),
            "visible_text": pc.if_else(chosen, visible, pa.scalar(None, pa.large_string())),
            "kept_start": result.start,
            "kept_end": result.end,
            "size": texts.size,
            "line_start": _int32(pc.add(texts.line_start, pa.array(result.lines_before))),
            "line_end": _int32(
                pc.if_else(
                    pa.array(shown),
                    pc.add(texts.line_start, pa.array(result.lines_before + result.lines_inside)),
                    texts.line_end,
                )
            ),
            "byte_start": pc.add(texts.byte_start, pa.array(result.start)),
            "byte_end": pc.if_else(
                known,
                pc.add(texts.byte_start, pa.array(np.where(shown, result.end, texts.size))),
                pa.scalar(None, pa.int64()),
            ),
            "merged_rows": _shown_rows(texts, result, shown, kept.num_rows),
            "form": work.forms(result),
            "conflict_note": work.conflict_notes(result.number),
            "bound_by": pa.array(list(LIMITS)).take(pa.array(result.bound, mask=result.bound < 0)),
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
    columns = ("request_id", "evidence_id", "form", "merged_rows", "line_start", "line_end", "byte_start", "byte_end")
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
            "history": packs["history"].take(pack),
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
    """The items under trimming, and how they will be printed."""

    def __init__(
        self,
        kept: pa.Table,
        owner: Int,
        shapes: NDArray[np.object_],
        styles: NDArray[np.object_],
        texts: ItemTexts,
        reason: pa.Array,
        evidence: pa.Table,
    ) -> None:
        self.kept, self.owner, self.texts, self.evidence, self.reason = kept, owner, texts, evidence, reason
        self.shape, self.style = shapes[owner], styles[owner]
        self.requests = len(shapes)
        self.form = objects(kept["form"])
        kind = gathered(evidence["evidence_kind"], kept["row"])
        self.group = np.asarray(pc.index_in(kind, value_set=pa.array(list(GROUPS)))).astype(np.int64)
        sets = gathered(evidence["conflict_set"], kept["row"])
        self.disputed = np.asarray(sets.is_valid())
        self.dispute = np.unique(pair_codes((kept["request_id"], sets.fill_null("")))[0], return_inverse=True)[1]

    def worst_case(self) -> Items:
        """Every item with the longest label, line number and notes that it may get."""
        count = np.bincount(self.owner, minlength=self.requests)
        widest = 10 ** np.char.str_len(count.astype(str)).astype(np.int64) - 1
        form = np.where(self.form == "full", "excerpt", self.form)
        return self._items(np.arange(len(self.owner)), widest[self.owner], self.texts.line_end, form, self.disputed)

    def chosen(self, result: Fit) -> tuple[Items, pa.Array]:
        """The chosen items as they will stand in their blocks, and their texts."""
        index = np.flatnonzero(result.number)
        index = index[np.lexsort((self.places(result.number)[index], self.owner[index]))]
        line = pc.add(self.texts.line_start, pa.array(result.lines_before))
        notes = self.conflict_notes(result.number)
        items = self._items(
            index, result.number[index], line.take(pa.array(index)), objects(self.forms(result))[index], notes[index]
        )
        return items, slices(self.texts.text, result.start, result.end).take(pa.array(index))

    def places(self, number: Int) -> Int:
        """Place in the block: order of choice, in a model-brief inside the groups; 0 = dropped."""
        index = np.flatnonzero(number)
        group = np.where(self.shape[index] == "model-brief", self.group[index], 0)
        order = index[np.lexsort((number[index], group, self.owner[index]))]
        starts = np.flatnonzero(np.diff(self.owner[order], prepend=-1) != 0)
        place = np.zeros(len(number), dtype=np.int64)
        place[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order)))) + 1
        return place

    def forms(self, result: Fit) -> pa.Array:
        """A cut original is an excerpt; other forms keep their name."""
        cut = (self.form == "full") & (result.number > 0) & (result.bound >= 0)
        return pa.array(np.where(cut, "excerpt", self.form).astype(object), pa.string())

    def conflict_notes(self, number: Int) -> NDArray[np.bool_]:
        """Members of a conflict set of which no other member is shown."""
        shown = np.bincount(self.dispute[number > 0], minlength=int(self.dispute.max(initial=0)) + 1)
        return self.disputed & (shown[self.dispute] < 2)

    def _items(
        self, index: Int, number: Int, line: pa.Array, form: NDArray[np.object_], note: NDArray[np.bool_]
    ) -> Items:
        at = pa.array(index)
        return Items(
            owner=self.owner[index],
            row=flat(self.kept["row"]).take(at),
            number=number,
            line=line,
            form=pa.array(form.astype(object), pa.string()),
            standing=flat(self.kept["standing"]).take(at),
            conflict_note=pa.array(note),
            reason=self.reason.take(at),
            shape=self.shape[index],
            style=self.style[index],
        )


def _counted_whole(result: Fit, work: _Work, budgets: Budgets, counters: Counters) -> Fit:
    """Drop the last item of every block that a counter which does not add up finds too long, until none is."""
    additive = np.array([counters.get(name).additive for name in budgets.names], dtype=bool)
    if additive.all():
        return result
    number, bound = result.number.copy(), result.bound.copy()
    while True:
        result = Fit(number, result.start, result.end, result.lines_before, result.lines_inside, bound)
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
        result.start[gone] = result.end[gone] = 0


def _reasons(kept: pa.Table, ranked: pa.Table) -> pa.Array:
    at = pair_positions((kept["request_id"], kept["evidence_id"]), (ranked["request_id"], ranked["evidence_id"]))
    return take_or(ranked["selected_reason"], at)


def _shown_rows(texts: ItemTexts, result: Fit, fenced: NDArray[np.bool_], count: int) -> pa.ListArray:
    """Of each item the members of which something is shown; all of them where it is cited whole."""
    after = np.append(texts.start[1:], 0)[: len(texts.start)]
    last = np.append(np.diff(texts.item) != 0, True)[: len(texts.item)]
    after = np.where(last, texts.size[texts.item], after)
    here = ~fenced[texts.item] | ((texts.start < result.end[texts.item]) & (after > result.start[texts.item]))
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(texts.item[here], minlength=count), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), texts.member_id.filter(pa.array(here)))


def _ranges(*pairs: tuple[Int, Int]) -> pa.ListArray:
    """Lists of the non-empty ranges [start, end), in the order given."""
    start, end = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
    some = end > start
    offsets = np.zeros(len(start) + 1, dtype=np.int32)
    np.cumsum(some.sum(axis=1), out=offsets[1:])
    spans = pa.StructArray.from_arrays([pa.array(start[some]), pa.array(end[some])], fields=list(SPAN))
    return pa.ListArray.from_arrays(pa.array(offsets), spans)


def _int32(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.int32())
