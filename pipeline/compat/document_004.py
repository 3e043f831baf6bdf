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

A stage has no rules of its own. It builds the line's tables from its candidates, a chunk with its document and the raw
scores computed so far, and runs the line's nodes, so the seven calls in sequence decide as one `retrieve` over the same
candidates.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import Counters
from ...nodes.columns.keys import flat, positions
from ...nodes.errors import InputError
from ...nodes.recall.candidate_merge import Fusion
from ...nodes.recall.file_recall import NO_FILES
from ...nodes.recall.vector_recall import NOTHING_ENCODED
from ...nodes.tables import (
    CANDIDATES,
    CAPTURES,
    FAILURES,
    HITS,
    LANE_SCORES,
    LANE_STATES,
    PROVENANCE,
    SESSION_EVENTS,
    SESSION_TEXTS,
    TABLES,
)
from ...nodes.vocabulary import FEEDBACK_TERMS
from ..asking.retriever import Retriever
from ..config.grants import grant_all
from ..config.policies.roles import NO_ROLES, RoleOverlay, max_age_days, overlay_of, roles_of, validate_overlay
from ..config.policies.tables import Policies, load_policies
from ..corpus.store import Corpus
from ..encoders.choice import OPENAI, EncoderChoice
from ..encoders.cross_encoder import PairScores
from ..encoders.openai_encoder import OpenAIEncoder
from ..line.driver import build_driver
from ..requests.resolve import RequestResolver
from ..sources.jsonl import parse_json
from ..views.bundle import (
    TABLES_READ,
    bundle,
    evidence_provenance,
    fallback_decisions,
    packet_knowledge,
    query_trace,
    validate_bundle,
)
from ..views.xray import rows_of
from .stored_records import (
    PRINCIPAL,
    PROJECT,
    UNDATED,
    StoredChunk,
    StoredDocument,
    StoredRecords,
    normalized,
)

__all__ = [
    "RoleOverlay",
    "evidence_provenance",
    "fallback_decisions",
    "packet_knowledge",
    "validate_bundle",
    "validate_overlay",
]
"""The document's names that are defined elsewhere."""

Overlay = Mapping[str, Any] | RoleOverlay | None
Candidate = dict[str, Any]
"""A chunk with its document (`chunk`, `document`), its `chunk_id`, the raw scores `lexical` and `semantic`, and
`lexical_reach`, the maximum score of the query's words."""

DEFAULT_MODEL, DEFAULT_URL = "nomic-embed-text", "http://localhost:11434"
PURPOSE = "answer-question"
SCORES = {"lexical": "bm25_raw", "semantic": "semantic_raw"}
REQUEST = "request"
REACHED = 0.5
"""The share of the reach that the best lexical score is assumed to have if candidates carry no reach."""


F = TypeVar("F", bound=Callable[..., Any])


def snake(word: str) -> str:
    """`taskText` as `task_text`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()


def either_case(function: F) -> F:
    """The function, taking its keyword arguments in snake_case or camelCase."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        named = {snake(name): value for name, value in kwargs.items()}
        if len(named) < len(kwargs):
            raise TypeError(f"{function.__name__}() got an argument under two names")
        return function(*args, **named)

    return cast(F, called)


class CorpusStore(StoredRecords):
    """Documents and chunks of a shared corpus; `":memory:"` keeps them in memory only."""

    @either_case
    def search_fts(self, query: str, limit: int = 50) -> list[dict[str, Any]]:
        """The best chunks by BM25 over the query's words; any text is a query, there is no query syntax."""
        return lexical_search(self, query, limit)

    def __getattr__(self, name: str) -> Any:
        """A method by its camelCase name: `insertDocument` for `insert_document`."""
        if (known := snake(name)) != name:
            return getattr(self, known)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


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
    documents, chunks, errors = list[tuple[Any, str]](), list[tuple[Any, str]](), list[str]()
    for number, record in enumerate(value.get("documents", [])):
        own, at = _snake_keys(record) if isinstance(record, Mapping) else {}, f"{file}: documents[{number}]"
        inside, owner = own.pop("chunks", []), {"document_id": own.get("document_id")}
        documents.append((own, at))
        chunks += [(owner | _snake_keys(one), f"{at}.chunks[{n}]") for n, one in enumerate(inside)]
    chunks += [(one, f"{file}: chunks[{n}]") for n, one in enumerate(value.get("chunks", []))]
    counts = []
    for insert, records in ((store.insert_document, documents), (store.insert_chunk, chunks)):
        before = len(errors)
        for each in records:
            try:
                insert(*each)
            except InputError as error:
                errors.append(error.message)
        counts.append(len(records) - len(errors) + before)
    return dict(zip(("documents_ingested", "chunks_ingested"), counts, strict=True)) | {"errors": errors}


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
        max_age_days=max_age_days(policies.roles.policies, role_id),
        chunk_ids=store.chunk_ids(),
    )


