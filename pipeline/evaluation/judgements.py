"""Relevance judgements in common exchange formats: TREC qrels, BEIR's TSV, Parquet.

Reads one file. Gives a frame: query_id, doc_id, relevance. Ids are text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...nodes.errors import InputError
from ..progress import counted

COLUMNS = ("query_id", "doc_id", "relevance")


def read_qrels(path: Path) -> pd.DataFrame:
    """The judgements of a file, except those of relevance 0 or less.

    `.parquet` has the columns query_id, doc_id (or path) and relevance, `.tsv` a header `query-id corpus-id score` or
    these names, and any other file is in TREC's format: `query 0 document relevance`, separated by white space.

    Raises:
        InputError: the file is missing, or a line is malformed; the message names it.
    """
    frame = _parquet(path) if path.suffix == ".parquet" else pd.DataFrame(_judged(path), columns=pd.Index(COLUMNS))
    if (part := frame["relevance"] % 1 != 0).any():
        raise InputError.expected("a whole number", frame.loc[part, "relevance"].iloc[0], f"{path.name}: relevance")
    return frame[frame["relevance"] > 0].astype({"relevance": "int64"}).reset_index(drop=True)


def _judged(path: Path) -> Iterator[tuple[str, str, float]]:
    tabs = path.suffix in (".tsv", ".csv")
    for n, (at, cells) in enumerate(_lines(path, {".tsv": "\t", ".csv": ","}.get(path.suffix))):
        if tabs and n == 0 and cells[:1] in (["query-id"], ["query_id"]):
            continue
        if len(cells) != (3 if tabs else 4):
            wanted = "query-id, corpus-id, score" if tabs else "query 0 document relevance"
            raise InputError.expected(wanted, counted(len(cells), "column"), at)
        yield cells[0], cells[-2].replace("%20", " ") if not tabs else cells[1], _number(cells[-1], at)


def _lines(path: Path, between: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """The cells of each non-empty line, with its place."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path.name}:{number}", [cell.strip() for cell in line.rstrip("\n").split(between)]
    except OSError as error:
        raise InputError(f"{error.strerror}: {path}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"Expected UTF-8, got another encoding - at {path}") from error


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pq.read_table(path).to_pandas()
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"Expected a Parquet file, got none that can be read - at {path}") from error
    if "doc_id" not in frame or ("path" in frame and (frame["doc_id"].astype(str) == "").all()):
        frame = frame.assign(doc_id=frame.get("path"))
    if missing := [name for name in COLUMNS if name not in frame or frame[name].isna().all()]:
        raise InputError.expected(", ".join(COLUMNS), f"no {missing[0]}", str(path))
    return frame[list(COLUMNS)].astype({"query_id": str, "doc_id": str, "relevance": float})


def _number(text: str, at: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError.expected("a number", text, at) from error
