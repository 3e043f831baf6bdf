"""The witness: recomputes a run's lexical scores with the rank-bm25 package over the rows each request may see.

Reads a corpus frame and a run's tables. Gives one row per visible lexical hit: the recorded and the recomputed score.

Note: gates and analyzers are the line's own; counting is independent. Every request's admissible rows are analyzed from
their text again and passed to rank-bm25; every witnessed score is computed from its document frequencies, lengths and
average. The formula is applied to its counts. Only hits are scored, one scope at a
time: the scores of all rows of every request would not fit into memory.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import rank_bm25
from numpy.typing import NDArray
from scoped_retrieval.nodes.columns.keys import flat, positions
from scoped_retrieval.nodes.columns.numbers import RESOLUTION
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.schema import boolean, float64, string, table
from scoped_retrieval.nodes.text.role_words import EXPANSION_WEIGHT
from scoped_retrieval.nodes.text.text_analysis import analyze, analyzer_for, query_tokens
from scoped_retrieval.nodes.walls.clocks import clocks
from scoped_retrieval.pipeline.corpus.postings import index_text

WITNESSED = table(
    "witnessed",
    key=("request_id", "sub_query_id", "evidence_id"),
    order=("request_id", "sub_query_id", "evidence_id"),
    persist=False,
    doc="Visible lexical hits with the score that rank-bm25's counts give.",
    request_id=string("the request"),
    sub_query_id=string("the sub-query"),
    evidence_id=string("the row"),
    score=float64("as recorded"),
    witnessed=float64("as counted here; null = not among the admissible rows", nullable=True),
    agrees=boolean("they differ by rounding at most: one 2**-30 per term of the query, and float error"),
)

INDEXED = ("title", "path", "section", "text")
"""The columns whose terms count toward a row's length."""


class _Counts(rank_bm25.BM25):
    """rank-bm25's counts without a formula: `frequencies[term]` rows contain a term."""

    frequencies: Mapping[str, int]

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.frequencies = nd


def witness_scores(frame: Any, tables: Mapping[str, pa.Table], bm25: Bm25 | None = None) -> pa.Table:
    """The visible lexical hits of a run with both scores, by request, sub-query and evidence id.

    Args:
        frame: a frame of the run's generation; it contains every row of the hits.
        tables: `contracts`, `sub_queries` (with texts), `hits`, `row_groups` and `reachable` of the run.
        bm25: the parameters the run used.
    """
    bm25 = bm25 or Bm25()
    hits = tables["hits"]
    hits = hits.filter(pc.and_(pc.equal(hits["lane"], "lexical"), pc.invert(hits["withheld"])))
    found = pc.index_in(hits["evidence_id"], value_set=flat(frame.evidence["evidence_id"])).fill_null(-1).to_numpy()
    asked: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, (request, query) in enumerate(zip(*(hits[n].to_pylist() for n in WITNESSED.key[:2]), strict=True)):
        asked[request][query].append(place)
    queries = {(q["request_id"], q["sub_query_id"]): q for q in tables["sub_queries"].to_pylist()}
    witnessed, rounding = np.full(len(found), np.nan), np.zeros(len(found))
    for scope, having in _scopes(frame, tables):
        model = None
        for request, query in ((one, query) for one in having for query in asked[one]):
            model = model or _fit(frame.evidence, scope)
            terms, added = (_terms(queries[request, query][name]) for name in ("query_text", "expansion"))
            places = np.array(asked[request][query])
            rounding[places] = (len(terms) + len(added) + 1) * RESOLUTION + 1e-9
            at = np.searchsorted(scope, found[places])
            inside = scope[np.minimum(at, len(scope) - 1)] == found[places]
            of = at[inside].tolist()
            scores = _scores(model, of, terms, bm25) + EXPANSION_WEIGHT * _scores(model, of, added, bm25)
            witnessed[places[inside]] = scores
    given = hits["score"].to_numpy()
    agrees = np.abs(witnessed - given) <= rounding  # False for NaN
    table = WITNESSED.build(
        {
            **{name: hits[name] for name in (*WITNESSED.key, "score")},
            "witnessed": pa.array(witnessed, mask=np.isnan(witnessed)),
            "agrees": agrees,
        }
    )
    return table.sort_by([(name, "ascending") for name in WITNESSED.key])


def _terms(text: str | None) -> list[str]:
    return query_tokens(pa.array([text or ""], pa.large_string()))[0].as_py()


def _scopes(frame: Any, tables: Mapping[str, pa.Table]) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
    """Each non-empty set of admissible rows, ascending, and the requests that have it."""
    contracts, reachable = tables["contracts"], tables["reachable"]
    group = tables["row_groups"]["scope_group"].to_numpy()[
        positions(contracts["request_id"], tables["row_groups"]["request_id"])
    ]
    clock = clocks(contracts)
    of, rows = reachable["scope_group"].to_numpy(), reachable["row"].to_numpy()
    visible = reachable["withheld_by"].to_numpy() == 0
    scopes: dict[bytes, tuple[NDArray[np.int64], list[str]]] = {}
    for place, request in enumerate(contracts["request_id"].to_pylist()):
        own = rows[(of == group[place]) & visible]
        passes, _ = clock.judge(frame.row_index, np.full(len(own), place), own)
        own = own[passes]
        if len(own):
            scopes.setdefault(hashlib.sha256(own.data).digest(), (own, []))[1].append(request)
    yield from scopes.values()


def _fit(evidence: pa.Table, rows: NDArray[np.int64]) -> _Counts:
    held = evidence.select([*INDEXED, "evidence_kind"]).take(pa.array(rows))
    texts = index_text(held, INDEXED)
    kinds = held["evidence_kind"].to_pylist()
    documents: list[list[str]] = [[] for _ in kinds]
    for name in sorted({analyzer_for(kind) for kind in kinds}):
        own = [place for place, kind in enumerate(kinds) if analyzer_for(kind) == name]
        for place, terms in zip(own, analyze(texts.take(pa.array(own)), name).to_pylist(), strict=True):
            documents[place] = terms
    return _Counts(documents)


def _scores(model: _Counts, rows: list[int], terms: list[str], bm25: Bm25) -> NDArray[np.float64]:
    """The scores of some rows of a model."""
    scores = []
    for row in rows:
        held = model.doc_freqs[row]
        norm = bm25.k1 * (1 - bm25.b + bm25.b * model.doc_len[row] / model.avgdl)
        score = 0.0
        for term in terms:
            if count := held.get(term):
                frequency = model.frequencies[term]
                weight = math.log(1 + (model.corpus_size - frequency + 0.5) / (frequency + 0.5))
                score += weight * count / (count + norm)
        scores.append(score)
    return np.array(scores)