async def retrieve_async(**arguments: Any) -> dict[str, Any]:
    """`retrieve` without blocking the event loop; same arguments."""
    return await asyncio.to_thread(retrieve, **arguments)


@either_case
def build_query(task_text: str, overlay: Overlay = None, context: str | None = None) -> dict[str, Any]:
    """The query trace of a task under an overlay: the query of each lane, and the conditions on every row."""
    line = _Line((), overlay, task_text, context)
    return query_trace(line.rows("contracts", "sub_queries"), line.now)


@either_case
def lexical_search(store: StoredRecords, fts_query: str, limit: int = 50) -> list[Candidate]:
    """The best chunks by BM25, with their scores."""
    return _searched(store, open_retriever(store, None, None, ("lexical",)), fts_query, limit, "lexical")


@either_case
def semantic_search(
    store: StoredRecords, query_text: str, limit: int = 50, model: str = DEFAULT_MODEL, url: str = DEFAULT_URL
) -> list[Candidate]:
    """The chunks whose stored vectors are nearest to the query's, with their cosines; none without stored vectors.

    Raises:
        ModelError: the server at `url` returns no vector.
    """
    if not store.vectors(model):
        return []
    encoder = QueryEncoder(model, url)
    encoder.encode([query_text])  # an unreachable server is an error here; in a retrieval it is a failed lane
    return _searched(store, open_retriever(store, None, encoder, ("semantic",)), query_text, limit, "semantic")


def merge_candidates(lexical: Iterable[Candidate], semantic: Iterable[Candidate]) -> list[Candidate]:
    """Every chunk once, by reciprocal rank fusion, with the scores of both lists."""
    found: dict[str, Candidate] = {}
    rows, ranks, places = [], [], {}
    for candidates in (lexical, semantic):
        for rank, one in enumerate(candidates, start=1):
            before = found.get(one["chunk_id"], dict.fromkeys(SCORES, 0.0))
            found[one["chunk_id"]] = before | one | {name: max(before[name], one.get(name, 0.0)) for name in SCORES}
            rows.append(places.setdefault(one["chunk_id"], len(places)))
            ranks.append(rank)
    fused = Fusion.of(np.zeros(len(rows), np.int64), np.array(rows, np.int64), np.array(ranks, np.int64))
    names = list(places)
    score = {names[row]: value for row, value in zip(fused.row.tolist(), fused.score.tolist(), strict=True)}
    return sorted(found.values(), key=lambda one: (-score[one["chunk_id"]], one["chunk_id"]))


@either_case
def metadata_filter(candidates: Sequence[Candidate], overlay: Overlay = None) -> dict[str, list[Candidate]]:
    """`{admitted, rejected}`: the candidates by the gates' verdicts under the overlay; rejected ones with their
    `reason`.
    """
    verdicts = _Line(candidates, overlay).verdicts
    judged = list(zip(candidates, verdicts["admitted"].to_pylist(), verdicts["reason_code"].to_pylist(), strict=True))
    return {
        "admitted": [one for one, admitted, _ in judged if admitted],
        "rejected": [one | {"reason": reason} for one, admitted, reason in judged if not admitted],
    }


@either_case
def rerank(candidates: Sequence[Candidate], overlay: Overlay = None, task_text: str = "") -> list[Candidate]:
    """The remaining candidates in display order, each with `final` and its contributions."""
    line = _Line(candidates, overlay, task_text)
    made = line.rows("packs", "ranked")
    ranked = {row["evidence_id"]: row for row in made["ranked"]}
    terms = [name for name in TABLES["rerank_weights"].columns if name != "request_id"]
    return [
        line.named[id_] | {"final": ranked[id_]["final"], "scores": {name: ranked[id_][name] for name in terms}}
        for id_ in (row["evidence_id"] for row in made["packs"] if row["position"] > 0)
    ]


