"""Candidate recall: finds rows for every sub-query inside A(r), lane by lane, and merges them into candidates.

Reads the plan, the first wall and the indexes. Gives one table of hits per lane, `hits` and `candidates`, and `lane_states`:
which lanes did not run.

Note: a row that passes the access gates but is withheld by time or visibility is recorded with `withheld`, so that an
auditor sees it. It is scored with the statistics of the admissible rows, but selected separately and ranked after them;
no id, score, rank or order of an admissible row depends on it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.keys import (
    constants,
    floats,
    gathered,
    gathered_columns,
    integers,
    order_by,
    ordered_codes,
    positions,
    rank_within,
)
from .errors import public_text
from .frames import PostingIndex, RowIndex, VectorIndex, posting_keys
from .lanes import NO_VECTORS, SOME_VECTORS
from .models import CrossEncoder, QueryEncoder
from .plugins import NO_PLUGINS, Plugins
from .recall.bm25 import Bm25
from .recall.candidate_merge import (
    Fusion,
    lane_codes,
    merged_order,
)
from .recall.expansion_recall import recall_expansion
from .recall.file_recall import NO_FILES, FileRecall, recall_files
from .recall.graph_recall import recall_graph
from .recall.lane_recall import (
    NO_LEXICAL,
    LexicalRecall,
    recall_exact,
    recall_newest,
    recall_symbols,
    recall_terms,
)
from .recall.plugin_recall import recall_by_plugin
from .recall.recall_scope import Int, RecallTables
from .recall.recall_selection import VIA, Found, hit_table
from .recall.vector_recall import NOTHING_ENCODED, AskedVectors, recall_vectors
from .recall.versions import replaced_by
from .tables import (
    CANDIDATES,
    HITS,
    LANE_HITS,
    LANE_STATES,
    QUERY_VECTORS,
    Admissible,
    Candidates,
    Contracts,
    Evidence,
    Hits,
    LaneHits,
    LaneStates,
    ModePolicies,
    Placements,
    QueryTerms,
    Reachable,
    Segments,
    SubQueries,
)
from .vocabulary import INTENTS, MERGE_POLICIES

_INTENTS = tuple(sorted(INTENTS.values))
NO_CROSS_ENCODER = "the mode asks for a cross-encoder, and none is set; `cross_encoder` names the folder of one"


def recall_tables(
    contracts: Contracts,
    reachable: Reachable,
    admissible: Admissible,
    segments: Segments,
    evidence: Evidence,
    row_index: RowIndex,
    sub_queries: SubQueries,
    query_terms: QueryTerms,
) -> RecallTables:
    """The input of every lane, as one value: clocks, groups and statistics are computed once per shard."""
    return RecallTables(contracts, reachable, admissible, segments, evidence, row_index, sub_queries, query_terms)


def lexical_recall(lanes: tuple, recall_tables: RecallTables, bm25: Bm25, postings: PostingIndex) -> LexicalRecall:
    """The rows with the best BM25, by sub-query and rank, and the weight of each term; df, N and avgdl are those of A(r)."""
    if "lexical" not in lanes:
        return NO_LEXICAL
    found, weighed = recall_terms(recall_tables, postings, bm25)
    ids, prefix = recall_tables.contracts["request_id"].to_pylist(), len(posting_keys("text", [""])[0])
    words: dict[tuple[str, str], float] = {}
    for asked in weighed:
        request = asked.scope.request[asked.subs].repeat(np.diff(asked.starts))
        ascending = sorted(zip(asked.weight.tolist(), request.tolist(), asked.key.tolist(), strict=True))
        words |= {(ids[of], asked.keys.names[key][prefix:]): weight for weight, of, key in ascending}
    return LexicalRecall(hit_table(recall_tables, "lexical", found), weighed, words)


def exact_hits(lanes: tuple, recall_tables: RecallTables, postings: PostingIndex) -> LaneHits:
    """The rows whose id or text the request quotes, by sub-query and rank."""
    found = recall_exact(recall_tables, postings) if "exact" in lanes else _nothing()
    return hit_table(recall_tables, "exact", found)


def symbol_hits(lanes: tuple, recall_tables: RecallTables, postings: PostingIndex) -> LaneHits:
    """The rows that define or mention the symbols of a request or are in its files, and one hop of calls, by rank."""
    found = recall_symbols(recall_tables, postings) if "symbol" in lanes else _nothing()
    return hit_table(recall_tables, "symbol", found)


def file_recall(
    lanes: tuple, recall_tables: RecallTables, lexical_recall: LexicalRecall, postings: PostingIndex
) -> FileRecall:
    """The best chunks of the code files that match best as a whole, by sub-query and rank, and the scores of those files;
    all chunks of a file have the same score.
    """
    if "file" not in lanes:
        return NO_FILES
    return recall_files(recall_tables, postings, lexical_recall.weighed)


def query_vectors(
    sub_queries: SubQueries, vectors: VectorIndex | None, encoder: QueryEncoder, lanes_off: dict, broken: dict
) -> AskedVectors:
    """The vectors of the frame with those of the queries. A request with a text that gets none loses the lane, alone as in
    a batch.
    """
    uses = ["semantic" in lanes for lanes in sub_queries["lanes"].to_pylist()]
    if vectors is None or encoder.encoder is None or "semantic" in {*lanes_off, *broken} or not any(uses):
        return NOTHING_ENCODED
    names = ("request_id", "sub_query_id", "query_text")
    asked = [*zip(*(sub_queries[name].filter(pa.array(uses)).to_pylist() for name in names), strict=True)]
    found, failed = encoder.of(text for _, _, text in asked)
    lost = {id_: public_text(failed[text]) for id_, _, text in asked if text in failed}
    row = {text: number for number, text in enumerate(found)}
    rows = [(id_, sub_query, row[text]) for id_, sub_query, text in asked if id_ not in lost]
    table = QUERY_VECTORS.from_rows([dict(zip(QUERY_VECTORS.columns, one, strict=True)) for one in rows])
    return AskedVectors(replace(vectors, queries=np.stack([*found.values()])) if found else None, table, lost)


def lane_states(
    contracts: Contracts,
    admissible: Admissible,
    query_vectors: AskedVectors,
    mode_policies: ModePolicies,
    cross_encoder: CrossEncoder,
    lanes: tuple,
    lanes_off: dict,
    broken: dict,
) -> LaneStates:
    """One row per request and lane that did not run, or did not reach every row: one of `broken` failed for the shard, one
    of `lanes_off` is not available; a mode may name a cross-encoder that is not set.
    """
    ids, modes = (contracts[name].to_pylist() for name in ("request_id", "mode"))
    found = [(id_, lane, "failed", message) for lane, message in broken.items() for id_ in ids]
    off_for_all = {lane: why for lane, why in lanes_off.items() if lane not in {*broken, "semantic"}}
    found += [(id_, lane, "off", why) for lane, why in off_for_all.items() for id_ in ids]
    if cross_encoder.model is None and "cross_encoder" not in {*lanes_off, *broken}:
        named = {*mode_policies["mode"].filter(mode_policies["cross_encoder"]).to_pylist()}
        without = (id_ for id_, mode in zip(ids, modes, strict=True) if mode in named)
        found += [(id_, "cross_encoder", "off", NO_CROSS_ENCODER) for id_ in without]
    if "semantic" in lanes and "semantic" not in broken:
        reached = (admissible[name].to_pylist() for name in ("rows", "encoded"))
        for id_, rows, encoded in zip(ids, *reached, strict=True):
            if encoded and id_ in query_vectors.lost:  # irrelevant without rows that have vectors
                found.append((id_, "semantic", "failed", query_vectors.lost[id_]))
            elif encoded and "semantic" in lanes_off:
                found.append((id_, "semantic", "off", lanes_off["semantic"]))
            elif encoded < rows:
                found.append((id_, "semantic", "off", SOME_VECTORS if encoded else NO_VECTORS))
    return LANE_STATES.from_rows([dict(zip(LANE_STATES.columns, one, strict=True)) for one in sorted(found)])


def semantic_hits(lanes: tuple, recall_tables: RecallTables, query_vectors: AskedVectors) -> LaneHits:
    """The admissible rows nearest to each sub-query's vector, by sub-query and rank; none without an encoder."""
    if query_vectors.vectors is None or "semantic" not in lanes:
        return hit_table(recall_tables, "semantic", _nothing())
    return hit_table(
        recall_tables, "semantic", recall_vectors(recall_tables, query_vectors.rows, query_vectors.vectors)
    )


