"""One scope of 1,000 rows while the rest of the corpus grows from 1,000 rows to 100 times as many.

The three sizes are three generations of one corpus, so the rows in scope are the very same files. CPU seconds count: what
grows with the corpus grows in work, and the machine's other users do not show.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import synthetic
import yaml
from bench_records import Row
from bench_world import BUILT, built_with, is_built
from options import Options
from ours import Scoped
from rounds import Contestant, Timing, interleaved
from scoped_retrieval.nodes.text.text_analysis import tokens_of
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.sources.importing import normalize

FIXED = 1_000
REST = (1_000, 10_000, 100_000)
BATCH = 200
K = 100


def growth_rows(options: Options) -> Iterator[Row]:
    """Recall alone, and the whole line."""
    generations = grown(options.work / "growth")
    grants = options.work / "growth" / "grants.yaml"
    total = (options.rounds + 1) * BATCH
    terms = [list(tokens_of(question)) for question in synthetic.questions(total, seed=9)]
    recall = [recall_contestant(rest, corpus, grants, terms) for rest, corpus in generations.items()]
    yield grown_row("recall", "lexical recall in a fixed scope", recall, total, options)
    runs = options.work / "growth-runs"
    shutil.rmtree(runs, ignore_errors=True)
    questions = synthetic.questions(total, seed=10)
    line = [line_contestant(rest, corpus, grants, runs, questions) for rest, corpus in generations.items()]
    yield grown_row("line", "whole line in a fixed scope, durable snapshots", line, total, options)


def grown(folder: Path) -> dict[int, Corpus]:
    """The corpus at each size of the rest, pinned."""
    if not is_built(folder):
        shutil.rmtree(folder, ignore_errors=True)
        corpus = Corpus.create(folder / "corpus")
        names, before = [], 0
        for rest in REST:
            rows = synthetic.corpus_rows(rest - before, 100, seed=20 + len(names))
            if not names:
                fixed = synthetic.corpus_rows(FIXED, 1, seed=19)
                at = fixed.schema.get_field_index("owner_project")
                rows = pa.concat_tables([rows, fixed.set_column(at, "owner_project", pa.array(["fixed"] * FIXED))])
            corpus.publish(normalize(rows, project="p000", principal="bench", now=BUILT)[0], now=BUILT)
            names.append(corpus.generation)
            before = rest
        granted = {"principals": {"bench": {"projects": ["fixed"]}}}
        (folder / "grants.yaml").write_text(yaml.safe_dump(granted), encoding="utf-8")
        (folder / "built").write_text("\n".join([built_with(), *names]), encoding="utf-8")
    _, *names = (folder / "built").read_text(encoding="utf-8").split()
    return {rest: Corpus.open(folder / "corpus", name) for rest, name in zip(REST, names, strict=True)}


def recall_contestant(rest: int, corpus: Corpus, grants: Path, terms: list[list[str]]) -> Contestant:
    """Our lexical lane."""
    scoped = Scoped(corpus, grants, [{"project": "fixed"}] * BATCH, K)
    return Contestant(
        _name(rest), lambda which: scoped.terms_batch([terms[at] for at in which]), scoped.lexical, "", least=BATCH
    )


def line_contestant(rest: int, corpus: Corpus, grants: Path, runs: Path, questions: list[str]) -> Contestant:
    """A run with lexical and symbol lanes."""
    retriever = Retriever.open(
        corpus, principal="bench", grants=grants, runs=runs, lanes=("lexical", "symbol"), encoder=None
    )
    calls = count()

    def batch(which: range) -> list[dict[str, str]]:
        call = next(calls)
        return [
            {"request_id": f"r{call}-{at}", "question": questions[at], "project": "fixed", "purpose": "answer-question"}
            for at in which
        ]

    return Contestant(_name(rest), batch, retriever.run, "", least=BATCH)


def grown_row(name: str, what: str, contestants: list[Contestant], total: int, options: Options) -> Row:
    """How much more the same costs beside 100 times as many other rows."""
    timings = interleaved(contestants, queries=total, rounds=options.rounds, clock=time.process_time)
    first, *_, last = (timings[_name(rest)] for rest in REST)
    value = _cost(last) / _cost(first)
    return Row(
        part="growth", row=f"growth/{name}", what=f"{what}, rest grows from {REST[0]:,} to {REST[-1]:,} rows",
        unit="CPU us/query", ours=_cost(last), value=value, value_unit="x", aim="at most 1.1x", met=value <= 1.1,
        better="less", systems={_name(rest): _cost(timings[_name(rest)]) for rest in REST[:-1]}, rounds=options.rounds,
        queries={name: timing.queries for name, timing in timings.items()},
        spread={name: [1e6 / max(one.rates), 1e6 / min(one.rates)] for name, one in timings.items()},
        extra={"curve": {"x": list(REST), "y": [_cost(timings[_name(rest)]) for rest in REST]}},
    )  # fmt: skip


def _name(rest: int) -> str:
    return f"{rest:,} other rows"


def _cost(timing: Timing) -> float:
    """CPU microseconds per query."""
    return 1e6 / timing.rate
