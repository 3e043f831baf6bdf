"""Labeled collections as import rows and requests.

A collection is a folder with a corpus, queries and judgements: each part in Parquet, or documents in BEIR's files,
`corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text) and `qrels/<split>.tsv`. Three shapes are read: documents,
conversations (a `user` per row: each user becomes a project) and code snapshots (each task runs as of its own commit).
Snapshots are read as `index --history` reads a branch, each one a commit. The judgements of code name files, or lines of
them: `path:line` or `path:from-to`. A folder of queries and judgements alone is about the checkout that it is in, else
about that of the working folder, as of its current commit.

Note: names are only unique inside a collection, so projects of conversations and request ids include the collection's
name: `locomo/conv-1`.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError
from ...nodes.tables import IMPORT_ROWS
from ..sources.document_reader import DocumentReader
from ..sources.files import MAX_LONG_BYTES
from ..sources.git_commands import ABSENT, Blobs, Change, Commit, Git, work_tree_root
from ..sources.git_history import commit_table, read_changes
from ..sources.report import SourceReport

SPLIT = "test"
PARTS = ("corpus", "queries", "qrels")
_JUDGED = ("query_id", "doc_id", "relevance")
COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "code": {
        "corpus": ("commit", "path", "blob_sha", "timestamp"),
        "queries": ("query_id", "text", "commit"),
        "qrels": ("query_id", "path", "relevance"),
    },
    "conversations": {
        "corpus": ("doc_id", "text", "user", "session", "timestamp"),
        "queries": ("query_id", "text", "user", "asOf"),
        "qrels": _JUDGED,
    },
    "documents": {"corpus": ("doc_id", "title", "text"), "queries": ("query_id", "text"), "qrels": _JUDGED},
}
"""The columns of each part; a corpus has the first shape whose columns it has."""
_LAYOUTS = "Parquet: corpus.parquet, queries.parquet, qrels.parquet; BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv; queries and qrels alone: in a checkout, or asked in one; see docs/quality.md"
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""The recorded time of collections without one."""


