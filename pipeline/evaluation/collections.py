"""Labeled collections as import rows and requests.

A collection is a folder with a corpus, queries and judgements: each part in Parquet, or documents in BEIR's files,
`corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text) and `qrels/<split>.tsv`. Three shapes are read: documents (doc_id,
title, text), conversations (a `user` per row: each user becomes a project) and code snapshots (commit, path, blob_sha:
each task runs as of its own commit). Snapshots are read as `index --history` reads a branch, each one a commit. The
judgements of code name files, or lines of them: `path:line` or `path:from-to`. A folder of queries and judgements alone is
about the checkout that it is in, as of its current commit.

Note: names are only unique inside a collection, so projects of conversations and request ids include the collection's
name: `locomo/conv-1`.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError
from ...nodes.tables import IMPORT_ROWS
from ..sources.document_reader import DocumentReader
from ..sources.git_commands import ABSENT, Blobs, Change, Commit, Git, work_tree_root
from ..sources.git_history import commit_table, read_changes
from ..sources.report import SourceReport

SPLIT = "test"
PARTS = ("corpus", "queries", "qrels")
_LAYOUTS = "Parquet: corpus.parquet, queries.parquet, qrels.parquet; BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv; see docs/quality.md"
_BEIR_COLUMNS = {"corpus": ["doc_id", "title", "text"], "queries": ["query_id", "text"]}


def _file(folder: Path, part: str, split: str) -> Path:
    """The file of a part.

    Raises:
        InputError: there are judgements, but not for this split.
    """
    parquet = folder / f"{part}.parquet"
    if parquet.exists():
        return parquet
    if part != "qrels":
        return folder / f"{part}.jsonl"
    splits = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    if splits and split not in splits:
        raise InputError.one_of(splits, split, f"--split of {folder.name}")
    return folder / "qrels" / f"{split}.tsv"


def _read(path: Path, part: str, columns: list[str] | None = None) -> pd.DataFrame:
    """A part as a frame.

    Raises:
        StoreError, InputError: it cannot be read.
    """
    if path.suffix == ".parquet":
        return _parquet(path).read(columns).to_pandas()
    if path.suffix == ".tsv":
        return _qrels(path)
    try:
        frame = pd.read_json(path, lines=True, dtype=False)
        frame = frame.rename(columns={"_id": _BEIR_COLUMNS[part][0]}).reindex(columns=_BEIR_COLUMNS[part])
    except (OSError, ValueError) as error:
        raise InputError.described("a JSON object in every line", "another text", str(path)) from error
    ids = frame.iloc[:, 0]
    if frame.empty or ids.isna().any() or ids.duplicated().any():
        raise InputError.described(f"{part} with an `_id` each, each once", "others", str(path))
    frame = frame.fillna("").astype(str)
    return frame if columns is None else frame[columns]


def _qrels(path: Path) -> pd.DataFrame:
    """Judgements in BEIR's TSV: a header, then query-id, corpus-id and score."""
    names = {"query_id": "str", "doc_id": "str", "relevance": "int64"}
    try:
        return pd.read_csv(
            path, sep="\t", header=0, names=list(names), dtype=names, keep_default_na=False, quoting=csv.QUOTE_NONE
        )
    except (OSError, ValueError) as error:
        wanted = "a header, then query-id, corpus-id and a whole number, separated by tabs"
        raise InputError.described(wanted, "other lines", str(path)) from error


def _parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise StoreError(f"Expected a Parquet file, got none that can be read - at {path}") from error


