"""The snapshot in the shape of document 000: every field has its value, and a caller learns nothing of other users' rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from audited_runs import ASKED, SAYS, settings_of
from golden_file import expect_golden
from scoped_retrieval.pipeline.reading.access import replayed
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.servers.renderings import rendered
from scoped_retrieval.pipeline.views.audit_snapshot import audit_snapshot
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.golden
def test_the_view_is_the_golden_one():
    rows = ROWS | {"citations": [row | {"evidence_kind": "test-log"} for row in ROWS["citations"]]}
    expect_golden(GOLDEN / "audit_snapshot.json", json.dumps(audit_snapshot(rows), indent=2) + "\n")
    caller = json.dumps(audit_snapshot(rows, audit=False), indent=2) + "\n"
    expect_golden(GOLDEN / "audit_snapshot_caller.json", caller)


def test_every_field_says_what_the_snapshot_holds(world):
    settings = settings_of(world.folder)
    snapshots = Runs(settings["runs"]).open(world.run).table("snapshots").to_pylist()
    name = max(snapshots, key=lambda each: each["rejected"])["snapshot_id"]
    value = rendered(settings, name, "audit").value
    kept = replayed(settings, name)
    assert value["id"] == name
    assert (value["scope"]["userId"], value["scope"]["projectId"]) == ("ana", "shop")
    assert value["plan"]["scopeId"] == kept.snapshot["contract_id"]
    assert len(value["plan"]["subQueries"]) == kept.tables["sub_queries"].num_rows > 0
    stats, decisions = value["candidateStats"], kept.decisions.to_pylist()
    ranked = {row["evidence_id"]: row for row in kept.tables["ranked"].to_pylist()}
    assert sorted(d["rank"] for d in decisions) == list(range(1, len(decisions) + 1))
    for d in decisions:
        assert (d["reason_text"] == ranked[d["evidence_id"]]["selected_reason"]) == (d["outcome"] == "selected")
    assert stats["recalled"] == stats["selected"] + stats["filtered"] == len(decisions)
    lost = {d["evidence_id"] for d in decisions if d["outcome"] != "selected"}
    assert lost and {one["candidateId"] for one in value["rejectedItems"]} == lost
    assert all(set(one) == {"candidateId", "outcome", "stage", "reason"} for one in value["rejectedItems"])
    for item in value["selectedItems"]:
        assert SAYS in item["visibleText"]
        assert (
            value["contextProjection"]["citationMap"][item["citationId"]]["visibleTextHash"] == item["visibleTextHash"]
        )
    assert value["budget"]["estimatedTokens"] == kept.snapshot["estimated_tokens"] > 0
    assert value["contextProjection"]["messageBlockRef"] == kept.snapshot["block_ref"]


def test_a_caller_gets_the_shape_without_what_others_hold(world):
    value = rendered(settings_of(world.folder, "bob"), world.bob, "audit").value
    assert set(value["candidateStats"]) == {"selected"}
    assert value["rejectedItems"] == value["plan"]["subQueries"] == []
    assert value["selectedItems"] and value["scope"]["permissionContext"] == {"principal": "bob", "denied": False}
    of_auditor = rendered(settings_of(world.folder), world.bob, "audit").value  # ana audits the project
    assert {"recalled", "filtered", "redacted"} <= set(of_auditor["candidateStats"])
    assert of_auditor["plan"]["subQueries"]


def test_a_denied_request_has_its_reason_and_no_item(world, tmp_path):
    with world.story.open(principal="eve", runs=tmp_path) as retriever:
        name = retriever.retrieve(ASKED).snapshot_id
    value = rendered(settings_of(world.folder, "eve", runs=tmp_path), name, "audit").value
    assert value["scope"]["permissionContext"]["denied"] is True
    assert value["scope"]["permissionContext"]["deniedReason"] == "nothing_granted"
    assert value["selectedItems"] == [] and value["contextProjection"]["citationMap"] == {}
