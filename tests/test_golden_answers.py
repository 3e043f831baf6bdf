"""The answers of a fixed world, frozen: blocks, ids, outcomes and conditions of every purpose, mode, role and shape.

A change that says it moves no answer leaves these files as they are.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, product
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from asking import Tables, answers, built, line_of
from golden_file import expect_golden
from scoped_retrieval.nodes.vocabulary import MODES, OUTPUT_SHAPES, PURPOSES
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.line.driver import LANES
from worlds import COUNTER, ENTITIES, KINDS, NOW, PATHS, RECORDS, ROLES, ROOTS, TWINS, WINDOWS, WORDS, Row, World

GOLDEN = Path(__file__).parent / "golden" / "answers"
LINES = {"all-lanes": (LANES, True), "no-vectors": (LANES, False), "lexical": (("lexical",), False)}


ROWS = 160
_USUAL = {
    "declared_visibility": ("model-visible",) * 8 + ("runtime-only", "user-only"),
    "lifecycle": ("verified",) * 8 + ("candidate", "deprecated", "revoked"),
    "zone": ("public",) + ("internal",) * 6 + ("private",),
    "owner_project": ("shop",) * 6 + ("billing", "shared"),
    "principals": (None,) * 8 + (["ana"], ["bo"]),
    "branch": (None,) * 5 + ("main", "dev"),
    "workspace_root": (None,) * 10 + ROOTS,
    "parent_id": (None,) * 5 + ENTITIES[:3],
    "conflict_set": (None,) * 5 + ("c1",),
    "links": ([], [], ["docs/roles.md"], ["src/cache.py"]),
    "excluded_roles": (None,) * 5 + (["architect"],),
    "symbols": ([], ["createUser"], ["session"]),
    "calls": ([], ["createUser"], ["retry"]),
    "section": (None, "Roles", "createUser"),
    "authority": (0, 1, 2, 3),
    "namespace": (None,) * 10 + ("core", "ui"),
    "test_suite": (None,) * 6 + ("unit", "e2e"),
    "level": (None,) * 5 + ("task", "project"),
}


def golden_world() -> World:
    """The world, with three publications, the second without vectors."""
    random = Random(52)
    requests = [_request(random, number, *one) for number, one in enumerate(_asked())]
    return World(tuple(_stored(random, number) for number in range(ROWS)), tuple(requests), encoded=(True, False, True))


def _stored(random: Random, number: int) -> Row:
    origin, kind = KINDS[number % len(KINDS)]
    record = random.choice(RECORDS) if origin == "structured-sot" or number % 5 == 0 else None
    session = random.choice((None, "s-1", "s-2")) if kind in ("memory", "session-event") else None
    lines = [
        " ".join(random.choice(TWINS) if number % 4 == 0 else random.choices(WORDS, k=8)) for _ in range(number % 9 + 1)
    ]
    said = "" if record is None else f"id: {record}\nfee: ${random.randint(1, 3)}\n"
    return {name: random.choice(values) for name, values in _USUAL.items()} | {
        "entity": record if origin == "structured-sot" else f"e{number}",
        "source_id": f"{origin}:{number % 3}",
        "origin_class": origin,
        "evidence_kind": kind,
        "owner_user": random.choice((None, "ana", "bo")) if origin == "memory" else None,
        "session_id": session,
        "path": random.choice((*PATHS, None)),
        "version": f"v{number % 3}",
        "event_time": None if session is None else NOW - timedelta(days=30, minutes=45 * (number % 9)),
        "recorded_time": NOW - timedelta(days=random.randint(-2, 80)),
        "superseded_at": random.choice((None,) * 5 + (NOW - timedelta(days=2),)),
        "deleted_at": random.choice((None,) * 8 + (NOW - timedelta(days=6),)),
        "valid_from": None,
        "valid_until": random.choice((None,) * 6 + (NOW - timedelta(days=3),)),
        "superseded_by": None,
        "text": said
        + "\n".join([*lines, *(["`createUser`?"] if kind == "session-event" else [])])
        + "\n" * (number % 2),
        "line_start": 10 * number + 1,
        "line_end": 10 * number + len(lines),
    }


def _asked() -> list[tuple[str | None, ...]]:
    """Purpose, mode, role and shape of each request: every purpose in every mode and shape, under roles in turn."""
    roles = cycle((None, None, *ROLES))
    return [(*one, next(roles)) for one in product(PURPOSES.values, (None, *MODES.values), OUTPUT_SHAPES.values)]


def _request(random: Random, number: int, purpose: str, mode: str | None, shape: str, role: str | None) -> Row:
    request: Row = {
        "request_id": f"g{number:03d}",
        "question": " ".join(random.choices(WORDS, k=3))
        + (f" {random.choice(RECORDS)} fee?" if number % 4 == 0 else ""),
        "project": "shop",
        "purpose": purpose,
        "output_shape": shape,
        "time": {"as_of": (NOW - timedelta(days=number % 11)).isoformat(), **WINDOWS[number % len(WINDOWS)]},
        "counter": COUNTER if number % 7 == 0 else None,
        "recall_effort": ("full", "graph", "minimal")[number % 3],
        "budget": {"max_tokens": (200, 600, 2_000)[number % 3], "max_items": (4, 12)[number % 2], "lane_k": 12},
    }
    fields = {"mode": mode, "role": role, "branch": ("main", None, None)[number % 3],
              "session_id": ("s-1", None)[number % 2], "workspace_root": (ROOTS[0], None)[number % 2]}  # fmt: skip
    request |= {name: value for name, value in fields.items() if value is not None}
    if number % 6 == 0:
        request["anchors"] = {"failing_test": PATHS[1], "anchor_symbols": ["createUser"]}
    if number % 8 == 0:
        request["denied_paths"] = ["path:logs/"]
    return request


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
    decided = sorted(
        (row["evidence_id"], row["outcome"], row["stage"], row["reason_code"])
        for row in _rows(tables, "decisions", request)
    )
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


MOST_CALLS = 16_400
"""Calls of Python and of built-in functions that one warm lexical request may make: lowered as the line gets shorter."""


def test_a_warm_request_makes_no_more_calls_than_before(corpus: Path, tmp_path: Path):
    calls: list[int] = []

    def count(_frame: FrameType, event: str, _what: object) -> None:
        if event in ("call", "c_call"):
            calls[-1] += 1

    with Retriever.open(
        corpus, principal="ana", runs=tmp_path / "runs", lanes=("lexical",), encoder=None, clock=lambda: NOW
    ) as retriever:
        for word in ("session", "cache", "token", "retry"):
            calls.append(0)
            sys.setprofile(count)
            try:
                retriever.retrieve(f"default role of the {word}", project="shop", purpose="answer-question")
            finally:
                sys.setprofile(None)
    assert min(calls) <= MOST_CALLS, calls  # a collection of cycles may call functions, too
