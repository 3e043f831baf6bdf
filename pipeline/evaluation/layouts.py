"""Files of a labeled collection: each part in Parquet, or documents in BEIR's files.

Reads a folder. Gives its parts as frames, `corpus`, `queries`, `qrels` and `blobs`, and the files that they are read from.

BEIR: `corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text), `qrels/<split>.tsv`; the split is `test` by
default.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError
from ..sources.jsonl import read_lines

SPLIT = "test"
PARTS = ("corpus", "queries", "qrels")
_LAYOUTS = "Parquet: corpus.parquet, queries.parquet, qrels.parquet; BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv; see docs/quality.md"
_BEIR_COLUMNS = {"corpus": ["doc_id", "title", "text"], "queries": ["query_id", "text"]}


@dataclass(frozen=True)
class Layout:
    """A folder with a labeled collection."""

    folder: Path
    split: str = SPLIT

    def file(self, part: str) -> Path:
        """The file of a part.

        Raises:
            InputError: there are judgements, but not for this split.
        """
        parquet = self.folder / f"{part}.parquet"
        if parquet.exists():
            return parquet
        if part != "qrels":
            return self.folder / f"{part}.jsonl"
        splits = sorted(path.stem for path in (self.folder / "qrels").glob("*.tsv"))
        if splits and self.split not in splits:
            raise InputError.one_of(splits, self.split, f"--split of {self.folder.name}")
        return self.folder / "qrels" / f"{self.split}.tsv"

    def columns(self, part: str) -> list[str]:
        """The columns of a part."""
        path = self.file(part)
        return _parquet(path).schema_arrow.names if path.suffix == ".parquet" else _BEIR_COLUMNS[part]

    def read(self, part: str, columns: list[str] | None = None) -> pd.DataFrame:
        """A part as a frame.

        Raises:
            StoreError, InputError: it cannot be read.
        """
        path = self.file(part)
        if path.suffix == ".parquet":
            return _parquet(path).read(columns).to_pandas()
        if path.suffix == ".tsv":
            return _qrels(path)
        id_, *names = _BEIR_COLUMNS[part]
        rows = [
            {
                id_: record.identifier("_id") or record.required("_id"),
                "text": record.text("text") or "",
                "title": record.text("title") or "",
            }
            for record in read_lines(path)
        ]
        if not rows:
            raise InputError.described(f"{part} in it", "none", str(path))
        frame = pd.DataFrame(rows)[[id_, *names]]
        if (twice := frame[id_].duplicated()).any():
            raise InputError.described("every id once", f"{frame.loc[twice, id_].iloc[0]} again", str(path))
        return frame if columns is None else frame[columns]


def layout_of(folder: Path, split: str = SPLIT) -> Layout:
    """The layout of a folder.

    Raises:
        StoreError: there is no such folder, or it lacks a part of a collection.
        InputError: it has no judgements for this split.
    """
    if not folder.is_dir():
        hint = "name a folder, or a collection in the setting `eval_data`"
        raise StoreError(f"Expected a folder with a labeled collection, got none - at {folder}", hint=hint)
    layout = Layout(folder, split)
    if missing := [part for part in PARTS if not layout.file(part).exists()]:
        got = f"none of {' and '.join(missing)}"
        raise StoreError(f"Expected files of corpus, queries and qrels, got {got} - at {folder}", hint=_LAYOUTS)
    return layout


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
