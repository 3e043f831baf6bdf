"""Indexing: tokens and postings against bm25s and tantivy, a second import after 1 % of the files changed, ten new rows.

Everybody tokenizes and indexes the same strings with an English stemmer. Ours also indexes symbols, paths and ids of the
rows, because that is what indexing is here; the strings are title, path, section and text, as for everybody else.
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
from bench_records import Row, cores
from bench_world import BUILT, INDEXED_COLUMNS, World, open_world
from options import Options
from rounds import Contestant, Timing, interleaved
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.postings import index_text, posting_lists, postings_of
from scoped_retrieval.pipeline.indexing import IndexRequest, index_into
from scoped_retrieval.pipeline.retriever import Retriever
from scoped_retrieval.pipeline.settings import load_settings
from scoped_retrieval.pipeline.sources.importing import normalise

SLICE = 10_000
"""Rows indexed per round."""
FILES, PARAGRAPHS = 4_000, 8
APPENDED = 10


def indexing_rows(options: Options) -> Iterator[Row]:
    """Postings, a build and a second one, an append."""
    world = open_world(options.work, options.chunks)
    yield postings_row(world, options)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        yield from file_rows(Path(folder), options)
        yield append_row(world, Path(folder), options)


def postings_row(world: World, options: Options) -> Row:
    """Rows per second from strings to posting lists."""
    evidence = world.order.evidence
    share = min(options.batch(SLICE), evidence.num_rows // (options.rounds + 1))
    texts = index_text(evidence, INDEXED_COLUMNS).to_pylist()
    contestants = [
        Contestant(
            "ours", lambda which: evidence.slice(which.start, len(which)).combine_chunks(), ours,
            "prose/1 or code/1 by kind, with compounds and stems; all fields", least=share,
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


def file_rows(folder: Path, options: Options) -> Iterator[Row]:
    """`index` over a folder of files, and again after 1 % of them changed."""
    files = options.batch(FILES)
    tree = folder / "tree"
    texts = synthetic.corpus_rows(files * PARAGRAPHS, 1, seed=31)["text"].to_pylist()
    for number in range(files):
        path = tree / f"part-{number // 100:03d}" / f"note-{number:05d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        part = texts[number * PARAGRAPHS : (number + 1) * PARAGRAPHS]
        path.write_text("\n".join(f"## Section {at}\n\n{text}" for at, text in enumerate(part)), encoding="utf-8")
    flags = {"corpus": str(folder / "corpus"), "project": "p", "principal": "bench"}
    settings = load_settings(flags, cwd=folder, environ={}, user=None)

    def indexed(turn: int) -> float:
        started = time.perf_counter()
        index_into(settings, IndexRequest(paths=(tree,), semantic=False), now=BUILT + timedelta(minutes=turn))
        return time.perf_counter() - started

    full = indexed(0)
    again = []
    for turn in range(1, options.rounds + 1):
        for number in range(turn, files, 100):
            path = tree / f"part-{number // 100:03d}" / f"note-{number:05d}.md"
            path.write_text(f"{path.read_text(encoding='utf-8')}\nchanged {turn}\n", encoding="utf-8")
        again.append(indexed(turn))
    rows = Corpus.open(folder / "corpus").info()["rows"]
    yield Row(
        part="indexing", row="indexing/build", what=f"`index` of {files:,} files, {rows:,} rows, no vectors",
        unit="rows/s", ours=rows / full, value=full, value_unit="s", aim="", met=None, queries={"ours": rows},
    )  # fmt: skip
    value = 100 * statistics.median(again) / full
    yield Row(
        part="indexing", row="indexing/again", what=f"`index` again after 1 % of {files:,} files changed", unit="s",
        ours=statistics.median(again), systems={"full build": full}, value=value, value_unit="% of a full build",
        aim="at most 5 %", met=value <= 5, better="less", rounds=len(again), spread={"ours": [min(again), max(again)]},
    )  # fmt: skip


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
        normal, _ = normalise(new, project="p042", principal="bench", now=now)
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


def spreads(timings: dict[str, Timing]) -> dict[str, list[float]]:
    """Slowest and fastest round of each."""
    return {name: [min(timing.rates), max(timing.rates)] for name, timing in timings.items()}
