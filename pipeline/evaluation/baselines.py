"""What the line is compared with: BM25 over whole files, as the published file-localization baselines do it.

bm25s, variant lucene, k1 0.9, b 0.4, English stopwords, over path and text of every file of the task's own commit.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...nodes.errors import InputError
from .collections import Collection

DEPTH = 100


def require_bm25s() -> Any:
    """The package that the baselines are made with.

    Raises:
        InputError: it is missing.
    """
    try:
        import bm25s
    except ImportError as error:
        hint = 'install it with `pip install "scoped-retrieval[eval]"`, or leave --baselines out'
        raise InputError("Expected the package bm25s, got none - at --baselines", hint=hint) from error
    return bm25s


def file_baseline(collection: Collection, *, source_only: bool) -> pd.DataFrame:
    """BM25 over the files of each task's commit: query_id, doc_id (path), score.

    Raises:
        InputError: the package bm25s is missing.
    """
    bm25s = require_bm25s()
    import pyarrow.parquet as pq

    corpus = pq.read_table(collection.folder / "corpus.parquet").to_pandas()
    if source_only:
        corpus = corpus[corpus["kind"] == "source"]
    blobs = pq.read_table(collection.folder / "blobs.parquet").to_pandas().set_index("blob_sha")["text"]
    queries = pq.read_table(collection.folder / "queries.parquet").to_pandas()
    queries["query_id"] = f"{collection.name}/" + queries["query_id"].astype(str)
    parts = []
    for query_id, text, commit in zip(queries["query_id"], queries["text"], queries["commit"], strict=True):
        files = corpus[corpus["commit"] == commit]
        documents = (files["path"] + "\n" + files["blob_sha"].map(blobs)).tolist()
        index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
        index.index(bm25s.tokenize(documents, stopwords="en", show_progress=False), show_progress=False)
        tokens = bm25s.tokenize([text], stopwords="en", show_progress=False)
        found, scores = index.retrieve(tokens, k=min(DEPTH, len(documents)), show_progress=False)
        paths = files["path"].to_numpy()[found[0]]
        parts.append(pd.DataFrame({"query_id": query_id, "doc_id": paths, "score": scores[0].astype(float)}))
    return pd.concat(parts, ignore_index=True)
