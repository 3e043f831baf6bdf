"""The lanes that look up keys or return the newest rows: lexical, symbol, exact and recent.

Reads the inputs every lane reads (`RecallTables`) and the lane's own index. Gives `Found`, scope group by scope group.

Note: a sub-query's filters (sources, kinds, least authority, greatest age) determine the rows returned, never the rows
counted; document frequencies, N and lengths are those of A(r).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..columns.keys import (
    constants,
    distinct_rows,
    gathered,
    gathered_columns,
    integers,
    order_by,
    places_of,
    positions,
    rank_within,
)
from ..columns.numbers import quantise
from ..columns.ragged import spread
from ..frames import PostingIndex, posting_keys
from ..text.index_keys import definition_keys
from .bm25 import Bm25
from .posting_recall import recall_keys
from .recall_entries import Entries, Weighed
from .recall_scope import RecallTables, ScopeGroup
from .recall_selection import Found, top

FIELD_WEIGHTS = {"definition": 1.0, "reference": 0.5, "path": 0.75}
"""A row that defines a named symbol is most relevant to it; one that only mentions it, least."""
HOP_SEEDS = 10
"""Definitions per sub-query from which the call chain is followed."""
HOP_WEIGHTS = {"definition": 0.25, "reference": 0.125}
"""Weights of the callees and the callers of a definition: the second hop weighs a quarter of the first."""


def recall_terms(tables: RecallTables, postings: PostingIndex, lane: str, bm25: Bm25) -> Weighed:
    """The lexical lane (BM25 over text terms) or the exact lane (ids and literals, by idf)."""
    fields = {"lexical": ("text",), "exact": ("id", "literal")}[lane]
    parts = [
        recall_keys(scope, postings, entries_of(scope, fields), bm25 if lane == "lexical" else None)
        for scope in tables.scope_groups(lane)
    ]
    return Weighed.concat(parts)


def recall_symbols(tables: RecallTables, postings: PostingIndex) -> Found:
    """The symbol lane: rows that define or mention a name in the request or are the named file, and one hop of calls.

    The hop leads from the best admissible definitions to their callees and callers, and scores admissible rows only: a
    withheld definition leads nowhere.
    """
    parts = []
    for scope in tables.scope_groups("symbol"):
        seeds = recall_keys(scope, postings, entries_of(scope, ("definition",)), None).found
        direct = entries_of(scope, tuple(FIELD_WEIGHTS))
        parts.append(recall_keys(scope, postings, _with_hops(scope, direct, seeds), None).found)
    return Found.concat(parts)


def recall_newest(tables: RecallTables) -> Found:
    """The recent lane: the newest admissible rows that pass the sub-query's filter; the score is 1 / place.

    Sub-queries of one filter and clock share one list, and each takes the first `lane_k` of it.
    """
    index, clock = tables.row_index, tables.clock[1]
    parts = []
    for scope in tables.scope_groups("recent"):
        passed, filter_ = scope.returned(np.arange(len(scope.sub)))
        first, of = distinct_rows(clock[scope.request], filter_)
        for number, example in enumerate(first.tolist()):
            at = int(clock[scope.request[example]])
            rows = scope.rows[passed[filter_[example]] & scope.open(np.array([at]))[0]]
            _, placement = tables.clock[0].judge(index, np.full(len(rows), at), rows)
            subs = scope.sub[of == number]
            k = np.minimum(tables.lane_k[subs], len(rows))
            time = index.happened_at(rows, placement).astype(np.float64)
            newest = rows[top(time, index.id_rank[rows], int(k.max()))]
            sub, place = spread(np.zeros(len(k), dtype=np.int64), k)
            parts.append(Found.of(subs[sub], newest[place], quantise(1.0 / (place + 1))))
    return Found.concat(parts)


def entries_of(scope: ScopeGroup, fields: Sequence[str]) -> Entries:
    """The look-ups of a scope's sub-queries for the terms of some fields."""
    terms = scope.tables.query_terms
    number = places_of(integers(terms["sub_query"]), scope.sub)
    field = positions(terms["field"], constants(tuple(fields)))
    chosen = ((number >= 0) & (field >= 0)).nonzero()[0]
    keys = gathered(terms["term"], chosen).dictionary_encode()
    share = np.array([FIELD_WEIGHTS.get(name, 1.0) for name in fields])[field[chosen]]
    weight = terms["weight"].to_numpy()[chosen] * share
    return Entries(keys.dictionary.to_pylist(), number[chosen], integers(keys.indices), weight)


def _with_hops(scope: ScopeGroup, direct: Entries, seeds: Found) -> Entries:
    """The look-ups of a scope, followed by those of the calls of its best definitions."""
    shown = (~seeds.withheld).nonzero()[0]
    if not len(shown):
        return direct
    best = shown[order_by(seeds.sub[shown], -seeds.score[shown], scope.tables.row_index.id_rank[seeds.row[shown]])]
    best = best[rank_within(seeds.sub[best]) < HOP_SEEDS]
    sub = scope.sub.searchsorted(seeds.sub[best]).tolist()
    place = {key: number for number, key in enumerate(direct.keys)}
    looked_up = dict.fromkeys(zip(direct.sub.tolist(), direct.key.tolist(), strict=True))
    weights = dict(zip(looked_up, direct.weight.tolist(), strict=True))
    linked = gathered_columns(scope.tables.evidence, ("calls", "symbols"), seeds.row[best])
    for column, field in (("calls", "definition"), ("symbols", "reference")):
        for own, names in zip(sub, linked[column].to_pylist(), strict=True):
            keys = [key for name in names or () for key in definition_keys(name)[:1]]
            for key in posting_keys(field, keys):
                weights.setdefault((own, place.setdefault(key, len(place))), HOP_WEIGHTS[field])
    entries = Entries.of(list(place), sorted((*at, weight) for at, weight in weights.items()))
    hop = [at not in looked_up for at in zip(entries.sub.tolist(), entries.key.tolist(), strict=True)]
    return replace(entries, hop=np.array(hop, dtype=bool))
