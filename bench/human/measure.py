"""Whether blocks answer questions as people ask them: the sixty of `questions.json`, over three public repositories.

    python bench/human/measure.py EVALUATION_DATA [WORK]

Reads the code collections that hold these repositories; their texts are not part of this project. Prints per system the
share of questions with an answering file in the block. The questions are never tuned on.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.evaluation.collections import Collection, open_collection
from scoped_retrieval.pipeline.evaluation.evaluate import index_collections

sys.path.insert(0, str(Path(__file__).parents[1]))
from chunk_baselines import chunk_systems

QUESTIONS = Path(__file__).with_name("questions.json")
ASKED = {
    "explain-code@2000": ("explain-code", {"max_tokens": 2000}),
    "answer-question (default)": ("answer-question", {}),
}
"""Purpose and budget of each system."""
CHUNK_BUDGETS = (1200, 2000)


def repositories() -> list[dict[str, Any]]:
    """The repositories with their questions."""
    return json.loads(QUESTIONS.read_bytes())["repositories"]


def collection_of(repository: Mapping[str, Any], data: Path, folder: Path) -> Collection:
    """A collection below `folder` of one commit and the questions about it."""
    source, target = data / repository["collection"], folder / f"human-{repository['collection']}"
    target.mkdir(parents=True, exist_ok=True)
    corpus = pd.read_parquet(source / "corpus.parquet")
    corpus = corpus[corpus["commit"] == repository["commit"]]
    blobs = pd.read_parquet(source / "blobs.parquet")
    corpus.to_parquet(target / "corpus.parquet", index=False)
    blobs[blobs["blob_sha"].isin(set(corpus["blob_sha"]))].to_parquet(target / "blobs.parquet", index=False)
    asked = repository["questions"]
    queries = pd.DataFrame({"query_id": [q["id"] for q in asked], "text": [q["question"] for q in asked]})
    queries.assign(commit=repository["commit"]).to_parquet(target / "queries.parquet", index=False)
    gold = [(q["id"], path) for q in asked for path in q["gold"]]
    qrels = pd.DataFrame(gold, columns=pd.Index(["query_id", "path"])).assign(relevance=1)
    qrels.to_parquet(target / "qrels.parquet", index=False)
    return open_collection(target)


def answered(data: Path, work: Path) -> pd.DataFrame:
    """Per question and system whether a file that answers it is shown."""
    rows = []
    collections = [collection_of(repository, data, work / "data") for repository in repositories()]
    corpus = index_collections(collections, work, semantic=False)
    grants = work / "grants.yaml"
    grants.write_text(yaml.safe_dump({"principals": {"evaluation": {"projects": [c.name for c in collections]}}}))
    with Retriever.open(
        corpus,
        principal="evaluation",
        grants=grants,
        runs=work / "runs",
        lanes=("lexical", "symbol", "exact", "expansion"),
    ) as retriever:
        for collection in collections:
            gold = collection.qrels.groupby("query_id")["doc_id"].agg(set)
            for system, (purpose, budget) in ASKED.items():
                for request in collection.requests(purpose=purpose):
                    query = request["request_id"]
                    asked = {**request, "request_id": f"{query}@{purpose}", "budget": budget}
                    shown = {citation["path"] for citation in retriever.retrieve(asked).citations}
                    rows.append((collection.name, query, system, bool(gold[query] & shown)))
            for system, by_budget in chunk_systems(collection, CHUNK_BUDGETS).items():
                for budget, filled in by_budget.items():
                    shown = filled.shown.groupby("query_id")["doc_id"].agg(set)
                    rows += [
                        (collection.name, query, f"{system}@{budget}", bool(gold[query] & shown.get(query, set())))
                        for query in gold.index
                    ]
    return pd.DataFrame(rows, columns=pd.Index(["collection", "query_id", "system", "answered"]))


def table(found: pd.DataFrame) -> pd.DataFrame:
    """The share of questions answered, per system and repository and over all."""
    shares = found.pivot_table(index="system", columns="collection", values="answered", aggfunc="mean")
    return shares.assign(all=found.groupby("system")["answered"].mean())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        everything = answered(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else made))
    print(table(everything).round(3).to_string())
    missed = everything[~everything["answered"] & everything["system"].isin(list(ASKED))]
    print(missed.groupby("system")["query_id"].agg(", ".join).to_string())
