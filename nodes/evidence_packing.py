"""Evidence packing: candidates become items. Rows are only dropped and ordered here.

Reads `ranked`, the pool and the texts of its rows. Gives `packs`: every ranked row exactly once, kept with a place, or dropped with a
reason. No row is added: each rule reads only the request's own candidates.

Rules in order: a citation that cannot resolve (where the contract requires one), the same text, one that differs only in spacing,
the cap on unverified items, the cap per document, and at last the number of items. A role only orders the kept rows (its first and last kinds, and one
item of each source before a second of any).

A kind has a place for its best item, so that one kind does not fill a block alone: an item is moved from behind the
estimated end of the shown items to the last places before that end, if its score is near that of the best, or if the
request requires its kind. So variety costs only the weakest items that would be shown.

Note: members of a conflict set are exempt from the near-duplicate rule and from the source cap, since competing claims look
alike; they stay together at the place of the best of them, and no cap separates them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from .blocks.greedy_fit import PLACES
from .columns.keys import distinct_rows, flat, gathered, gathered_columns, integers
from .frames import posting_keys
from .reranking.role_terms import reading_order
from .tables import PACKS, Contracts, Evidence, Packs, Pool, Ranked, RolePolicies
from .text.index_keys import id_keys
from .text.references import named_records
from .vocabulary import EVIDENCE_NEEDS

AGAIN = 0.8
"""The share of its score that counts for a further item of a document. With .85 a block shows half a point more of the lines
that answer (646 subjects of commits of six repositories), with .8 three points more of the files (code search)."""

NEAR = 0.7
"""An item is near if it has at least this share of the best final score of its request."""
KEPT_SHARE = 3
"""At most one part in this many of the budget is reserved for kinds."""
TOKENS_PER_TERM, BESIDE_TEXT = 2, 25
"""Estimated tokens of a text per index term, and of what is printed around it."""

_READ = (
    "evidence_id", "standing", "text_sha256", "source_id", "path", "origin_class", "evidence_kind", "lifecycle", "conflict_set",
    "document_type", "content_type", "entity", "length", "version", "line_start", "byte_start", "byte_end",
)  # fmt: skip
_MADE = ("evidence_id", "place", "position", "reason_code", "merged_into", "standing", "form", "history")
_LIMITS = (
    "request_id", "require_citation", "max_chunk_tokens", "max_unverified_items", "max_items_per_source",
    "source_diversity", "exact_lookups", "required_evidence", "max_items", "max_tokens",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class _Stored:
    """Columns of a row of the pool, and what follows from them, whichever request ranks it."""

    text: bytes
    evidence_id: str
    standing: str
    text_sha256: str
    source_id: str
    path: str | None
    origin_class: str
    evidence_kind: str
    lifecycle: str | None
    conflict_set: str | None
    document_type: str | None
    content_type: str | None
    entity: str | None
    length: int
    version: str | None
    line_start: int | None
    byte_start: int
    byte_end: int
    """-1 where they are unknown."""
    words: bytes = field(init=False)
    """Its text with one space for any: texts that differ only in spacing are near duplicates."""
    unverified: bool = field(init=False)
    history: bool = field(init=False)
    record: bool = field(init=False)
    resolves: bool = field(init=False)
    """Whether a citation says where its text is."""
    form: str = field(init=False)
    claim: str = field(init=False)
    """Its conflict set, else itself."""
    document: str = field(init=False)
    """Source and path, else the entity, else itself.

    A session event is a document of its own, in whichever file: a cap on the file would show three turns of a
    conversation, whatever the budget. So is a structured record: a cap on the file would drop the dependencies that
    another record names, and keep unrelated rows of other files.
    """

    def __post_init__(self) -> None:
        self.words = b" ".join(self.text.split())
        self.unverified = self.lifecycle in (None, "candidate")
        stale = self.lifecycle in ("deprecated", "expired")
        # An unverified row speaks at most as a hint, a stale one as history.
        if self.unverified and self.standing in ("evidence", "instruction"):
            self.standing = "hint"
        if stale and self.standing != "untrusted":
            self.standing = "history"
        self.history = stale or self.standing == "history"
        self.record = self.origin_class == "structured-sot"
        exact = self.byte_start >= 0 and self.byte_end - self.byte_start == len(self.text)
        self.resolves = self.path is None or exact or (self.line_start, self.version) != (None, None)
        self.form = (  # S0.67
            "conflict-note" if self.conflict_set is not None
            else "hint" if self.unverified or self.standing == "hint"
            else "fact" if self.evidence_kind == "structured-fact"
            else "summary" if "summary" in (self.document_type, self.content_type)
            else "full"
        )  # fmt: skip
        self.claim = self.evidence_id if self.conflict_set is None else f"set {self.conflict_set}"
        keyed = self.record and self.entity is not None
        named = self.entity if keyed or self.path is None else self.path
        alone = named is None or self.evidence_kind == "session-event"
        self.document = self.evidence_id if alone else repr((self.source_id, keyed, named))


@dataclass(slots=True, eq=False)
class _Row:
    """A ranked row of a request and what becomes of it. Numbers ascend from the best row."""

    number: int
    place: int
    final: float
    role: int
    stored: _Stored
    reason: str | None = None
    into: str | None = None
    position: int = 0
    lead: int = 0
    """The best row of its conflict set, else itself."""
    order: tuple[float, ...] = ()
    tokens: int = 0
    """Estimated tokens of its item."""


def packs(
    ranked: Ranked,
    pool: Pool,
    contracts: Contracts,
    evidence: Evidence,
    role_policies: RolePolicies,
) -> Packs:
    """Every ranked row once, by request and position: dropped rows first (position 0, by rank), then the items."""
    at = integers(ranked["place"])
    chosen = gathered_columns(pool, ("row", "contract", "placement", "standing"), at)
    row, placement, owner = (integers(chosen[name]) for name in ("row", "placement", "contract"))
    first, which = distinct_rows(row, placement, integers(chosen["standing"].dictionary_encode().indices))
    stored = gathered_columns(pool, _READ, at[first])
    texts = gathered(evidence["text"], row[first]).cast(pa.large_binary()).to_pylist()
    stored |= {name: stored[name].fill_null(-1) for name in ("byte_start", "byte_end")}
    known = [*map(_Stored, texts, *(stored[name].to_pylist() for name in _READ))]
    role = reading_order(flat(contracts["role"]).take(pa.array(owner)), row, evidence, role_policies).tolist()
    final = ranked["final"].to_pylist()
    every = map(_Row, range(len(at)), at.tolist(), final, role, [known[n] for n in which.tolist()])
    made = {name: [] for name in _MADE}
    counts = np.bincount(owner, minlength=contracts.num_rows).tolist()
    for contract, count in zip(contracts.select(_LIMITS).to_pylist(), counts, strict=True):
        rows = _packed([*islice(every, count)], contract, pool["lanes"])
        made["evidence_id"] += [row.stored.evidence_id for row in rows]
        made["place"] += [row.place for row in rows]
        made["position"] += [row.position for row in rows]
        made["reason_code"] += [row.reason for row in rows]
        made["merged_into"] += [row.into for row in rows]
        made["standing"] += [row.stored.standing for row in rows]
        made["form"] += [row.stored.form for row in rows]
        made["history"] += [row.stored.history for row in rows]
    return PACKS.build({"request_id": ranked["request_id"], **made})


def _packed(rows: list[_Row], contract: dict[str, Any], lanes: pa.ChunkedArray) -> list[_Row]:
    """The rows of a request, best first, by position."""
    if contract["require_citation"]:
        for row in rows:
            row.reason = None if row.stored.resolves else "citation_unresolved"
    kept = _kept(rows)
    _drop_repeats(kept, [row.stored.text_sha256 for row in kept], "duplicate")
    alone = [row for row in _kept(kept) if row.stored.conflict_set is None]
    _drop_repeats(alone, [row.stored.words for row in alone], "near_duplicate")
    _cap_unverified(_kept(kept), contract["max_unverified_items"])
    _cap_documents(_kept(alone), contract["max_items_per_source"])
    kept = _in_order(_kept(kept), contract)
    if contract["exact_lookups"]:
        kept = _named_first(kept, lanes)
    tokens = contract["max_tokens"] - PLACES * BESIDE_TEXT
    tried = _tried(kept, _first_of_kinds(kept, contract["required_evidence"]), contract["max_items"], tokens)
    for position, row in enumerate(tried, 1):
        row.position = position
    for row in kept:
        row.reason = None if row.position else "budget_items"
    return [row for row in rows if not row.position] + tried


def _kept(rows: Iterable[_Row]) -> list[_Row]:
    return [row for row in rows if row.reason is None]


def _drop_repeats(rows: Sequence[_Row], keys: Sequence[Hashable], reason: str) -> None:
    """Keep the best row of each key; the others record the row that replaces them."""
    best: dict[Hashable, _Row] = {}
    for row, key in zip(rows, keys, strict=True):
        if key in best:
            row.reason, row.into = reason, best[key].stored.evidence_id
        else:
            best[key] = row


def _cap_unverified(rows: Sequence[_Row], most: int) -> None:
    """The cap on unverified items. A conflict set counts as one if no member is verified, else not at all."""
    backed = {row.stored.claim for row in rows if not row.stored.unverified}
    counted = [row for row in rows if row.stored.unverified and row.stored.claim not in backed]
    beyond = {*[*dict.fromkeys([row.stored.claim for row in counted])][most:]}
    for row in counted:
        if row.stored.claim in beyond:
            row.reason = "unverified_cap"


def _cap_documents(rows: Iterable[_Row], most: int) -> None:
    counted = defaultdict[Hashable, int](int)
    for row in rows:
        counted[row.stored.document] += 1
        if counted[row.stored.document] > most:
            row.reason = "source_cap"


def _in_order(rows: Sequence[_Row], contract: dict[str, Any]) -> list[_Row]:
    """Rows by score, each conflict set at the place of its best."""
    turns, leads = defaultdict[Hashable, int](int), dict[Hashable, _Row]()
    diverse, most = contract["source_diversity"], contract["max_chunk_tokens"]
    for row in rows:
        turn = turns[row.stored.document]
        turns[row.stored.document] += 1
        lead = row if row.stored.conflict_set is None else leads.setdefault(row.stored.conflict_set, row)
        row.lead = lead.number
        # The first items of good documents come before the second of any; memories that hold before past ones.
        worth = AGAIN * row.final if turn else row.final
        past = row.stored.history and row.stored.evidence_kind == "memory"
        row.order = (past, turn if diverse else 0, -worth, row.number) if lead is row else lead.order
        tokens = row.stored.length * TOKENS_PER_TERM
        row.tokens = (tokens if tokens < most else most) + BESIDE_TEXT
    return sorted(rows, key=attrgetter("order"))


def _named_first(rows: list[_Row], lanes: pa.ChunkedArray) -> list[_Row]:
    """Records that a requested record names follow it directly (S1.14, S1.18: direct dependencies are included).

    A named record does not match the question, so rows similar to the requested one outrank it and fill a cap on items.
    Only records that the exact lane found count as requested, not those that match by words alone; `lanes` are by place.
    """
    records = [row for row in rows if row.stored.record]
    found_by = gathered(lanes, pa.array([row.place for row in records], pa.int64())).to_pylist()
    asked = [row for row, by in zip(records, found_by, strict=True) if "exact" in by]
    texts = pa.array([row.stored.text for row in asked], pa.large_binary())
    named = named_records(pa.nulls(len(asked), pa.string()), texts)
    leaders = {key: asked[n].number for n, key in sorted(named, reverse=True)}
    places = {row.number: 2 * n for n, row in enumerate(rows)}
    for row in records:
        if row not in asked:
            keys = posting_keys("id", id_keys(row.stored.entity or ""))
            places[row.number] = min(
                [places[row.number], *(places[leaders[key]] + 1 for key in keys if key in leaders)]
            )
    return sorted(rows, key=lambda row: (places[row.lead], row.lead))


def _first_of_kinds(rows: Sequence[_Row], needs: Iterable[str]) -> list[_Row]:
    """The first row of each kind that is required, then of each whose first is near the best. History is never the item of
    a kind.
    """
    first: dict[str, _Row] = {}
    for row in rows:
        if not row.stored.history and row.stored.evidence_kind not in first:
            first[row.stored.evidence_kind] = row
    best = max([0.0, *[row.final for row in rows]])
    required = {EVIDENCE_NEEDS[need][0] for need in needs}
    wanted = [row for kind, row in first.items() if kind in required or row.final >= NEAR * best]
    return sorted(wanted, key=lambda row: row.stored.evidence_kind not in required)


def _tried(rows: list[_Row], kinds: Sequence[_Row], most: int, tokens: int) -> list[_Row]:
    """The rows that trimming tries, in the order of their block: first those for which there is room, then those of `kinds`
    that are kept behind them. A role reorders what would be shown, and admits no others.
    """
    kept, front = list[_Row](), _front(rows, most, tokens)
    for _ in range(2):  # kept items take room, and may push another out of the front
        behind = [row for row in kinds if row not in front]
        used = accumulate([row.tokens for row in behind])
        kept = [row for row, sum_ in zip(behind, used, strict=True) if sum_ <= tokens // KEPT_SHARE]
        front = _front(rows, most - len(kept), tokens - sum([row.tokens for row in kept]))
    leads = [row for row in rows if row.lead == row.number]
    behind = [row for row in leads if row not in front]
    ordered = [row for row in leads if row in front] + [row for row in behind if row in kept]
    ordered += [row for row in behind if row not in kept]
    ordered = sorted(ordered[:most], key=attrgetter("role")) + ordered[most : most + 1]  # which tells what bound
    rivals = [row for row in rows if row.lead != row.number]
    return [row for one in ordered for row in (one, *[rival for rival in rivals if rival.lead == one.number])]


def _front(rows: Sequence[_Row], most: int, tokens: int) -> set[_Row]:
    """The first rows, as far as there is room; one in any case."""
    found = {*rows[:1]}
    for row in rows:
        most -= row.lead == row.number
        tokens -= row.tokens
        if tokens < 0 or most < 0:
            break
        found.add(row)
    return found
