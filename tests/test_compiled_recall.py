"""The compiled loops find what the arrays find: over several blocks of rows, with many equal scores, alone and in a batch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from recall_world import day, frame, line, rules
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import compiled_recall, posting_recall

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


@pytest.fixture(scope="module")
def many_words() -> dict[str, Any]:
    """9,000 rows of twelve words, some in nearly every row and some in a few; some rows withheld."""
    rng = np.random.default_rng(1)
    share = 1.0 / np.arange(1, 301)
    words = rng.choice(300, size=(9000, 12), p=share / share.sum())
    return frame(
        [
            {
                "text": " ".join(f"word{n:03d}" for n in own),
                "project": "shop" if at % 3 else "docs",
                "path": f"src/{at}.py",
                "evidence_kind": "code" if at % 2 else "doc",
                "recorded_time": day(int(rng.integers(1, 28))),
                "withheld_by": 11 if at % 13 == 0 else 0,
            }
            for at, own in enumerate(words)
        ]
    )


def _questions(count: int) -> list[dict[str, Any]]:
    """Of frequent words and rare ones together, for few rows and for many."""
    rng = np.random.default_rng(2)
    return [
        {
            "request_id": f"r{at:03d}",
            "question": " ".join(f"word{int(300 ** rng.random()):03d}" for _ in range(6)),
            "projects": ("shop", "docs"),
            "as_of": day(30 if at % 2 else 14),
            "lane_k": (1, 5, 40, 100)[at % 4],
        }
        for at in range(count)
    ]


def _hits(world: dict[str, Any], requests: list[dict[str, Any]], loops: Any) -> pa.Table:
    with pytest.MonkeyPatch.context() as chosen:
        chosen.setattr(posting_recall, "kernels", lambda visits: loops)
        return line(world, requests, "lexical_hits", plan=PLAN)["lexical_hits"]


@pytest.mark.parametrize("key_bits", [0, 62])
def test_many_postings_are_scored_by_blocks_of_rows_as_few_are_at_once(
    world: dict[str, Any], many_words: dict[str, Any], monkeypatch: pytest.MonkeyPatch, key_bits: int
) -> None:
    """Of rows that are open and others, filtered and not, and of requests for more rows than there are."""
    monkeypatch.setattr(compiled_recall, "MANY", 0)
    monkeypatch.setattr(compiled_recall, "WIDE", 0)
    monkeypatch.setattr(compiled_recall, "KEY_BITS", key_bits)
    assert _hits(many_words, _questions(60), LOOPS).equals(_hits(many_words, _questions(60), None))
    assert _hits(world, REQUESTS, LOOPS).equals(_hits(world, REQUESTS, None))


def test_threads_change_nothing(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    one = _hits(world, REQUESTS, LOOPS)
    monkeypatch.setattr(compiled, "ALONE", 1)
    monkeypatch.setattr(compiled.pa, "cpu_count", lambda: 4)
    assert _hits(world, REQUESTS, LOOPS).equals(one)


def test_keys_of_one_hash_are_told_apart_by_their_texts() -> None:
    """Sought: `ab` and `b` of hash 5, `c` of hash 7; stored: `a`, `abc` and `ab` of hash 5, `d` of hash 7."""
    letters = lambda texts: np.frombuffer("".join(texts).encode(), dtype=np.uint8)  # noqa: E731
    found = np.empty(3, dtype=np.int64)
    assert LOOPS is not None
    LOOPS.postings.find(
        np.array([5, 5, 7], np.uint64), np.array([0, 2, 3, 4]), letters(["ab", "b", "c"]),
        np.array([5, 5, 5, 7], np.uint64), np.array([0, 1, 4, 6, 7]), letters(["a", "abc", "ab", "d"]), found,
    )  # fmt: skip
    assert found.tolist() == [2, -1, -1]


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
