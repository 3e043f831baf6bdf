"""The witness: a run's lexical scores once more, counted by the rank-bm25 package on the rows each request may see.

Reads a corpus frame and a run's tables. Gives one row per visible lexical hit: the score on record and the score found.

The one thing to know: gates and analyzers are the line's own; counting is not. Every request's admissible rows are
analysed from their text again and given to rank-bm25, whose document frequencies, lengths and average stand behind every
witnessed score. It has no class for `lucene`, so that formula is applied to its counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import rank_bm25
from numpy.typing import NDArray

from ..nodes.bm25 import Bm25
from ..nodes.clocks import clocks
from ..nodes.keys import positions
from ..nodes.numbers import RESOLUTION
from ..nodes.role_words import EXPANSION_WEIGHT
from ..nodes.schema import boolean, float64, string, table
from ..nodes.text_analysis import analyze, analyzer_for, query_tokens
from .corpus.postings import index_text

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
"""The columns whose terms count towards a row's length."""


class _Counts(rank_bm25.BM25):
    """rank-bm25's counts without a formula: `frequencies[term]` rows hold a term."""

    frequencies: Mapping[str, int]

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.frequencies = nd


def witness_scores(frame: Any, tables: Mapping[str, pa.Table], bm25: Bm25 | None = None) -> pa.Table:
    """The visible lexical hits of a run with both scores, by request, sub-query and evidence id.

    Args:
        frame: a frame of the generation the run was made from; it holds every row the hits name.
        tables: `contracts`, `sub_queries` (with texts) and `hits` of the run; `row_groups` and `reachable` too, or
            else `contract_bounds`, from which they are made again.
        bm25: the variant the run used.
    """
    bm25 = bm25 or Bm25()
    tables = tables if "reachable" in tables else {**tables, **_scope(frame, tables)}
    hits = [h for h in tables["hits"].to_pylist() if h["lane"] == "lexical" and not h["withheld"]]
    asked = {(q["request_id"], q["sub_query_id"]): q for q in tables["sub_queries"].to_pylist()}
    scopes = _scopes(frame, tables)
    fitted: dict[bytes, rank_bm25.BM25] = {}
    scored: dict[tuple[str, str], dict[str, float]] = {}
    ids = frame.evidence["evidence_id"].to_pylist() if hits else []
    rows = []
    for hit in hits:
        key = hit["request_id"], hit["sub_query_id"]
        scope = scopes[hit["request_id"]]
        terms, added = (_terms(asked[key][name]) for name in ("query_text", "expansion"))
        if key not in scored:
            model = fitted.get(scope.tobytes())
            if model is None:
                model = fitted[scope.tobytes()] = _fit(frame.evidence, scope, bm25)
            scores = _scores(model, terms, bm25) + EXPANSION_WEIGHT * _scores(model, added, bm25)
            scored[key] = dict(zip([ids[row] for row in scope.tolist()], scores.tolist(), strict=True))
        witnessed = scored[key].get(hit["evidence_id"])
        allowed = (len(terms) + len(added) + 1) * RESOLUTION + 1e-9
        agrees = witnessed is not None and abs(witnessed - hit["score"]) <= allowed
        rows.append({**{n: hit[n] for n in WITNESSED.columns if n in hit}, "witnessed": witnessed, "agrees": agrees})
    rows.sort(key=lambda row: tuple(row[name] for name in WITNESSED.key))
    return WITNESSED.from_rows(rows)


def _terms(text: str | None) -> list[str]:
    return query_tokens(pa.array([text or ""], pa.large_string()))[0].as_py()


def _scope(frame: Any, tables: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    from .driver import build_driver

    inputs = {name: getattr(frame, name) for name in ("evidence", "segments", "row_index")}
    frozen = {name: tables[name] for name in ("contracts", "contract_bounds")}
    return build_driver().execute(["row_groups", "reachable"], inputs=inputs, overrides=frozen)


def _scopes(frame: Any, tables: Mapping[str, pa.Table]) -> dict[str, NDArray[np.int64]]:
    """The admissible rows of each request, ascending."""
    contracts, reachable = tables["contracts"], tables["reachable"]
    group = tables["row_groups"]["scope_group"].to_numpy()[
        positions(contracts["request_id"], tables["row_groups"]["request_id"])
    ]
    clock = clocks(contracts)
    of, rows = reachable["scope_group"].to_numpy(), reachable["row"].to_numpy()
    visible = reachable["withheld_by"].to_numpy() == 0
    scopes = {}
    for place, request in enumerate(contracts["request_id"].to_pylist()):
        own = rows[(of == group[place]) & visible]
        passes, _ = clock.judge(frame.row_index, np.full(len(own), place), own)
        scopes[request] = own[passes]
    return scopes


def _fit(evidence: pa.Table, rows: NDArray[np.int64], bm25: Bm25) -> rank_bm25.BM25:
    held = evidence.select([*INDEXED, "evidence_kind"]).take(pa.array(rows))
    texts = index_text(held, INDEXED)
    kinds = held["evidence_kind"].to_pylist()
    documents: list[list[str]] = [[] for _ in kinds]
    for name in sorted({analyzer_for(kind) for kind in kinds}):
        own = [place for place, kind in enumerate(kinds) if analyzer_for(kind) == name]
        for place, terms in zip(own, analyze(texts.take(pa.array(own)), name).to_pylist(), strict=True):
            documents[place] = terms
    match bm25.variant:
        case "okapi":
            return rank_bm25.BM25Okapi(documents, k1=bm25.k1, b=bm25.b)
        case "bm25l":
            return rank_bm25.BM25L(documents, k1=bm25.k1, b=bm25.b)
        case "bm25plus":
            return rank_bm25.BM25Plus(documents, k1=bm25.k1, b=bm25.b)
        case _:
            return _Counts(documents)


def _scores(model: rank_bm25.BM25, terms: list[str], bm25: Bm25) -> NDArray[np.float64]:
    if not isinstance(model, _Counts):
        return np.asarray(model.get_scores(terms))
    scores = []
    for held, length in zip(model.doc_freqs, model.doc_len, strict=True):
        norm = bm25.k1 * (1 - bm25.b + bm25.b * length / model.avgdl)
        score = 0.0
        for term in terms:
            if count := held.get(term):
                frequency = model.frequencies[term]
                weight = math.log(1 + (model.corpus_size - frequency + 0.5) / (frequency + 0.5))
                score += weight * count / (count + norm)
        scores.append(score)
    return np.array(scores)
