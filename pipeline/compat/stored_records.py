"""The records of a `CorpusStore`: documents, chunks and vectors in SQLite, and the corpus built from them.

Reads: records as they are inserted. Gives: `StoredRecords`, which the stages of document 004 search, and `normalized`
rows of chunks.

Note: a chunk that is inserted again replaces the earlier one, also in the index: the corpus is rebuilt from the records
after each change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import AwareDatetime, Field

from ...nodes.errors import InputError, StoreError
from ...nodes.tables import IMPORT_ROWS
from ...nodes.vocabulary import AUTHORITY, ORIGIN_CLASSES
from ..config.policies.roles import Text, TrustTier
from ..corpus.store import Corpus
from ..corpus.vectors import encoded_texts
from ..encoders.unit_vectors import rounded
from ..parsing.documents import ModelDocument
from ..parsing.documents import document as parsed
from ..redaction.masking import redact_text
from ..sources.importing import normalize

PROJECT, PRINCIPAL = "shared", "retrieval"
"""The only project of a store, and its principal."""
UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a document without a date, see `score_terms`."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (document_id TEXT PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS chunks (chunk_id TEXT PRIMARY KEY, document_id TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS embeddings (chunk_id TEXT, model TEXT, vector BLOB NOT NULL, PRIMARY KEY (chunk_id, model));
"""


class StoredDocument(ModelDocument):
    """A document; its chunks are separate records, or nested in it."""

    document_id: Text
    source_id: Text
    source_type: Text = "project-doc"
    title: Text | None = None
    uri: Text | None = None
    version: Text | None = None
    trust_tier: TrustTier = "general"
    document_type: Text | None = None
    domain: Text | None = None
    tags: tuple[Text, ...] = ()
    applicable_roles: tuple[Text, ...] | None = None
    excluded_roles: tuple[Text, ...] | None = None
    conflict_set: Text | None = None
    updated_at: Annotated[AwareDatetime, Field(strict=False)] | None = None


class StoredChunk(ModelDocument):
    """A part of a document that is retrieved and shown as a whole."""

    chunk_id: Text
    document_id: Text
    content: str
    content_type: Literal["paragraph", "table", "list", "code", "excerpt"] = "paragraph"
    locator: Text | None = None


