"""Labelled collections of a few visible rows, as folders in the uniform layout."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

PAPERS = [
    ("d1", "Wings", "lift of a thin wing in a fast stream"),
    ("d2", "", "heat transfer in a tube"),
    ("d3", "Tubes", "the flow through a long tube is slow"),
    ("d4", "", "a wing is no tube"),
]
QUESTIONS = [("q1", "heat of a tube"), ("q2", "lift of wings"), ("q3", "slow flow"), ("q9", "not judged")]
JUDGED = [("q1", "d2", 1), ("q2", "d1", 2), ("q3", "d3", 1), ("q3", "d1", 0)]


def written(folder: Path, **parts: pd.DataFrame) -> Path:
    """A folder with each part as Parquet."""
    folder.mkdir(parents=True)
    for name, frame in parts.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    return folder


def documents_folder(folder: Path, name: str = "papers") -> Path:
    """Four papers, three judged queries and one that nobody judged."""
    return written(
        folder / name,
        corpus=pd.DataFrame(PAPERS, columns=["doc_id", "title", "text"]),
        queries=pd.DataFrame(QUESTIONS, columns=["query_id", "text"]),
        qrels=pd.DataFrame(JUDGED, columns=["query_id", "doc_id", "relevance"]),
    )
