"""Evidence packing: candidates become items. Rows are only merged, dropped and ordered here.

Reads `ranked`, the pool and the texts of its rows. Gives `packs`: every ranked row exactly once, kept with a place, or dropped with a
reason. No row is added: each rule reads only the request's own candidates.

Rules in order: a citation that cannot resolve (where the contract requires one), the same text, nearly the same text,
neighbors of one document version (merged as far as they add words of the question), the cap on unverified items, the
cap per document, and at last the number of items that trimming tries. A role only orders the kept rows (its first and
last kinds, and one item of each source before a second of any).

A kind has a place for its best item, so that one kind does not fill a block alone: an item is moved from behind the
estimated end of the shown items to the last places before that end, if its score is near that of the best, or if the
request requires its kind. So variety costs only the weakest items that would be shown.

Note: members of a conflict set are exempt from merging, from the near-duplicate rule and from the source cap, since
competing claims look alike; they stay together at the place of the best of them, and no cap separates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import accumulate, compress, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .blocks.item_texts import resolvable
from .blocks.passages import asked_by
from .columns.keys import (
    among,
    constants,
    distinct_rows,
    flags_at,
    flat,
    gathered,
    gathered_columns,
    integers,
    order_by,
    positions,
    rank_within,
    take_or,
    truth,
)
from .columns.ragged import starts_of
from .frames import posting_keys
from .recall.lane_recall import LexicalRecall
from .reranking.role_terms import reading_order
from .tables import PACKS, Contracts, Evidence, Packs, Pool, Ranked, RolePolicies
from .text.index_keys import id_keys
from .text.references import named_records
from .text.same_texts import alike, numbers_of
from .vocabulary import EVIDENCE_NEEDS

MERGED_BYTES_PER_TOKEN = 3
"""A merged item has at most this many bytes per token of `max_chunk_tokens`, so trimming seldom cuts merged text."""

AGAIN = 0.8
"""The share of its score that counts for a further item of a document, where items may be excerpts."""

TRIED = 16
"""At least so many items go on to trimming, and a third more than may be shown: what is ranked below them is not worth the
little room that they leave."""

NEAR = 0.7
"""An item is near if it has at least this share of the best final score of its request."""
KEPT_SHARE = 3
"""At most one part in this many of the budget is reserved for kinds."""
TOKENS_PER_TERM, BESIDE_TEXT = 2, 40
"""Estimated tokens of a text per index term, and of what is printed around it."""

_READ = (
    "evidence_id", "row", "contract", "standing", "lanes", "text_sha256", "source_id", "path", "origin_class",
    "evidence_kind", "lifecycle", "conflict_set", "workspace_root", "branch", "owner_user", "owner_project", "zone",
    "principals", "document_type", "content_type", "entity", "length", "version", "line_start", "line_end", "byte_start", "byte_end",
)  # fmt: skip

_LIMITS = ("max_items", "max_tokens")

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Said = Callable[[int, bytes], Iterator[Any]]
"""The words of the request of a row that a text contains."""


def packs(
    ranked: Ranked,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    role_policies: RolePolicies,
    lexical_recall: LexicalRecall,
) -> Packs:
    """Every ranked row once, by request and position: dropped rows first (position 0, by rank), then the items.

    `members` of an item lists its rows in document order; of a dropped row, the row alone.
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
    asked, requests = asked_by(lexical_recall.words), contracts["request_id"].to_pylist()

    def said(at: int, text: bytes) -> Iterator[Any]:
        words = asked[requests[owner[at]]]
        return words.words_in(text) if words.words else iter(())

    runs = _runs(packing.kept & ~disputed, source, rows, standing, limit, _adding(row, evidence["text"], said))
    packing.drop_repeats(runs, "merged", among=runs >= 0)
    packing.drop_unverified(owner, unverified, conflict, disputed, _limits(contracts, "max_unverified_items", owner))
    document = _documents(owner, rows, ids)
    packing.drop_beyond(document, ~disputed, _limits(contracts, "max_items_per_source", owner), "source_cap")

    history = np.asarray(pc.equal(standing, "history")) | stale
    merged = (packing.reason == "merged").nonzero()[0]
    length = rows["length"].to_numpy().astype(np.float64)
    length += np.bincount(packing.into[merged], weights=length[merged], minlength=len(length))
    tokens = np.minimum(length * TOKENS_PER_TERM, _limits(contracts, "max_chunk_tokens", owner)) + BESIDE_TEXT
    record = truth(pc.equal(rows["origin_class"], "structured-sot")) & flags_at(contracts["exact_lookups"], owner)
    brief = ~among(take_or(contracts["detail"], owner), ("full",))
    turn = _turns(document, packing.kept)
    # The first items of good documents come before the second of any.
    worth = np.where(brief & (turn > 0), AGAIN * ranked["final"].to_numpy(), ranked["final"].to_numpy())
    # Memories that still hold come before past ones, however well those match.
    past = history & np.asarray(pc.equal(rows["evidence_kind"], "memory"))
    turn *= flags_at(contracts["source_diversity"], owner)
    role = reading_order(flat(contracts["role"]).take(pa.array(owner)), row, evidence, role_policies)
    lead = _leads(packing.kept, conflict, disputed)
    kept = packing.kept.nonzero()[0]
    by = lead[kept]
    kept = kept[order_by(owner[kept], past[by], turn[by], -worth[by], by)]
    if record[kept].any():
        kept = _named_first(kept, owner, lead, record, row, rows, evidence["text"])
    kinds = _first_of_kinds(kept[~history[kept]], kept, owner, rows["evidence_kind"], ranked, contracts)
    items = _Items(lead.tolist(), tokens.astype(np.int64).tolist(), role.tolist())
    own = (np.split(index, owner[index].searchsorted(np.arange(1, contracts.num_rows))) for index in (kept, kinds))
    position = np.zeros(len(owner), dtype=np.int64)
    for limits, in_order, of_kinds in zip(contracts.select(_LIMITS).to_pylist(), *own, strict=True):
        shown = items.tried(in_order.tolist(), of_kinds.tolist(), *limits.values())
        position[shown] = np.arange(1, len(shown) + 1)
    packing.drop(position == 0, "budget_items")
    order = order_by(owner, position, ranked["rank"].to_numpy())
    members, starts = _members(packing, integers(rows["byte_start"].fill_null(-1)))
    table = PACKS.build(
        {
            "request_id": ranked["request_id"],
            "evidence_id": ids,
            "place": at,
            "position": position.astype(np.int32),
            "reason_code": pa.array(packing.reason, pa.string()),
            "merged_into": ids.take(pa.array(packing.into, mask=packing.into < 0)),
            "members": pa.ListArray.from_arrays(starts, pa.array(at[members])),
            "standing": standing,
            "form": _forms(contracts, owner, rows, standing, unverified, disputed),
            "history": history,
        }
    )
    return table.take(pa.array(order))


