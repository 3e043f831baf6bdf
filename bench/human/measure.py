"""Collections of the sixty questions of `questions.json`, as people ask them over three public repositories.

    python bench/human/measure.py EVALUATION_DATA FOLDER
    scoped-retrieval eval FOLDER/* --purpose answer-question --block 1200 --block 2400

Reads the code collections that hold these repositories; their texts are not part of this project. They chose one weight
(`OF_SECTION`) and nothing else.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

QUESTIONS = Path(__file__).with_name("questions.json")


def write_collection(repository: Mapping[str, Any], data: Path, folder: Path) -> None:
    """A collection below `folder` of one commit, the questions about it, and the lines that answer them."""
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
    gold = [(q["id"], lines) for q in asked for lines in q["gold"]]
    qrels = pd.DataFrame(gold, columns=pd.Index(["query_id", "path"])).assign(relevance=1)
    qrels.to_parquet(target / "qrels.parquet", index=False)


if __name__ == "__main__":
    for each in json.loads(QUESTIONS.read_bytes())["repositories"]:
        write_collection(each, Path(sys.argv[1]), Path(sys.argv[2]))
