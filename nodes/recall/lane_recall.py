"""The lanes that look up keys or return the newest rows: lexical, symbol, exact and recent.

Reads the inputs every lane reads (`RecallTables`) and the lane's own index. Gives `Found`, scope group by scope group.

Note: a sub-query's filters (sources, kinds, least authority, greatest age) determine the rows returned, never the rows
counted; document frequencies, N and lengths are those of A(r).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import constants, distinct_numbers, flat, gathered, integers, rank_within
from ..columns.list_columns import flattened
from ..columns.numbers import quantise
from ..columns.ragged import Ragged, expand_ranges, spread
from ..frames import PostingIndex, posting_keys
from ..text.index_keys import definition_keys
from .bm25 import Bm25
from .posting_recall import recall_keys
from .recall_entries import Entries, Weighed
from .recall_scope import CELLS, Int, RecallTables, ScopeGroup, sub_query_of
from .recall_selection import Found, best_cells

FIELD_WEIGHTS = {"definition": 1.0, "reference": 0.5, "path": 0.75}
"""A row that defines a named symbol is most relevant to it; one that only mentions it, least."""
HOP_SEEDS = 10
"""Definitions per sub-query from which the call chain is followed."""
HOP_WEIGHTS = {"definition": 0.25, "reference": 0.125}
"""Weights of the callees and the callers of a definition: the second hop weighs a quarter of the first."""


def recall_terms(tables: RecallTables, query_terms: pa.Table, postings: PostingIndex, lane: str, bm25: Bm25) -> Weighed:
    """The lexical lane (BM25 over text terms) or the exact lane (ids and literals, by idf)."""
    fields = {"lexical": ("text",), "exact": ("id", "literal")}[lane]
    terms = FieldTerms.of(tables, query_terms, fields)
    parts = [
        recall_keys(scope, postings, terms.entries(scope), bm25 if lane == "lexical" else None)
        for scope in tables.scope_groups(lane)
    ]
    return Weighed.concat(parts)


def recall_symbols(tables: RecallTables, query_terms: pa.Table, postings: PostingIndex) -> Found:
    """The symbol lane: rows that define or mention a name in the request or are the named file, and one hop of calls.

    The hop leads from the best admissible definitions to their callees and callers, and scores admissible rows only: a
    withheld definition leads nowhere.
    """
    terms = FieldTerms.of(tables, query_terms, tuple(FIELD_WEIGHTS))
    parts = []
    for scope in tables.scope_groups("symbol"):
        direct = terms.entries(scope)
        definitions = np.array([key.startswith(posting_keys("definition", [""])[0]) for key in direct.keys], dtype=bool)
        chosen = definitions[direct.key] if len(direct.key) else np.empty(0, dtype=bool)
        seeds = recall_keys(
            scope, postings, Entries(direct.keys, direct.sub[chosen], direct.key[chosen], direct.weight[chosen]), None
        ).found
        parts.append(recall_keys(scope, postings, _with_hops(scope, direct, seeds), None).found)
    return Found.concat(parts)


def recall_newest(tables: RecallTables) -> Found:
    """The recent lane: the newest admissible rows of the sub-query's sources and kinds; the score is 1 / place.

    Sub-queries of one filter, clock, greatest age and window share one list, and each takes the first `lane_k` of it.
    """
    lane_k = integers(tables.sub_queries["lane_k"])
    clock, of_request = tables.clock
    index = tables.row_index
    parts = []
    for scope in tables.scope_groups("recent"):
        passed, of = scope.filters
        asked = np.stack([of, of_request[scope.request], scope.oldest, *scope.windows])
        lists, example, of_list = np.unique(asked, axis=1, return_index=True, return_inverse=True)
        of_list = of_list.reshape(-1)
        longest = np.zeros(lists.shape[1], dtype=np.int64)
        np.maximum.at(longest, of_list, lane_k[scope.sub])
        by_list = of_list.argsort(kind="stable")
        first = of_list[by_list].searchsorted(np.arange(lists.shape[1] + 1))
        for number in range(len(passed)):
            local = (passed[number] & ~scope.withheld).nonzero()[0]
            for some in _split((lists[0] == number).nonzero()[0], len(local)):
                place, at = np.arange(len(some)).repeat(len(local)), np.tile(local, len(some))
                rows = scope.rows[at]
                open_, placement = clock.judge(index, lists[1][some][place], rows)
                time = index.happened_at(rows, placement)
                kept = (open_ & (time >= scope.earliest(example[some][place], at))).nonzero()[0]
                ids = index.id_rank[rows[kept]]
                best = best_cells(place[kept], time[kept].astype(np.float64), ids, longest[some])
                place, rows = place[kept[best]], rows[kept[best]]
                starts = place.searchsorted(np.arange(len(some) + 1))
                sub = by_list[expand_ranges(first[some], np.diff(first)[some])]
                counts = np.minimum(np.diff(starts)[of_list[sub] - some[0]], lane_k[scope.sub[sub]])
                which, taken = spread(starts[of_list[sub] - some[0]], counts)
                score = quantise(1.0 / (rank_within(which) + 1))
                parts.append(Found.of(scope.sub[sub[which]], rows[taken], score))
    return Found.concat(parts)


class FieldTerms:
    """The terms of some fields, by sub-query, from which scopes take their entries."""

    def __init__(self, sub: Int, key: Int, keys: pa.Array, weight: np.ndarray) -> None:
        self.sub, self.key, self.keys, self.weight = sub, key, keys, weight

    @classmethod
    def of(cls, tables: RecallTables, query_terms: pa.Table, fields: tuple[str, ...]) -> FieldTerms:
        wanted = pc.is_in(query_terms["field"], value_set=constants(fields))
        chosen = query_terms if pc.all(wanted).as_py() else query_terms.filter(wanted)
        sub = sub_query_of(tables.sub_queries, chosen)
        field = flat(chosen["field"]).dictionary_encode()
        prefixes = pa.array([posting_keys(name, [""])[0] for name in field.dictionary.to_pylist()], pa.large_string())
        share = np.array([FIELD_WEIGHTS.get(name, 1.0) for name in field.dictionary.to_pylist()])
        weight = chosen["weight"].to_numpy() * share[field.indices.to_numpy()] if len(share) else np.empty(0)
        keys = pc.binary_join_element_wise(
            prefixes.take(field.indices), flat(chosen["term"]).cast(pa.large_string()), pa.scalar("", pa.large_string())
        ).dictionary_encode()
        by_sub = slice(None) if (sub[1:] >= sub[:-1]).all() else sub.argsort(kind="stable")
        return cls(sub[by_sub], integers(keys.indices)[by_sub], keys.dictionary, weight[by_sub])

    def entries(self, scope: ScopeGroup) -> Entries:
        """The look-ups of a scope's sub-queries, with the distinct keys they use."""
        low = self.sub.searchsorted(scope.sub)
        counts = self.sub.searchsorted(scope.sub, side="right") - low
        at = expand_ranges(low, counts)
        used, key = distinct_numbers(self.key[at])
        sub = np.arange(len(scope.sub)).repeat(counts)
        return Entries(self.keys.take(pa.array(used)).to_pylist(), sub, key, self.weight[at])