class StoredRecords:
    """Documents, chunks and vectors; `":memory:"` keeps them in memory only."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        """Open or create the store.

        Raises:
            StoreError: the file is not such a store.
        """
        try:
            with ExitStack() as failed:
                self._db = failed.enter_context(closing(sqlite3.connect(str(path), check_same_thread=False)))
                self._db.executescript(_SCHEMA)
                failed.pop_all()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"Expected a corpus store, got {type(error).__name__} - at {path}") from error
        self._corpora: dict[str | None, Corpus] = {}

    def insert_document(self, document: Mapping[str, Any], at: str = "document") -> None:
        """Add or replace a document; `at` is its place in an error.

        Raises:
            InputError: it is malformed.
        """
        found = parsed(StoredDocument, document, at, InputError)
        _without_secret(found.conflict_set, f"{at}: conflict_set")
        self._write(("INSERT OR REPLACE INTO documents VALUES (?, ?)", (found.document_id, found.model_dump_json())))

    def insert_chunk(self, chunk: Mapping[str, Any], at: str = "chunk") -> None:
        """Add or replace a chunk of a stored document.

        Raises:
            InputError: it is malformed, or there is no such document.
        """
        found = parsed(StoredChunk, chunk, at, InputError)
        _without_secret(found.chunk_id, f"{at}: chunk_id")
        if not self._db.execute("SELECT 1 FROM documents WHERE document_id = ?", (found.document_id,)).fetchone():
            raise InputError.expected("a document that is there", found.document_id, f"{at}: document_id")
        record = (found.chunk_id, found.document_id, found.model_dump_json())
        self._write(
            # The vectors of the earlier text do not match the new one.
            ("DELETE FROM embeddings WHERE chunk_id = ?", (found.chunk_id,)),
            ("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", record),
        )

    def insert_embedding(self, chunk_id: str, vector: Any, model: str) -> None:
        """Add or replace the vector of a chunk under a model; all vectors of a model have one length."""
        values = np.asarray(vector, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
            raise InputError.described("a list of finite numbers", f"shape {values.shape}", "vector")
        if not self._db.execute("SELECT 1 FROM chunks WHERE chunk_id = ?", (chunk_id,)).fetchone():
            raise InputError.expected("a chunk that is there", chunk_id, "chunk_id")
        known = self._db.execute("SELECT vector FROM embeddings WHERE model = ? LIMIT 1", (model,)).fetchone()
        if known and len(known[0]) != 8 * len(values):
            raise InputError.expected(f"{len(known[0]) // 8} numbers", len(values), f"vector of {model}")
        self._write(("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", (chunk_id, model, values.tobytes())))

    def close(self) -> None:
        """Close the store; its records stay in its file."""
        self._db.close()
        self._corpora.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def corpus(self, model: str | None = None) -> Corpus:
        """The store as a corpus, with the vectors of a model; built once per state of the store."""
        if model not in self._corpora:
            normal = normalized(self.chunks())
            vectors = self.vectors(model) if model else {}
            encoder = _GivenVectors(model or "", normal, vectors) if vectors else None
            self._corpora[model] = Corpus.of_rows(normal, now=UNDATED, encoder=encoder)
        return self._corpora[model]

    def chunk_ids(self) -> dict[str, str]:
        """The chunk id of each evidence id, which does not depend on the model."""
        evidence = next(iter(self._corpora.values()), None) or self.corpus()
        rows = evidence.frame().evidence
        return dict(zip(*(rows[name].to_pylist() for name in ("evidence_id", "entity")), strict=True))

    def chunks(self, ids: Collection[str] | None = None) -> Iterator[tuple[StoredDocument, StoredChunk]]:
        """Every chunk with its document, or those of these ids, by chunk id."""
        query = "SELECT d.record, c.record FROM chunks c JOIN documents d ON d.document_id = c.document_id"
        asked = [("", ())] if ids is None else [("WHERE c.chunk_id = ?", (one,)) for one in sorted(set(ids))]
        found = (
            row for which, given in asked for row in self._db.execute(f"{query} {which} ORDER BY c.chunk_id", given)
        )
        for document, chunk in found:
            yield StoredDocument.model_validate_json(document), StoredChunk.model_validate_json(chunk)

    def vectors(self, model: str) -> dict[str, NDArray[np.float64]]:
        """The vectors of a model by chunk id."""
        found = self._db.execute("SELECT chunk_id, vector FROM embeddings WHERE model = ? ORDER BY chunk_id", (model,))
        return {chunk: np.frombuffer(vector, dtype=np.float64) for chunk, vector in found}

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        """Execute the statements in one transaction."""
        with self._db:
            for statement, values in statements:
                self._db.execute(statement, values)
        self._corpora.clear()


def normalized(chunks: Iterable[tuple[StoredDocument, StoredChunk]]) -> pa.Table:
    """Chunks with their documents as rows of evidence."""
    rows = [_import_row(document, chunk) for document, chunk in chunks]
    table = IMPORT_ROWS.from_rows(rows).select(list(rows[0]) if rows else ["source_id", "text"])
    return normalize(table, project=PROJECT, principal=PRINCIPAL, now=UNDATED)[0]


def _import_row(document: StoredDocument, chunk: StoredChunk) -> dict[str, Any]:
    """A chunk as an import row, with the columns that it sets."""
    kind = ORIGIN_CLASSES.aliases.get(document.source_type, document.source_type)
    return {
        "source_id": document.source_id,
        "evidence_kind": "code" if chunk.content_type == "code" else "doc",
        "origin_class": kind if kind in ORIGIN_CLASSES else "project-doc",
        "path": document.document_id,
        "entity": chunk.chunk_id,
        "section": chunk.locator or chunk.chunk_id,
        "title": document.title,
        "uri": document.uri,
        "version": document.version,
        "authority": AUTHORITY.values.index(document.trust_tier),
        "document_type": document.document_type,
        "content_type": chunk.content_type,
        "domain": document.domain,
        "tags": list(document.tags),
        "applicable_roles": document.applicable_roles,
        "excluded_roles": document.excluded_roles,
        "conflict_set": document.conflict_set,
        "lifecycle": "verified",
        "declared_standing": "untrusted" if document.trust_tier == "untrusted" else "evidence",
        "owner_user": "",
        "event_time": document.updated_at,
        "recorded_time": document.updated_at or UNDATED,
        "text": chunk.content,
    }


def _without_secret(key: str | None, at: str) -> None:
    """Imports refuse secrets in references between rows; refused here, it costs one record and no search."""
    if key is not None and redact_text(key) != key:
        raise InputError(f"Expected an id without a secret, got one with a secret - at {at}")


class _GivenVectors:
    """An encoder limited to the inserted vectors; a text without one is similar to nothing."""

    def __init__(self, profile: str, rows: pa.Table, vectors: Mapping[str, NDArray[np.float64]]) -> None:
        self.profile = profile
        self._width = len(next(iter(vectors.values())))
        texts = encoded_texts(rows).to_pylist()
        self._vectors = {
            text: vectors[chunk]
            for text, chunk in zip(texts, rows["entity"].to_pylist(), strict=True)
            if chunk in vectors
        }

    def encode(self, texts: Any) -> NDArray[np.int16]:
        nothing = np.zeros(self._width)
        return rounded(np.stack([self._vectors.get(text, nothing) for text in texts]))
