"""A model turn from its event: the snapshots of one model request, and whether its input is the one that was hashed."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import ask, run


@pytest.fixture(name="turn")
def turn_fixture(shop: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """A model request that was shown two blocks; the corpus is gone, the event and the input are left."""
    blocks, snapshots = [], []
    for purpose in ("explain-code", "review-risk"):
        _, snapshot = ask("--purpose", purpose, capsys=capsys)
        blocks.append(run("show", snapshot, capsys=capsys)[1])
        snapshots.append(snapshot)
    shutil.rmtree(shop / ".scoped-retrieval" / "corpus")
    sent = "You are a careful engineer.\n" + "\n".join(blocks)
    Path("input.txt").write_text(sent, encoding="utf-8")
    event = {
        "retrievalSnapshotIds": snapshots,
        "modelInputRef": "input.txt",
        "visibleToolSet": ["read_file", "run_tests"],
        "contextHash": f"sha256:{hashlib.sha256(sent.encode()).hexdigest()}",
    }
    write(event)
    return event


def write(event: object) -> None:
    Path("event.json").write_text(json.dumps(event), encoding="utf-8")


def replayed(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code, out, _ = run("verify", "--event", "event.json", "--json", capsys=capsys)
    return code, json.loads(out)


def test_a_turn_is_replayed_from_its_event(turn: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, found = replayed(capsys=capsys)
    assert (code, found["input_matches"], found["visible_tools"]) == (0, True, ["read_file", "run_tests"])
    assert [one["snapshot_id"] for one in found["snapshots"]] == turn["retrievalSnapshotIds"]
    assert [one["in_input"] for one in found["snapshots"]] == [True, True]
    assert all(one["citations"] and one["block"] in Path("input.txt").read_text() for one in found["snapshots"])
    text = run("verify", "--event", "event.json", capsys=capsys)[1]
    assert "visible tools: read_file, run_tests" in text.splitlines()


def test_an_input_that_was_not_the_one_hashed_exits_5(turn: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    write(turn | {"contextHash": "0" * 64})
    code, found = replayed(capsys=capsys)
    assert (code, found["input_matches"]) == (5, False)


def test_a_block_that_the_model_was_never_sent_exits_5(
    turn: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.txt").write_text("no evidence at all", encoding="utf-8")
    write({name: value for name, value in turn.items() if name != "contextHash"} | {"modelInputRef": "other.txt"})
    code, found = replayed(capsys=capsys)
    assert (code, found["input_matches"]) == (5, None)
    assert [one["in_input"] for one in found["snapshots"]] == [False, False]


def test_without_input_and_hash_the_snapshots_are_replayed_all_the_same(
    turn: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write({"retrieval_snapshot_ids": turn["retrievalSnapshotIds"], "model": "m-1"})
    code, found = replayed(capsys=capsys)
    assert (code, found["input_matches"], found["unread"]) == (0, None, ["model"])
    assert [one["in_input"] for one in found["snapshots"]] == [None, None]


@pytest.mark.usefixtures("turn")
def test_another_principals_snapshot_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    code, out, err = run("verify", "--event", "event.json", capsys=capsys)
    assert (code, out) == (3, "")
    assert "Expected a snapshot that you may read" in err
