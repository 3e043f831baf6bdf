"""What a retriever writes down: a record that does not add up shows nothing, and no record depends on earlier requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes import audit_snapshot
from scoped_retrieval.nodes.tables import DECISIONS
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from scoped_retrieval.pipeline.runs.log import RunLog
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart

QUESTION = "what is the default role of guests"
SAYS = "the default role of sessions is guest\n"


class Forgetful:
    """DECISIONS of the requests b and c alone."""

    empty, check, annotation = DECISIONS.empty, DECISIONS.check, DECISIONS.annotation

    @staticmethod
    def build(columns: Any, **named: Any) -> pa.Table:
        found = DECISIONS.build(columns, **named)
        return found.filter(pc.is_in(found["request_id"], pa.array(["b", "c"])))


@pytest.mark.parametrize("required", [False, True])
def test_an_answer_whose_decisions_do_not_add_up_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, required: bool
):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    with story.open(runs=tmp_path / "runs") as retriever:
        before = retriever.retrieve(QUESTION, require_snapshot=required)
        with monkeypatch.context() as patched:
            patched.setattr(audit_snapshot, "DECISIONS", Forgetful)
            found = retriever.retrieve(QUESTION, require_snapshot=required)
        after = retriever.retrieve(QUESTION, require_snapshot=required)
    assert (found.status, found.action, found.block, found.block_ref, found.citations) == (
        "failed",
        "block",
        "",
        None,
        [],
    )
    (told,) = found.conditions
    assert told["condition"] == "request_failed"
    assert told["message"].startswith("Expected one row for each of 1 rows of candidate_record")
    assert found.tables["trimmed"].num_rows == found.tables["ranked"].num_rows == 0
    assert before.block == after.block != ""
    store = Runs(tmp_path / "runs")
    assert [replay(store, each.snapshot_id or "").status for each in (before, found, after)] == ["ok", "failed", "ok"]
    assert verify(store, found.snapshot_id or "").ok


def test_in_a_run_only_the_request_whose_decisions_do_not_add_up_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    asked = [
        {"request_id": name, "project": "shop", "question": QUESTION, "purpose": "answer-question"} for name in "abc"
    ]
    store = Runs(tmp_path / "runs")
    with story.open(runs=store) as retriever:
        sound = retriever.run(asked)
        monkeypatch.setattr(audit_snapshot, "DECISIONS", Forgetful)
        broken = retriever.run(asked)
    assert (sound.statuses, broken.statuses) == ({"ok": 3}, {"failed": 1, "ok": 2})
    before, after = (store.open(one.run_id).table("snapshots").to_pylist() for one in (sound, broken))
    assert [each["status"] for each in after] == ["failed", "ok", "ok"]
    assert [each["snapshot_digest"] for each in before][1:] == [each["snapshot_digest"] for each in after][1:]
    told = store.open(broken.run_id).texts["text"].to_pylist()
    assert [text for text in told if text.startswith("Expected one row for each of 1 rows of candidate_record")]
    assert verify(store, broken.run_id).ok
    assert [replay(store, each["snapshot_id"]).status for each in after] == ["failed", "ok", "ok"]


def test_no_block_leaves_over_a_log_that_was_changed(tmp_path: Path):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    retriever = story.open(runs=tmp_path / "runs")
    retriever.retrieve(QUESTION)
    log = tmp_path / "runs" / "LOG"
    log.write_bytes(log.read_bytes().replace(b'"number":1', b'"number":7'))
    found = retriever.retrieve(QUESTION)
    assert (found.action, found.block, found.snapshot_id) == ("block", "", None)
    assert "snapshot_missing" in {each["condition"] for each in found.conditions}


def test_a_full_disk_is_no_broken_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    monkeypatch.setattr(
        RunLog, "commit", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    found = story.open(runs=tmp_path / "runs").retrieve(QUESTION, require_snapshot=False)
    assert (found.status, found.action, bool(found.block)) == ("ok", "degrade", True)
    (told,) = (each for each in found.conditions if each["condition"] == "snapshot_missing")
    assert told["message"] == "Expected no error, got No space left on device"


def searched(store: Runs, run_id: str) -> list[bool]:
    """Whether the vector of the question is stored, for each time that the question is."""
    return [one["vector"] is not None for one in store.open(run_id).texts.to_pylist() if one["text"] == QUESTION]


def test_the_texts_that_the_semantic_lane_searched_for_keep_their_vectors(tmp_path: Path):
    story = Story(tmp_path, row("doc", "docs/roles.md", "guest sessions\n"), encoder=WordsByTheirStart())
    store = Runs(tmp_path / "runs")
    for effort, kept in (("none", False), (None, True)):
        with story.open(runs=store) as retriever:
            found = retriever.retrieve({"question": QUESTION, "recall_effort": effort} if effort else QUESTION)
            assert searched(store, found.snapshot_id or "") == [kept]
        assert searched(store, found.snapshot_id or "") == [kept]
