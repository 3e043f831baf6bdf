"""Retrieval quality on collections that others judged: our lanes, their fusion and the full line against bm25s and MiniLM.

`quality` compares words with words and takes seconds. `quality-semantic` encodes every document twice, once per system,
and takes as long as that takes. Rankings of our systems are those of `scoped-retrieval eval`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from bench_records import Row
from embedding_part import model_folder
from options import Options
from scoped_retrieval.pipeline.evaluation.asking import Asking
from scoped_retrieval.pipeline.evaluation.collections import Collection, open_collection
from scoped_retrieval.pipeline.evaluation.evaluate import evaluate
from scoped_retrieval.pipeline.evaluation.metrics import per_query

METRIC = "nDCG@10"
COLLECTIONS = ("scifact", "cranfield", "cisi", "npl")
DEPTH = 100
WITHIN = 0.005
BM25S = "lucene, k1 0.9, b 0.4, English stopwords and PyStemmer over title and text"
MINILM = "sentence-transformers, title and text, cosine"
OURS = "scoped-retrieval eval: lane_k 100, documents at their best row"


def quality_rows(options: Options) -> Iterator[Row]:
    """Our lexical lane against bm25s."""
    for collection, found in figures(options, semantic=False):
        peer = scored(collection, bm25s_ranking)
        value = found["lexical"] - peer
        yield row_of(
            collection, "lexical", "BM25", found["lexical"], {"bm25s": peer, "published": PUBLISHED[collection.name][0]},
            value, "above bm25s", f"within {WITHIN} of bm25s, or above", value >= -WITHIN, {"bm25s": BM25S}, found,
        )  # fmt: skip


def semantic_rows(options: Options) -> Iterator[Row]:
    """Our semantic lane against MiniLM as it is, and the full line against every single lane."""
    for collection, found in figures(options, semantic=True):
        peer = scored(collection, minilm_ranking)
        published = PUBLISHED[collection.name]
        value = found["semantic"] - peer
        yield row_of(
            collection, "semantic", "MiniLM", found["semantic"], {"MiniLM": peer, "published": published[1]}, value,
            "above MiniLM", f"within {WITHIN} of MiniLM, or above", value >= -WITHIN, {"MiniLM": MINILM}, found,
        )  # fmt: skip
        lanes = {name: found[name] for name in ("lexical", "semantic", "symbol") if name in found}
        value = found["full"] - max(lanes.values())
        yield row_of(
            collection, "full", "full line", found["full"],
            {**lanes, "RRF of ours": found["rrf"], "published RRF": published[2]}, value, "above the best lane",
            "above every single lane", value > 0, {}, found,
        )  # fmt: skip


PUBLISHED = {
    "scifact": (0.676, 0.645, 0.715),
    "cranfield": (0.343, 0.374, 0.404),
    "cisi": (0.373, 0.421, 0.450),
    "npl": (0.445, 0.434, 0.511),
}
"""BM25, MiniLM and their RRF as the collections' own page gives them, over more queries than are judged here."""


def figures(options: Options, *, semantic: bool) -> Iterator[tuple[Collection, dict[str, float]]]:
    """Every collection with the figures of our systems."""
    assert options.eval_data is not None, "Expected SCOPED_RETRIEVAL_EVAL_DATA to name the collections, got nothing"
    names = COLLECTIONS[1:2] if options.quick else COLLECTIONS
    collections = [open_collection(options.eval_data / name) for name in names]
    work = options.work / f"eval-{'semantic' if semantic else 'lexical'}"
    result = evaluate(collections, Asking(work, semantic=semantic), metrics=(METRIC,))
    for collection in collections:
        yield collection, result.means(METRIC)[collection.name].to_dict()


def row_of(
    collection: Collection, key: str, name: str, ours: float, systems: dict[str, float], value: float, unit: str,
    aim: str, met: bool, settings: dict[str, str], found: dict[str, float],
) -> Row:  # fmt: skip
    """One row of the table."""
    return Row(
        part="quality", row=f"quality/{collection.name}/{key}", what=f"{METRIC} on {collection.name}: {name}",
        unit=METRIC, ours=ours, systems=systems, value=value, value_unit=unit, aim=aim, met=met,
        queries={"all": int(collection.qrels["query_id"].nunique())}, settings={"ours": OURS, **settings},
        extra={"systems": found},
    )  # fmt: skip


def scored(collection: Collection, ranking: Callable[[list[str], list[str]], Any]) -> float:
    """The figure of a peer: `ranking` gives positions and scores of the documents for every query."""
    corpus, queries = collection.corpus, collection.queries
    texts = (corpus["title"].fillna("") + "\n" + corpus["text"].fillna("")).tolist()
    positions, scores = ranking(texts, queries["text"].tolist())
    ids = corpus["doc_id"].astype(str).to_numpy()
    parts = [
        pd.DataFrame({"query_id": name, "doc_id": ids[row], "score": score.astype(float)})
        for name, row, score in zip(queries["query_id"], positions, scores, strict=True)
    ]
    found = per_query(collection.qrels, pd.concat(parts, ignore_index=True), (METRIC,))[METRIC].mean()
    assert found > 0, f"Expected judged documents, got none - at {collection.name}"
    return found


def bm25s_ranking(texts: list[str], queries: list[str]) -> Any:
    """bm25s."""
    import bm25s
    import Stemmer

    def tokens(of: list[str]) -> Any:
        return bm25s.tokenize(of, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)

    model = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    model.index(tokens(texts), show_progress=False)
    return model.retrieve(tokens(queries), k=min(DEPTH, len(texts)), show_progress=False)


def minilm_ranking(texts: list[str], queries: list[str]) -> Any:
    """MiniLM by sentence-transformers, every document against every query."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_folder()), device="cpu", local_files_only=True)
    vectors = [model.encode(of, normalize_embeddings=True, show_progress_bar=False) for of in (texts, queries)]
    product = vectors[1] @ vectors[0].T
    best = np.argsort(-product, axis=1, kind="stable")[:, :DEPTH]
    return best, np.take_along_axis(product, best, axis=1)
