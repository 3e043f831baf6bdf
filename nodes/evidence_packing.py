"""Evidence packing: candidates become items. Rows are only merged, dropped and ordered here.

Reads `ranked`, the pool and the texts of its rows. Gives `packs`: every ranked row exactly once, kept with a place, or dropped with a
reason. No row is added: each rule reads only the request's own candidates.

Rules in order: a citation that cannot resolve (where the contract requires one), the same text, nearly the same text,
neighbors of one document version (merged as far as they add words of the question), the cap on unverified items, the
cap per document, and at last the number of items that trimming tries. Note: members of a conflict set are exempt from merging, from the near-duplicate rule and from the
source cap, since competing claims look alike; they stay together at the place of the best of them, and no cap separates
them. A role only orders the kept rows (its first and last kinds, and one item of each source before a second of any).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.item_texts import resolvable
from .blocks.kind_places import BESIDE_TEXT, TOKENS_PER_TERM, Places, kind_classes, required_kinds
from .blocks.passages import asked_by
from .columns.keys import (
    among,
    constants,
    distinct_rows,
    first_of_runs,
    first_that_holds,
    flags_at,
    flat,
    gathered,
    gathered_columns,
    integers,
    order_by,
    rank_within,
    run_lengths,
    take_or,
    truth,
)
from .columns.ragged import starts_of
from .reranking.role_terms import LAST, reading_order
from .tables import PACKS, Contracts, Evidence, MatchTerms, Packs, Pool, Ranked, RolePolicies
from .text.named_first import asked_records, named_first
from .text.same_texts import alike, numbers_of

MERGED_BYTES_PER_TOKEN = 3
"""A merged item has at most this many bytes per token of `max_chunk_tokens`, so trimming seldom cuts merged text."""

AGAIN = 0.8
"""The share of its score that counts for a further item of a document, where items may be excerpts."""

TRIED = 16
"""At least so many items go on to trimming, and a third more than may be shown: what is ranked below them is not worth the
little room that they leave."""

_READ = (
    "evidence_id", "row", "contract", "standing", "lanes", "text_sha256", "source_id", "path", "origin_class",
    "evidence_kind", "lifecycle", "conflict_set", "workspace_root", "branch", "owner_user", "owner_project", "zone",
    "principals", "document_type", "content_type", "entity", "length", "version", "line_start", "line_end", "byte_start", "byte_end",
)  # fmt: skip

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


def packs(
    ranked: Ranked,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    role_policies: RolePolicies,
    match_terms: MatchTerms,
) -> Packs:
    """Every ranked row once, by request and position: dropped rows first (position 0, by rank), then the items.

    `merged_rows` of an item lists its rows in document order; of a dropped row, the row alone.
    """
    at = integers(ranked["place"])
    rows = gathered_columns(pool, _READ, at)
    ids, row, owner = rows["evidence_id"], integers(rows["row"]), integers(rows["contract"])
    conflict = numbers_of(owner, rows["conflict_set"])
    disputed = np.asarray(rows["conflict_set"].is_valid())
    unverified = np.asarray(pc.equal(pc.fill_null(rows["lifecycle"], "candidate"), "candidate"))
    stale = among(rows["lifecycle"], ("deprecated", "expired"))
    standing = _standing(rows["standing"], unverified, stale)

    packing = _Packing(owner)
    required = flags_at(contracts["require_citation"], owner)
    cited = resolvable(*(rows[name] for name in ("line_start", "byte_start", "version", "path", "text_sha256")))
    packing.drop(required & ~np.asarray(cited), "citation_unresolved")
    packing.drop_repeats(numbers_of(owner, rows["text_sha256"]), "duplicate")
    packing.drop_repeats(
        alike(owner, row, evidence["text"], packing.kept & ~disputed), "near_duplicate", among=~disputed
    )
    limit = _limits(contracts, "max_chunk_tokens", owner) * MERGED_BYTES_PER_TOKEN
    source = numbers_of(owner, pc.coalesce(rows["path"], rows["source_id"]), rows["source_id"])
    adds = _adding(row, owner, evidence["text"], match_terms, contracts["request_id"])
    packing.merge(_runs(packing, source, rows, standing, disputed, limit, adds))
    packing.drop_unverified(owner, unverified, conflict, disputed, _limits(contracts, "max_unverified_items", owner))
    document = _documents(owner, rows, ids)
    packing.drop_beyond(document, ~disputed, _limits(contracts, "max_items_per_source", owner), "source_cap")

    history = np.asarray(pc.equal(standing, "history")) | stale
    turn = _turns(document, packing.kept, flags_at(contracts["source_diversity"], owner))
    past = history & np.asarray(pc.equal(rows["evidence_kind"], "memory"))
    wanted = reading_order(flat(contracts["role"]).take(pa.array(owner)), row, evidence, role_policies)
    place_by = _placing(packing.kept, owner, conflict, disputed)
    # The first items of good documents come before the second of any.
    final = ranked["final"].to_numpy()
    brief = ~among(take_or(contracts["detail"], owner), ("full",))
    again = _turns(document, packing.kept, brief) > 0
    worth = np.where(again, AGAIN * final, final)
    # Memories that still hold come before past ones, however well those match.
    by_rank = place_by(past, turn, -worth)
    record = truth(pc.equal(rows["origin_class"], "structured-sot")) & flags_at(contracts["exact_lookups"], owner)
    asked = asked_records(rows["lanes"], record) if record.any() else record
    named = named_first(by_rank, owner, asked, record, rows["entity"], row, evidence["text"])
    by_rank = place_by(named)
    kinds = _kind_classes(packing, by_rank, owner, rows, ranked, contracts, history, (conflict, disputed))
    by_rank = place_by(kinds, by_rank)
    # A role reorders only items that would be shown anyway: its order admits no others.
    beyond = _places(by_rank, owner, conflict, disputed) > _limits(contracts, "max_items", owner)
    position = place_by(np.where(beyond, LAST + 1, wanted), by_rank)
    tried = np.maximum(_limits(contracts, "max_items", owner) * 4 // 3, TRIED)
    packing.drop(_places(position, owner, conflict, disputed) > tried, "budget_items")
    position[~packing.kept] = 0
    alone = disputed & packing.kept & (np.bincount(conflict[packing.kept], minlength=len(owner))[conflict] < 2)
    order = order_by(owner, position, ranked["rank"].to_numpy())
    members, starts = _members(packing, _start(rows))
    lists = {"merged_rows": ids.take(pa.array(members)), "members": pa.array(at[members])}
    table = PACKS.build(
        {
            "request_id": ranked["request_id"],
            "evidence_id": ids,
            "place": at,
            "position": position.astype(np.int32),
            "kept": packing.kept,
            "reason_code": pa.array(packing.reason, pa.string()),
            "merged_into": ids.take(pa.array(packing.into, mask=packing.into < 0)),
            **{name: pa.ListArray.from_arrays(starts, values) for name, values in lists.items()},
            "standing": standing,
            "form": _forms(contracts, owner, rows, standing, unverified, disputed),
            "conflict_note": alone,
            "history": history,
        }
    )
    return table.take(pa.array(order))


def _start(rows: dict[str, pa.Array]) -> Int:
    """First byte in the document, -1 where unknown."""
    return integers(rows["byte_start"].fill_null(-1))


class _Packing:
    """The outcome of each row; rows are in order of request and rank, so the first of a group is its best."""

    def __init__(self, owner: Int) -> None:
        count = len(owner)
        self.kept: Bool = np.ones(count, dtype=bool)
        self.reason: NDArray[np.object_] = np.full(count, None, dtype=object)
        self.into: Int = np.full(count, -1, dtype=np.int64)

    def drop(self, which: Bool, reason: str) -> None:
        """Drop those of the rows that are still kept."""
        which = which & self.kept
        if not which.any():
            return
        self.kept[which] = False
        self.reason[which] = reason

    def drop_repeats(self, group: Int, reason: str, among: Bool | None = None) -> None:
        """Keep the best row of each group; the others record the row that replaces them."""
        index = (self.kept if among is None else self.kept & among).nonzero()[0]
        first, inverse = distinct_rows(group[index])
        if len(first) == len(index):
            return
        repeated = index[first[inverse]] != index
        self.into[index[repeated]] = index[first[inverse]][repeated]
        self.kept[index[repeated]] = False
        self.reason[index[repeated]] = reason

    def merge(self, runs: Int) -> None:
        """Rows of one run become one item, led by its best."""
        self.drop_repeats(runs, "merged", among=runs >= 0)

    def drop_beyond(self, group: Int, among: Bool, limit: Int, reason: str) -> None:
        """Keep the best rows of `among` in each group, up to the limit."""
        index = (self.kept & among).nonzero()[0]
        order = index[group[index].argsort(kind="stable")]
        beyond = np.zeros(len(self.kept), dtype=bool)
        beyond[order] = rank_within(group[order]) >= limit[order]
        self.drop(beyond, reason)

    def drop_unverified(self, owner: Int, unverified: Bool, conflict: Int, disputed: Bool, limit: Int) -> None:
        """The cap on unverified items. A conflict set counts as one if no member is verified, else not at all."""
        backed = disputed & np.isin(conflict, conflict[self.kept & disputed & ~unverified])
        counted = self.kept & unverified & ~backed
        index = (counted & disputed).nonzero()[0]
        first = index[np.unique(conflict[index], return_index=True)[1]]
        follows = counted & disputed
        follows[first] = False
        self.drop_beyond(owner, counted & ~follows, limit, "unverified_cap")
        self.drop(follows & np.isin(conflict, conflict[first[~self.kept[first]]]), "unverified_cap")


def _documents(owner: Int, rows: dict[str, pa.Array], ids: pa.Array) -> Int:
    """A number per request and document: a path, else an entity, else the row itself.

    A session event is a document of its own, in whichever file: a cap on the file would show three turns of a
    conversation, whatever the budget. So is a structured record: a cap on the file would drop the dependencies that
    another record names, and keep unrelated rows of other files.
    """
    records = pc.fill_null(pc.equal(rows["origin_class"], "structured-sot"), False)
    record = pc.if_else(pc.and_(records, rows["entity"].is_valid()), rows["entity"], None)
    from_session = pc.fill_null(pc.equal(rows["evidence_kind"], "session-event"), False)
    path = pc.if_else(from_session, None, pc.coalesce(record, rows["path"], rows["entity"]))
    return numbers_of(owner, path, pc.if_else(path.is_valid(), None, ids), record.is_valid(), rows["source_id"])


def _limits(contracts: pa.Table, name: str, owner: Int) -> Int:
    return contracts[name].to_numpy().astype(np.int64)[owner]


def _runs(
    packing: _Packing,
    source: Int,
    rows: dict[str, pa.Array],
    standing: pa.Array,
    disputed: Bool,
    limit: Int,
    adds: Callable[[Int, Int], Bool],
) -> Int:
    """A run number for rows that become one item: neighbors of one document version and the same rights around their
    best; else -1.

    `source` is a number per request, source and path: most rows are alone there and need no further comparison. Rows
    farther from the best row than half of the remaining limit stay separate items, and so do rows at either end that
    add no word of the question to the best row.
    """
    start, end, first, last = (
        integers(rows[name].fill_null(-1)) for name in ("byte_start", "byte_end", "line_start", "line_end")
    )
    able = packing.kept & ~disputed & (start >= 0) & np.asarray(rows["path"].is_valid())
    index = able.nonzero()[0]
    index = index[np.bincount(source[index], minlength=1)[source[index]] > 1]
    runs = np.full(len(source), -1, dtype=np.int64)
    if not len(index):
        return runs
    at = pa.array(index)
    parts = (
        rows["version"], rows["workspace_root"], rows["branch"], rows["owner_user"], rows["owner_project"],
        rows["zone"], pc.binary_join(rows["principals"], "\n"), rows["origin_class"], rows["evidence_kind"],
        rows["lifecycle"], standing,
    )  # fmt: skip
    document = np.empty(len(source), dtype=np.int64)
    document[index] = numbers_of(source[index], *(part.take(at) for part in parts))
    order = index[order_by(document[index], start[index])]
    here, before = order[1:], order[:-1]
    touching = (end[before] == start[here]) | ((first[here] == last[before] + 1) & (end[before] <= start[here]))
    chained = np.zeros(len(order), dtype=bool)
    chained[1:] = (document[here] == document[before]) & touching
    if not chained.any():
        return runs
    chain = (~chained).cumsum() - 1
    best = np.full(int(chain[-1]) + 1, len(source), dtype=np.int64)
    np.minimum.at(best, chain, order)
    lead = best[chain]
    room = np.maximum(limit[order] - (end[lead] - start[lead]), 0) // 2
    near = ((end[order] - end[lead] <= room) & (start[lead] - start[order] <= room)).nonzero()[0]
    # Of the rows near the best, those stay that add a word or stand between it and one that does.
    adding = near[(order[near] == lead[near]) | adds(order[near], lead[near])]
    first_adding, last_adding = np.full(len(best), len(order)), np.full(len(best), -1)
    np.minimum.at(first_adding, chain[adding], adding)
    np.maximum.at(last_adding, chain[adding], adding)
    near = near[(near >= first_adding[chain[near]]) & (near <= last_adding[chain[near]])]
    runs[order[near]] = lead[near]
    return runs


def _adding(
    row: Int, owner: Int, texts: pa.ChunkedArray, terms: pa.Table, requests: pa.ChunkedArray
) -> Callable[[Int, Int], Bool]:
    """A function that tells whether each of some rows contains a word of its request that its lead lacks; nothing is read
    before it is needed.
    """

    def adds(rows: Int, leads: Int) -> Bool:
        if not terms.num_rows:
            return np.zeros(len(rows), dtype=bool)
        asked, ids = asked_by(terms), requests.to_pylist()
        read = np.unique(np.concatenate([rows, leads])[np.concatenate([rows != leads] * 2)])
        stored = zip(read.tolist(), owner[read].tolist(), gathered(texts, row[read]).to_pylist(), strict=True)
        found = {at: asked[ids[own]].words_in(text.encode()) for at, own, text in stored}
        pairs = zip(rows.tolist(), leads.tolist(), strict=True)
        return np.array([at != lead and not found[at] <= found[lead] for at, lead in pairs], dtype=bool)

    return adds


def _members(packing: _Packing, start: Int) -> tuple[Int, pa.Array]:
    """The rows of each row's item in document order, and where those of each begin; a dropped row has itself alone."""
    every = np.arange(len(start))
    merged = packing.reason == "merged"
    if not merged.any():
        return every, pa.array(np.arange(len(start) + 1, dtype=np.int32))
    item = np.concatenate([np.where(merged, packing.into, every), every[merged]])
    row = np.concatenate([every, every[merged]])
    order = order_by(item, start[row], row)
    return row[order], pa.array(starts_of(np.bincount(item, minlength=len(start))), pa.int32())