def _with_hops(scope: ScopeGroup, direct: Entries, seeds: Found) -> Entries:
    """The look-ups of a scope, followed by those of the calls of its best definitions."""
    top = (~seeds.withheld).nonzero()[0]
    ids = scope.tables.row_index.id_rank[seeds.row[top]]
    top = top[np.lexsort((ids, -seeds.score[top], seeds.sub[top]))]
    top = top[rank_within(seeds.sub[top]) < HOP_SEEDS]
    sub = scope.sub.searchsorted(seeds.sub[top])
    rows = pa.array(seeds.row[top])
    place = {key: number for number, key in enumerate(direct.keys)}
    owner, key, weight = [direct.sub], [direct.key], [direct.weight]
    for column, field in (("calls", "definition"), ("symbols", "reference")):
        at, names = flattened(gathered(scope.tables.evidence[column], rows))
        found = Ragged.of(names).expand(lambda name: definition_keys(name)[:1])
        looked_up = posting_keys(field, found.vocabulary.to_pylist())
        for one in looked_up:
            place.setdefault(one, len(place))
        number = np.array([place[one] for one in looked_up], dtype=np.int64)
        owner.append(sub[at][found.rows])
        key.append(number[found.codes])
        weight.append(np.full(len(found.codes), HOP_WEIGHTS[field]))
    subs, all_keys, weights = np.concatenate(owner), np.concatenate(key), np.concatenate(weight)
    hop = np.arange(len(subs)) >= len(direct.sub)
    _, first = np.unique(subs * len(place) + all_keys, return_index=True)
    return Entries(list(place), subs[first], all_keys[first], weights[first], hop[first])


def _split(lists: Int, rows: int) -> list[Int]:
    """Splits lists of the newest rows into parts of at most `CELLS` pairs of a list and a row."""
    if not rows or not len(lists):
        return []
    per = max(1, CELLS // rows)
    return [lists[low : low + per] for low in range(0, len(lists), per)]
