"""Packing merges, drops and orders; every ranked row ends in it exactly once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.evidence_packing import KEPT_SHARE
from selection_line import WEIGHTS, line


def packed(rows: list[dict[str, Any]], **contract: Any) -> dict[str, dict[str, Any]]:
    """Rows of packs by text."""
    made = line(rows, requests={"r1": contract}).run("packs")
    text = {row["evidence_id"]: row["text"] for row in made["evidence"].to_pylist()}
    named = {}
    for row in made["packs"].to_pylist():
        row["merged_into"] = text.get(row["merged_into"])
        named[text[row["evidence_id"]]] = row
    return named


def test_the_same_text_is_shown_once_by_its_best_row() -> None:
    made = line([{"text": "x = 1", "semantic_raw": 0.1}, {"text": "x = 1", "semantic_raw": 0.9}]).run()
    best, other = made["evidence"]["evidence_id"].to_pylist()[::-1]
    rows = {row["evidence_id"]: row for row in made["packs"].to_pylist()}
    assert rows[best]["position"]
    assert (rows[other]["reason_code"], rows[other]["merged_into"]) == ("duplicate", best)


def test_texts_that_differ_only_in_spacing_are_near_duplicates() -> None:
    result = packed(
        [
            {"text": "if a != b: return -1", "semantic_raw": 0.9},
            {"text": "  if a != b:\n    return -1\n", "semantic_raw": 0.5},
            {"text": "if a == b: return -1", "semantic_raw": 0.4},
            {"text": "if a != b: return 1", "semantic_raw": 0.3},
            {"text": "if A != b: return -1", "semantic_raw": 0.2},
        ]
    )
    dropped = {text: row["reason_code"] for text, row in result.items() if not row["position"]}
    assert dropped == {"  if a != b:\n    return -1\n": "near_duplicate"}


def test_a_conflict_set_travels_together_at_the_place_of_its_best() -> None:
    memory = {"evidence_kind": "memory", "conflict_set": "timeout"}
    result = packed(
        [
            {"text": "timeout is 30", "semantic_raw": 0.9} | memory,
            {"text": "other", "semantic_raw": 0.6},
            {"text": "Timeout is: 30", "semantic_raw": 0.1} | memory,
        ]
    )
    assert [text for text, row in sorted(result.items(), key=lambda pair: pair[1]["position"])] == [
        "timeout is 30",
        "Timeout is: 30",
        "other",
    ] or result["other"]["position"] == 1
    first, second = (result[text]["position"] for text in ("timeout is 30", "Timeout is: 30"))
    assert second == first + 1
    assert all(result[text]["form"] == "conflict-note" for text in ("timeout is 30", "Timeout is: 30"))


def test_a_member_shown_alone_says_that_a_competing_claim_may_exist() -> None:
    made = line([{"text": "timeout is 30", "conflict_set": "timeout"}]).run()
    assert made["trimmed"]["conflict_note"].to_pylist() == [True]
    assert "a competing claim may exist) " in made["blocks"]["text"][0].as_py()


def test_the_cap_per_source_counts_documents() -> None:
    loose = [{"text": f"turn {n}", "path": None, "entity": None, "source_id": "chat"} for n in range(4)]
    one = [{"text": f"part {n}", "path": None, "entity": "S-1", "source_id": "chat"} for n in range(3)]
    fact = {"evidence_kind": "structured-fact", "origin_class": "structured-sot", "path": "sot/d.csv"}
    records = [{"text": f"record {n}", "entity": f"DEL-{n}", **fact} for n in range(4)]
    said = {"evidence_kind": "session-event", "origin_class": "session-event", "path": "sessions/s-1", "entity": "s-1"}
    talk = [{"text": f"said {n}", **said} for n in range(4)]
    result = packed([*loose, *one, *records, *talk], max_items_per_source=1)
    dropped = [text for text, row in result.items() if row["reason_code"] == "source_cap"]
    assert len(dropped) == 2
    assert all(text.startswith("part") for text in dropped)


def test_records_that_an_asked_record_names_stand_right_behind_it() -> None:
    """S1.14, S1.18: direct dependencies come before records that look like the one that was asked for."""
    fact = {"evidence_kind": "structured-fact", "origin_class": "structured-sot", "path": "sot/d.csv"}
    asked = {"text": "DEL-1 needs DEL-8, del-9", "entity": "DEL-1", "lanes": ["exact", "lexical"], "semantic_raw": 0.9}
    alike = [
        {"text": f"alike {n}, DEL-7", "entity": f"DEL-{n}", "semantic_raw": 0.8 - n / 100} | fact for n in (2, 3, 4)
    ]
    named = [{"text": f"named {n}", "entity": f"DEL-{n}", "semantic_raw": n / 100} | fact for n in (7, 8, 9)]
    doc = {"text": "a document about DEL-8", "entity": "DEL-8", "evidence_kind": "doc", "semantic_raw": 0.85}
    rows = [asked | fact, *alike, *named, doc]

    def order(**contract: Any) -> list[str]:
        result = packed(rows, **contract)
        return [text for text, _ in sorted(result.items(), key=lambda pair: pair[1]["position"])]

    others = ["alike 2, DEL-7", "alike 3, DEL-7", "alike 4, DEL-7", "named 7"]
    assert order(exact_lookups=True) == [asked["text"], "named 9", "named 8", doc["text"], *others]
    plain = [asked["text"], doc["text"], *others[:3], "named 9", "named 8", "named 7"]
    assert order(exact_lookups=False) == plain
    asked["lanes"] = ["lexical"]
    rows[0] = asked | fact
    assert order(exact_lookups=True) == plain


def test_a_conflict_set_counts_as_one_item() -> None:
    rows = [
        {"text": "timeout is 30", "conflict_set": "timeout", "semantic_raw": 0.9},
        {"text": "unrelated", "semantic_raw": 0.5},
        {"text": "last", "semantic_raw": 0.4},
        {"text": "timeout is 60", "conflict_set": "timeout", "semantic_raw": 0.1},
    ]
    for most, shown in ((1, 2), (2, 3), (3, 4)):
        made = line(rows, requests={"r1": {"max_items": most}}).run()
        texts = made["trimmed"]["visible_text"].to_pylist()
        assert len(texts) == shown
        assert {"timeout is 30", "timeout is 60"} <= set(texts)


def test_a_conflict_set_is_shown_whole_or_not_at_all() -> None:
    """S0.111: never only the convenient side. What has room beside it takes its place."""
    rows = [
        {"text": "timeout is 30", "conflict_set": "timeout", "semantic_raw": 0.9},
        {"text": "timeout is 60 " * 40, "conflict_set": "timeout", "semantic_raw": 0.8},
        {"text": "retries are 3", "semantic_raw": 0.1},
    ]
    made = line(rows, requests={"r1": {"max_tokens": 100}, "r2": {"max_tokens": 900}}).run()
    shown = [(row["request_id"], row["visible_text"][:13]) for row in made["trimmed"].to_pylist()]
    assert shown == [("r1", "retries are 3"), *(("r2", row["text"][:13]) for row in rows)]
    bound = {row["bound_by"] for row in made["trims"].to_pylist() if row["request_id"] == "r1"}
    assert bound == {"conflict_set", "max_tokens", None}
    assert made["blocks"]["bound_by"].to_pylist() == ["max_tokens", None]


def test_the_cap_on_unverified_items_keeps_the_best_and_marks_them() -> None:
    rows = [
        {"text": f"hunch {number}", "evidence_kind": "memory", "lifecycle": state, "semantic_raw": 0.9 - number / 10}
        for number, state in enumerate(["candidate", None, "candidate"])
    ]
    result = packed(rows, max_unverified_items=2)
    assert [row["reason_code"] for _, row in sorted(result.items())] == [None, None, "unverified_cap"]
    assert {(row["form"], row["standing"]) for row in result.values()} == {("hint", "hint")}


def test_the_cap_on_unverified_items_does_not_split_a_conflict_set() -> None:
    """S0.111: a set without a verified member is one unverified item, one with such a member is none."""
    ports = [("80", "verified"), ("81", "candidate"), ("82", None)]
    hosts = [("a", "candidate"), ("b", "candidate")]
    rows = [
        *({"text": f"port is {text}", "lifecycle": state, "conflict_set": "port"} for text, state in ports),
        *({"text": f"host is {text}", "lifecycle": state, "conflict_set": "host"} for text, state in hosts),
        {"text": "a hunch", "lifecycle": "candidate"},
    ]
    for number, row in enumerate(rows):
        row["semantic_raw"] = 0.9 - number / 10
    for most, dropped in ((0, {"host is a", "host is b", "a hunch"}), (1, {"a hunch"}), (2, set())):
        result = packed(rows, max_unverified_items=most)
        assert {text for text, row in result.items() if row["reason_code"] == "unverified_cap"} == dropped
        assert all(row["position"] for text, row in result.items() if text not in dropped)


def test_deprecated_rows_speak_as_history() -> None:
    row = packed([{"text": "old rule", "lifecycle": "deprecated"}])["old rule"]
    assert (row["standing"], row["history"]) == ("history", True)


@pytest.mark.parametrize(("required", "reason"), [(True, "citation_unresolved"), (False, None)])
def test_a_file_without_span_and_version_does_not_resolve(required: bool, reason: str | None) -> None:
    nowhere = {"line_start": None, "byte_start": None, "version": None}
    rows = [
        {"text": "lost", "path": "a.py", **nowhere},
        {"text": "a version", "path": "b.py", **nowhere, "version": "c0ffee"},
        {"text": "a record", "path": None, **nowhere},
    ]
    result = packed(rows, require_citation=required)
    assert result["lost"]["reason_code"] == reason
    assert result["a version"]["position"]
    assert result["a record"]["position"]


@pytest.mark.parametrize(
    ("row", "shape", "form"),
    [
        ({}, "context-block", "full"),
        ({"document_type": "summary"}, "context-block", "summary"),
        ({"evidence_kind": "structured-fact"}, "context-block", "fact"),
        ({"conflict_set": "s"}, "citation-pack", "conflict-note"),
        ({"lifecycle": "candidate"}, "citation-pack", "hint"),
    ],
)
def test_the_form_follows_what_the_row_is(row: dict[str, Any], shape: str, form: str) -> None:
    assert packed([{"text": "x"} | row], output_shape=shape)["x"]["form"] == form


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(["a\n", "A \n", "b\n", "c d\n", "C d", "e\n"]),
            "path": st.sampled_from(["x.py", "y.py", None]),
            "line_start": st.sampled_from([None, 1, 2, 3]),
            "byte_start": st.sampled_from([None, 0, 2, 4]),
            "conflict_set": st.sampled_from([None, None, "s"]),
            "lifecycle": st.sampled_from(["verified", "candidate", "deprecated"]),
            "semantic_raw": st.sampled_from([0.1, 0.5]),
        }
    ),
    max_size=9,
)


@given(ROWS, st.booleans(), st.integers(0, 3), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_every_ranked_row_ends_in_packs_exactly_once(
    rows: list[dict[str, Any]], cited: bool, unverified: int, per_source: int
) -> None:
    contract = {"require_citation": cited, "max_unverified_items": unverified, "max_items_per_source": per_source}
    made = line(rows, requests={"r1": contract, "r2": {}}).run("packs")
    packs = made["packs"].to_pylist()
    key = [(row["request_id"], row["evidence_id"]) for row in packs]
    assert sorted(key) == sorted((row["request_id"], row["evidence_id"]) for row in made["ranked"].to_pylist())
    for row in packs:
        assert (row["reason_code"] is None) == (row["position"] > 0)
    for request in ("r1", "r2"):
        places = [row["position"] for row in packs if row["request_id"] == request and row["position"]]
        assert places == list(range(1, len(places) + 1))


PLAIN = dict.fromkeys(WEIGHTS, 0.0) | {"semantic": 1.0}
"""Weights of a world in which the cosine is the score."""


def shown(*items: tuple[str, str, float], **contract: Any) -> list[str]:
    """The whole texts of a block that has room for about three, in their order, by text, kind and score."""
    rows = [
        {"text": text + " word" * 100, "evidence_kind": kind, "semantic_raw": score, "length": 50}
        for text, kind, score in items
    ]
    made = line(rows, requests={"r1": {"max_tokens": 490} | contract}, weights=PLAIN).run("trimmed")
    return [row["visible_text"].split()[0] for row in made["trimmed"].to_pylist() if not row["cut"]]


CODE = [("one", "code", 0.9), ("two", "code", 0.88), ("three", "code", 0.86), ("four", "code", 0.84)]


def test_the_best_item_of_a_near_kind_takes_the_last_place_and_no_other() -> None:
    assert shown(*CODE) == ["one", "two", "three"]
    assert shown(*CODE, ("rule", "rule", 0.7)) == ["one", "two", "rule"]


def test_a_kind_that_is_far_behind_has_no_place() -> None:
    assert shown(*CODE, ("rule", "rule", 0.5)) == ["one", "two", "three"]


@pytest.mark.parametrize("score", [0.5, 0.1])
def test_a_required_kind_has_a_place_from_any_rank(score: float) -> None:
    assert shown(*CODE, ("rule", "rule", score), required_evidence=["project-rule"]) == ["one", "two", "rule"]


def test_what_is_required_comes_before_what_is_near() -> None:
    items = [*CODE, ("doc", "doc", 0.8), ("rule", "rule", 0.7)]
    assert shown(*items) == ["one", "two", "doc"]
    assert shown(*items, required_evidence=["project-rule"]) == ["one", "two", "rule"]


def test_history_does_not_stand_for_its_kind() -> None:
    rows = [
        {"text": f"{name} " + "word " * 100, "evidence_kind": kind, "semantic_raw": score, "length": 50, "lifecycle": state}
        for name, kind, score, state in [
            *((name, kind, score, "verified") for name, kind, score in CODE), ("old", "rule", 0.8, "deprecated"),
        ]
    ]  # fmt: skip
    made = line(rows, requests={"r1": {"max_tokens": 450}}, weights=PLAIN).run("trimmed")
    assert "old" not in " ".join(made["trimmed"]["visible_text"].to_pylist())


def test_a_small_share_of_the_budget_is_kept() -> None:
    kinds = ("rule", "doc", "memory", "test-log", "decision-record")
    others = [(kind, kind, 0.8 - 0.001 * place) for place, kind in enumerate(kinds)]
    found = shown(*[(f"c{n}", "code", 0.9 - 0.001 * n) for n in range(9)], *others, max_tokens=1100)
    assert 1 <= sum(text in kinds for text in found) <= len(found) // KEPT_SHARE + 1
    assert found[0] == "c0"
