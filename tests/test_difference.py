"""Diff: two snapshots or runs side by side, items that entered, left or moved, and why; each reads their own only."""

from __future__ import annotations

import pytest
from audited_runs import ASKED, audited, settings_of
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.reading.auditing.difference import compared
from scoped_retrieval.pipeline.reading.auditing.what_if import what_if


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    world = audited(tmp_path_factory.mktemp("difference"))
    with world.story.open(runs=world.folder / "runs") as retriever:
        world.short = retriever.retrieve(ASKED | {"budget": {"max_items": 2}}).snapshot_id
        world.recent = retriever.retrieve(ASKED | {"weights": {"recency": 3.0}}).snapshot_id
        purposes = ("answer-question", "explain-code", "review-risk")
        rows = [ASKED | {"request_id": p, "purpose": p, "budget": {"max_items": 3}} for p in purposes]
        world.second = retriever.run(rows).run_id
        world.unnamed = [retriever.run([ASKED, ASKED | {"purpose": "fix-test"}]).run_id for _ in range(2)]
    return world


def changes(found) -> dict[str, int]:
    return found.items["change"].value_counts().to_dict()


def test_a_snapshot_is_like_itself_and_like_the_same_question_asked_again(world):
    settings = settings_of(world.folder)
    assert compared(settings, world.ana, world.ana).same
    assert compared(settings, *world.unnamed).same


def test_what_left_names_the_stage_that_lost_it(world):
    found = compared(settings_of(world.folder), world.ana, world.short)
    left = found.items[found.items["change"] == "left"]
    assert not found.same
    assert set(left["why"]) == {"trim: budget_items"}
    assert changes(found) == {"left": 5, "same": 1, "moved": 1}
    stays = found.items[found.items["change"] != "left"]
    assert list(zip(stays["locator"], stays["position_before"], stays["position_after"], strict=True)) == [
        ("src/retry.py#1", 1, 1),
        ("docs/limits.md#1", 3, 2),
    ]
    assert left["position_after"].isna().all()
    back = compared(settings_of(world.folder), world.short, world.ana)
    assert set(back.items[back.items["change"] == "entered"]["evidence_id"]) == set(left["evidence_id"])


def test_what_moved_names_the_term_that_moved_it(world):
    found = compared(settings_of(world.folder), world.ana, world.recent)
    moved = found.items[found.items["change"] == "moved"]
    assert list(zip(moved["position_before"], moved["position_after"], strict=True)) == [
        (5, 3),
        (6, 4),
        (4, 5),
        (7, 6),
        (3, 7),
    ]
    assert changes(found) == {"moved": 5, "same": 2}
    assert moved["why"].str.startswith("recency +").all()


def test_runs_are_paired_by_request_and_what_has_no_partner_is_counted(world):
    found = compared(settings_of(world.folder), world.run, world.second)
    assert (
        list(found.requests["request_id_before"])
        == list(found.requests["request_id_after"])
        == ["answer-question", "explain-code"]
    )
    assert (found.only_before, found.only_after) == (1, 1)


def test_a_diff_and_a_what_if_agree(world):
    settings = settings_of(world.folder)
    asked, imagined = compared(settings, world.ana, world.short), what_if(settings, world.ana, {"max_items": 2})
    columns = ["evidence_id", "change", "locator", "why"]
    assert asked.items[columns].equals(imagined.items[columns])


def test_a_caller_learns_nothing_of_gates(world):
    found = compared(settings_of(world.folder, "bob"), world.bob, world.bob)
    assert "gate" not in " ".join(found.items["why"])
    with pytest.raises(AccessError, match="that you may read"):
        compared(settings_of(world.folder, "bob"), world.bob, world.ana)
