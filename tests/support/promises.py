"""The promises as checks over a world; properties hold them, planted faults must break them."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
from asking import COUNTERS, Tables, answers, built, caller_view, inside_view, line_of, together
from scoped_retrieval.nodes.blocks.token_counting import BASE
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from scoped_retrieval.pipeline.servers.http_app import application
from starlette.testclient import TestClient
from stored_corpus import written_again
from worlds import COUNTER, NOW, Row, World

BATCHES = 8

Way = Callable[[], AbstractContextManager[Any]]


def check_non_interference(world: World, planted: list[Row]) -> None:
    """Rows outside A(r) change nothing that the caller of r sees, byte for byte."""
    with built(world) as before, built(world, planted=planted) as after:
        check_same_answers(world, planted, before, after)


def check_reports(world: World, planted: list[Row]) -> None:
    """Rows outside A(r) change nothing that commands and routes that ask no question tell the caller of r."""
    with built(world) as before, built(world, planted=planted) as after:
        assert reports_to("ana", before) == reports_to("ana", after)


def check_same_answers(world: World, planted: list[Row], before: Path, after: Path) -> None:
    """Requests that reach no planted row are answered alike from the corpus of the world and from the one with those rows."""
    world = world.asked_outside(planted)
    first = answers(line_of(before, world), world.requests)
    second = answers(line_of(after, world), world.requests)
    for view in (caller_view, inside_view):
        changed = view(second)
        for name, table in view(first).items():
            assert table.to_pylist() == changed[name].to_pylist(), name


COMMANDS = (["doctor"], ["doctor", "--json"], ["status"], ["status", "--json"], ["verify", "corpus"])
ROUTES = ("/v1/health", "/v1/snapshots")


def reports_to(principal: str, corpus: Path) -> list[str]:
    """What a principal who asks no question is told of a corpus, by commands and over HTTP."""
    where = {"corpus": corpus, "grants": corpus / "grants.yaml", "runs": corpus.parent / "runs"}
    environ = {"SCOPED_RETRIEVAL_PRINCIPAL": principal}
    environ |= {f"SCOPED_RETRIEVAL_{name.upper()}": str(path) for name, path in where.items()}
    found = []
    with mock.patch.dict(os.environ, environ):
        for command in COMMANDS:
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
                code = main(command)
            found.append(f"{code} {out.getvalue()}")
        plain = load_settings({"lanes": "lexical"})  # no setting names the encoder of the worlds
        with TestClient(
            application(plain),
            base_url="http://localhost",
            client=("127.0.0.1", 9),
            headers={"x-scoped-retrieval": "1"},
        ) as client:
            for route in ROUTES:
                answer = client.get(route)
                assert answer.status_code in (200, 404), answer.text
                found.append(answer.text)
    return [text.replace(str(corpus.parent), "FOLDER") for text in found]


def check_one_answer(
    world: World, *, batch: int, order: Any, threads: int, batches: int = BATCHES, way: Way = nullcontext
) -> None:
    """A request has one snapshot digest: alone, in batches of any size, in any order, with any number of threads.

    Of a world's requests in some order the first few batches are run, in some other `way` than all of them together.
    """
    asked = list(world.requests)
    cpus = pa.cpu_count()
    with built(world, split=True) as corpus:
        line = line_of(corpus, world)
        whole = _digests(answers(line, asked))
        (order if isinstance(order, Random) else Random(0)).shuffle(asked)
        pa.set_cpu_count(threads)
        try:
            for start in range(0, min(len(asked), batches * batch), batch):
                with way():
                    found = _digests(answers(line, asked[start : start + batch]))
                for request, digest in found.items():
                    assert digest == whole[request], request
        finally:
            pa.set_cpu_count(cpus)


def check_merge(world: World, *, publications: int) -> None:
    """Folding segments together moves no answer: snapshot, contract and block stay, and so does the generation."""
    with built(world, publications=publications) as path:
        line = line_of(path, world)
        before = answers(line, world.requests)
        written_again(Corpus.open(path), NOW)
        merged = Corpus.open(path)
        segments = merged._base.segments()
        assert len(segments) == len({(*segment.owner, segment.encoded) for segment in segments})
        assert merged.generation == line.corpus.generation
        after = answers(line_of(path, world), world.requests)
    for name, column in (("snapshots", "snapshot_digest"), ("contracts", "contract_id"), ("blocks", "text")):
        assert before[name][column].to_pylist() == after[name][column].to_pylist(), name


def check_conservation(world: World) -> None:
    """Every candidate ends in exactly one decision row, and the counts add up."""
    expect_conservation(asked(world))


def asked(world: World) -> Tables:
    """The tables of a world's requests."""
    with built(world) as corpus:
        return answers(line_of(corpus, world), world.requests)