@dataclass(frozen=True)
class Collection:
    """One labeled collection, ready to be indexed and queried."""

    name: str
    shape: str
    """documents, conversations or code"""
    corpus: pd.DataFrame
    queries: pd.DataFrame
    """Those with a judgement; `query_id` is that of the requests."""
    qrels: pd.DataFrame
    """query_id, doc_id, relevance above 0; for code `doc_id` is the path."""
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)
    """query_id, doc_id, first, last: the judgements of code that name lines."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The texts of code, by blob."""
    purpose: str = "answer-question"

    @property
    def key(self) -> str:
        """The evidence column that qrels refer to."""
        return "path" if self.shape == "code" else "entity"

    def projects(self) -> list[str]:
        """The projects of its rows, sorted."""
        return sorted(set(self._projects(self.corpus)))

    def digest(self) -> str:
        """SHA-256 over what its rows are made of, hex; queries and judgements are not part of a corpus."""
        read = pd.util.hash_pandas_object(self.corpus[[*COLUMNS[self.shape]["corpus"]]])
        digest = hashlib.sha256(read.to_numpy().tobytes())
        for blob, text in sorted(self.texts.items()):
            digest.update(f"{blob} {hashlib.sha256(text.encode()).hexdigest()}\n".encode())
        return digest.hexdigest()

    def gold_lines(self) -> pd.DataFrame:
        """The judged lines, without blank ones: query_id, doc_id, line, text."""
        found = []
        if len(self.labels):
            files = self.corpus[["commit", "path", "blob_sha"]].rename(columns={"path": "doc_id"})
            labels = self.labels.merge(self.queries[["query_id", "commit"]]).merge(files)
            for row in labels.to_dict("records"):
                for number, text in enumerate(self.texts[row["blob_sha"]].splitlines(), start=1):
                    if row["first"] <= number <= row["last"] and text.strip():
                        found.append((row["query_id"], row["doc_id"], number, text.strip()))
        return pd.DataFrame(found, columns=pd.Index(["query_id", "doc_id", "line", "text"]))

    def requests(self, *, purpose: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """One request per judged query, scoped to its user and time."""
        queries = self.queries if limit is None else self.queries.head(limit)
        found = {
            "request_id": queries["query_id"],
            "question": queries["text"],
            "purpose": purpose or self.purpose,
            "project": self._projects(queries),
            "as_of": self._as_of(queries),
        }
        return [{str(key): value for key, value in row.items()} for row in pd.DataFrame(found).to_dict("records")]

    def _projects(self, frame: pd.DataFrame) -> pd.Series:
        """The project of every row of the corpus or query."""
        if self.shape == "conversations":
            return self.name + "/" + frame["user"].astype(str)
        return pd.Series(self.name, index=frame.index)

    def _as_of(self, queries: pd.DataFrame) -> pd.Series:
        if self.shape == "documents":
            return pd.Series((EPOCH + timedelta(days=1)).isoformat(), index=queries.index)
        if self.shape == "code":
            times = {commit.sha: commit.time for commit in self._line}
            asked = pd.to_datetime(queries["commit"].map(times), unit="us", utc=True)
        else:
            asked = pd.to_datetime(queries["asOf"], utc=True) + pd.Timedelta(microseconds=1)
        return asked.map(lambda time: time.isoformat())

    def rows(self) -> Iterator[pa.Table]:
        """Its corpus as import rows."""
        if self.shape == "code":
            yield from self._code_rows()
            return
        own: dict[str, Any] = {
            "entity": self.corpus["doc_id"],
            "text": self.corpus["text"],
            "owner_project": self._projects(self.corpus),
        }
        if self.shape == "documents":
            own |= {
                "source_id": f"collection:{self.name}",
                "origin_class": "project-doc",
                "evidence_kind": "doc",
                "title": self.corpus["title"].where(self.corpus["title"] != "", None),
                "recorded_time": EPOCH,
            }
        else:
            time = pd.to_datetime(self.corpus["timestamp"], utc=True)
            own |= {
                "source_id": f"sessions:{self.name}",
                "origin_class": "session-event",
                "evidence_kind": "session-event",
                "session_id": self.corpus["session"],
                "lifecycle": "verified",
                "event_time": time,
                "recorded_time": time,
                "line_start": self.corpus.groupby(["user", "session"]).cumcount() + 1,
            }
        frame = pd.DataFrame(own, index=self.corpus.index)
        schema = pa.schema([IMPORT_ROWS.schema.field(name) for name in frame.columns])
        yield pa.Table.from_pandas(frame, schema=schema, preserve_index=False)

    def commits(self) -> dict[str, pa.Table]:
        """The snapshots of the collection, if it has any, as commits, by source id."""
        return {f"git:{self.name}": commit_table(self._line)} if self.shape == "code" else {}

    def _code_rows(self) -> Iterator[pa.Table]:
        """Placements of the chunks of every snapshot."""
        constant = {"source_id": f"git:{self.name}", "owner_project": self.name}

        def blob(name: str, limit: int) -> bytes | None:
            return self.texts[name].encode("utf-8")[: limit + 1] if name in self.texts else None

        reader = DocumentReader()
        return read_changes(self._changes(), blob, reader, constant, SourceReport())

    def _changes(self) -> Iterator[Change]:
        """The differences between consecutive snapshots, in order of their times."""
        trees = {
            commit: dict(zip(t["path"], t["blob_sha"], strict=True)) for commit, t in self.corpus.groupby("commit")
        }
        before: dict[str, str] = {}
        for commit in self._line:
            tree = trees[commit.sha]
            for path in sorted(before.keys() - tree.keys()):
                yield Change(commit, path.encode(), ABSENT, "")
            for path in sorted(path for path, blob in tree.items() if before.get(path) != blob):
                yield Change(commit, path.encode(), "100644", tree[path])
            before = tree

    @cached_property
    def _line(self) -> list[Commit]:
        """The snapshots as commits, oldest first, each at a time of its own."""
        times = pd.to_datetime(self.corpus["timestamp"], utc=True).dt.as_unit("us").astype("int64")
        line: list[Commit] = []
        for time, sha in sorted(set(zip(times, self.corpus["commit"], strict=True))):
            before = line[-1] if line else None
            line.append(Commit(sha, before and before.sha, max(time, before.time + 1) if before else time))
        return line


def open_collection(folder: Path, split: str = SPLIT) -> Collection:
    """The collection in `folder`, in either layout; for BEIR, with the judgements of one split.

    Raises:
        StoreError: a part is missing or cannot be read.
        InputError: its columns match none of the three shapes, or a file is malformed.
    """
    folder = folder.resolve()  # `.` has a name, too
    if not folder.is_dir():
        hint = "name a folder, or a collection in the setting `eval_data`"
        raise StoreError(f"Expected a folder with a labeled collection, got none - at {folder}", hint=hint)
    parts = {part: frame for part in PARTS if (frame := _read(folder, part, split)) is not None}
    root = None if "corpus" in parts else work_tree_root(folder) or work_tree_root(Path.cwd())
    if missing := [part for part in PARTS if part not in parts and not (root and part == "corpus")]:
        got = f"none of {' and '.join(missing)}"
        raise StoreError(f"Expected files of corpus, queries and qrels, got {got} - at {folder}", hint=_LAYOUTS)
    queries, qrels = parts["queries"], parts["qrels"]
    if root is not None:
        return _checkout(folder, root, queries, qrels.rename(columns={"doc_id": "path"}))
    corpus = parts["corpus"]
    shape = next((one for one, columns in COLUMNS.items() if {*columns["corpus"]} <= {*corpus.columns}), None)
    if shape is None:
        expected = " or ".join(f"{one} ({', '.join(columns['corpus'])})" for one, columns in COLUMNS.items())
        raise InputError.expected(f"a corpus of {expected}", ", ".join(sorted(corpus.columns)), f"{folder}: corpus")
    for part in ("queries", "qrels"):
        if lacking := [name for name in COLUMNS[shape][part] if name not in parts[part]]:
            raise InputError.described(f"the column {lacking[0]}", "none", f"{folder}: {part}")
    if shape == "code":
        return code_collection(folder.name, corpus, _parquet(folder / "blobs.parquet"), queries, qrels)
    qrels = qrels[qrels["relevance"] > 0][[*_JUDGED]].assign(query_id=lambda q: _named(folder.name, q["query_id"]))
    return Collection(folder.name, shape, corpus, _judged(folder.name, queries, qrels), qrels)


def code_collection(
    name: str,
    corpus: pd.DataFrame,
    blobs: pd.DataFrame,
    queries: pd.DataFrame,
    judged: pd.DataFrame,
    purpose: str = "fix-test",
) -> Collection:
    """A collection of code; the columns of `blobs` are blob_sha and text, a path in `judged` may name lines."""
    qrels = judged[judged["relevance"] > 0]
    found = qrels["path"].str.extract(r"^(?P<doc_id>.+?)(?::(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)?$")
    found = found.assign(query_id=_named(name, qrels["query_id"]), relevance=qrels["relevance"])
    labels = found.drop(columns="relevance").assign(last=found["last"].fillna(found["first"])).dropna()
    files = found[[*_JUDGED]].drop_duplicates(["query_id", "doc_id"])
    texts = dict(zip(blobs["blob_sha"], blobs["text"], strict=True))
    labels = labels.astype({"first": int, "last": int})
    return Collection(name, "code", corpus, _judged(name, queries, files), files, labels, texts, purpose)


def snapshots_of(git: Git, commits: Sequence[Commit], without: bytes = b"/") -> tuple[pd.DataFrame, pd.DataFrame]:
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
            ((blobs.get(blob, MAX_LONG_BYTES) or b"").decode("utf-8", "replace"), blob)
            for blob in corpus["blob_sha"].unique()
        ]
    return corpus, pd.DataFrame(texts, columns=pd.Index(["text", "blob_sha"]))


