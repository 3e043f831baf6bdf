"""The compiled loops find what the arrays find: over several blocks of rows, with many equal scores, alone and in a batch."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from recall_world import day, frame, line, rules
from scoped_retrieval.nodes.frames import PostingIndex, RowIndex
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import compiled_recall, posting_recall, scope_postings, score_bounds

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


def _anew(postings: PostingIndex) -> PostingIndex:
    """The same lists, and none of them drawn together yet."""
    return PostingIndex(postings.parts, postings.row_starts)


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


def test_the_loops_find_what_the_arrays_find(world: dict[str, Any]) -> None:
    found = _hits(world, REQUESTS, LOOPS)
    assert found.equals(_hits(world, REQUESTS, None))
    assert set(found["withheld"].to_pylist()) == {False, True}


def test_lists_that_cannot_lift_a_row_to_the_best_are_asked_only_about_rows_that_can(
    many_words: dict[str, Any],
) -> None:
    assert _hits(many_words, _questions(60), LOOPS).equals(_hits(many_words, _questions(60), None))


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


@pytest.mark.parametrize("many", [0, 10**9])
def test_a_scope_of_which_every_row_is_open_is_not_judged(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(compiled_recall, "MANY", many)
    monkeypatch.setattr(compiled_recall, "WIDE", 0)
    rng = np.random.default_rng(3)
    texts = [" ".join(f"word{int(300**own):03d}" for own in rng.random(9)) for _ in range(9000)]
    open_ = frame([{"text": text, "path": f"src/{at}.py"} for at, text in enumerate(texts)])
    asked = [request | {"projects": ("shop",), "as_of": day(30)} for request in _questions(40)]
    plain = _hits(open_, asked, None)
    monkeypatch.setattr(RowIndex, "happened_at", None)  # not called: no request asks when a row happened
    assert _hits(open_, asked, LOOPS).equals(plain)


def test_grades_too_many_for_a_table_are_sorted(many_words: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = _hits(many_words, _questions(8), LOOPS)
    monkeypatch.setattr(score_bounds, "SLOTS", 0)
    anew = {**many_words, "postings": _anew(many_words["postings"])}
    assert _hits(anew, _questions(8), LOOPS).equals(found)


def test_scores_and_ids_too_large_for_one_key_are_compared_one_after_the_other(
    world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _hits(world, REQUESTS, LOOPS)
    monkeypatch.setattr(compiled_recall, "KEY_BITS", 0)
    assert _hits(world, REQUESTS, LOOPS).equals(found)


def test_the_lists_of_a_whole_scope_find_what_a_search_by_segment_finds(
    many_words: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, postings = _questions(40), _anew(many_words["postings"])
    monkeypatch.setattr(scope_postings, "LEAST", 10**6)
    by_segment = _hits({**many_words, "postings": postings}, asked, LOOPS)
    assert len(postings.whole_scopes) == 0
    monkeypatch.setattr(scope_postings, "LEAST", 1)
    assert _hits({**many_words, "postings": postings}, asked, LOOPS).equals(by_segment)
    assert len(postings.whole_scopes) == 1
    monkeypatch.setattr(scope_postings, "drawn_together", None)  # not called again: the lists are cached
    assert _hits({**many_words, "postings": postings}, asked[:3], LOOPS).equals(_hits(many_words, asked[:3], None))


def test_two_terms_of_one_hash_leave_a_scope_to_the_search_by_segment() -> None:
    """Keys of two segments: equal hashes are equal texts, or the lists cannot be distinguished by their hashes."""
    letters = np.frombuffer(b"t:at:bt:a", dtype=np.uint8)
    starts, hashes = np.array([0, 3, 6, 9]), np.array([4, 4], np.uint64)
    assert LOOPS is not None
    assert LOOPS.postings.alike(hashes, np.array([0, 2]), starts, letters)
    assert not LOOPS.postings.alike(hashes, np.array([0, 1]), starts, letters)


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


@pytest.mark.parametrize("least", [1, 1 << 62], ids=["whole lists", "lists of the look-ups"])
def test_words_that_no_row_has_share_what_is_exact_as_well(
    world: dict[str, Any], monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(scope_postings, "LEAST", least)
    for module in (posting_recall, compiled_recall):
        monkeypatch.setattr(module, "EXACT_BELOW", 1.0)
    asked = [{**REQUESTS[0], "question": "token absent missing nowhere"}]
    capped = _hits(world, asked, None)
    assert capped["score"].to_pylist()[0] == 0.25, "a quarter of what is exact: the share of one look-up among four"
    assert _hits(world, asked, LOOPS).equals(capped)


def test_what_a_part_holds_is_bounded_by_the_ages_of_its_rules_and_by_clocks_that_hide_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        {"text": "session token", "project": "shop", "path": f"src/{n}.py", "recorded_time": day(1)}
        for n in range(2000)
    ]
    rows[7]["placements"] = [{"recorded_time": day(1), "superseded_at": day(2)}, {"recorded_time": day(3)}]
    world = frame(rows)
    asked = [
        {
            "request_id": f"r{n:03d}",
            "question": "session",
            "projects": ("shop",),
            "as_of": day(20 if n else 2),
            "lane_k": 5,
        }
        for n in range(60)
    ]
    lines: list[int] = []
    judged: list[int] = []
    inside: list[bool] = []
    prepared, held, recorded = compiled_recall._prepared, compiled_recall._held, RowIndex.recorded_at

    def watched(*arguments: Any) -> Any:
        made = prepared(*arguments)
        lines.append(len(made.allowed))
        return made

    def withheld(*arguments: Any) -> Any:
        inside.append(True)
        found = held(*arguments)
        inside.pop()
        return found

    def counted(index: RowIndex, placement: Any) -> Any:
        judged.extend([len(placement)] * len(inside))
        return recorded(index, placement)

    monkeypatch.setattr(compiled_recall, "POSTINGS", 10 * len(rows))
    monkeypatch.setattr(compiled_recall, "_prepared", watched)
    monkeypatch.setattr(compiled_recall, "_held", withheld)
    monkeypatch.setattr(RowIndex, "recorded_at", counted)
    for at, one in enumerate(asked):
        one["as_of"] += timedelta(minutes=at)
    with pytest.MonkeyPatch.context() as chosen:
        chosen.setattr(posting_recall, "kernels", lambda visits: LOOPS)
        found = line(world, asked, "lexical_hits", plan=rules({"max_age_days": 90.0}))["lexical_hits"]
    assert found.num_rows
    assert max(lines) <= 10, "lines of rows that rules of ages let return"
    assert max(judged) <= len(rows), "of sixty clocks one hides a row"


def test_a_request_for_very_many_rows_makes_no_room_for_as_many_per_sub_query_of_others(
    world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of keys is as long as the longest of its part: the greedy request has a part of its own."""
    few = [
        {"request_id": f"r{n:02d}", "question": "session token", "projects": ("docs",), "as_of": day(30)}
        for n in range(40)
    ]
    asked = [request | {"lane_k": 2**31 - 1 if n == 7 else 5} for n, request in enumerate(few)]
    plain = _hits(world, asked, None)
    assert LOOPS is not None
    read, keys = LOOPS.postings.read_keys, []

    def watched(*arguments: Any) -> None:
        keys.append(arguments[3].shape)
        read(*arguments)

    monkeypatch.setattr(LOOPS.postings, "read_keys", watched)
    monkeypatch.setattr(compiled_recall, "POSTINGS", 10 * len(world["rows"]))
    assert _hits(world, asked, LOOPS).equals(plain)
    assert max(lines for lines, _ in keys) > 20, "the others are worked out together"
    assert max(lines * width for lines, width in keys if lines > 3) <= 10 * len(world["rows"])