class _Items(NamedTuple):
    """What is known of the rows of all requests, in order of request and rank, to order the items of each."""

    lead: list[int]
    """The best of its conflict set, else the row itself."""
    tokens: list[int]
    role: list[int]

    def tried(self, rows: list[int], kinds: list[int], most: int, tokens: int) -> list[int]:
        """The rows of a request that trimming tries, in the order of its block: first those for which there is room, then
        those of `kinds` that are kept behind them. A role reorders what would be shown, and admits no others.
        """
        kept, front = list[int](), self._front(rows, most, tokens)
        for _ in range(2):  # kept items take room, and may push another out of the front
            behind = [n for n in kinds if n not in front]
            used = accumulate([self.tokens[n] for n in behind])
            kept = [n for n, sum_ in zip(behind, used, strict=True) if sum_ <= tokens // KEPT_SHARE]
            front = self._front(rows, most - len(kept), tokens - sum([self.tokens[n] for n in kept]))
        leads = [n for n in rows if self.lead[n] == n]
        behind = [n for n in leads if n not in front]
        ordered = [n for n in leads if n in front] + [n for n in behind if n in kept]
        ordered += [n for n in behind if n not in kept]
        ordered = sorted(ordered[:most], key=self.role.__getitem__) + ordered[most : max(most * 4 // 3, TRIED)]
        if len(leads) == len(rows):
            return ordered
        return [n for one in ordered for n in rows if self.lead[n] == one]

    def _front(self, rows: list[int], most: int, tokens: int) -> set[int]:
        """The first rows, as far as there is room; one in any case."""
        found = {*rows[:1]}
        for n in rows:
            most -= self.lead[n] == n
            tokens -= self.tokens[n]
            if tokens < 0 or most < 0:
                break
            found.add(n)
        return found


def _first_of_kinds(able: Int, kept: Int, owner: Int, kind: pa.Array, ranked: pa.Table, contracts: pa.Table) -> Int:
    """The first able row of each kind of each request, if its kind is required or its score is near the best; required
    kinds first. History is never the item of a kind.
    """
    final = ranked["final"].to_numpy()
    code = np.asarray(kind.dictionary_encode().indices)
    first = able[np.sort(distinct_rows(owner[able], code[able])[0])]
    best = np.zeros(contracts.num_rows)
    np.maximum.at(best, owner[kept], final[kept])
    needs = [{EVIDENCE_NEEDS[need][0] for need in own or ()} for own in contracts["required_evidence"].to_pylist()]
    kinds = kind.take(pa.array(first)).to_pylist()
    required = np.array([one in needs[of] for one, of in zip(kinds, owner[first].tolist(), strict=True)], dtype=bool)
    first, required = (values[required | (final[first] >= NEAR * best[owner[first]])] for values in (first, required))
    return first[order_by(owner[first], ~required)]


def _leads(kept: Bool, conflict: Int, disputed: Bool) -> Int:
    """The best kept row of the conflict set of each row, which is in one place, that of its best; else the row itself."""
    lead = np.arange(len(kept))
    index = (kept & disputed).nonzero()[0]
    first, inverse = distinct_rows(conflict[index])
    lead[index] = index[first[inverse]]
    return lead


def _named_first(
    kept: Int, owner: Int, lead: Int, record: Bool, row: Int, rows: dict[str, pa.Array], texts: pa.ChunkedArray
) -> Int:
    """Records that a requested record names follow it directly (S1.14, S1.18: direct dependencies are included).

    A named record does not match the question, so rows similar to the requested one outrank it and fill a cap on items.
    Only records that the exact lane found count as requested, not those that match by words alone.
    """
    at = record[kept].nonzero()[0]
    of = owner[kept].tolist()
    lanes, entities = (rows[name].take(pa.array(kept[at])).to_pylist() for name in ("lanes", "entity"))
    asked = np.array(["exact" in lane for lane in lanes], dtype=bool)
    seeds = at[asked].tolist()
    named = named_records(pa.nulls(len(seeds), pa.string()), gathered(texts, row[kept[seeds]]))
    leaders = {(of[seeds[number]], key): seeds[number] for number, key in sorted(named, reverse=True)}
    places = 2 * np.arange(len(kept))
    for place, entity in zip(at[~asked].tolist(), compress(entities, ~asked), strict=True):
        following = ((of[place], key) for key in posting_keys("id", id_keys(entity or "")))
        places[place] = min([2 * place, *(2 * leaders[one] + 1 for one in following if one in leaders)])
    of_lead = places[positions(pa.array(lead[kept]), pa.array(kept))]
    return kept[order_by(of_lead, lead[kept], kept)]


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

    def drop_beyond(self, group: Int, among: Bool, limit: Int, reason: str) -> None:
        """Keep the best rows of `among` in each group, up to the limit."""
        among = self.kept & among
        self.drop(among & (_turns(group, among) >= limit), reason)

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
    able: Bool, source: Int, rows: dict[str, pa.Array], standing: pa.Array, limit: Int, adds: Callable[[int, int], bool]
) -> Int:
    """A run number for rows that become one item: neighbors of one document version and the same rights around their
    best; else -1.

    `source` is a number per request, source and path: most rows are alone there and need no further comparison. Rows
    farther from the best row than half of the remaining limit stay separate items, and so do rows at either end that
    add no word of the question to the best row; `adds` tells that.
    """
    start, end, first, last = (
        integers(rows[name].fill_null(-1)) for name in ("byte_start", "byte_end", "line_start", "line_end")
    )
    index = (able & (start >= 0) & np.asarray(rows["path"].is_valid())).nonzero()[0]
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
    document = numbers_of(source[index], *(part.take(at) for part in parts))
    by_place = order_by(document, start[index])
    order, document = index[by_place], document[by_place]
    here, before = order[1:], order[:-1]
    touching = (end[before] == start[here]) | ((first[here] == last[before] + 1) & (end[before] <= start[here]))
    cuts = (~(touching & (document[1:] == document[:-1]))).nonzero()[0] + 1
    low, high, most, number = (column[order].tolist() for column in (start, end, limit, np.arange(len(source))))
    for first_of, stop in pairwise([0, *cuts.tolist(), len(order)]):
        if stop - first_of < 2:
            continue
        lead = min(range(first_of, stop), key=number.__getitem__)
        near = []
        for at in range(first_of, stop):
            room = max(most[at] - (high[lead] - low[lead]), 0) // 2
            if high[at] - high[lead] <= room and low[lead] - low[at] <= room:
                near.append(at)
        # Of the rows near the best, those stay that add a word or stand between it and one that does.
        adding = [at for at in near if at == lead or adds(number[at], number[lead])]
        runs[[number[at] for at in near if adding[0] <= at <= adding[-1]]] = number[lead]
    return runs


def _adding(row: Int, texts: pa.ChunkedArray, said: Said) -> Callable[[int, int], bool]:
    """A function that tells whether a row contains a word of its request that its lead lacks; nothing is read before it is
    needed.
    """

    @cache
    def words_of(at: int) -> set[Any]:
        return {*said(at, texts[int(row[at])].as_py().encode())}

    return lambda at, lead: not words_of(at) <= words_of(lead)


def _turns(source: Int, kept: Bool) -> Int:
    """The number of kept rows of the same source before each of them, by rank; 0 for other rows."""
    index = kept.nonzero()[0]
    order = index[source[index].argsort(kind="stable")]
    turn = np.zeros(len(source), dtype=np.int64)
    turn[order] = rank_within(source[order])
    return turn


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
    words, place = (*(word for _, word in rules), "full"), np.full(len(owner), len(rules))
    for number in reversed(range(len(rules))):
        place[rules[number][0]] = number
    return constants(words).take(pa.array(place))