def expect_conservation(tables: Tables) -> None:
    """`check_conservation` of the tables of a world."""
    decided = tables["decisions"].to_pandas()
    keys = tables["candidates"].select(["request_id", "evidence_id"]).to_pandas()
    assert sorted(map(tuple, keys.to_numpy())) == sorted(map(tuple, decided[["request_id", "evidence_id"]].to_numpy()))
    outcomes = decided.groupby(["request_id", "outcome"]).size().unstack(fill_value=0)
    for snapshot in tables["snapshots"].to_pylist():
        counts = {"selected": snapshot["selected_rows"], **{o: snapshot[o] for o in ("hidden", "rejected")}}
        assert snapshot["recalled"] == sum(counts.values())
        for outcome, count in counts.items():
            found = outcomes.get(outcome)
            assert count == (0 if found is None else found.get(snapshot["request_id"], 0))


def check_hard_budget(world: World, *, max_tokens: int, max_chars: int) -> None:
    """The rendered block never exceeds its limits, labels and fences included, and holds exactly what is cited."""
    budget = {"max_tokens": max_tokens, "max_chars": max_chars}
    with built(world) as corpus:
        tables = answers(line_of(corpus, world), [{**request, "budget": budget} for request in world.requests])
    blocks = tables["blocks"]
    names = [BASE, COUNTER]
    counter = pc.index_in(_of_requests(tables, blocks)["tokenizer"], value_set=pa.array(names)).to_numpy()
    counted = COUNTERS.count(blocks["text"].combine_chunks(), names, counter)
    assert counted.max() <= max_tokens
    assert max(len(text) for text in blocks["text"].to_pylist()) <= max_chars
    cited = tables["citations"].to_pandas().groupby("request_id")["label"].agg(set).to_dict()
    for block in blocks.to_pylist():
        assert all(f"[{label}]" in block["text"] for label in cited.get(block["request_id"], ()))
        assert block["items"] == len(cited.get(block["request_id"], ()))


def check_contributions(world: World) -> None:
    """The contributions of every ranked row add up to its final score with ==, in any order; order is total."""
    expect_contributions(asked(world))


def expect_contributions(tables: Tables) -> None:
    """`check_contributions` of the tables of a world."""
    ranked = tables["ranked"].to_pandas()
    assert (ranked[list(SCORE_TERMS)].sum(axis=1) == ranked["final"]).all()
    assert (ranked[list(reversed(SCORE_TERMS))].sum(axis=1) == ranked["final"]).all()
    for _, rows in ranked.groupby("request_id"):
        by_rank = rows.sort_values("rank")
        expected = by_rank.sort_values(["final", "evidence_id"], ascending=[False, True])
        assert by_rank["evidence_id"].tolist() == expected["evidence_id"].tolist()


def check_replay(world: World) -> None:
    """A stored run verifies, and replays to the same rows with its corpus gone."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        with built(world) as corpus:
            tables = together(corpus, world, shard=2, runs=runs)
        store = Runs(runs)
        assert verify(store, store.list()[0].run_id).ok
        blocks = dict(
            zip(tables["blocks"]["request_id"].to_pylist(), tables["blocks"]["text"].to_pylist(), strict=True)
        )
        for row in tables["snapshots"].to_pylist():
            again = replay(store, row["snapshot_id"])
            assert again.snapshot["snapshot_digest"] == row["snapshot_digest"]
            assert again.block == blocks.get(row["request_id"], "")


def _of_requests(tables: dict[str, pa.Table], table: pa.Table) -> pa.Table:
    """The contract of each row of a table."""
    return tables["contracts"].take(
        pc.index_in(table["request_id"], tables["contracts"]["request_id"].combine_chunks())
    )


def _digests(tables: dict[str, pa.Table]) -> dict[str, str]:
    snapshots = tables["snapshots"]
    return dict(zip(snapshots["request_id"].to_pylist(), snapshots["snapshot_digest"].to_pylist(), strict=True))