def _turns(source: Int, kept: Bool, diverse: Bool) -> Int:
    """The number of items of the same source before each item, if sources take turns; else 0."""
    index = (kept & diverse).nonzero()[0]
    if not len(index):
        return np.zeros(len(source), dtype=np.int64)
    order = index[source[index].argsort(kind="stable")]
    turn = np.zeros(len(source), dtype=np.int64)
    turn[order] = rank_within(source[order])
    return turn


def _placing(kept: Bool, owner: Int, conflict: Int, disputed: Bool) -> Callable[..., Int]:
    """A function that places the kept rows 1, 2, ... per request by given columns, then rank; 0 = dropped.

    A conflict set is in one place, that of its best.
    """
    index = kept.nonzero()[0]
    best = index.copy()
    together = disputed[index].nonzero()[0]
    first, inverse = distinct_rows(conflict[index[together]])
    best[together] = index[together][first[inverse]]
    of = owner[index]

    def place_by(*columns: NDArray[Any]) -> Int:
        order = index[order_by(of, *(column[best] for column in columns), best, index)]
        position = np.zeros(len(kept), dtype=np.int64)
        position[order] = rank_within(owner[order]) + 1
        return position

    return place_by


def _kind_classes(
    packing: _Packing,
    position: Int,
    owner: Int,
    rows: dict[str, pa.Array],
    ranked: pa.Table,
    contracts: pa.Table,
    history: Bool,
    dispute: tuple[Int, Bool],
) -> Int:
    """For each row 0, 1 or 2: the first rows, those that follow for their kind, and the rest (see `kind_places`)."""
    conflict, disputed = dispute
    index = packing.kept.nonzero()[0]
    index = index[order_by(owner[index], position[index])]
    length = rows["length"].to_numpy().astype(np.float64)
    merged = (packing.reason == "merged").nonzero()[0]
    length = length + np.bincount(packing.into[merged], weights=length[merged], minlength=len(length))
    text = np.minimum(length * TOKENS_PER_TERM, _limits(contracts, "max_chunk_tokens", owner))
    items = Places(
        owner=owner[index],
        place=_places(position, owner, conflict, disputed)[index],
        kind=np.asarray(rows["evidence_kind"].dictionary_encode().indices).astype(np.int64)[index],
        final=ranked["final"].to_numpy()[index],
        required=required_kinds(contracts, owner, rows["evidence_kind"])[index],
        able=~history[index],
        tokens=text.astype(np.int64)[index] + BESIDE_TEXT,
    )
    classes = np.zeros(len(owner), dtype=np.int64)
    classes[index] = kind_classes(
        items, _limits(contracts, "max_tokens", items.owner), _limits(contracts, "max_items", items.owner)
    )
    return classes