def recent_hits(lanes: tuple, recall_tables: RecallTables) -> LaneHits:
    """The newest admissible rows of each sub-query's sources and kinds, by sub-query and rank."""
    return hit_table(recall_tables, "recent", recall_newest(recall_tables) if "recent" in lanes else _nothing())


def plugin_hits(recall_tables: RecallTables, plugins: Plugins = NO_PLUGINS) -> LaneHits:
    """The hits of plugin lanes, lane after lane, by sub-query and rank."""
    found = [hit_table(recall_tables, lane.name, recall_by_plugin(recall_tables, lane)) for lane in plugins.lanes]
    return pa.concat_tables(found) if found else LANE_HITS.empty()


def direct_hits(
    lexical_recall: LexicalRecall,
    semantic_hits: LaneHits,
    symbol_hits: LaneHits,
    file_recall: FileRecall,
    recent_hits: LaneHits,
    exact_hits: LaneHits,
    plugin_hits: LaneHits,
) -> LaneHits:
    """The hits of the lanes that depend on queries alone, lane after lane: the seeds of expansion and graph walks."""
    lanes = semantic_hits, symbol_hits, file_recall.hits, recent_hits, exact_hits, plugin_hits
    return pa.concat_tables([lexical_recall.hits, *lanes])


def expansion_hits(
    lanes: tuple, recall_tables: RecallTables, placements: Placements, postings: PostingIndex, direct_hits: LaneHits
) -> LaneHits:
    """Rows related to the best hits, by sub-query and rank.

    Neighbours, parents, children, conflict partners, superseding records, cited documents and named structured records.
    """
    if "expansion" not in lanes:
        return hit_table(recall_tables, "expansion", _nothing())
    known, rank = _all_found(direct_hits)
    seeds, seed_rank = _seeds(recall_tables, known, rank)
    return hit_table(
        recall_tables, "expansion", recall_expansion(recall_tables, seeds, seed_rank, known, postings, placements)
    )


