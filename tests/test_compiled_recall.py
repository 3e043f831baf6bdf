"""The compiled loops find what the arrays find: over several blocks of rows, with many equal scores, alone and in a batch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from recall_world import day, frame, line, rules
from scoped_retrieval.nodes import compiled, compiled_recall, posting_recall

pytest.importorskip("numba", reason="needs the extra fast")
LOOPS = compiled.kernels(compiled.PAYS_FROM)
WORDS = ("session", "token", "cache", "retry")


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    """9,000 rows in two projects, few distinct texts, recorded over a month, some withheld and some ended."""
    rng = np.random.default_rng(0)
    return frame(
        [
            {
                "text": " ".join(rng.choice(WORDS, int(rng.integers(1, 5)))),
                "project": "shop" if n % 3 else "docs",
                "path": f"src/{n // 5}.py",
                "section": str(n),
                "evidence_kind": "code" if n % 2 else "doc",
                "recorded_time": day(int(rng.integers(1, 28))),
                "superseded_at": day(28) if n % 11 == 0 else None,
                "withheld_by": 11 if n % 13 == 0 else 0,
            }
            for n in range(9000)
        ]
    )


REQUESTS = [
    {"request_id": "a", "question": "session token", "projects": ("shop", "docs"), "as_of": day(30), "lane_k": 100},
    {"request_id": "b", "question": "session token", "projects": ("shop", "docs"), "as_of": day(12), "lane_k": 7},
    {"request_id": "c", "question": "cache cache retry absent", "projects": ("shop", "docs"), "as_of": day(30), "lane_k": 9999},
    {"request_id": "d", "question": "retry", "projects": ("docs",), "as_of": day(2), "lane_k": 1, "withheld_k": 40},
]  # fmt: skip
PLAN = rules({}, {"kinds": ["code"]}, {"max_age_days": 9.0})


def _hits(world: dict[str, Any], requests: list[dict[str, Any]], loops: Any) -> pa.Table:
    with pytest.MonkeyPatch.context() as chosen:
        chosen.setattr(posting_recall, "kernels", lambda visits: loops)
        return line(world, requests, "lexical_hits", plan=PLAN)["lexical_hits"]


def test_the_loops_find_what_the_arrays_find(world: dict[str, Any]) -> None:
    found = _hits(world, REQUESTS, LOOPS)
    assert found.equals(_hits(world, REQUESTS, None))
    assert set(found["withheld"].to_pylist()) == {False, True}


def test_a_request_alone_has_the_hits_that_it_has_among_others(world: dict[str, Any]) -> None:
    batch = _hits(
        world,
        [request | {"request_id": f"{request['request_id']}{n}"} for n in range(16) for request in REQUESTS],
        LOOPS,
    )
    for request in REQUESTS:
        alone = _hits(world, [request | {"request_id": f"{request['request_id']}9"}], LOOPS)
        assert alone.equals(batch.filter(pa.compute.equal(batch["request_id"], f"{request['request_id']}9")))


def test_threads_change_nothing(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    one = _hits(world, REQUESTS, LOOPS)
    monkeypatch.setattr(compiled, "ALONE", 1)
    monkeypatch.setattr(compiled.pa, "cpu_count", lambda: 4)
    assert _hits(world, REQUESTS, LOOPS).equals(one)


def test_keys_of_one_hash_are_told_apart_by_their_texts() -> None:
    """Sought: `ab` and `b` of hash 5, `c` of hash 7; stored: `a`, `ab` and `abc` of hash 5, `d` of hash 7."""
    letters = lambda texts: np.frombuffer("".join(texts).encode(), dtype=np.uint8)  # noqa: E731
    found = np.empty(3, dtype=np.int64)
    assert LOOPS is not None
    LOOPS.postings.find(
        np.array([5, 5, 7], np.uint64), np.array([0, 2, 3, 4]), letters(["ab", "b", "c"]),
        np.array([5, 5, 5, 7], np.uint64), np.array([0, 1, 3, 6, 7]), letters(["a", "ab", "abc", "d"]), found,
    )  # fmt: skip
    assert found.tolist() == [1, -1, -1]


def test_a_sum_beyond_what_is_exact_is_left_to_the_arrays(
    world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = _hits(world, REQUESTS, LOOPS)
    monkeypatch.setattr(posting_recall, "EXACT_BELOW", 1.0)
    monkeypatch.setattr(compiled_recall, "EXACT_BELOW", 1.0)
    capped = _hits(world, REQUESTS, LOOPS)
    assert capped.equals(_hits(world, REQUESTS, None))
    assert not capped.equals(free)


def test_numba_is_not_imported_before_there_is_work() -> None:
    code = "import sys, scoped_retrieval.nodes.candidate_recall; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
