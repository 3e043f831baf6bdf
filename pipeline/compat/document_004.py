"""Document 004's interface: `retrieve`, the store, ingestion, validation and the stage functions (S4.1 to S4.6).

    >>> from scoped_retrieval.pipeline.compat import document_004 as knowledge

    store = knowledge.CorpusStore(":memory:")
    knowledge.ingest_file("corpus.json", store)
    bundle = knowledge.retrieve(store=store, role_id="architect", task_text="why one queue?", overlay=None)

Every name works in snake_case and camelCase. A caller with the store may see all of it, so its bundles also list what an
overlay forbids. Vectors come from a local Ollama server, and only if the store holds vectors of the same model.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ...nodes.errors import InputError
from ..config.policies.overlays import RoleOverlay, validate_overlay
from ..line.encoders.ollama import DEFAULT_MODEL, DEFAULT_URL, OllamaEncoder
from ..views.bundle import TABLES_READ as BUNDLE_TABLES
from ..views.bundle import bundle, evidence_provenance, fallback_decisions, packet_knowledge
from ..views.bundle_models import validate_bundle
from .cases import either_case
from .corpus_store import CorpusStore, ingest, ingest_file
from .stages import (
    PURPOSE,
    Overlay,
    QueryEncoder,
    assemble_bundle,
    build_query,
    lexical_search,
    merge_candidates,
    metadata_filter,
    open_retriever,
    policies_of,
    rerank,
    semantic_search,
)
from .stored_records import PROJECT

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
        overlay: the role's overlay; None sees the shared corpus alone, and the bundle says so.
        lexical_only: leave the vectors out.
        embedding_model: whose vectors to compare with.
        ollama_url: the server that encodes the task.

    Raises:
        InputError: a value is not what was expected, or the overlay is another role's.
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
    rows = {name: found.tables[name].to_pylist() for name in BUNDLE_TABLES}
    return bundle(
        rows,
        audit=True,
        latency_ms=found.latency_ms,
        max_age_days=policies.roles.max_age_days(role_id),
        chunk_ids=store.chunk_ids(),
    )


async def retrieve_async(**arguments: Any) -> dict[str, Any]:
    """`retrieve` without holding up the event loop; takes the same arguments."""
    return await asyncio.to_thread(retrieve, **arguments)


@either_case
def embed(store: CorpusStore, model: str = DEFAULT_MODEL, url: str = DEFAULT_URL) -> int:
    """Give every chunk without one a vector of the model; returns how many were made.

    Raises:
        ModelError: the server gives no vector.
    """
    known, encoder = store.vectors(model), OllamaEncoder(model, url)
    missing = [chunk for _, chunk in store.chunks() if chunk.chunk_id not in known]
    for chunk, vector in zip(missing, encoder.encode([chunk.content for chunk in missing]), strict=True):
        store.insert_embedding(chunk.chunk_id, vector, model)
    return len(missing)


retrieveAsync, buildQuery, lexicalSearch, semanticSearch = retrieve_async, build_query, lexical_search, semantic_search  # noqa: N816
mergeCandidates, metadataFilter, assembleBundle = merge_candidates, metadata_filter, assemble_bundle  # noqa: N816
fallbackDecisions, packetKnowledge, evidenceProvenance = fallback_decisions, packet_knowledge, evidence_provenance  # noqa: N816
ingestFile, validateOverlay, validateBundle = ingest_file, validate_overlay, validate_bundle  # noqa: N816