def graph_hits(
    lanes: tuple,
    recall_tables: RecallTables,
    placements: Placements,
    postings: PostingIndex,
    direct_hits: LaneHits,
    expansion_hits: LaneHits,
) -> LaneHits:
    """Rows reached by a walk from the best hits over links, imports and calls, by sub-query and rank.

    `via` names the edge, its confidence and the row that it starts from.
    """
    if "graph" not in lanes or not recall_tables.uses("graph").any():
        return hit_table(recall_tables, "graph", _nothing())
    seeds, seed_rank = _seeds(recall_tables, *_all_found(direct_hits), "graph")
    known, _ = _all_found(pa.concat_tables([direct_hits, expansion_hits]))
    walked = recall_graph(recall_tables, seeds, seed_rank, known, postings, placements)
    return hit_table(recall_tables, "graph", walked.found, walked.labels(recall_tables.evidence))


def hits(
    sub_queries: SubQueries, evidence: Evidence, direct_hits: LaneHits, expansion_hits: LaneHits, graph_hits: LaneHits
) -> Hits:
    """The hits of all lanes with their ids, by request, sub-query, lane and rank."""
    table = pa.concat_tables([direct_hits, expansion_hits, graph_hits]).combine_chunks()
    order = order_by(integers(table["sub_query"]), lane_codes(table)[0], integers(table["rank"]))
    found = gathered_columns(table, LANE_HITS.columns, order)
    return HITS.build(
        {
            **gathered_columns(sub_queries, ("request_id", "sub_query_id"), found["sub_query"]),
            "evidence_id": gathered(evidence["evidence_id"], found["row"]),
            **found,
        }
    )