def _places(position: Int, owner: Int, conflict: Int, disputed: Bool) -> Int:
    """The count of `max_items` up to each item: a conflict set, whose members are adjacent, counts as one."""
    order = order_by(owner, position)
    of_set = np.where(disputed & (position > 0), conflict, -1)[order]
    same = np.zeros(len(order), dtype=np.int64)
    same[1:] = (of_set[1:] >= 0) & (of_set[1:] == of_set[:-1])
    joined = same.cumsum()
    starts = first_of_runs(owner[order])
    joined -= joined[starts].repeat(run_lengths(starts, len(order)))
    places = position.copy()
    places[order] -= joined
    return places


def _standing(standing: pa.Array, unverified: Bool, stale: Bool) -> pa.Array:
    """How a text may speak: by the second wall, but an unverified row at most as a hint and a stale one as history."""
    speaks = pc.is_in(standing, value_set=constants(("evidence", "instruction")))
    standing = pc.if_else(pc.and_(pa.array(unverified), speaks), "hint", standing)
    return pc.if_else(pc.and_(pa.array(stale), pc.not_equal(standing, "untrusted")), "history", standing)


def _forms(
    contracts: pa.Table, owner: Int, rows: dict[str, pa.Array], standing: pa.Array, unverified: Bool, disputed: Bool
) -> pa.Array:
    """The form of each item (S0.67): a disputed row warns, an unverified one hints, a citation-pack cites the rest."""
    cited = np.asarray(pc.equal(take_or(contracts["output_shape"], owner), "citation-pack"))
    rules = (
        (disputed, "conflict-note"),
        (unverified | np.asarray(pc.equal(standing, "hint")), "hint"),
        (truth(pc.equal(rows["evidence_kind"], "structured-fact")), "fact"),
        (
            truth(pc.equal(rows["document_type"], "summary")) | truth(pc.equal(rows["content_type"], "summary")),
            "summary",
        ),
        (cited, "reference"),
    )
    return first_that_holds(rules, "full", len(owner))