def assemble_bundle(given: Mapping[str, Any]) -> dict[str, Any]:
    """The RetrievalBundle of candidates: `{role_id, task_text, overlay, candidates, packet_context_summary}`."""
    named = _snake_keys(given)
    overlay, role = named.get("overlay"), named.get("role_id")
    line = _Line(named["candidates"], overlay, named["task_text"], named.get("packet_context_summary"), role)
    rows = line.rows(*(name for name in TABLES_READ if name not in ("requests", "failures")))
    limit = max_age_days(policies_of(overlay).roles.policies, role)
    chunks = {id_: one["chunk_id"] for id_, one in line.named.items()}
    return bundle(rows, audit=True, max_age_days=limit, chunk_ids=chunks)


def policies_of(overlay: Overlay) -> Policies:
    """The bundled policies with this overlay only; without one, the role of a request has no effect."""
    loaded = load_policies()
    roles = (
        roles_of([overlay_of(_snake_keys(overlay) if isinstance(overlay, Mapping) else overlay)])
        if overlay
        else NO_ROLES
    )
    return replace(loaded, roles=roles, digest=f"{loaded.digest}:{roles.digest}", any_role=True)


def open_retriever(store: StoredRecords, overlay: Overlay, encoder: Any, lanes: Sequence[str]) -> Retriever:
    """A retriever over a store; `encoder` encodes queries for the vectors of the model named by its profile."""
    corpus = store.corpus(encoder.profile if encoder is not None else None)
    grants = grant_all(PRINCIPAL, PROJECT)
    policies = policies_of(overlay)
    return Retriever.open(corpus, principal=PRINCIPAL, grants=grants, policies=policies, lanes=lanes, encoder=encoder)


class QueryEncoder:
    """Encodes texts by the `/v1/embeddings` of a server, under the name of the model whose vectors are in the store."""

    def __init__(self, model: str, url: str) -> None:
        self.profile, self._server = model, OpenAIEncoder(EncoderChoice(f"{OPENAI}{url}#{model}"))

    def encode(self, texts: Any) -> Any:
        return self._server.encode(texts)


def _searched(store: StoredRecords, retriever: Retriever, text: str, limit: int, lane: str) -> list[Candidate]:
    request = {"question": text, "project": PROJECT, "purpose": PURPOSE, "lane_k": limit, "pool_k": limit}
    tables = retriever.retrieve(request).tables
    share = {row["evidence_id"]: row["lexical"] for row in tables["score_terms"].to_pylist()}
    rows = [row for row in tables["candidates"].to_pylist() if row[SCORES[lane]] > 0]
    rows.sort(key=lambda row: (-row[SCORES[lane]], row["evidence_id"]))
    ids = store.chunk_ids()
    scores = {ids[row["evidence_id"]]: row[SCORES[lane]] for row in rows[:limit]}
    known = {chunk.chunk_id: (document, chunk) for document, chunk in store.chunks(list(scores))}
    reach = max(
        (row[SCORES["lexical"]] / share[row["evidence_id"]] for row in rows if share.get(row["evidence_id"])),
        default=0.0,
    )
    reached = {"lexical_reach": reach} if lane == "lexical" else {}
    return [_candidate(*known[chunk]) | {lane: score} | reached for chunk, score in scores.items()]


def _candidate(document: StoredDocument, chunk: StoredChunk) -> Candidate:
    own = {"chunk_id": chunk.chunk_id, "document_id": document.document_id, "source_id": document.source_id}
    parts = {"document": document.model_dump(), "chunk": chunk.model_dump()}
    return own | parts | dict.fromkeys(SCORES, 0.0)