def snapshots_of(git: Git, commits: Sequence[Commit], without: bytes = b"/") -> dict[str, pd.DataFrame]:
    """The trees of some commits as corpus and blobs of a collection of code, except below one path."""
    entries = [
        (commit.sha, commit.time, path.decode("utf-8", "replace"), blob)
        for commit in commits
        for mode, blob, path in git.tree(commit.sha)
        if mode.startswith("100") and not path.startswith(without)
    ]
    corpus = pd.DataFrame(entries, columns=pd.Index(["commit", "timestamp", "path", "blob_sha"]))
    corpus["timestamp"] = pd.to_datetime(corpus["timestamp"], unit="us", utc=True)
    with Blobs(git) as blobs:
        texts = [
            ((blobs.get(blob, MAX_FILE_BYTES) or b"").decode("utf-8", "replace"), blob)
            for blob in corpus["blob_sha"].unique()
        ]
    return {"corpus": corpus, "blobs": pd.DataFrame(texts, columns=pd.Index(["text", "blob_sha"]))}


def _checkout(folder: Path) -> dict[str, pd.DataFrame]:
    """The commit that is checked out around a folder of queries, without what is in the folder."""
    root = work_tree_root(folder)
    assert root is not None
    git, own = Git(root), f"{folder.resolve().relative_to(root).as_posix()}/".encode()
    commit = git.commits(git.head())[-1]
    queries = _read(_file(folder, "queries", SPLIT), "queries").assign(commit=commit.sha)
    return {"queries": queries, **snapshots_of(git, [commit], own)}


