"""The x-ray of document 002: its shape, its Markdown, and what a caller may not learn from either."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from audited_runs import ASKED, SAYS, audited, settings_of
from command_line import run as command
from golden_file import expect_golden
from pydantic import ValidationError
from scoped_retrieval.pipeline.service import open_run, snapshot_rows
from scoped_retrieval.pipeline.views.recall_xray import (
    TABLES_READ,
    RecallXraySnapshot,
    envelope,
    recall_xray,
    render_markdown,
)
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("recall-xray"))


def xray_of(world, name: str, who: str = "ana", *, audit: bool = True) -> dict:
    rows = snapshot_rows(open_run(settings_of(world.folder, who), name), name, TABLES_READ)
    return recall_xray(rows, audit=audit)


@pytest.mark.golden
def test_markdown_and_json_are_the_golden_ones():
    snapshot = recall_xray(ROWS)
    expect_golden(GOLDEN / "recall_xray.md", render_markdown(snapshot))
    expect_golden(GOLDEN / "recall_xray.json", json.dumps(envelope(snapshot), indent=2) + "\n")
    expect_golden(GOLDEN / "recall_xray_caller.json", json.dumps(recall_xray(ROWS, audit=False), indent=2) + "\n")


def test_every_snapshot_has_the_shape_of_version_1(world):
    for name in (world.ana, world.bob):
        snapshot = xray_of(world, name)
        assert snapshot["schemaVersion"] == "1"
        assert isinstance(snapshot["capturedAt"], int)
        RecallXraySnapshot.model_validate(snapshot)
        with pytest.raises(ValidationError):
            RecallXraySnapshot.model_validate(snapshot | {"extra": 1})


def test_considered_is_admitted_and_rejected_and_each_stage_goes_on_from_the_one_before(world):
    filters = xray_of(world, world.ana)["filters"]
    assert filters[0]["name"] == "project"
    for trace in filters:
        assert 0 <= trace["admitted"] <= trace["considered"]
        assert ("reason" in trace) == (trace["admitted"] < trace["considered"])


def test_tiers_are_lanes(world):
    rows = copy.deepcopy(ROWS)
    served = {}
    for lanes in (["exact", "lexical"], ["semantic"], ["expansion"], ["recent"]):
        rows["candidates"][0]["lanes"] = lanes
        served[lanes[0]] = recall_xray(rows)["results"][0]["servedBy"]
    assert served == {"exact": "direct-answer", "semantic": "hybrid", "expansion": "graph", "recent": "recent-scan"}
    rows["contracts"][0]["mode"] = "review"
    rows["candidates"][0]["lanes"] = ["expansion"]
    assert recall_xray(rows)["results"][0]["servedBy"] == "review-context"
    rows["citations"][0]["standing"] = "instruction"
    assert recall_xray(rows)["results"][0]["servedBy"] == "procedural"


def test_a_direct_answer_explains_its_tier_and_nothing_else_does(world):
    rows = copy.deepcopy(ROWS)
    assert recall_xray(rows)["tierExplain"] is None
    rows["candidates"][0]["lanes"] = ["exact"]
    explained = recall_xray(rows)["tierExplain"]
    assert explained["tier"] == "direct-answer"
    assert explained["sourceAnchors"] == ["logs/auth.log#12"]


def test_safety_names_its_reasons():
    rows = copy.deepcopy(ROWS)
    rows["item_details"] = [
        {"evidence_id": "e1", "freshness": "stale", "tags": ["repo", "odd"], "confidence": 0.4, "lifecycle": "candidate",
         "disputed": True, "updated_at": None}
    ]  # fmt: skip
    known = recall_xray(rows)["results"][0]["provenance"]
    assert known["safetyReasons"] == ["status=disputed", "stale=true", "standing=untrusted", "lifecycle=candidate"]
    assert (known["safety"], known["safeToUse"], known["correctionState"]) == ("requires-review", False, "disputed")
    assert (known["userContextScopes"], known["confidence"]) == (["repo"], 0.4)


def test_a_caller_learns_no_count_gate_or_withheld_row(world):
    snapshot = xray_of(world, world.bob, "bob", audit=False)
    assert snapshot["filters"] == []
    assert all(result["admittedBy"] == [] for result in snapshot["results"])
    assert [one["memoryId"] for one in snapshot["results"]] == [
        one["memoryId"] for one in xray_of(world, world.bob)["results"]
    ]


def test_evidence_opens_nothing_in_markdown():
    rows = copy.deepcopy(ROWS)
    rows["citations"][0]["locator"] = "a|b\n## c <script> [x](y) `z`"
    text = render_markdown(recall_xray(rows))
    assert "\\|b \\#\\# c \\<script\\> \\[x\\](y) \\`z\\`" in text
    assert "\n## c" not in text


def test_the_command_gives_every_format(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    starts = {
        "text": "=== Recall X-ray",
        "markdown": "## Recall X-ray",
        "json": "{",
        "html": "<!doctype html>",
        "tables": "{",
    }
    for name, start in starts.items():
        code, out, _ = command("xray", world.ana, "--format", name, *flags, capsys=capsys)
        assert (code, out.startswith(start)) == (0, True), name
        assert SAYS in out
    assert (
        json.loads(command("xray", world.ana, "--json", *flags, capsys=capsys)[1])["snapshot"]["query"]
        == ASKED["question"]
    )
    code, _, err = command("xray", world.ana, "--format", "yaml", *flags, capsys=capsys)
    assert code == 2
    assert "Expected one of text, markdown, json, html, tables, got 'yaml' - at --format" in err
