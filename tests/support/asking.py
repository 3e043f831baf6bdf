"""Build a world's corpus and ask its requests; everything on disk, as a user would."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import yaml
from scoped_retrieval.nodes.tables import CAPTURES, TABLES
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.driver import LANES, Line, run_line
from scoped_retrieval.pipeline.grants import load_grants
from scoped_retrieval.pipeline.policies import load_policies
from scoped_retrieval.pipeline.provenance import provenance
from scoped_retrieval.pipeline.requests import resolve_requests
from scoped_retrieval.pipeline.retriever import Retriever
from scoped_retrieval.pipeline.runs import RunStore
from scoped_retrieval.pipeline.sources.importing import normalise
from wall_worlds import modes_with
from worlds import GRANTS, NOW, Row

Tables = dict[str, pa.Table]


@contextmanager
def built(rows: Sequence[Row], *, split: bool = False, publications: int = 1) -> Iterator[Path]:
    """A corpus of these rows, in some publications of each project or of all at once, with the world's grants."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        corpus = Corpus.create(path)
        projects = sorted({row["owner_project"] for row in rows}) if split else [None]
        for project, number in product(projects, range(publications)):
            if part := [row for row in rows if project in (None, row["owner_project"])][number::publications]:
                table, _ = normalise(
                    pa.Table.from_pylist(part, schema=_schema(part)), project="shop", principal="ana", now=NOW
                )
                corpus.publish(table, now=NOW)
        (path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
        yield path


def _schema(rows: Sequence[Row]) -> pa.Schema:
    declared = TABLES["import_rows"].schema
    return pa.schema([declared.field(name) for name in rows[0]])


EVERYWHERE = {"search_paths": ["/**"], "exclude_kinds": [], "exclude_values": [], "exclude_unless": []}
POLICIES = replace(
    load_policies(),
    mode_policies=modes_with(
        {"mode": "planning", "search_paths": ["/src/", "/docs/", "/tests/"], "chunk_expansion": True},
        {"mode": "execution"} | EVERYWHERE,
        {"mode": "review", "include_deleted": True, "citation_chaining": True, "newest_first": True, "window_days": 30.0,
         "window_paths": ["/logs/"]} | EVERYWHERE,
    ),
)  # fmt: skip
"""The bundled policies, with modes that speak of the paths of these worlds."""


def line_of(corpus: Path, *, lanes: Sequence[str] = LANES) -> Line:
    """What `Retriever` would hold fixed for this corpus, without an encoder."""
    opened = Corpus.open(corpus)
    grants = load_grants(corpus / "grants.yaml")
    parts = provenance(
        generation=opened.generation, policies=POLICIES.digest, grants=grants.digest, encoder=None, settings={}
    )
    return Line(
        opened, POLICIES.inputs(), grants.table, parts, lanes=tuple(lanes), lanes_off={"semantic": "no encoder"}
    )


def answers(line: Line, asked: Sequence[Row]) -> Tables:
    """The tables of these requests, run as one shard by `ana`."""
    requests, failures = resolve_requests(list(asked), principal="ana", asked_at=NOW)
    ids = sorted([*requests["request_id"].to_pylist(), *failures["request_id"].to_pylist()])
    captures = CAPTURES.build({"request_id": ids, "snapshot_id": ids, "created_at": [NOW] * len(ids)})
    return run_line(requests, failures, captures, line)


def together(corpus: Path, requests: Sequence[Row], *, shard: int, runs: Path | None = None) -> Tables:
    """The tables of a stored run of several requests, texts filled in."""
    with tempfile.TemporaryDirectory() as folder:
        store = runs or Path(folder) / "runs"
        with Retriever.open(
            corpus,
            principal="ana",
            policies=POLICIES,
            encoder=None,
            runs=store,
            shard_requests=shard,
            clock=lambda: NOW,
        ) as retriever:
            summary = retriever.run([{**request} for request in requests])
        run = RunStore(store).open(summary.run_id)
        return {name: run.table(name, texts=True) for name in run.tables()}


def caller_view(tables: Tables) -> dict[str, pa.Table]:
    """Everything the callers may see: caller columns of every table, envelope columns other than the key left out."""
    view = {}
    for name, table in sorted(tables.items()):
        columns = [column for column in TABLES[name].names(audience="caller") if column in _kept(name)]
        if "request_id" in columns and len(columns) > 1:
            view[name] = TABLES[name].for_callers(table).select(columns).combine_chunks()
    return view


INSIDE = ("sub_queries", "score_terms", "ranked", "packs", "trimmed", "trims", "citations", "blocks")
"""Tables made from A(r) alone: every column of them but the envelope, not only what callers see."""


def inside_view(tables: Tables) -> dict[str, pa.Table]:
    """What is computed from admissible rows: it may not move when other rows do, scores included."""
    view = {name: tables[name].select(_kept(name)) for name in INSIDE}
    for name in ("hits", "candidates"):
        shown = pc.invert(tables[name]["withheld"])
        view[name] = tables[name].filter(shown).select(_kept(name))
    return view


def _kept(name: str) -> list[str]:
    return [c for c, declared in TABLES[name].columns.items() if declared.digest or c == "request_id"]
