"""Folder layouts of labeled collections: Parquet in the uniform layout, BEIR's JSONL and TSV, or TREC's files.

Reads a folder. Gives its parts as frames, `corpus`, `queries`, `qrels` and `blobs`, and the files that its corpus is read from.

- BEIR: `corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text), `qrels/<split>.tsv`; the split is `test` by
  default
- TREC: documents in `*.trec` or `*.sgml` (`<DOC>` with `<DOCNO>`) or in `corpus.jsonl`, topics in `topics*` (`<top>` with `<num>` and
  `<title>`, or lines `number<TAB>text`), judgements in `qrels*`
- in each, `*.run` are rankings of other systems in TREC's format
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError
from .judgements import read_qrels, read_trec_run

SPLIT = "test"
PARTS = ("corpus", "queries", "qrels")
_LAYOUTS = (
    "Parquet: corpus.parquet, queries.parquet, qrels.parquet; BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv; "
    "TREC: *.trec or *.sgml, topics*, qrels*; see docs/quality.md"
)
_DOC = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL | re.IGNORECASE)
_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<(TITLE|HEADLINE)>\s*(.*?)\s*</\1>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_TOP = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TOPIC = re.compile(r"<title>\s*(?:Topic:)?\s*(.*?)\s*(?=<|\Z)", re.DOTALL | re.IGNORECASE)


class Layout(Protocol):
    """A folder with a labeled collection."""

    folder: Path

    def columns(self, part: str) -> list[str]:
        """The columns of a part."""
        ...

    def read(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        """A part as a frame.

        Raises:
            StoreError, InputError: it is missing or cannot be read.
        """
        ...

    def files(self, part: str) -> list[Path]:
        """The files that a part is read from."""
        ...


class Uniform:
    """Parquet: corpus, queries, qrels and, for code, blobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def columns(self, part: str) -> list[str]:
        path = self.folder / f"{part}.parquet"
        try:
            return pq.read_schema(path).names
        except (OSError, pa.ArrowInvalid) as error:
            missing = isinstance(error, FileNotFoundError)
            raise StoreError(
                f"Expected a Parquet file, got {'nothing' if missing else 'a damaged one'} - at {path}",
                hint="a collection is a folder with corpus, queries and qrels: Parquet, BEIR or TREC, see docs/quality.md",
            ) from error

    def read(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        self.columns(part)
        return pq.read_table(self.folder / f"{part}.parquet", columns=columns).to_pandas()

    def files(self, part: str) -> list[Path]:
        return [self.folder / f"{part}.parquet"]


class TextFiles:
    """BEIR's and TREC's files: documents of a title and a text."""

    def __init__(self, folder: Path, split: str = SPLIT) -> None:
        self.folder, self.split = folder, split

    def columns(self, part: str) -> list[str]:
        return list(self.read(part).columns)

    def files(self, part: str) -> list[Path]:
        if not (found := self.named(part)):
            raise InputError.described(f"a file of {part}", "none", str(self.folder), hint=_LAYOUTS)
        return found

    def named(self, part: str) -> list[Path]:
        """The files of a part, by name; empty if there are none."""
        return {"corpus": self._corpus, "queries": self._queries, "qrels": self._qrels}.get(part, list)()

    def read(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        files = self.files(part)
        if part == "qrels":
            return pd.concat([read_qrels(path) for path in files], ignore_index=True)
        id_ = "doc_id" if part == "corpus" else "query_id"
        rows: list[dict[str, str]] = []
        for path in files:
            if path.suffix == ".jsonl":
                rows += _jsonl(path, id_, titled=part == "corpus")
            else:
                rows += _sgml(path) if part == "corpus" else _topics(path)
        if not rows:
            raise InputError.described(f"{part} in it", "none", str(files[0]))
        frame = pd.DataFrame(rows)
        if (twice := frame[id_].duplicated()).any():
            raise InputError.described("every id once", f"{frame.loc[twice, id_].iloc[0]} again", str(files[0]))
        return frame if columns is None else frame[columns]

    def _corpus(self) -> list[Path]:
        return self._named("corpus.jsonl") or self._named("*.trec", "*.sgml")

    def _queries(self) -> list[Path]:
        return self._named("queries.jsonl") or self._named("topics*")

    def _qrels(self) -> list[Path]:
        if not (splits := sorted((self.folder / "qrels").glob("*.tsv"))):
            return [path for path in self._named("qrels*") if path.is_file()]
        chosen = [path for path in splits if path.stem == self.split]
        if not chosen:
            raise InputError.one_of([path.stem for path in splits], self.split, f"--split of {self.folder.name}")
        return chosen

    def _named(self, *patterns: str) -> list[Path]:
        return sorted(path for pattern in patterns for path in self.folder.glob(pattern))


def layout_of(folder: Path, split: str = SPLIT) -> Layout:
    """The layout of a folder: Parquet if it contains `corpus.parquet`, else BEIR's or TREC's.

    Raises:
        StoreError: there is no such folder, or it lacks a part of a collection.
    """
    if not folder.is_dir():
        hint = "name a folder, or a collection in the setting `eval_data`"
        raise StoreError(f"Expected a folder with a labeled collection, got none - at {folder}", hint=hint)
    text = any(found for pattern in ("*.jsonl", "*.trec", "*.sgml") for found in folder.glob(pattern))
    whole = (folder / "corpus.parquet").exists() or (not text and any(folder.glob("*.parquet")))
    layout: Layout = Uniform(folder) if whole else TextFiles(folder, split)
    missing = [part for part in PARTS if not any(path.exists() for path in _files_of(layout, part))]
    if missing:
        got = f"none of {' and '.join(missing)}"
        raise StoreError(f"Expected files of corpus, queries and qrels, got {got} - at {folder}", hint=_LAYOUTS)
    return layout


def _files_of(layout: Layout, part: str) -> list[Path]:
    if isinstance(layout, TextFiles):
        return layout.named(part)
    return layout.files(part)


def rankings_of(folder: Path) -> dict[str, pd.DataFrame]:
    """The rankings of other systems in a folder, named `NAME.run`: query_id, doc_id, score by name."""
    return {path.stem: read_trec_run(path) for path in sorted(folder.glob("*.run"))}


def _jsonl(path: Path, id_: str, *, titled: bool) -> list[dict[str, str]]:
    rows = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            at = f"{path}:{number}"
            try:
                record: Any = json.loads(line)
            except ValueError as error:
                raise InputError.described("a JSON object", "other text", at) from error
            if not isinstance(record, dict) or not {"_id", "text"} <= record.keys():
                raise InputError.described("an object with _id and text", "another", at)
            row = {id_: str(record["_id"]), "text": str(record["text"])}
            rows.append(row | ({"title": str(record.get("title") or "")} if titled else {}))
    return rows


def _sgml(path: Path) -> list[dict[str, str]]:
    rows = []
    for number, document in enumerate(_DOC.findall(_text(path)), start=1):
        if not (named := _DOCNO.search(document)):
            raise InputError.described("<DOCNO> in every <DOC>", "none", f"{path.name}, document {number}")
        title = _TITLE.search(document)
        body = _DOCNO.sub("", document) if title is None else _DOCNO.sub("", document).replace(title[0], "", 1)
        rows.append({"doc_id": named[1], "title": _plain(title[2]) if title else "", "text": _plain(body)})
    return rows


def _topics(path: Path) -> list[dict[str, str]]:
    text = _text(path)
    if topics := _TOP.findall(text):
        found = [(_NUMBER.search(topic), _TOPIC.search(topic)) for topic in topics]
        if None in (part for pair in found for part in pair):
            raise InputError.described("<num> and <title> in every <top>", "a topic without", path.name)
        return [{"query_id": number[1], "text": _plain(title[1])} for number, title in found if number and title]
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            id_, tab, query = line.partition("\t")
            if not tab:
                raise InputError.described("number, a tab, and text", "no tab", f"{path.name}:{number}")
            rows.append({"query_id": id_.strip(), "text": query.strip()})
    return rows


def _plain(text: str) -> str:
    lines = (line.strip() for line in _TAG.sub(" ", text).splitlines())
    return "\n".join(line for line in lines if line)


def _text(path: Path) -> str:
    """The text of a file in UTF-8, or, for older collections, in Latin-1."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
