"""Build a world's corpus and ask its requests; everything on disk, as a user would."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, islice, product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import yaml
from resolving import resolve_requests
from scoped_retrieval.nodes.blocks.token_counting import BASE, Counters, EncodedCounter
from scoped_retrieval.nodes.tables import CAPTURES, TABLES
from scoped_retrieval.nodes.vocabulary import FEEDBACK_TERMS
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.encoders.cross_encoder import PairScores
from scoped_retrieval.pipeline.line.driver import LANES, Line, run_line
from scoped_retrieval.pipeline.line.lanes import lanes_off
from scoped_retrieval.pipeline.line.provenance import provenance
from scoped_retrieval.pipeline.line.query_vectors import QueryVectors
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.runs.parts import VIEWS
from scoped_retrieval.pipeline.sources.importing import normalize
from stand_in_encoder import SharedWords, WordsByTheirStart
from wall_worlds import modes_with
from worlds import COUNTER, GRANTS, JOINS, NOW, Row, World

Tables = dict[str, pa.Table]

ENCODER = WordsByTheirStart()
READER = SharedWords()
"""The cross-encoder of the worlds whose line has an encoder."""


def _growing(texts: Sequence[str]) -> list[int]:
    words = [len(text.split()) for text in texts]
    return [count + count * count // 100 for count in words]


COUNTERS = Counters({COUNTER: EncodedCounter(COUNTER, _growing)})
"""Tokens of `COUNTER` do not add up: a text has more of them than its lines."""


@contextmanager
def built(
    world: World, *, planted: Sequence[Row] = (), split: bool = False, publications: int | None = None
) -> Iterator[Path]:
    """A corpus of the world's rows and some more, in its publications, of each project or of all at once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        corpus = Corpus.create(path)
        encoded = tuple(islice(cycle(world.encoded), publications or len(world.encoded)))
        for joins in JOINS[1:3]:
            _publish(corpus, world.foreign(planted, joins), encoded="encoded" in joins)
        beside = world.foreign(planted, JOINS[0])
        projects = sorted({row["owner_project"] for row in world.rows}) if split else [None]
        for project, (number, flag) in product(projects, enumerate(encoded)):
            rows = [*world.rows[number :: len(encoded)], *beside[number :: len(encoded)]]
            _publish(corpus, [row for row in rows if project in (None, row["owner_project"])], encoded=flag)
        for joins in JOINS[3:]:
            _publish(corpus, world.foreign(planted, joins), encoded="encoded" in joins)
        (path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
        yield path


def _publish(corpus: Corpus, rows: Sequence[Row], *, encoded: bool) -> None:
    if rows:
        table = pa.Table.from_pylist(list(rows), schema=_schema(rows))
        normal, _ = normalize(table, project="shop", principal="ana", now=NOW)
        corpus.publish(normal, now=NOW, encoder=ENCODER if encoded else None)


def _schema(rows: Sequence[Row]) -> pa.Schema:
    declared = TABLES["import_rows"].schema
    return pa.schema([declared.field(name) for name in rows[0]])


def _with_feedback(purposes: pa.Table) -> pa.Table:
    """The purposes, each with a weight of feedback."""
    for name in (f"weight_{term}" for term in FEEDBACK_TERMS):
        least = pc.max_element_wise(purposes[name], pa.scalar(0.1))
        purposes = purposes.set_column(purposes.schema.get_field_index(name), purposes.schema.field(name), least)
    return purposes


_BUNDLED = load_policies()
EVERYWHERE = {"search_paths": ["/**"], "exclude_kinds": [], "exclude_values": [], "exclude_unless": []}
POLICIES = replace(
    _BUNDLED,
    purpose_policies=_with_feedback(_BUNDLED.purpose_policies),
    mode_policies=modes_with(
        {"mode": "planning", "search_paths": ["/src/", "/docs/", "/tests/"], "chunk_expansion": True},
        {"mode": "execution"} | EVERYWHERE,
        {"mode": "review", "include_deleted": True, "citation_chaining": True, "newest_first": True, "window_days": 30.0,
         "window_paths": ["/logs/"]} | EVERYWHERE,
    ),
)  # fmt: skip
"""The bundled policies, with modes that speak of the paths of these worlds and feedback in every purpose."""


def line_of(corpus: Path, world: World, *, lanes: Sequence[str] = LANES) -> Line:
    """What `Retriever` would hold fixed for this corpus, and a counter of words."""
    opened, encoder = Corpus.open(corpus), ENCODER if world.encoder else None
    grants = load_grants(corpus / "grants.yaml")
    off = lanes_off(lanes, opened.encoder_profile, encoder)
    return Line(
        opened,
        POLICIES.inputs(),
        grants.table,
        provenance(
            generation=opened.generation,
            policies=POLICIES.digest,
            grants=grants.digest,
            encoder=None if off else opened.encoder_profile,
            settings={},
            cross_encoder=READER.profile if world.encoder else None,
        ),
        lanes=tuple(lanes),
        vectors=QueryVectors(encoder),
        pairs=PairScores(READER if world.encoder else None),
        lanes_off=off,
        counters=COUNTERS,
    )


def answers(line: Line, asked: Sequence[Row]) -> Tables:
    """The tables of these requests, run as one shard by `ana`; none of them may fail."""
    requests, failures = resolve_requests([at_the_door(row) for row in asked], principal="ana", asked_at=NOW)
    counter = {row["request_id"]: row.get("counter") or BASE for row in asked}
    position = requests.schema.get_field_index("tokenizer")
    named = pa.array([counter[request] for request in requests["request_id"].to_pylist()], pa.string())
    requests = requests.set_column(position, requests.schema.field(position), named)
    ids = sorted([*requests["request_id"].to_pylist(), *failures["request_id"].to_pylist()])
    captures = CAPTURES.build({"request_id": ids, "snapshot_id": ids, "created_at": [NOW] * len(ids)})
    tables = run_line(requests, failures, captures, line)
    if tables["failures"].num_rows:
        raise RuntimeError(f"Expected no failure, got {tables['failures'].to_pylist()}")
    assert "lane_failed" not in tables["conditions"]["condition"].to_pylist()
    return {name: table for name, table in tables.items() if name in TABLES}


def at_the_door(request: Row) -> Row:
    """A request without its counter: on arrival, only loadable ones are accepted."""
    return {name: value for name, value in request.items() if name != "counter"}


def together(corpus: Path, world: World, *, shard: int, runs: Path | None = None) -> Tables:
    """The tables of a stored run of the world's requests, texts filled in."""
    encoder = ENCODER if world.encoder else None
    with tempfile.TemporaryDirectory() as folder:
        store = runs or Path(folder) / "runs"
        with Retriever.open(
            corpus,
            principal="ana",
            policies=POLICIES,
            encoder=encoder,
            cross_encoder=READER if world.encoder else None,
            runs=store,
            shard_requests=shard,
            clock=lambda: NOW,
        ) as retriever:
            summary = retriever.run([at_the_door(request) for request in world.requests])
        run = Runs(store).open(summary.run_id)
        return {each.name: run.table(each.name, texts=True) for each in VIEWS}


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