def candidates(
    hits: Hits,
    sub_queries: SubQueries,
    contracts: Contracts,
    evidence: Evidence,
    row_index: RowIndex,
    recall_tables: RecallTables,
    postings: PostingIndex,
) -> Candidates:
    """The merged hits, one row per request and evidence, in the order of the contract's merge policy.

    Admissible rows come first, `pool_k` of them; withheld ones follow, `withheld_k` of them. An admissible member of a
    conflict set stays if any member does, so that the pool does not split one (S0.111). `replaced_by` is decided among
    the rows of A(r), whether or not a lane found them.
    """
    sub = integers(hits["sub_query"])
    request = positions(sub_queries["request_id"], contracts["request_id"])[sub]
    fusion = Fusion.of(request, integers(hits["row"]), integers(hits["rank"]))
    first = fusion.order[fusion.starts[:-1]]
    withheld = np.asarray(hits["withheld"])[first]
    (lane, lanes), score = lane_codes(hits), hits["score"].to_numpy()
    stored = gathered_columns(evidence, ("evidence_id", "authority", "evidence_kind", "conflict_set"), fusion.row)
    order, place = merged_order(
        fusion,
        withheld,
        positions(contracts["merge_policy"], constants(MERGE_POLICIES.values))[fusion.request],
        integers(stored["authority"].fill_null(0)),
        ordered_codes(stored["evidence_kind"]),
        row_index.id_rank[fusion.row],
    )
    limit = np.where(withheld, *(integers(contracts[name])[fusion.request] for name in ("withheld_k", "pool_k")))
    place = _place_of_best(order, place, fusion.request, stored["conflict_set"], withheld)
    order = order[place < limit[order]]
    owner, row = fusion.request[order], fusion.row[order]
    clock, of_request = recall_tables.clock
    _, placement = clock.judge(row_index, of_request[owner], row)
    at = pa.array(order)
    raw = {
        f"{name}_raw": fusion.best(score, lane == lanes.index(known))[order]
        for name, known in (("bm25", "lexical"), ("semantic", "semantic"), ("symbol", "symbol"))
    }
    intent = positions(sub_queries["intent"], constants(_INTENTS))[sub]
    return CANDIDATES.build(
        {
            "request_id": gathered(contracts["request_id"], owner),
            "evidence_id": stored["evidence_id"].take(at),
            "row": row,
            "placement": placement,
            "pool_rank": (rank_within(owner) + 1).astype(np.int32),
            "merge_score": fusion.score[order],
            "lanes": fusion.any_of(lane, lanes).take(at),
            "intents": fusion.any_of(intent, _INTENTS).take(at),
            **raw,
            "via": fusion.links(positions(_links_of(hits["via"]), constants(VIA))).take(at),
            "withheld": withheld[order],
            "replaced_by": replaced_by(recall_tables, owner, row, postings),
        }
    )


def _place_of_best(order: Int, place: Int, request: Int, conflict_set: pa.Array, withheld: np.ndarray) -> Int:
    """Each row's place; admissible members of a conflict set share the place of the set's first."""
    disputed = (np.asarray(conflict_set.is_valid()) & ~withheld)[order].nonzero()[0]
    if len(disputed) < 2:
        return place
    at = order[disputed]
    sets = integers(conflict_set.take(pa.array(at)).dictionary_encode().indices)
    _, of_set = np.unique(request[at] * (int(sets.max()) + 1) + sets, return_inverse=True)
    best = np.full(len(disputed), len(place))
    np.minimum.at(best, of_set, place[disputed])
    place = place.copy()
    place[disputed] = best[of_set]
    return place


def _links_of(via: pa.ChunkedArray) -> pa.ChunkedArray:
    """The links of hits; for those of the graph lane, without confidence and start."""
    if not pc.any(pc.match_substring(via, " ")).as_py():
        return via
    return pc.replace_substring_regex(via, pattern=" .*", replacement="")


def _nothing() -> Found:
    return Found.concat([])


def _all_found(hits: pa.Table) -> tuple[Found, Int]:
    """The hits of several lanes as `Found`, and their ranks."""
    sub, row, rank = (integers(hits[name]) for name in ("sub_query", "row", "rank"))
    return Found(sub, row, floats(hits["score"]), np.asarray(hits["withheld"]), np.full(len(sub), -1)), rank


def _seeds(tables: RecallTables, known: Found, rank: Int, lane: str = "expansion") -> tuple[Found, Int]:
    """The visible rows of a lane's sub-queries by fusion, each with its best sub-query, and their places."""
    shown = (~known.withheld & tables.uses(lane)[known.sub]).nonzero()[0]
    sub = known.sub[shown]
    fusion = Fusion.of(tables.sub_request[sub], known.row[shown], rank[shown])
    grouped = np.arange(len(fusion.row)).repeat(np.diff(fusion.starts))
    best = fusion.order[order_by(grouped, rank[shown][fusion.order], sub[fusion.order])]
    order = order_by(fusion.request, -fusion.score, tables.row_index.id_rank[fusion.row])
    seeds = Found.of(sub[best[fusion.starts[:-1]]][order], fusion.row[order], fusion.score[order])
    return seeds, rank_within(fusion.request[order])
