"""Document 004's interface: `retrieve`, the store, ingestion, validation and the stage functions (S4.1 to S4.6).

    >>> from scoped_retrieval.pipeline.compat import document_004 as knowledge

    store = knowledge.CorpusStore(":memory:")
    knowledge.ingest_file("corpus.json", store)
    bundle = knowledge.retrieve(store=store, role_id="architect", task_text="why one queue?", overlay=None)

Every name works in snake_case and camelCase. A caller with the store may see all of it, so its bundles also list what an
overlay forbids. Vectors come from a local server with `/v1/embeddings`, such as Ollama, and only if the store holds
vectors of the same model.

`CorpusStore` keeps documents and chunks in one SQLite file or in memory; every search goes through contracts, gates and
lanes. A malformed record raises an error if it is inserted alone; in a JSON corpus it is counted among the errors, and
the others are inserted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ..config.policies.roles import RoleOverlay, validate_overlay
from ..parsing.documents import ModelDocument, checked
from ..sources.jsonl import parse_json
from ..views.bundle import bundle, evidence_provenance, fallback_decisions, packet_knowledge, validate_bundle
from ..views.xray import rows_of
from .stages import (
    DEFAULT_MODEL,
    DEFAULT_URL,
    PURPOSE,
    Overlay,
    QueryEncoder,
    assemble_bundle,
    build_query,
    either_case,
    lexical_search,
    merge_candidates,
    metadata_filter,
    open_retriever,
    policies_of,
    rerank,
    semantic_search,
    snake,
)
from .stored_records import PROJECT, StoredChunk, StoredDocument, StoredRecords

__all__ = [
    "CorpusStore",
    "RoleOverlay",
    "assemble_bundle",
    "build_query",
    "embed",
    "evidence_provenance",
    "fallback_decisions",
    "ingest",
    "ingest_file",
    "lexical_search",
    "merge_candidates",
    "metadata_filter",
    "packet_knowledge",
    "rerank",
    "retrieve",
    "retrieve_async",
    "semantic_search",
    "validate_bundle",
    "validate_overlay",
]


class CorpusStore(StoredRecords):
    """Documents and chunks of a shared corpus; `":memory:"` keeps them in memory only."""

    @either_case
    def search_fts(self, query: str, limit: int = 50) -> list[dict[str, Any]]:
        """The best chunks by BM25 over the query's words; any text is a query, there is no query syntax."""
        return lexical_search(self, query, limit)

    insertDocument, insertChunk = StoredRecords.insert_document, StoredRecords.insert_chunk  # noqa: N815 - document 004's names
    insertEmbedding = StoredRecords.insert_embedding  # noqa: N815 - document 004's name
    searchFTS = search_fts  # noqa: N815 - document 004's name


def ingest_file(path: str | Path, store: CorpusStore) -> dict[str, Any]:
    """Load a JSON corpus file into a store: `{documents_ingested, chunks_ingested, errors}` (S4.4)."""
    try:
        value = parse_json(Path(path).read_bytes(), str(path))
    except InputError as error:
        return {"documents_ingested": 0, "chunks_ingested": 0, "errors": [error.message]}
    return ingest(value, store, str(path))


def ingest(value: Mapping[str, Any], store: CorpusStore, file: str = "corpus") -> dict[str, Any]:
    """Load parsed JSON into a store: `documents`, each with nested `chunks`, or `chunks` as a separate list.

    A malformed record is one error; the others are inserted.
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


def _added(
    store: CorpusStore, model: type[ModelDocument], record: Mapping[str, Any], at: str, errors: list[str]
) -> int:
    found, wrong = checked(model, record, at)
    errors += wrong
    try:
        if isinstance(found, StoredDocument):
            store.add_document(found)
        elif isinstance(found, StoredChunk):
            store.add_chunk(found)
    except InputError as error:
        errors.append(error.moved(at).message)
        return 0
    return int(found is not None)


LANES = ("lexical", "semantic", "exact", "expansion")


@either_case
def retrieve(
    *,
    store: CorpusStore,
    role_id: str,
    task_text: str,
    overlay: Overlay = None,
    packet_context_summary: str | None = None,
    lexical_only: bool = False,
    embedding_model: str = DEFAULT_MODEL,
    ollama_url: str = DEFAULT_URL,
) -> dict[str, Any]:
    """The RetrievalBundle of a task in a role (S4.1, S4.2).

    Args:
        overlay: the role's overlay; with None, only the shared corpus is searched, and the bundle reports it.
        lexical_only: ignore vectors.
        embedding_model: the model whose vectors are compared.
        ollama_url: the server that encodes the task.

    Raises:
        InputError: a value is invalid, or the overlay belongs to another role.
    """
    policies = policies_of(overlay)
    if policies.roles.names not in ([], [role_id]):
        raise InputError.expected(f"the overlay of {role_id}", policies.roles.names[0], "overlay: role_id")
    semantic = not lexical_only and bool(store.vectors(embedding_model))
    encoder = QueryEncoder(embedding_model, ollama_url) if semantic else None
    lanes = LANES if semantic else tuple(lane for lane in LANES if lane != "semantic")
    found = open_retriever(store, overlay, encoder, lanes).retrieve(
        task_text, role=role_id, context_summary=packet_context_summary, project=PROJECT, purpose=PURPOSE
    )
    return bundle(
        rows_of(found.tables),
        audit=True,
        latency_ms=found.latency_ms,
        max_age_days=policies.roles.max_age_days(role_id),
        chunk_ids=store.chunk_ids(),
    )


async def retrieve_async(**arguments: Any) -> dict[str, Any]:
    """`retrieve` without blocking the event loop; same arguments."""
    return await asyncio.to_thread(retrieve, **arguments)


@either_case
def embed(store: CorpusStore, model: str = DEFAULT_MODEL, url: str = DEFAULT_URL) -> int:
    """Add a vector of the model to every chunk without one; returns how many were added.

    Raises:
        ModelError: the server returns no vector.
    """
    known, encoder = store.vectors(model), QueryEncoder(model, url)
    missing = [chunk for _, chunk in store.chunks() if chunk.chunk_id not in known]
    for chunk, vector in zip(missing, encoder.encode([chunk.content for chunk in missing]), strict=True):
        store.insert_embedding(chunk.chunk_id, vector, model)
    return len(missing)


def __getattr__(name: str) -> Any:
    """A function by its camelCase name: `ingestFile` for `ingest_file`."""
    if snake(name) in __all__:
        return globals()[snake(name)]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
