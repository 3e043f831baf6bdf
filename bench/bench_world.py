"""The synthetic corpora of the bench, built once in the work folder, and the same rows as peers take them.

Every part of the bench asks about these rows, in these scopes. Peers get the very terms that our index has, in the order
of our rows, so that row numbers agree and a difference in results is a difference in scoring.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import synthetic
import yaml
from ours import NOW, Order, Scoped
from scoped_retrieval.nodes.columns.ragged import expand_ranges, starts_of
from scoped_retrieval.nodes.text.text_analysis import terms_by_kind, tokens_of
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.postings import index_text
from scoped_retrieval.pipeline.sources.importing import normalize

from scoped_retrieval import nodes, pipeline

DIMENSIONS = 384
ROWS_AT_ONCE = 100_000
"""Rows analyzed at once."""
INDEXED_COLUMNS = ("title", "path", "section", "text")
"""What lexical terms are made from, see `pipeline/corpus/postings.py`."""
BUILT = datetime(2026, 11, 1, tzinfo=UTC)
SMALL_OWNERS = tuple(f"s{n:02d}" for n in range(10))


@dataclass(frozen=True)
class Scope:
    """A scope of the bench: what our requests say, and the same as a selection of rows for peers."""

    name: str
    what: str
    project: str
    source: str | None = None
    owners: tuple[str, ...] | None = None
    instants: int = 1
    """Different `as_of` values that the requests have; 1 = the present."""

    def asked(self, count: int) -> list[dict[str, Any]]:
        """Fields of `count` requests."""
        fields: dict[str, Any] = {"project": self.project}
        if self.source:
            fields["allowed_sources"] = [self.source]
        return [{**fields, "as_of": at.isoformat()} for at in self.times(count)]

    def times(self, count: int) -> list[datetime]:
        """The `as_of` of each request: spread over the second half of the recorded year, or the present."""
        if self.instants == 1:
            return [NOW] * count
        step = timedelta(minutes=260 * 24 * 60 // self.instants)
        first = synthetic.START + timedelta(days=100)
        return [first + step * (at * 7919 % self.instants) for at in range(count)]

    def rows(self, order: Order) -> np.ndarray:
        """Which rows are in scope, time apart: bool[rows]."""
        chosen = np.ones(order.evidence.num_rows, dtype=bool)
        if self.owners is not None:
            chosen &= np.asarray(pc.is_in(order.evidence["owner_project"], value_set=pa.array(self.owners)))
        if self.source is not None:
            pattern = self.source.replace("*", "%")
            chosen &= np.asarray(pc.match_like(order.evidence["source_id"], pattern))
        return chosen


SCOPES = {
    one.name: one
    for one in (
        Scope("whole", "whole corpus in scope, one `as_of`", "all"),
        Scope("one-owner", "1 % in scope: one owner", "p042", owners=("p042",)),
        Scope("scattered", "1 % in scope: one source, spread over all owners", "all", source="slice:042"),
        Scope("ten-owners", "1 % in scope: ten owners", "ten", owners=SMALL_OWNERS),
        Scope("instants", "1 % in scope: one owner, 1,000 different `as_of`", "p042", owners=("p042",), instants=1_000),
    )
}


class TopicVectors:
    """A stand-in for an embedding model: unit vectors around 64 topics, a function of the text alone."""

    profile = "topic-vectors/1"

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self._topics = rng.standard_normal((64, DIMENSIONS)).astype(np.float32)
        self._parts = rng.standard_normal((1 << 14, DIMENSIONS)).astype(np.float32)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """int16[texts, 384]: unit vectors times 2**15."""
        out = np.empty((len(texts), DIMENSIONS), dtype=np.int16)
        for low in range(0, len(texts), 1 << 13):
            some = texts[low : low + (1 << 13)]
            digests = b"".join(hashlib.sha256(text.encode()).digest() for text in some)
            code = np.frombuffer(digests, dtype=np.uint16).reshape(len(some), 16)
            vectors = self._topics[code[:, 0] % 64] + sum(
                self._parts[code[:, n] % len(self._parts)] for n in range(1, 5)
            )
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            out[low : low + len(some)] = np.rint(vectors * (2**15 - 1))
        return out


@dataclass(frozen=True)
class Tokens:
    """The terms of all rows: those of row `i` are `vocabulary[codes[starts[i]:starts[i + 1]]]`."""

    vocabulary: list[str]
    codes: np.ndarray
    starts: np.ndarray

    def lists(self) -> list[list[int]]:
        """Codes by row, as Python lists; equal codes are one object, so that a million rows fit."""
        shared = np.arange(len(self.vocabulary)).astype(object)
        return [shared[self.codes[a:b]].tolist() for a, b in pairwise(self.starts.tolist())]

    def texts(self) -> Iterator[str]:
        """The terms of each row with spaces between them."""
        words = np.array(self.vocabulary, dtype=object)
        for a, b in pairwise(self.starts.tolist()):
            yield " ".join(words[self.codes[a:b]].tolist())

    def of_rows(self, rows: np.ndarray) -> Tokens:
        """Those of some rows."""
        counts = np.diff(self.starts)[rows]
        return Tokens(self.vocabulary, self.codes[expand_ranges(self.starts[rows], counts)], starts_of(counts))


@dataclass(frozen=True)
class World:
    """One corpus in the work folder."""

    path: Path
    grants: Path
    encoder: TopicVectors | None

    @cached_property
    def order(self) -> Order:
        """All rows, numbered."""
        return Order(self.path)

    @cached_property
    def tokens(self) -> Tokens:
        """The lexical terms of all rows, as they were indexed; computed once and cached beside the corpus."""
        kept = self.path.parent / "tokens.arrow"
        if not kept.exists():
            evidence = self.order.evidence
            blocks = [_terms(evidence.slice(low, ROWS_AT_ONCE)) for low in range(0, evidence.num_rows, ROWS_AT_ONCE)]
            table = pa.table({"terms": pa.chunked_array(blocks)})
            with pa.OSFile(str(kept.with_suffix(".new")), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
            kept.with_suffix(".new").replace(kept)
        lists = pa.ipc.open_file(pa.memory_map(str(kept))).read_all()["terms"]
        encoded = pa.chunked_array([chunk.flatten() for chunk in lists.chunks]).dictionary_encode()
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
        vocabulary = encoded.chunk(encoded.num_chunks - 1).dictionary.to_pylist()
        return Tokens(vocabulary, codes, starts_of(pc.list_value_length(lists).to_numpy()))

    def scoped(self, scope: Scope, count: int, k: int) -> Scoped:
        """Our requests of a scope, gated."""
        return Scoped(self.path, self.grants, scope.asked(count), k)

    def queries(self, count: int) -> list[list[str]]:
        """Questions as terms, all different."""
        return [list(tokens_of(question)) for question in synthetic.questions(count)]


def _terms(evidence: pa.Table) -> pa.Array:
    """The terms of each row under the analyzer of its kind."""
    texts = index_text(evidence, INDEXED_COLUMNS)
    terms = terms_by_kind(texts, evidence["evidence_kind"].combine_chunks())
    return pa.ListArray.from_arrays(pa.array(terms.starts, pa.int32()), terms.vocabulary.take(pa.array(terms.codes)))


@cache
def built_with() -> str:
    """A digest of the code that corpora are built with: all of the package, and the makers of rows here."""
    files = [Path(next(iter(package.__path__))) for package in (nodes, pipeline)]
    sources = [path for folder in files for path in sorted(folder.rglob("*.py"))]
    digest = hashlib.sha256()
    for path in (*sources, Path(synthetic.__file__), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_built(folder: Path) -> bool:
    """Whether the corpus in a folder was built whole, by this code."""
    mark = folder / "built"
    return mark.exists() and mark.read_text(encoding="utf-8").split()[:1] == [built_with()]


def open_world(work: Path, chunks: int, *, vectors: bool = False) -> World:
    """The corpus of so many chunks, built if it is not there whole, or was built by other code."""
    folder = work / f"corpus-{chunks}{'-vectors' if vectors else ''}"
    encoder = TopicVectors() if vectors else None
    if not is_built(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        corpus = Corpus.create(folder / "corpus")
        rows, _ = normalize(synthetic.owned_rows(chunks), project="p000", principal="bench", now=BUILT)
        corpus.publish(rows, now=BUILT, encoder=encoder)
        (folder / "grants.yaml").write_text(yaml.safe_dump(_grants(corpus.projects())), encoding="utf-8")
        (folder / "built").write_text(built_with(), encoding="utf-8")
    return World(folder / "corpus", folder / "grants.yaml", encoder)


def _grants(owners: Sequence[str]) -> dict[str, Any]:
    """`bench` may ask in every owner's project, in `all`, which reads them all, and in `ten`, which reads ten."""
    common = {"principal": "bench", "zones": "internal", "reason": "the bench", "expires": "2099-01-01T00:00:00Z"}
    reads = [{**common, "project": owner, "for_projects": ["all"]} for owner in owners if owner not in SMALL_OWNERS]
    reads += [{**common, "project": owner, "for_projects": ["all", "ten"]} for owner in SMALL_OWNERS]
    return {"principals": {"bench": {"projects": [*owners, "all", "ten"]}}, "grants": reads}
