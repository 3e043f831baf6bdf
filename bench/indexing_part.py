"""Indexing: tokens and postings against bm25s and tantivy, imports of changed files, ten new rows, opening a corpus.

All systems tokenize and index the same strings with an English stemmer. Ours also indexes symbols, paths and ids of the
rows, because that is what indexing is here; the strings are title, path, section and text, as for all others.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import synthetic
from bench_records import Row
from bench_world import BUILT, INDEXED_COLUMNS, World, open_world
from options import Options
from rounds import Contestant, Timing, interleaved
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.cores import cores
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.postings import index_text, posting_lists, postings_of
from scoped_retrieval.pipeline.sources.importing import normalize
from tree_rows import tree_rows

SLICE = 10_000
"""Rows indexed per round."""
APPENDED = 10


def indexing_rows(options: Options) -> Iterator[Row]:
    """Postings, builds and second ones, an append, an opening."""
    world = open_world(options.work, options.chunks)
    yield postings_row(world, options)
    with tempfile.TemporaryDirectory() as folder:  # not the work folder: Git ignores it, and so does `index`
        yield from tree_rows(Path(folder), options)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        yield append_row(world, Path(folder), options)
    yield open_row(world, options)


def postings_row(world: World, options: Options) -> Row:
    """Rows per second from strings to posting lists."""
    evidence = world.order.evidence
    share = min(options.batch(SLICE), evidence.num_rows // (options.rounds + 1))
    texts = index_text(evidence, INDEXED_COLUMNS).to_pylist()
    contestants = [
        Contestant(
            "ours", lambda which: evidence.slice(which.start, len(which)).combine_chunks(), ours,
            "prose/2 or code/2 by kind, with compounds and stems; all fields", least=share,
        ),
        Contestant(
            "bm25s", lambda which: texts[which.start : which.stop], bm25s,
            "tokenize with PyStemmer english and stopwords en, index with backend numba", least=share,
        ),
        Contestant(
            "tantivy", lambda which: texts[which.start : which.stop], Tantivy(options.work / "tantivy-build"),
            "en_stem tokenizer, frequencies without positions, threads = cores, 1 GB heap, commit included", least=share,
        ),
    ]  # fmt: skip
    timings = interleaved(contestants, queries=share * (options.rounds + 1), rounds=options.rounds)
    rates = {name: timing.rate for name, timing in timings.items()}
    value = rates["ours"] / rates["bm25s"]
    return Row(
        part="indexing", row="indexing/postings", what="tokens and postings of the same texts", unit="rows/s",
        ours=rates["ours"], systems={name: rates[name] for name in ("bm25s", "tantivy")}, value=value,
        value_unit="x bm25s", aim="3x bm25s, within 1.5x of tantivy",
        met=value >= 3 and 1.5 * rates["ours"] >= rates["tantivy"], chunks=options.chunks, rounds=options.rounds,
        settings={one.name: one.settings for one in contestants},
        queries={name: timing.queries for name, timing in timings.items()}, spread=spreads(timings),
        extra={"of_tantivy": rates["ours"] / rates["tantivy"]},
    )  # fmt: skip


def ours(evidence: pa.Table) -> Any:
    """Posting lists of rows as one segment."""
    postings, length = postings_of(evidence.drop_columns(["length"]))
    return posting_lists(postings, np.array([0, len(length)]))


def bm25s(texts: list[str]) -> Any:
    """An index of texts."""
    import bm25s as package
    import Stemmer

    tokens = package.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    model = package.BM25(method="lucene", backend="numba")
    model.index(tokens, show_progress=False)
    return model


class Tantivy:
    """Builds one index after another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def __call__(self, texts: list[str]) -> None:
        """Index texts and commit."""
        import tantivy

        folder = self._folder / str(next(self._numbers))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("body", tokenizer_name="en_stem", index_option="freq")
        index = tantivy.Index(schema.build(), path=str(folder))
        writer = index.writer(1_000_000_000, num_threads=cores())
        for text in texts:
            writer.add_document(tantivy.Document(body=text))
        writer.commit()


def append_row(world: World, folder: Path, options: Options) -> Row:
    """Ten rows into the large corpus, until a retriever that was opened afterwards has answered with one of them."""
    shutil.copytree(world.path, folder / "copy")
    rows = synthetic.corpus_rows(8 * APPENDED * (options.rounds + 1), 1, seed=41)
    rows = rows.filter(pc.equal(rows["evidence_kind"], "doc"))  # a question reads documents, whatever its purpose
    appended, answered = [], []
    for turn in range(options.rounds + 1):
        now = BUILT + timedelta(minutes=turn)
        new = rows.slice(turn * APPENDED, APPENDED)
        at = new.schema.get_field_index("owner_project")
        new = new.set_column(at, "owner_project", pa.array(["p042"] * APPENDED))
        normal, _ = normalize(new, project="p042", principal="bench", now=now)
        corpus = Corpus.open(folder / "copy")
        started = time.perf_counter()
        corpus.append(normal, now=now)
        reopened = Corpus.open(folder / "copy")
        appended.append(1_000 * (time.perf_counter() - started))
        with Retriever.open(
            reopened, principal="bench", grants=world.grants, lanes=("lexical", "symbol"), encoder=None
        ) as retriever:
            wanted = new["section"][0].as_py()
            found = retriever.retrieve({"question": f"what does {wanted} do?", "project": "p042"})
        answered.append(1_000 * (time.perf_counter() - started))
        assert wanted in found.block, "Expected a row that was appended, got others"
    value = statistics.median(appended[1:])
    return Row(
        part="indexing", row="indexing/append", what=f"append of {APPENDED} rows until another reader has them open",
        unit="ms", ours=value, value=value, value_unit="ms", aim="at most 50 ms", met=value <= 50, better="less",
        chunks=options.chunks, rounds=options.rounds, spread={"ours": [min(appended[1:]), max(appended[1:])]},
        notes="redaction off the clock, files synced", extra={"answered_ms": statistics.median(answered[1:])},
    )  # fmt: skip


def open_row(world: World, options: Options) -> Row:
    """The large corpus, opened: every file mapped, nothing read."""
    took = []
    for _ in range(1 + 4 * options.rounds):
        started = time.perf_counter()
        corpus = Corpus.open(world.path)
        took.append(1_000 * (time.perf_counter() - started))
    value, chunks = statistics.median(took[1:]), corpus.info()["rows"]
    return Row(
        part="indexing", row="indexing/open", what=f"opening a corpus of {chunks:,} rows", unit="ms", ours=value,
        value=value, value_unit="ms", aim="at most 10 ms", met=value <= 10, better="less", chunks=options.chunks,
        rounds=len(took) - 1, spread={"ours": [min(took[1:]), max(took[1:])]},
    )  # fmt: skip


def spreads(timings: dict[str, Timing]) -> dict[str, list[float]]:
    """Slowest and fastest round of each."""
    return {name: [min(timing.rates), max(timing.rates)] for name, timing in timings.items()}