def _checkout(folder: Path, root: Path, queries: pd.DataFrame, judged: pd.DataFrame) -> Collection:
    """The commit that is checked out at `root`, without what is in the folder of queries.

    Raises:
        InputError: a judgement is of a query or a path that the collection lacks.
    """
    git, own = Git(root), f"{Path(os.path.relpath(folder, root)).as_posix()}/".encode()
    commit = git.commits(git.head())[-1]
    corpus, blobs = snapshots_of(git, [commit], own)
    made = code_collection(folder.name, corpus, blobs, queries.assign(commit=commit.sha), judged)
    for names, known, expected in (
        (judged["query_id"], queries["query_id"].astype(str), "a query of the folder"),
        (made.qrels["doc_id"], corpus["path"], "a path of the commit that is checked out, outside the folder"),
    ):
        for name in names[~names.isin(known)].fillna(""):
            raise InputError.expected(expected, name, f"{folder}: qrels")
    return made


def _named(name: str, ids: pd.Series) -> pd.Series:
    return name + "/" + ids.astype(str)


def _judged(name: str, queries: pd.DataFrame, qrels: pd.DataFrame) -> pd.DataFrame:
    """The judged queries, under the ids of requests."""
    queries = queries.assign(query_id=_named(name, queries["query_id"]))
    return queries[queries["query_id"].isin(set(qrels["query_id"]))]


def _read(folder: Path, part: str, split: str) -> pd.DataFrame | None:
    """A part as a frame, None if there is no file of it.

    Raises:
        StoreError, InputError: it cannot be read, or there are judgements, but not for this split.
    """
    if (file := folder / f"{part}.parquet").exists():
        return _parquet(file)
    if part == "qrels":
        splits = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
        if splits and split not in splits:
            raise InputError.one_of(splits, split, f"--split of {folder.name}")
        return _qrels(splits[split]) if splits else None
    if not (file := folder / f"{part}.jsonl").exists():
        return None
    columns = COLUMNS["documents"][part]
    try:
        frame = pd.read_json(file, lines=True, dtype=False).rename(columns={"_id": columns[0]}).reindex(columns=columns)
    except (OSError, ValueError) as error:
        raise InputError.described("a JSON object in every line", "another text", str(file)) from error
    ids = frame[columns[0]]
    if frame.empty or ids.isna().any() or ids.duplicated().any():
        raise InputError.described(f"{part} with an `_id` each, each once", "others", str(file))
    return frame.fillna("").astype(str)


def _parquet(file: Path) -> pd.DataFrame:
    try:
        return pq.read_table(file).to_pandas()
    except (OSError, pa.ArrowInvalid) as error:
        raise StoreError(f"Expected a Parquet file, got none that can be read - at {file}") from error


def _qrels(file: Path) -> pd.DataFrame:
    """Judgements in BEIR's TSV: a header, then query-id, corpus-id and score."""
    names = {"query_id": "str", "doc_id": "str", "relevance": "int64"}
    try:
        return pd.read_csv(
            file, sep="\t", header=0, names=list(names), dtype=names, keep_default_na=False, quoting=csv.QUOTE_NONE
        )
    except (OSError, ValueError) as error:
        wanted = "a header, then query-id, corpus-id and a whole number, separated by tabs"
        raise InputError.described(wanted, "other lines", str(file)) from error