Shape = Literal["documents", "conversations", "code"]

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""The recorded time of collections without one."""
MAX_FILE_BYTES = 4_000_000
"""Collections were curated by their authors, so the limit of the file readers is lifted."""


@dataclass(frozen=True)
class Collection:
    """One labeled collection, ready to be indexed and queried."""

    name: str
    shape: Shape
    folder: Path
    split: str
    key: Literal["entity", "path"]
    """The evidence column that qrels refer to."""
    qrels: pd.DataFrame
    """query_id, doc_id, relevance; `query_id` is that of the requests, for code `doc_id` is the path."""
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)
    """query_id, doc_id, first, last: the judgements of code that name lines."""
    parts: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables that are in no file of the folder."""

    def projects(self) -> list[str]:
        """The projects of its rows, sorted."""
        if self.shape == "conversations":
            return sorted(self._named(self.read("corpus", ["user"])["user"].drop_duplicates()))
        return [self.name]

    def digest(self) -> str:
        """SHA-256 over the files that its rows are read from, hex; queries and judgements are not part of a corpus."""
        digest = hashlib.sha256()
        for part in ("corpus", "blobs") if self.shape == "code" else ("corpus",):
            if part in self.parts:
                digest.update(pd.util.hash_pandas_object(self.parts[part]).to_numpy().tobytes())
                continue
            with _file(self.folder, part, self.split).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def gold_lines(self) -> pd.DataFrame:
        """The judged lines, without blank ones: query_id, doc_id, line, text."""
        if not len(self.labels):
            return self.labels
        commits = self.read("queries").assign(query_id=lambda q: self._named(q["query_id"]))[["query_id", "commit"]]
        files = self.read("corpus", ["commit", "path", "blob_sha"]).rename(columns={"path": "doc_id"})
        texts = self.read("blobs").set_index("blob_sha")["text"]
        found = []
        for row in self.labels.merge(commits, on="query_id").merge(files, on=["commit", "doc_id"]).to_dict("records"):
            for number, text in enumerate(texts[row["blob_sha"]].splitlines(), start=1):
                if row["first"] <= number <= row["last"] and text.strip():
                    found.append((row["query_id"], row["doc_id"], number, text.strip()))
        return pd.DataFrame(found, columns=pd.Index(["query_id", "doc_id", "line", "text"]))

    def rows(self) -> Iterator[pa.Table]:
        """Its corpus as import rows."""
        readers = {"documents": self._document_rows, "conversations": self._message_rows, "code": self._code_rows}
        return readers[self.shape]()

    def commits(self) -> dict[str, pa.Table]:
        """The snapshots of the collection, if it has any, as commits, by source id."""
        return {self._history(): commit_table(self._line())} if self.shape == "code" else {}

    def requests(self, *, purpose: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """One request per judged query, scoped to its user and time."""
        queries = self.read("queries")
        queries["query_id"] = self._named(queries["query_id"])
        queries = queries[queries["query_id"].isin(set(self.qrels["query_id"]))]
        if limit is not None:
            queries = queries.head(limit)
        purpose = purpose or ("fix-test" if self.shape == "code" else "answer-question")
        frame = pd.DataFrame(
            {
                "request_id": queries["query_id"],
                "question": queries["text"],
                "purpose": purpose,
                "project": self._named(queries["user"]) if self.shape == "conversations" else self.name,
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
        """Commit to time, adjusted in order so that the time of every snapshot is distinct."""
        corpus = self.read("corpus", ["commit", "timestamp"]).drop_duplicates()
        corpus["timestamp"] = pd.to_datetime(corpus["timestamp"], utc=True)
        corpus = corpus.sort_values(["timestamp", "commit"], kind="stable")
        nudge = pd.to_timedelta(corpus.groupby("timestamp").cumcount(), unit="us")
        return dict(zip(corpus["commit"], corpus["timestamp"] + nudge, strict=True))

    def _document_rows(self) -> Iterator[pa.Table]:
        corpus = self.read("corpus")
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
        corpus = self.read("corpus")
        time = pd.to_datetime(corpus["timestamp"], utc=True)
        yield _rows(
            corpus,
            source_id=f"sessions:{self.name}",
            owner_project=self._named(corpus["user"]),
            origin_class="session-event",
            evidence_kind="session-event",
            session_id=corpus["session"],
            lifecycle="verified",
            event_time=time,
            recorded_time=time,
            line_start=_turns(corpus),
        )

    def _code_rows(self) -> Iterator[pa.Table]:
        """Placements of the chunks of every snapshot."""
        texts = self.read("blobs").set_index("blob_sha")["text"]
        constant = {"source_id": self._history(), "owner_project": self.name}

        def blob(name: str, limit: int) -> bytes | None:
            return texts[name].encode("utf-8")[: limit + 1] if name in texts else None

        return read_changes(self._changes(), blob, DocumentReader(), constant, SourceReport())

    def _changes(self) -> Iterator[Change]:
        """The differences between consecutive snapshots, in order of their times."""
        corpus = self.read("corpus", ["commit", "path", "blob_sha"])
        trees = {commit: dict(zip(t["path"], t["blob_sha"], strict=True)) for commit, t in corpus.groupby("commit")}
        before: dict[str, str] = {}
        for commit in self._line():
            tree = trees[commit.sha]
            for path in sorted(before.keys() - tree.keys()):
                yield Change(commit, path.encode(), ABSENT, "")
            for path in sorted(path for path, blob in tree.items() if before.get(path) != blob):
                yield Change(commit, path.encode(), "100644", tree[path])
            before = tree

    def _line(self) -> list[Commit]:
        """The snapshots as commits, oldest first."""
        ordered = sorted(self._commit_times().items(), key=lambda item: item[1])
        parents = [None, *(sha for sha, _ in ordered)]
        return [Commit(sha, parent, time.value // 1000) for (sha, time), parent in zip(ordered, parents, strict=False)]

    def _history(self) -> str:
        return f"git:{self.name}"

    def _named(self, names: pd.Series) -> pd.Series:
        return self.name + "/" + names.astype(str)

    def read(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        """One of its tables."""
        if part not in self.parts:
            return _read(_file(self.folder, part, self.split), part, columns)
        return self.parts[part][columns or [*self.parts[part]]].copy()


def open_collection(folder: Path, split: str = SPLIT) -> Collection:
    """The collection in `folder`, in either layout; for BEIR, with the judgements of one split.

    Raises:
        StoreError: a part is missing or cannot be read.
        InputError: its columns match none of the three shapes, or a file is malformed.
    """
    if not folder.is_dir():
        hint = "name a folder, or a collection in the setting `eval_data`"
        raise StoreError(f"Expected a folder with a labeled collection, got none - at {folder}", hint=hint)
    files = {part: _file(folder, part, split) for part in PARTS}
    checkout = not files["corpus"].exists() and work_tree_root(folder) is not None
    if missing := [part for part, file in files.items() if not file.exists() and not (checkout and part == "corpus")]:
        got = f"none of {' and '.join(missing)}"
        raise StoreError(f"Expected files of corpus, queries and qrels, got {got} - at {folder}", hint=_LAYOUTS)
    corpus = files["corpus"]
    columns = set(_parquet(corpus).schema_arrow.names if corpus.suffix == ".parquet" else _BEIR_COLUMNS["corpus"])
    shape: Shape
    if checkout or {"commit", "path", "blob_sha"} <= columns:
        shape = "code"
    elif {"user", "timestamp", "text"} <= columns:
        shape = "conversations"
    elif {"doc_id", "text"} <= columns:
        shape = "documents"
    else:
        raise InputError.expected(
            "a corpus of documents (doc_id, text), conversations (user, timestamp, text) or code (commit, path, blob_sha)",
            ", ".join(sorted(columns)),
            str(corpus),
        )
    qrels = _read(files["qrels"], "qrels")
    parts = _checkout(folder) if checkout else {}
    if checkout:
        made = code_collection(folder, split, qrels.rename(columns={"doc_id": "path"}), parts)
        _expect_known(made, files["qrels"])
        return made
    if shape == "code":
        return code_collection(folder, split, qrels, parts)
    qrels = qrels[qrels["relevance"] > 0][["query_id", "doc_id", "relevance"]]
    qrels = qrels.assign(query_id=folder.name + "/" + qrels["query_id"].astype(str))
    return Collection(folder.name, shape, folder, split, "entity", qrels)


def code_collection(folder: Path, split: str, judged: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> Collection:
    """A collection of code with these judgements: query_id, path or its lines, relevance."""
    qrels = judged[judged["relevance"] > 0]
    named = qrels["path"].str.extract(r"^(?P<doc_id>.+?)(?::(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)?$")
    named = named.assign(query_id=folder.name + "/" + qrels["query_id"].astype(str))
    labels = named.assign(last=named["last"].fillna(named["first"])).dropna().astype({"first": int, "last": int})
    files = named[["query_id", "doc_id"]].assign(relevance=qrels["relevance"]).drop_duplicates(["query_id", "doc_id"])
    return Collection(folder.name, "code", folder, split, "path", files, labels, parts)


def _expect_known(collection: Collection, file: Path) -> None:
    """
    Raises:
        InputError: a judgement is of a query or a path that the collection lacks.
    """
    queries, paths = collection.read("queries")["query_id"], collection.read("corpus")["path"]
    judged = collection.qrels
    for names, known, expected in (
        (judged["query_id"].str.removeprefix(f"{collection.name}/"), queries.astype(str), "a query of the folder"),
        (judged["doc_id"], paths, "a path of the commit that is checked out, outside the folder"),
    ):
        for name in names[~names.isin(known)].fillna(""):
            raise InputError.expected(expected, name, str(file))


def _turns(corpus: pd.DataFrame) -> pd.Series:
    """The place of each message in its session, from 1: by its turn, if it has one, else by row."""
    sessions = [corpus["user"], corpus["session"]]
    if "turn" not in corpus.columns:
        return corpus.groupby(sessions).cumcount() + 1
    return corpus["turn"].groupby(sessions).rank(method="first").astype("int32")


def _rows(corpus: pd.DataFrame, **columns: Any) -> pa.Table:
    """Import rows of documents or messages, with these columns."""
    frame = pd.DataFrame({"entity": corpus["doc_id"], "text": corpus["text"], **columns}, index=corpus.index)
    schema = pa.schema([IMPORT_ROWS.schema.field(name) for name in frame.columns])
    return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
