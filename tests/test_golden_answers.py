"""The answers of a fixed world, frozen: blocks, ids, outcomes and conditions of every purpose, mode, role and shape.

A change that says it moves no answer leaves these files as they are.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from asking import Tables, answers, built, line_of
from golden_file import expect_golden
from golden_world import golden_world
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.line.driver import LANES
from worlds import NOW

GOLDEN = Path(__file__).parent / "golden" / "answers"
LINES = {"all-lanes": (LANES, True), "no-vectors": (LANES, False), "lexical": (("lexical",), False)}


@pytest.fixture(scope="module")
def corpus() -> Iterator[Path]:
    with built(golden_world()) as path:
        yield path


@pytest.mark.golden
@pytest.mark.parametrize("name", LINES)
def test_answers_are_the_golden_ones(name: str, corpus: Path):
    lanes, encoder = LINES[name]
    world = replace(golden_world(), encoder=encoder)
    tables = answers(line_of(corpus, world, lanes=lanes), world.requests)
    # A line per request, so that a diff names the requests that moved.
    said = [
        json.dumps({"request": request["request_id"], **_said(tables, request["request_id"])})
        for request in world.requests
    ]
    expect_golden(GOLDEN / f"{name}.jsonl", "".join(f"{line}\n" for line in said))


def _said(tables: Tables, request: str) -> dict[str, object]:
    decided = [
        (row["evidence_id"], row["outcome"], row["stage"], row["reason_code"])
        for row in _rows(tables, "decisions", request)
    ]
    block = "".join(row["text"] for row in _rows(tables, "blocks", request))
    return {
        "status": [row["status"] for row in _rows(tables, "snapshots", request)],
        "conditions": [
            f"{row['condition']} {row['subject']} {row['action']}" for row in _rows(tables, "conditions", request)
        ],
        "shown": [
            f"{row['label']} {row['evidence_id'][-8:]} {row['tokens']}" for row in _rows(tables, "trimmed", request)
        ],
        "decided": len(decided),
        "decisions": _sha(decided),
        "block": _sha(block),
    }


def _rows(tables: Tables, name: str, request: str) -> list[dict[str, object]]:
    return [row for row in tables[name].to_pylist() if row["request_id"] == request]


def _sha(value: Sequence[object]) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


MOST_CALLS = 18_900
"""Calls of Python and of built-in functions that one warm lexical request may make: lowered as the line gets shorter."""


def test_a_warm_request_makes_no_more_calls_than_before(corpus: Path, tmp_path: Path):
    calls: list[int] = []

    def count(_frame: FrameType, event: str, _what: object) -> None:
        if event in ("call", "c_call"):
            calls[-1] += 1

    with Retriever.open(
        corpus, principal="ana", runs=tmp_path / "runs", lanes=("lexical",), encoder=None, clock=lambda: NOW
    ) as retriever:
        for number in range(4):
            calls.append(0)
            sys.setprofile(count)
            try:
                retriever.retrieve(f"default role of the session {number}", project="shop", purpose="answer-question")
            finally:
                sys.setprofile(None)
    assert min(calls) <= MOST_CALLS, calls  # a collection of cycles may call functions, too
