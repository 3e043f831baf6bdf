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
    """Four papers, three judged queries and one without judgements."""
    return written(
        folder / name,
        corpus=pd.DataFrame(PAPERS, columns=["doc_id", "title", "text"]),
        queries=pd.DataFrame(QUESTIONS, columns=["query_id", "text"]),
        qrels=pd.DataFrame(JUDGED, columns=["query_id", "doc_id", "relevance"]),
    )


def talks_folder(folder: Path, name: str = "talk") -> Path:
    """What two users said, and two judged questions of each."""
    said = [
        (f"{user}{n}", user, "s", f"2024-01-01T09:0{n}:00Z", text)
        for user, dog in (("a", "Rex"), ("b", "Ada"))
        for n, text in enumerate((f"my dog is called {dog}", "it is raining today", f"{dog} likes the rain"), start=1)
    ]
    asked = [
        (f"{user}{n}", text, user, "2024-02-01T00:00:00Z")
        for user in ("a", "b")
        for n, text in enumerate(("what is my dog called", "who likes the rain"), start=1)
    ]
    gold = [(f"{user}{n}", f"{user}{doc}", 1) for user in ("a", "b") for n, doc in ((1, 1), (2, 3))]
    return written(
        folder / name,
        corpus=pd.DataFrame(said, columns=["doc_id", "user", "session", "timestamp", "text"]),
        queries=pd.DataFrame(asked, columns=["query_id", "text", "user", "asOf"]),
        qrels=pd.DataFrame(gold, columns=["query_id", "doc_id", "relevance"]),
    )
