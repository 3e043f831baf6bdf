"""The budget is hard, cuts fall at line ends, and every byte that was cut is on record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks.token_counting import BASE, Counters, EncodedCounter
from selection_line import line

WORDS = [
    "alpha ",
    "parse_user(",
    "你好世界。",
    "😀👩‍👩‍👧",
    "你好世界和平" * 40,
    "aB3$x_" * 120,
    "\u200b" * 200,
    "ก\u0e34" * 200,
    "1234",
    "\t",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "| ",
    ">>",
    "é",
    "   ",
    "Error",
]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map("".join)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {
            "text": TEXTS,
            "evidence_kind": st.sampled_from(["code", "doc", "test-log", "memory"]),
            "conflict_set": st.sampled_from([None, None, "s", "t"]),
            "lifecycle": st.sampled_from(["verified", "candidate"]),
            "section": st.sampled_from([None, "Intro", "节"]),
            "semantic_raw": st.sampled_from([0.1, 0.4, 0.7]),
        },
        optional={
            "path": st.just("notes.jsonl"),
            "source_id": st.sampled_from(["git:shop", "git:next"]),
            "event_time": st.sampled_from([datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 5, 2, tzinfo=UTC)]),
        },
    ),
    min_size=1,
    max_size=7,
)
SHAPES = st.sampled_from(["context-block", "citation-pack", "model-brief"])
ASKED = {("r1", term): 2.0 for term in ("alpha", "pars", "你好")}
BY_WORD = Counters(
    {
        "words": EncodedCounter("words", lambda texts: (len(text.split()) + len(text) // 9 for text in texts)),
        "crowded": EncodedCounter("crowded", lambda texts: (n + n * n // 40 for n in (len(t.split()) for t in texts))),
    }
)
"""Of both, a whole is not the sum of its parts; of the second, it is more than that by far."""


def counted(text: str, name: str = BASE) -> int:
    return int(BY_WORD.get(name).count(pa.array([text], pa.large_string()))[0])


@given(ITEMS, SHAPES, st.integers(1, 400), st.integers(1, 1500), st.integers(1, 120), st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_no_limit_is_ever_exceeded(
    rows: list[dict[str, Any]], shape: str, tokens: int, chars: int, chunk: int, items: int
) -> None:
    limits = {"max_tokens": tokens, "max_chars": chars, "max_chunk_tokens": chunk, "max_items": items}
    made = line(rows, requests={"r1": limits | {"output_shape": shape}}, words=ASKED).run()
    block = made["blocks"].to_pylist()[0]
    assert block["tokens"] == counted(block["text"]) <= tokens
    assert block["chars"] == len(block["text"]) <= chars
    assert block["items"] == made["trimmed"].num_rows
    assert_whole_sets(made, "r1")
    set_of = {row["evidence_id"]: row["conflict_set"] for row in made["evidence"].to_pylist()}
    shown = [set_of[row["evidence_id"]] for row in made["trimmed"].to_pylist()]
    assert shown.count(None) + len({*shown} - {None}) <= items  # a conflict set counts as one item
    assert all(0 <= row["tokens"] <= chunk for row in made["trimmed"].to_pylist())
    assert (block["text"] == "") == (block["items"] == 0) == (block["block_ref"] is None)


@pytest.mark.parametrize("counter", ["words", "crowded"])
@given(rows=ITEMS, tokens=st.integers(1, 300))
@settings(max_examples=20, deadline=None)
def test_a_counter_that_does_not_add_up_has_the_last_word(
    counter: str, rows: list[dict[str, Any]], tokens: int
) -> None:
    made = line(rows, requests={"r1": {"max_tokens": tokens, "tokenizer": counter}}, counters=BY_WORD).run()
    block = made["blocks"].to_pylist()[0]
    assert block["tokens"] == counted(block["text"], counter) <= tokens
    assert_whole_sets(made, "r1")


def test_no_block_is_one_token_over_for_any_limit_and_counter() -> None:
    """A block 12 tokens over passed: with few limits, what does not fit is mostly over by an item."""
    rows = [{"text": " ".join(f"w{n}x{m}" for m in range(3 + n % 4)), "semantic_raw": 0.9 - n / 100} for n in range(12)]
    limits = {
        f"{counter} {tokens:03d}": {
            "max_tokens": tokens,
            "tokenizer": counter,
            "max_items": 12,
            "max_items_per_source": 12,
        }
        for counter in (BASE, "words", "crowded")
        for tokens in range(1, 241)
    }
    blocks = line(rows, requests=limits, counters=BY_WORD).run()["blocks"].to_pylist()
    over = [one["request_id"] for one in blocks if one["tokens"] > limits[one["request_id"]]["max_tokens"]]
    assert over == []
    assert [one["tokens"] for one in blocks] == [counted(one["text"], one["request_id"].split()[0]) for one in blocks]
    assert len({one["items"] for one in blocks}) > 8


def assert_whole_sets(made: dict[str, pa.Table], request_id: str) -> None:
    """Of each conflict set every packed member is shown or none, and one that is alone says so."""
    packed, shown = (
        [row for row in made[name].to_pylist() if row["request_id"] == request_id and row["position"]]
        for name in ("packs", "trimmed")
    )
    set_of = {row["evidence_id"]: row["conflict_set"] for row in made["evidence"].to_pylist()}
    for name in {"s", "t"}:
        members = {row["evidence_id"] for row in packed if set_of[row["evidence_id"]] == name}
        noted = {row["evidence_id"]: row["conflict_note"] for row in shown if row["evidence_id"] in members}
        assert set(noted) in (set(), members)
        assert set(noted.values()) <= {len(members) == 1}
    assert not any(row["conflict_note"] for row in shown if set_of[row["evidence_id"]] is None)


@given(ITEMS, st.integers(40, 400), st.integers(1, 120))
@settings(max_examples=30, deadline=None)
def test_the_range_that_trimming_kept_is_shown(rows: list[dict[str, Any]], tokens: int, chunk: int) -> None:
    contract = {"max_tokens": tokens, "max_chunk_tokens": chunk}
    made = line(rows, requests={"r1": contract}, words=ASKED).run()
    text = {row["evidence_id"]: row["text"].encode() for row in made["evidence"].to_pylist()}
    shown = {row["evidence_id"]: row for row in made["trimmed"].to_pylist()}
    trims = {row["evidence_id"]: row for row in made["trims"].to_pylist()}
    packed = {row["evidence_id"] for row in made["packs"].to_pylist() if row["position"]}
    assert set(trims) == packed >= set(shown)
    for item, trim in trims.items():
        assert 0 <= trim["kept_start"] <= trim["kept_end"] <= trim["size"] == len(text[item])
        assert (trim["number"] > 0) == (item in shown)
        assert (trim["kept_start"] < trim["kept_end"]) or trim["bound_by"]
    for item, row in shown.items():
        assert text[item][trims[item]["kept_start"] : trims[item]["kept_end"]].decode() == row["visible_text"]
        if not trims[item]["bound_by"]:
            assert text[item].decode().startswith(row["visible_text"])
            assert text[item].decode().rstrip() == row["visible_text"].rstrip()


LOG = "".join(f"line {number}\n" for number in range(1, 101))
FAULT = 48
"""A block that is this much too long must be noticed: the tests of limits contain blocks with less room than that."""


@pytest.mark.parametrize("shape", ["context-block", "citation-pack", "model-brief"])
@pytest.mark.parametrize(("limit", "measured"), [("max_tokens", counted), ("max_chars", len)])
def test_no_limit_of_a_row_of_limits_is_exceeded(shape: str, limit: str, measured: Callable[[str], int]) -> None:
    """Single limits may happen to leave room; in a row of them, some block nearly reaches its limit."""
    rows = [{"text": text, "path": f"logs/{text[:2]}.log", "evidence_kind": "doc"} for text in (LOG, "an " * 90, "me")]
    limits = range(60, 460)
    requests = {f"r{most:03}": {limit: most, "output_shape": shape} for most in limits}
    texts = line(rows, requests=requests).run()["blocks"]["text"].to_pylist()
    room = [most - measured(text) for most, text in zip(limits, texts, strict=True)]
    assert min(room) >= 0
    assert min(left for left, text in zip(room, texts, strict=True) if text) < FAULT


def test_no_limit_is_exceeded_by_a_part_of_a_long_text_without_spaces() -> None:
    """Its parts hide tokens that the whole has: four ideographs together cost one more than alone."""
    rows = [{"text": "水火木金土" * 1_600, "path": "a.md", "evidence_kind": "doc"}]
    limits = range(4_000, 9_000, 97)
    requests = {f"r{most}": {"max_tokens": most, "max_chunk_tokens": 12_000} for most in limits}
    tokens = line(rows, requests=requests).run()["blocks"]["tokens"].to_pylist()
    assert all(0.95 * most < used <= most for most, used in zip(limits, tokens, strict=True))


def test_a_cut_falls_at_a_line_end_and_is_shown_as_an_excerpt() -> None:
    made = line(
        [{"text": LOG, "evidence_kind": "doc", "line_start": 11, "byte_start": 500}],
        requests={"r1": {"max_tokens": 120}},
    ).run()
    row, trim = made["trimmed"].to_pylist()[0], made["trims"].to_pylist()[0]
    assert LOG.startswith(row["visible_text"] + "\n")
    assert row["form"] == "excerpt"
    assert trim["bound_by"] == "max_tokens" == made["blocks"]["bound_by"][0].as_py()
    lines = row["visible_text"].count("\n") + 1
    cited = made["citations"].to_pylist()[0]
    assert (cited["line_start"], cited["line_end"]) == (11, 10 + lines)
    assert (cited["byte_start"], cited["byte_end"]) == (500, 500 + len(row["visible_text"]))
    assert f"… {100 - lines} lines …\n" in made["blocks"]["text"][0].as_py()


def test_a_cut_log_keeps_its_first_error_line() -> None:
    text = LOG + "E   AssertionError: expected UTC\n" + LOG
    made = line([{"text": text, "evidence_kind": "test-log"}], requests={"r1": {"max_chunk_tokens": 60}}).run()
    row, trim = made["trimmed"].to_pylist()[0], made["trims"].to_pylist()[0]
    assert row["visible_text"].startswith("line 99\nline 100\nE   AssertionError: expected UTC\nline 1\n")
    assert row["line_start"] == 99
    start = text.encode().index(b"line 99\n")
    assert trim["kept_start"] == start
    assert trim["bound_by"] == "max_chunk_tokens"


def test_smaller_items_fill_what_a_large_one_leaves() -> None:
    rows = [
        {"text": "best", "semantic_raw": 0.9},
        {"text": "x" * 3000, "semantic_raw": 0.5},
        {"text": "short", "semantic_raw": 0.1},
    ]
    made = line(rows, requests={"r1": {"max_tokens": 120, "max_chunk_tokens": 2000}}).run()
    assert made["trimmed"]["visible_text"].to_pylist() == ["best", "", "short"]
    assert made["trimmed"]["label"].to_pylist() == ["code#1", "code#2", "code#3"]
    (trim,) = [row for row in made["trims"].to_pylist() if row["bound_by"]]
    assert (trim["kept_start"], trim["kept_end"], trim["size"]) == (0, 0, 3000)


def test_below_the_size_of_the_frame_the_block_is_empty() -> None:
    made = line([{"text": "alpha"}], requests={f"r{limit:03}": {"max_tokens": limit} for limit in range(1, 80)}).run()
    items = made["blocks"]["items"].to_pylist()
    assert items == sorted(items)
    assert items[0] == 0
    assert items[-1] == 1
    empty = [row for row in made["blocks"].to_pylist() if not row["items"]]
    assert {(row["text"], row["tokens"], row["chars"], row["bound_by"]) for row in empty} == {("", 0, 0, "max_tokens")}


@pytest.mark.parametrize(
    ("limits", "bound"),
    [
        ({"max_items": 1}, "max_items"),
        ({"max_chars": 200}, "max_chars"),
        ({}, None),
    ],
)
def test_each_limit_binds_alone(limits: dict[str, int], bound: str | None) -> None:
    rows = [{"text": f"value_{number} = {number}\n" * 6, "semantic_raw": 0.5} for number in range(3)]
    made = line(rows, requests={"r1": limits}).run()
    assert {row["bound_by"] for row in made["trims"].to_pylist()} - {None} == ({bound} if bound else set())
    assert made["blocks"]["bound_by"].to_pylist() == [bound]
