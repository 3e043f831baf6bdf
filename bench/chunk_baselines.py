"""A baseline for blocks: the best chunks by BM25, one after the other, until a budget of tokens is full.

bm25s, variant lucene, k1 0.9, b 0.4, English stopwords. Chunks are
windows of 40 lines of a file, or of 40 messages of a session, or whole documents, over path (or title) and text;
scripts without spaces as pairs of characters; fitted on the rows that the query may see: the files of its commit, the
messages of its user until `asOf`. Besides a chunk's text only one line with its origin is counted, and a chunk that
does not fit is cut at a line end. So the baseline has less overhead than a block with its fences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import bm25s
import numpy as np
import pandas as pd
import pyarrow as pa
from scoped_retrieval.nodes.blocks.token_counting import BASE, Counters
from scoped_retrieval.pipeline.evaluation.collections import Collection

CHUNK_LINES = 40
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
DEPTH = 200
"""Chunks that are considered per query: more than fit any budget."""
LEAST = 16
"""Tokens below which a budget counts as full."""


@dataclass(frozen=True)
class FilledBlocks:
    """The documents that fit a budget: query_id, doc_id, score, and the total tokens of all queries."""

    shown: pd.DataFrame
    tokens: int


@dataclass(frozen=True)
class _Chunks:
    """Chunks of one scope: their texts, and the documents that each shows whole or in part, with the start of each."""

    texts: list[str]
    documents: list[list[tuple[str, int]]]
    """Per chunk (document, first line) pairs, in order of their lines in the chunk; the origin line comes first."""


def chunk_systems(
    collection: Collection, budgets: Sequence[int], *, limit: int | None = None
) -> dict[str, dict[int, FilledBlocks]]:
    """Per system and budget the documents shown for each query."""
    systems = {
        "code": ("all-files", "source-files"),
        "documents": ("rows",),
        "conversations": ("rows", "windows"),
    }[collection.shape]
    return {f"bm25-chunks-{name}": _filled(collection, name, budgets, limit) for name in systems}


def _filled(collection: Collection, name: str, budgets: Sequence[int], limit: int | None) -> dict[int, FilledBlocks]:
    shown: dict[int, list[tuple[str, str, float]]] = {budget: [] for budget in budgets}
    tokens = dict.fromkeys(budgets, 0)
    for chunks, queries in _scopes(collection, name, limit):
        if not chunks.texts:
            continue
        index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
        spaced = [_spaced(text) for text in chunks.texts]
        index.index(bm25s.tokenize(spaced, stopwords="en", show_progress=False), show_progress=False)
        costs: dict[int, Any] = {}
        for query_id, text in queries:
            asked = bm25s.tokenize([_spaced(text)], stopwords="en", show_progress=False)
            best = _best(index, asked, len(chunks.texts))
            for budget in budgets:
                used, found = _fill(chunks, best, costs, budget)
                tokens[budget] += used
                shown[budget] += [(query_id, document, 1.0 / place) for place, document in enumerate(found, start=1)]
    names = pd.Index(["query_id", "doc_id", "score"])
    return {budget: FilledBlocks(pd.DataFrame(rows, columns=names), tokens[budget]) for budget, rows in shown.items()}


def _spaced(text: str) -> str:
    """The text with character pairs instead of runs of a script without spaces, which would be one word each."""
    return _UNSPACED.sub(lambda run: f" {' '.join(map(''.join, pairwise(run[0])))} ", text)


def _best(index: Any, asked: Any, count: int) -> list[int]:
    """The chunks that share a word with the query, best first."""
    found, scores = index.retrieve(asked, k=min(DEPTH, count), show_progress=False)
    return [int(n) for n, score in zip(found[0], scores[0], strict=True) if score > 0]


def _fill(chunks: _Chunks, best: Sequence[int], costs: dict[int, Any], budget: int) -> tuple[int, list[str]]:
    """Tokens used and documents shown, in order; a chunk that does not fit whole is cut at a line end.

    `costs` caches the cumulative costs of the lines of a chunk.
    """
    used, found = 0, {}
    for number in best:
        if number not in costs:
            lines = pa.array(chunks.texts[number].splitlines(keepends=True), pa.large_string())
            costs[number] = Counters().get(BASE).count(lines).cumsum()
        fits = int(np.searchsorted(costs[number], budget - used, side="right"))
        if fits > 1:  # something after the line with the origin
            used += int(costs[number][fits - 1])
            found |= dict.fromkeys(document for document, first in chunks.documents[number] if first < fits)
        if budget - used < LEAST:
            break
    return used, list(found)


def _scopes(collection: Collection, name: str, limit: int | None) -> Iterator[tuple[_Chunks, list[tuple[str, str]]]]:
    """The chunks of every scope with queries, and these queries."""
    queries = collection.queries.copy() if limit is None else collection.queries.head(limit).copy()
    corpus = collection.corpus.copy()
    if collection.shape == "code":
        corpus = corpus[corpus["kind"] == "source"] if name == "source-files" else corpus
        for commit, asked in queries.groupby("commit", sort=True):
            files = corpus[corpus["commit"] == commit]
            yield _of_files(files["path"], files["blob_sha"].map(collection.texts)), _pairs(asked)
    elif collection.shape == "documents":
        yield _of_documents(corpus), _pairs(queries)
    else:
        corpus["time"] = pd.to_datetime(corpus["timestamp"], utc=True)
        queries["time"] = pd.to_datetime(queries["asOf"], utc=True)
        of_user = {str(user): messages for user, messages in corpus.groupby("user")}
        for _, asked in queries.groupby(["user", "time"], sort=True):
            seen = of_user[str(asked["user"].iloc[0])]
            seen = seen[seen["time"] <= asked["time"].iloc[0]]
            yield (_of_documents(seen) if name == "rows" else _of_sessions(seen)), _pairs(asked)


def _pairs(queries: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(queries["query_id"], queries["text"], strict=True))


def _of_files(paths: pd.Series, texts: pd.Series) -> _Chunks:
    chunks, documents = [], []
    for path, text in zip(paths, texts, strict=True):
        lines = text.splitlines(keepends=True)
        for first in range(0, len(lines), CHUNK_LINES):
            chunks.append(f"{path}#{first + 1}\n" + "".join(lines[first : first + CHUNK_LINES]))
            documents.append([(path, 1)])
    return _Chunks(chunks, documents)


def _of_documents(corpus: pd.DataFrame) -> _Chunks:
    """Whole documents or messages; for documents of more than 40 lines, their windows."""
    chunks, documents = [], []
    for doc_id, title, text in zip(
        corpus["doc_id"].astype(str), corpus["title"].fillna(""), corpus["text"], strict=True
    ):
        lines = str(text).splitlines(keepends=True)
        for first in range(0, len(lines), CHUNK_LINES):
            chunks.append(f"{doc_id} {title}\n" + "".join(lines[first : first + CHUNK_LINES]))
            documents.append([(doc_id, 1)])
    return _Chunks(chunks, documents)


def _of_sessions(messages: pd.DataFrame) -> _Chunks:
    """Windows of 40 messages of one session; every message in a window is shown."""
    chunks, documents = [], []
    for session, turns in messages.groupby("session", sort=True):
        turns = turns.sort_values(["time", "turn"], kind="stable")
        for first in range(0, len(turns), CHUNK_LINES):
            window = turns.iloc[first : first + CHUNK_LINES]
            text, inside = f"{session}\n", []
            for doc_id, message in zip(window["doc_id"].astype(str), window["text"], strict=True):
                inside.append((doc_id, text.count("\n")))
                text += str(message).rstrip("\n") + "\n"
            chunks.append(text)
            documents.append(inside)
    return _Chunks(chunks, documents)
