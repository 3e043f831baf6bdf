"""The lanes that look up keys or return the newest rows: lexical, symbol, exact and recent.

Reads the inputs every lane reads (`RecallTables`) and the lane's own index. Gives `Found`, scope group by scope group.

Note: a sub-query's filters (sources, kinds, least authority, greatest age) determine the rows returned, never the rows
counted; document frequencies, N and lengths are those of A(r).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..columns.keys import constants, gathered, gathered_columns, integers, order_by, positions, rank_within
from ..columns.numbers import quantise
from ..columns.ragged import spread
from ..frames import PostingIndex, posting_keys
from ..tables import LANE_HITS
from ..text.index_keys import definition_keys
from .bm25 import Bm25
from .posting_recall import Asked, Entries, KeyRows, recall_keys
from .recall_scope import RecallTables, ScopeGroup
from .recall_selection import Found, top

FIELD_WEIGHTS = {"definition": 1.0, "reference": 0.5, "path": 0.75}
"""A row that defines a named symbol is most relevant to it; one that only mentions it, least."""
HOP_SEEDS = 10
"""Definitions per sub-query from which the call chain is followed."""
HOP_WEIGHTS = {"definition": 0.25, "reference": 0.125}
"""Weights of the callees and the callers of a definition: the second hop weighs a quarter of the first."""


class LexicalRecall(NamedTuple):
    """The hits of the lexical lane, as LANE_HITS, and the weights of its terms."""

    hits: pa.Table
    weighed: Sequence[Asked]
    words: Mapping[tuple[str, str], float]
    """The greatest weight of each term among the sub-queries of a request, by request id and term; passages are chosen by
    them."""


NO_LEXICAL = LexicalRecall(LANE_HITS.empty(), (), {})


def recall_terms(tables: RecallTables, postings: PostingIndex, bm25: Bm25) -> tuple[Found, list[Asked]]:
    """The lexical lane: BM25 over text terms; and the weights of the terms."""
    found, weighed = list[Found](), list[Asked]()
    for scope in tables.scope_groups("lexical"):
        best, weights = recall_keys(scope, entries_of(scope, postings, ("text",)), bm25)
        found.append(best)
        weighed += weights
    return Found.concat(found), weighed


def recall_exact(tables: RecallTables, postings: PostingIndex) -> Found:
    """The exact lane: ids, literals and regular expressions, by idf."""
    scopes = tables.scope_groups("exact")
    return Found.concat(
        [recall_keys(scope, entries_of(scope, postings, ("id", "literal", "regex")), None)[0] for scope in scopes]
    )


def recall_symbols(tables: RecallTables, postings: PostingIndex) -> Found:
    """The symbol lane: rows that define or mention a name in the request or are the named file, and one hop of calls.

    The hop leads from the best admissible definitions to their callees and callers, and scores admissible rows only: a
    withheld definition leads nowhere.
    """
    parts = []
    for scope in tables.scope_groups("symbol"):
        seeds, _ = recall_keys(scope, entries_of(scope, postings, ("definition",)), None)
        direct = entries_of(scope, postings, tuple(FIELD_WEIGHTS))
        parts.append(recall_keys(scope, _with_hops(scope, postings, direct, seeds), None)[0])
    return Found.concat(parts)


def recall_newest(tables: RecallTables) -> Found:
    """The recent lane: the newest admissible rows that pass the sub-query's filter; the score is 1 / place.

    Sub-queries of one filter and clock share one list, and each takes the first `lane_k` of it.
    """
    index = tables.row_index
    parts = []
    for scope in tables.scope_groups("recent"):
        gates, gate = scope.shown(np.arange(len(scope.sub)))
        for number, gate_ in enumerate(gates):
            local, own = gate_.nonzero()[0], (gate == number).nonzero()[0]
            rows, subs = scope.rows[local], scope.sub[own]
            _, placement = scope.admitted(scope.request[own[:1]].repeat(len(local)), local)
            k = np.minimum(tables.lane_k[subs], len(rows))
            time = index.happened_at(rows, placement).astype(np.float64)
            newest = rows[top(time, index.id_rank[rows], int(k.max()))]
            sub, place = spread(np.zeros(len(k), dtype=np.int64), k)
            parts.append(Found.of(subs[sub], newest[place], quantise(1.0 / (place + 1))))
    return Found.concat(parts)


def entries_of(scope: ScopeGroup, postings: PostingIndex, fields: tuple[str, ...]) -> Entries:
    """The look-ups of all sub-queries of a scope's group for the terms of some fields."""
    tables = scope.tables

    def made() -> Entries:
        terms = tables.query_terms
        sub, field = integers(terms["sub_query"]), positions(terms["field"], constants(fields))
        chosen = ((tables.group_of_sub[sub] == scope.group) & (field >= 0)).nonzero()[0]
        keys = gathered(terms["term"], chosen).dictionary_encode()
        share = np.array([FIELD_WEIGHTS.get(name, 1.0) for name in fields])[field[chosen]]
        weight = terms["weight"].to_numpy()[chosen] * share
        found = KeyRows.of(scope, postings, keys.dictionary.to_pylist())
        if "literal" in fields:
            found = found.with_texts(scope, postings)
        return Entries(found, sub[chosen], integers(keys.indices), weight)

    return tables.looked_up.get((scope.group, fields), made)


def _with_hops(scope: ScopeGroup, postings: PostingIndex, direct: Entries, seeds: Found) -> Entries:
    """The look-ups of a scope, followed by those of the calls of its best definitions."""
    shown = (~seeds.withheld).nonzero()[0]
    if not len(shown):
        return direct
    best = shown[order_by(seeds.sub[shown], -seeds.score[shown], scope.tables.row_index.id_rank[seeds.row[shown]])]
    best = best[rank_within(seeds.sub[best]) < HOP_SEEDS]
    sub = seeds.sub[best].tolist()
    place = {key: number for number, key in enumerate(direct.keys.names)}
    looked_up = dict.fromkeys(zip(direct.sub.tolist(), direct.key.tolist(), strict=True))
    weights = dict(zip(looked_up, direct.weight.tolist(), strict=True))
    linked = gathered_columns(scope.tables.evidence, ("calls", "symbols"), seeds.row[best])
    for column, field in (("calls", "definition"), ("symbols", "reference")):
        for own, names in zip(sub, linked[column].to_pylist(), strict=True):
            keys = [key for name in names or () for key in definition_keys(name)[:1]]
            for key in posting_keys(field, keys):
                weights.setdefault((own, place.setdefault(key, len(place))), HOP_WEIGHTS[field])
    keys = KeyRows.of(scope, postings, list(place))
    entries = Entries.of(keys, sorted((*at, weight) for at, weight in weights.items()))
    hop = [at not in looked_up for at in zip(entries.sub.tolist(), entries.key.tolist(), strict=True)]
    return replace(entries, hop=np.array(hop, dtype=bool))
