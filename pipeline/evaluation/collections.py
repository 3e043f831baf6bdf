"""Labelled collections in the uniform layout, as import rows and requests.

A collection is a folder with `corpus.parquet`, `queries.parquet`, `qrels.parquet` and, for code, `blobs.parquet`.
Three shapes are read: documents (doc_id, title, text), conversations (a `user` per row: each user becomes a project) and
code snapshots (commit, path, blob_sha: each task is asked as of its own commit).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError
from ...nodes.tables import IMPORT_ROWS
from ..sources.chunking import Chunk, chunk_document

Shape = Literal["documents", "conversations", "code"]

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Recorded time of collections that have none."""


@dataclass(frozen=True)
class Collection:
    """One labelled collection, ready to be indexed and asked."""

    name: str
    shape: Shape
    folder: Path
    key: Literal["entity", "path"]
    """The evidence column that qrels speak of."""
    qrels: pd.DataFrame
    """query_id, doc_id, relevance; for code `doc_id` is the path."""

    def projects(self) -> list[str]:
        """The projects its rows belong to, sorted."""
        if self.shape == "conversations":
            return sorted(set(self._read("corpus", ["user"])["user"]))
        return [self.name]

    def rows(self) -> Iterator[pa.Table]:
        """Its corpus as import rows."""
        readers = {"documents": self._document_rows, "conversations": self._message_rows, "code": self._code_rows}
        return readers[self.shape]()

    def requests(self, *, purpose: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """One request per judged query, scoped to its user and point in time."""
        queries = self._read("queries")
        queries = queries[queries["query_id"].isin(set(self.qrels["query_id"]))]
        if limit is not None:
            queries = queries.head(limit)
        purpose = purpose or ("fix-test" if self.shape == "code" else "answer-question")
        frame = pd.DataFrame(
            {
                "request_id": queries["query_id"],
                "question": queries["text"],
                "purpose": purpose,
                "project": queries["user"] if self.shape == "conversations" else self.name,
                "as_of": self._as_of(queries),
            }
        )
        return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]

    def _as_of(self, queries: pd.DataFrame) -> pd.Series:
        if self.shape == "documents":
            return pd.Series((EPOCH + timedelta(days=1)).isoformat(), index=queries.index)
        if self.shape == "code":
            return queries["commit"].map(self._commit_times()).map(lambda time: time.isoformat())
        return (pd.to_datetime(queries["asOf"], utc=True) + pd.Timedelta(microseconds=1)).map(lambda t: t.isoformat())

    def _commit_times(self) -> dict[str, pd.Timestamp]:
        """Commit to time, made distinct in order of time so that every snapshot can be told apart."""
        corpus = self._read("corpus", ["commit", "timestamp"]).drop_duplicates()
        corpus["timestamp"] = pd.to_datetime(corpus["timestamp"], utc=True)
        corpus = corpus.sort_values(["timestamp", "commit"], kind="stable")
        nudge = pd.to_timedelta(corpus.groupby("timestamp").cumcount(), unit="us")
        return dict(zip(corpus["commit"], corpus["timestamp"] + nudge, strict=True))

    def _document_rows(self) -> Iterator[pa.Table]:
        corpus = self._read("corpus")
        yield _rows(
            corpus,
            source_id=f"collection:{self.name}",
            owner_project=self.name,
            origin_class="project-doc",
            evidence_kind="doc",
            title=corpus["title"].where(corpus["title"] != "", None),
            recorded_time=EPOCH,
        )

    def _message_rows(self) -> Iterator[pa.Table]:
        corpus = self._read("corpus")
        time = pd.to_datetime(corpus["timestamp"], utc=True)
        yield _rows(
            corpus,
            source_id=f"sessions:{self.name}",
            owner_project=corpus["user"],
            origin_class="session-event",
            evidence_kind="session-event",
            session_id=corpus["session"],
            lifecycle="verified",
            event_time=time,
            recorded_time=time,
        )

    def _code_rows(self) -> Iterator[pa.Table]:
        """Chunks of every snapshot with the times they lived between, paths in batches."""
        times = self._commit_times()
        order = {commit: i for i, commit in enumerate(sorted(times, key=lambda commit: times[commit]))}
        instants = sorted(times.values())
        corpus = self._read("corpus")
        corpus["at"] = corpus["commit"].map(order)
        blobs = self._read("blobs").set_index("blob_sha")["text"]
        paths: list[str] = sorted(set(corpus["path"]))
        by_path = dict(tuple(corpus.groupby("path")))
        for start in range(0, len(paths), 200):
            frames = [_path_history(by_path[path], path, blobs) for path in paths[start : start + 200]]
            frames = [frame for frame in frames if len(frame)]
            if not frames:
                continue
            history = pd.concat(frames, ignore_index=True)
            ends = pd.Series([*instants, pd.NaT]).take(history["until"].to_numpy()).set_axis(history.index)
            code = history["kind"].isin(["source", "test"])
            yield pa.Table.from_pydict(
                {
                    "source_id": pa.array([f"git:{self.name}"] * len(history)),
                    "owner_project": pa.array([self.name] * len(history)),
                    "origin_class": pa.array(code.map({True: "workspace", False: "project-doc"})),
                    "evidence_kind": pa.array(code.map({True: "code", False: "doc"})),
                    "document_type": pa.array(history["kind"]),
                    "recorded_time": _instants(pd.Series(instants).take(history["since"].to_numpy())),
                    "superseded_at": _instants(ends.where(history["replaced"])),
                    "deleted_at": _instants(ends.where(~history["replaced"])),
                    **{
                        name: pa.array(history[name].tolist(), IMPORT_ROWS.columns[name].type, from_pandas=True)
                        for name in _CHUNK_COLUMNS
                    },
                }
            )

    def _read(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        return _read_part(self.folder, part, columns)


_CHUNK_COLUMNS = (
    "path", "section", "text", "occurrence", "line_start", "line_end", "byte_start", "byte_end", "language", "symbols",
    "calls", "version",
)  # fmt: skip


def open_collection(folder: Path) -> Collection:
    """The collection in `folder`.

    Raises:
        StoreError: a part is missing or cannot be read.
        InputError: its columns are of none of the three shapes.
    """
    columns = set(_schema(folder, "corpus"))
    shape: Shape
    if {"commit", "path", "blob_sha"} <= columns:
        shape = "code"
    elif {"user", "timestamp", "text"} <= columns:
        shape = "conversations"
    elif {"doc_id", "text"} <= columns:
        shape = "documents"
    else:
        raise InputError.expected(
            "a corpus of documents (doc_id, text), conversations (user, timestamp, text) or code (commit, path, blob_sha)",
            ", ".join(sorted(columns)),
            f"{folder.name}/corpus.parquet",
        )
    qrels = _read_part(folder, "qrels", None)
    qrels = qrels[qrels["relevance"] > 0]
    if shape == "code":
        qrels = qrels.assign(doc_id=qrels["path"])
    return Collection(
        folder.name, shape, folder, "path" if shape == "code" else "entity", qrels[["query_id", "doc_id", "relevance"]]
    )


def _schema(folder: Path, part: str) -> list[str]:
    try:
        return pq.read_schema(folder / f"{part}.parquet").names
    except (OSError, pa.ArrowInvalid) as error:
        raise StoreError(
            f"Expected a Parquet file, got {type(error).__name__} - at {folder.name}/{part}.parquet",
            hint="a collection is a folder with corpus.parquet, queries.parquet and qrels.parquet",
        ) from error


def _read_part(folder: Path, part: str, columns: list[str] | None) -> pd.DataFrame:
    _schema(folder, part)
    return pq.read_table(folder / f"{part}.parquet", columns=columns).to_pandas()


def _rows(corpus: pd.DataFrame, **columns: Any) -> pa.Table:
    data: dict[str, pa.Array] = {
        "entity": pa.array(corpus["doc_id"], pa.string()),
        "text": pa.array(corpus["text"], pa.large_string()),
    }
    for name, value in columns.items():
        if name.endswith("_time"):
            values = value if isinstance(value, pd.Series) else pd.Series(value, index=corpus.index)
            data[name] = _instants(values)
        else:
            values = value.tolist() if isinstance(value, pd.Series) else [value] * len(corpus)
            data[name] = pa.array(values, pa.string(), from_pandas=True)
    return pa.table(data)


def _instants(values: pd.Series) -> pa.Array:
    return pa.array(pd.to_datetime(values, utc=True).dt.as_unit("us"), pa.timestamp("us", tz="UTC"))


def _path_history(snapshots: pd.DataFrame, path: str, blobs: pd.Series) -> pd.DataFrame:
    """The chunks of one path over all snapshots, one row per stretch in which a chunk stood at the same place.

    `since` is the first snapshot, `until` the first one without it; `replaced` says that the path still stood there.
    """
    present = set(snapshots["at"])
    chunks = sorted(zip(snapshots["at"], snapshots["blob_sha"], strict=True))
    parts = {
        sha: pd.DataFrame(_chunk_row(path, sha, chunk) for chunk in chunk_document(path, blobs[sha]))
        for sha in sorted(set(snapshots["blob_sha"]))
    }
    stood = [parts[sha].assign(at=at) for at, sha in chunks if len(parts[sha])]
    if not stood:
        return pd.DataFrame()
    rows = pd.concat(stood, ignore_index=True)
    rows["kind"] = snapshots["kind"].iloc[0]
    key = ["section", "text", "occurrence", "line_start", "byte_start"]
    rows = rows.sort_values([*key, "at"], kind="stable")
    identity = rows[key].fillna("")
    same_place = (identity == identity.shift()).all(axis=1)
    fresh = ~same_place | (rows["at"] != rows["at"].shift() + 1)
    stretch = fresh.cumsum()
    first = rows[fresh.to_numpy()].copy()
    first["since"] = first["at"]
    first["until"] = rows.groupby(stretch)["at"].max().to_numpy() + 1
    first["replaced"] = first["until"].isin(present)
    return first


def _chunk_row(path: str, sha: str, chunk: Chunk) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(chunk, name, None) for name in _CHUNK_COLUMNS}
    return row | {"path": path, "version": sha}