class _Line:
    """The line after recall, over given candidates: every table is computed from them and one request."""

    def __init__(
        self, candidates: Sequence[Candidate], overlay: Overlay, task_text: str = "", context: str | None = None,
        role: str | None = None,
    ) -> None:  # fmt: skip
        policies, self.now, grants = policies_of(overlay), datetime.now(UTC), grant_all(PRINCIPAL, PROJECT)
        asked = {
            "request_id": REQUEST, "question": task_text or "-", "context_summary": context, "project": PROJECT,
            "purpose": PURPOSE, "role": role or next(iter(policies.roles.names), None),
        }  # fmt: skip
        unasked = cast("Corpus", None)  # no task names a commit
        self._requests, _ = RequestResolver(PRINCIPAL, unasked, grants).resolve([asked], self.now)
        parts = [
            (StoredDocument.model_validate(one["document"]), StoredChunk.model_validate(one["chunk"]))
            for one in candidates
        ]
        frame = Corpus.of_rows(normalized(parts), now=UNDATED).frame()
        of_chunk = dict(zip(*(frame.evidence[name].to_pylist() for name in ("entity", "evidence_id")), strict=True))
        ids = [of_chunk[one["chunk_id"]] for one in candidates]
        self.named = dict(zip(ids, candidates, strict=True))
        captures = CAPTURES.build({"request_id": [REQUEST], "snapshot_id": [REQUEST], "created_at": [self.now]})
        self._inputs: dict[str, Any] = {
            **frame.inputs(), **policies.inputs(), "requests": self._requests, "failures": FAILURES.empty(),
            "grants": grants.table, "lanes": (), "bm25": None, "counters": Counters(), "provenance": PROVENANCE.empty(),
            "captures": captures, "lane_states": LANE_STATES.empty(), "query_vectors": NOTHING_ENCODED,
            "cross_encoder": PairScores(None),
        }  # fmt: skip
        self._known: dict[str, Any] = {
            **{table.name: table.empty() for table in (SESSION_EVENTS, SESSION_TEXTS, HITS)}, "file_recall": NO_FILES,
        }  # fmt: skip
        scores = {lane: np.array([float(one.get(lane, 0.0)) for one in candidates]) for lane in SCORES}
        keys = {"request_id": [REQUEST] * len(ids), "evidence_id": ids, "pool_rank": np.arange(1, len(ids) + 1)}
        row, placement = (
            positions(pa.array(ids, pa.string()), table["evidence_id"]) for table in (frame.evidence, frame.placements)
        )
        pool = keys | {
            "row": row, "placement": placement, "merge_score": 1.0 / (60 + keys["pool_rank"]),
            "lanes": [[lane for lane in SCORES if one.get(lane, 0.0) > 0] for one in candidates],
            "intents": [[]] * len(ids), **{column: scores[lane] for lane, column in SCORES.items()},
            "symbol_raw": np.zeros(len(ids)),
        }  # fmt: skip
        self._known["candidates"] = CANDIDATES.build(pool | {"withheld": np.zeros(len(ids), bool)})
        self.verdicts = self.run("verdicts")["verdicts"]
        admitted = flat(self.verdicts["admitted"])
        self._known["candidates"] = CANDIDATES.build(pool | {"withheld": pc.invert(admitted)})
        reach = max((float(one.get("lexical_reach", 0.0)) for one in candidates), default=0.0)
        reach = reach or max(scores["lexical"], default=0.0) / REACHED
        # Document 004 has neither turns nor feedback.
        absent = dict.fromkeys(
            ("context", "answer", "session", "session_reach", "feedback_rank", *FEEDBACK_TERMS), np.zeros(len(ids))
        )
        raw = {"bm25": scores["lexical"], "bm25_reach": np.full(len(ids), reach), "cosine": scores["semantic"]}
        self._known["lane_scores"] = LANE_SCORES.build({**keys, **raw, **absent}, rows=len(ids)).filter(admitted)

    def run(self, *wanted: str) -> dict[str, pa.Table]:
        """Some tables of the line, by name."""
        return build_driver().execute(list(wanted), inputs=self._inputs, overrides=self._known)

    def rows(self, *wanted: str) -> dict[str, list[dict[str, Any]]]:
        """The rows of some tables and of the request, by name."""
        tables = {**self.run(*wanted), "requests": self._requests}
        return {name: table.to_pylist() for name, table in tables.items()}


def _snake_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    return {snake(key): one for key, one in value.items()}


def __getattr__(name: str) -> Any:
    """A function by its camelCase name: `ingestFile` for `ingest_file`."""
    if (known := snake(name)) != name and known in globals():
        return globals()[known]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
