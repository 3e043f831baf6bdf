"""Document 004's `CorpusStore`: documents and chunks in one SQLite file or in memory, searched by this package's line.

Reads: records one by one, or a JSON corpus. Gives: the store. SQLite only keeps the records; every search goes through
contracts, gates and lanes.

Note: a record that is not what was expected is an error where it is inserted alone; in a
JSON corpus it is counted among the errors, and the others go in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ..parsing.model_errors import Document, checked
from ..sources.jsonl import parse_json
from .cases import either_case
from .stages import lexical_search
from .stored_records import StoredChunk, StoredDocument, StoredRecords, tuples

__all__ = ["CorpusStore", "ingest", "ingest_file"]


class CorpusStore(StoredRecords):
    """Documents and chunks of a shared corpus; `":memory:"` keeps them nowhere else."""

    @either_case
    def search_fts(self, query: str, limit: int = 50) -> list[dict[str, Any]]:
        """The best chunks by BM25 over the query's words; any text is a query, there is no query syntax."""
        return lexical_search(self, query, limit)

    insertDocument, insertChunk = StoredRecords.insert_document, StoredRecords.insert_chunk  # noqa: N815 - document 004's names
    insertEmbedding = StoredRecords.insert_embedding  # noqa: N815 - document 004's name
    searchFTS = search_fts  # noqa: N815 - document 004's name


def ingest_file(path: str | Path, store: CorpusStore) -> dict[str, Any]:
    """A JSON corpus file into a store: `{documents_ingested, chunks_ingested, errors}` (S4.4)."""
    try:
        value = parse_json(Path(path).read_bytes(), str(path))
    except InputError as error:
        return {"documents_ingested": 0, "chunks_ingested": 0, "errors": [error.message]}
    return ingest(value, store, str(path))


def ingest(value: Mapping[str, Any], store: CorpusStore, file: str = "corpus") -> dict[str, Any]:
    """Parsed JSON into a store: `documents`, each with its `chunks` inside or in a list of their own beside them.

    A record that is not what was expected is an error of its own; the others go in.
    """
    documents, chunks = value.get("documents", []), []
    done: dict[str, Any] = {"documents_ingested": 0, "chunks_ingested": 0, "errors": []}
    for number, record in enumerate(documents):
        own = dict(record) if isinstance(record, Mapping) else {}
        inside = own.pop("chunks", [])
        owner = own.get("document_id", own.get("documentId"))
        chunks += [
            ({"document_id": owner} | {("document_id" if k == "documentId" else k): v for k, v in one.items()},
             f"documents[{number}].chunks[{n}]")
            for n, one in enumerate(inside)
        ]  # fmt: skip
        done["documents_ingested"] += _added(store, StoredDocument, own, f"{file}: documents[{number}]", done["errors"])
    chunks += [(one, f"chunks[{n}]") for n, one in enumerate(value.get("chunks", []))]
    for record, at in chunks:
        done["chunks_ingested"] += _added(store, StoredChunk, record, f"{file}: {at}", done["errors"])
    return done


def _added(store: CorpusStore, model: type[Document], record: Mapping[str, Any], at: str, errors: list[str]) -> int:
    found, wrong = checked(model, tuples(record), at)
    errors += wrong
    try:
        if isinstance(found, StoredDocument):
            store.add_document(found)
        elif isinstance(found, StoredChunk):
            store.add_chunk(found)
    except InputError as error:
        errors.append(f"{error.message.rpartition(' - at ')[0]} - at {at}")
        return 0
    return int(found is not None)
