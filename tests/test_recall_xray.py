"""The x-ray of document 002: its shape, its Markdown, and what a caller may not learn from either."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from audited_runs import ASKED, settings_of
from command_line import run as command
from golden_file import expect_golden
from pydantic import ValidationError
from scoped_retrieval.pipeline.runs import Runs, replay
from scoped_retrieval.pipeline.views.recall_xray import RecallXraySnapshot, recall_xray, render_xray
from scoped_retrieval.pipeline.views.xray import rows_of
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"


def xray_of(world, name: str, who: str = "ana", *, audit: bool = True) -> dict:
    rows = rows_of(replay(Runs(settings_of(world.folder, who)["runs"]).open(name), name).tables)
    return recall_xray(rows, audit=audit)


@pytest.mark.golden
def test_markdown_and_json_are_the_golden_ones():
    shown = recall_xray(ROWS)
    for format_, name in (("markdown", "md"), ("text", "txt"), ("json", "json")):
        expect_golden(GOLDEN / f"recall_xray.{name}", render_xray(shown, format_))
    expect_golden(GOLDEN / "recall_xray_caller.json", json.dumps(recall_xray(ROWS, audit=False), indent=2) + "\n")


def test_every_snapshot_has_the_shape_of_version_1(world):
    for name in (world.ana, world.bob):
        snapshot = xray_of(world, name)
        assert snapshot["schemaVersion"] == "1"
        assert isinstance(snapshot["capturedAt"], int)
        RecallXraySnapshot.model_validate(snapshot)
        with pytest.raises(ValidationError):
            RecallXraySnapshot.model_validate(snapshot | {"extra": 1})


def test_the_ladder_accounts_for_every_row_from_the_corpus_to_the_result(world):
    snapshot = xray_of(world, world.ana)
    filters = snapshot["filters"]
    assert filters[0]["name"] == "project" and "recall" in [trace["name"] for trace in filters]
    for before, trace in pairwise(filters):
        assert trace["considered"] == before["admitted"]
    for trace in filters:
        assert 0 <= trace["admitted"] <= trace["considered"]
        assert ("reason" in trace) == (trace["admitted"] < trace["considered"])
    selected = [d for d in ROWS["decisions"] if d["outcome"] == "selected"]
    named = {"pack": "mmr-diversify", "trim": "budget-fit"}
    for stage in ("merge", "rank", "select", "pack", "trim", "cite"):
        rows = copy.deepcopy(ROWS)
        rows["decisions"][1]["stage"] = stage
        count = len(selected)
        last = {"name": named.get(stage, stage), "considered": count + 1, "admitted": count, "reason": "low_score 1"}
        assert recall_xray(rows)["filters"][-1] == last


def test_a_direct_answer_explains_its_tier_and_nothing_else_does(world):
    rows = copy.deepcopy(ROWS)
    assert recall_xray(rows)["tierExplain"] is None
    rows["candidates"][0]["lanes"] = ["exact"]
    rows["citations"][0] |= {"path": "logs/auth.log", "line_start": 12, "line_end": 14}
    explained = recall_xray(rows)["tierExplain"]
    assert explained["tier"] == "direct-answer"
    assert explained["sourceAnchors"] == ["logs/auth.log:12-14"]
    assert recall_xray(rows, looked_up_ms=8.0)["tierExplain"]["latencyMs"] == 8.0
    assert (explained["candidatesConsidered"], explained["filteredBy"]) == (4, ["low_score", "not_model_visible"])
    told = recall_xray(rows, looked_up_ms=8.0, audit=False)["tierExplain"]
    assert (told["candidatesConsidered"], told["filteredBy"], "latencyMs" in told) == (1, [], False)
    rows["item_details"] = [{"evidence_id": "e1", "tags": [], "importance": 0.6}]
    assert recall_xray(rows)["results"][0]["scoreDecomposition"]["importance"] == 0.6


@pytest.mark.parametrize(
    ("lanes", "tier"),
    [
        (["exact", "graph", "lexical"], "direct-answer"),
        (["graph", "lexical", "recent"], "hybrid"),
        (["graph", "recent"], "graph"),
        (["recent"], "recent-scan"),
    ],
)
def test_an_item_of_several_lanes_is_served_by_the_first_tier(lanes: list[str], tier: str):
    rows = copy.deepcopy(ROWS)
    rows["candidates"][0]["lanes"] = lanes
    assert recall_xray(rows)["results"][0]["servedBy"] == tier


@pytest.mark.parametrize(("earned", "penalty"), [(0.25, 0.0), (0.0, 0.25)])
def test_the_best_item_of_a_kind_has_no_penalty(earned: float, penalty: float):
    rows = copy.deepcopy(ROWS)
    rows["ranked"][0]["diversity"] = earned
    assert recall_xray(rows)["results"][0]["scoreDecomposition"]["mmrPenalty"] == penalty


def test_a_memory_was_created_at_its_own_time_and_updated_no_earlier():
    rows, day = copy.deepcopy(ROWS), datetime(2026, 4, 18, tzinfo=UTC)
    for recorded, updated in ((day - timedelta(1), None), (day, None), (day + timedelta(1), "2026-04-19")):
        rows["item_details"] = [{"evidence_id": "e1", "tags": [], "updated_at": day, "recorded_at": recorded}]
        known = recall_xray(rows)["results"][0]["provenance"]
        assert known["created"].startswith("2026-04-18")
        assert (known.get("updated") or "None").startswith(str(updated))


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


def test_a_caller_s_ladder_begins_after_the_gates_and_names_what_admitted_an_item(world):
    snapshot, audited_ = xray_of(world, world.bob, "bob", audit=False), xray_of(world, world.bob)
    names = [trace["name"] for trace in audited_["filters"]]
    assert snapshot["filters"] == audited_["filters"][names.index("recall") :]
    shown = [(one["memoryId"], one["admittedBy"]) for one in snapshot["results"]]
    assert shown == [(one["memoryId"], one["admittedBy"]) for one in audited_["results"]] and shown[0][1]
    assert all("rejectedBy" not in one for one in snapshot["results"])


def test_a_graph_path_names_relations_and_a_caller_sees_it_between_rows_that_are_shown():
    rows = copy.deepcopy(ROWS)
    rows["candidates"][0]["lanes"] = ["graph"]
    rows["hits"] = [{"evidence_id": "e1", "lane": "graph", "rank": 1, "withheld": False, "via": "imports 0.87 e0"}]
    result = recall_xray(rows)["results"][0]
    assert (result["graphPath"], result["graphEdgeConfidences"]) == (["e0", "imports -> e1"], [0.87])
    assert "    graph-path: e0 -> imports -> e1\n    edge-confidences: 0.87\n" in render_xray(recall_xray(rows))
    assert "graphPath" not in recall_xray(rows, audit=False)["results"][0]
    rows["citations"].append(rows["citations"][0] | {"label": "doc#2", "evidence_id": "e0"})
    assert recall_xray(rows, audit=False)["results"][0]["graphPath"] == ["e0", "imports -> e1"]
    rows["hits"].append({"evidence_id": "e0", "lane": "graph", "rank": 1, "withheld": False, "via": "calls 0.5 e9"})
    result = recall_xray(rows)["results"][0]
    assert (result["graphPath"], result["graphEdgeConfidences"]) == (
        ["e9", "calls -> e0", "imports -> e1"],
        [0.5, 0.87],
    )
    assert "graphPath" not in recall_xray(rows, audit=False)["results"][0]


def test_evidence_opens_nothing_in_markdown():
    rows = copy.deepcopy(ROWS)
    rows["citations"][0]["locator"] = "a|b\n## c <script> [x](y) `z`"
    text = render_xray(recall_xray(rows), "markdown")
    assert "\\|b \\#\\# c \\<script\\> \\[x\\](y) \\`z\\`" in text
    assert "\n## c" not in text


DOCUMENT_S_SAMPLE = """\
=== Recall X-ray ===
query: what did we decide about the recall cache TTL
snapshot-id: 5f6b1a2c-9d8e-4c01-8f3a-1b2c3d4e5f60
captured-at: 2026-04-20T17:30:00.000Z
session: agent-session-42
namespace: alice-project-origin-ab12cd34
trace-id: trace-7c1f
budget: 5284 / 8192 chars

--- filters ---
- status-active: 11/12 admitted (rejected superseded)
- trust-zone: 11/11 admitted

--- results ---
[1] decisions/recall-cache-ttl — served-by=direct-answer
    path: decisions/recall-cache-ttl.md
    score: final=0.8912 importance=0.6000 tier_prior=0.3000
    provenance: source=conversation created=2026-04-18T21:13:00.000Z scope=namespace:alice-project-origin-ab12cd34 \
confidence=0.94 stale=false corrected=false safe=true
    retrieval-reason: served-by=direct-answer
    context-scopes: repo, work
    admitted-by: namespace-scope, status-active
    audit-entry: audit-0e4a1b
[2] decisions/recall-cache-eviction — served-by=hybrid
    path: decisions/recall-cache-eviction.md
    score: final=0.7204 vector=0.5812 bm25=0.4733 mmr_penalty=0.0400
    provenance: source=conversation created=2026-03-28T14:02:00.000Z scope=namespace:alice-project-origin-ab12cd34 \
confidence=0.83 stale=true corrected=superseded safe=false
    retrieval-reason: served-by=hybrid
    safety: requires-review (status=superseded, stale=true)
    admitted-by: namespace-scope
    audit-entry: audit-0e4a1c
[3] notes/perf-regression-2026-03 — served-by=graph
    path: notes/perf-regression-2026-03.md
    score: final=0.6187 vector=0.4910 tier_prior=0.1500
    graph-path: recall-cache-ttl -> related-to -> perf-regression-2026-03
    edge-confidences: 0.87
    admitted-by: namespace-scope
    rejected-by: below-token-overlap-floor
    audit-entry: audit-0e4a1d

--- tier explain ---
tier: direct-answer
reason: trusted decisions, unambiguous, token-overlap 0.86
candidates-considered: 4
latency-ms: 8
filtered-by: below-token-overlap-floor
source-anchors:
  - decisions/recall-cache-ttl.md:10-14
"""


def test_the_text_is_laid_out_as_the_document_s_sample():
    scope = "alice-project-origin-ab12cd34"
    known = {"source": "conversation", "scope": f"namespace:{scope}", "stale": False, "corrected": False, "safetyReasons": [],
             "correctionState": "none", "safeToUse": True, "safety": "safe", "userContextScopes": []}  # fmt: skip
    first = known | {"created": "2026-04-18T21:13:00.000Z", "confidence": 0.94, "userContextScopes": ["repo", "work"],
                     "retrievalReason": "served-by=direct-answer"}  # fmt: skip
    second = known | {"created": "2026-03-28T14:02:00.000Z", "confidence": 0.83, "stale": True, "corrected": True,
                      "correctionState": "superseded", "safeToUse": False, "safety": "requires-review",
                      "safetyReasons": ["status=superseded", "stale=true"], "retrievalReason": "served-by=hybrid"}  # fmt: skip
    snapshot = {
        "schemaVersion": "1", "query": "what did we decide about the recall cache TTL", "capturedAt": 1776706200000,
        "snapshotId": "5f6b1a2c-9d8e-4c01-8f3a-1b2c3d4e5f60", "sessionKey": "agent-session-42", "namespace": scope,
        "traceId": "trace-7c1f", "budget": {"chars": 8192, "used": 5284},
        "filters": [
            {"name": "status-active", "considered": 12, "admitted": 11, "reason": "rejected superseded"},
            {"name": "trust-zone", "considered": 11, "admitted": 11},
        ],
        "results": [
            {"memoryId": "decisions/recall-cache-ttl", "path": "decisions/recall-cache-ttl.md", "servedBy": "direct-answer",
             "scoreDecomposition": {"importance": 0.6, "tierPrior": 0.3, "final": 0.8912}, "provenance": first,
             "admittedBy": ["namespace-scope", "status-active"], "auditEntryId": "audit-0e4a1b"},
            {"memoryId": "decisions/recall-cache-eviction", "path": "decisions/recall-cache-eviction.md", "servedBy": "hybrid",
             "scoreDecomposition": {"vector": 0.5812, "bm25": 0.4733, "mmrPenalty": 0.04, "final": 0.7204},
             "provenance": second, "admittedBy": ["namespace-scope"], "auditEntryId": "audit-0e4a1c"},
            {"memoryId": "notes/perf-regression-2026-03", "path": "notes/perf-regression-2026-03.md", "servedBy": "graph",
             "scoreDecomposition": {"vector": 0.491, "tierPrior": 0.15, "final": 0.6187}, "admittedBy": ["namespace-scope"],
             "graphPath": ["recall-cache-ttl", "related-to", "perf-regression-2026-03"], "graphEdgeConfidences": [0.87],
             "rejectedBy": "below-token-overlap-floor", "auditEntryId": "audit-0e4a1d"},
        ],
        "tierExplain": {
            "tier": "direct-answer", "reason": "trusted decisions, unambiguous, token-overlap 0.86", "candidatesConsidered": 4,
            "latencyMs": 8, "filteredBy": ["below-token-overlap-floor"],
            "sourceAnchors": ["decisions/recall-cache-ttl.md:10-14"],
        },
    }  # fmt: skip
    assert render_xray(snapshot) == DOCUMENT_S_SAMPLE


def test_every_format_names_filters_as_the_document_does():
    rows = copy.deepcopy(ROWS)
    rows["filter_ladder"] += [
        {"gate": name, "gate_class": "access", "considered": 9, "admitted": 9, "reason_code": "x"}
        for name in ("namespace", "lifecycle", "zone", "path_deny")
    ]
    rows["decisions"][0] |= {"would_reject_by": "lifecycle"}
    snapshot = recall_xray(rows)
    names = [trace["name"] for trace in snapshot["filters"]]
    assert names[3:7] == ["namespace-scope", "status-active", "trust-zone", "path-deny"]
    assert snapshot["results"][0]["admittedBy"] == names[:7]
    assert snapshot["results"][0]["rejectedBy"] == "status-active"
    assert "rejectedBy" not in recall_xray(rows, audit=False)["results"][0]
    text = render_xray(snapshot)
    assert f"    admitted-by: {', '.join(names[:7])}\n    rejected-by: status-active\n" in text
    assert all(f"- {name}: 9/9 admitted\n" in text for name in names[3:7])


@pytest.mark.parametrize(
    ("item", "detail", "candidate", "state", "corrected", "safety"),
    [
        ({}, {}, {}, "none", False, "safe"),
        ({}, {}, {"via": "superseding"}, "correction", True, "safe"),
        ({}, {"tags": ["correction"]}, {}, "correction", True, "safe"),
        ({"history": True}, {}, {}, "superseded", True, "requires-review"),
        ({}, {"disputed": True}, {}, "disputed", False, "requires-review"),
        ({}, {"lifecycle": "revoked"}, {}, "forgotten", False, "blocked"),
    ],
)
def test_each_state_of_correction_has_its_safety(item, detail, candidate, state, corrected, safety):
    rows = copy.deepcopy(ROWS)
    rows["citations"][0]["standing"] = "evidence"
    rows["trimmed"][0] |= item
    rows["item_details"] = [{"evidence_id": "e1", "freshness": "fresh", "tags": [], "updated_at": None, **detail}]
    rows["candidates"][0] |= candidate
    known = recall_xray(rows)["results"][0]["provenance"]
    assert (known["correctionState"], known["corrected"], known["safety"]) == (state, corrected, safety)


def test_scopes_come_from_tags_and_the_namespace_stays_the_scope():
    rows = copy.deepcopy(ROWS)
    tags = ["private", "odd", "work", "do-not-use-outside-this-context", "repo"]
    rows["item_details"] = [
        {"evidence_id": id_, "freshness": "fresh", "tags": each, "updated_at": None}
        for id_, each in (("e0", []), ("e1", tags))
    ]
    rows["contracts"][0]["namespace"] = "alice"
    snapshot = recall_xray(rows)
    known = snapshot["results"][0]["provenance"]
    assert known["userContextScopes"] == ["work", "repo", "private", "do-not-use-outside-this-context"]
    assert (known["scope"], known["namespace"], snapshot["namespace"]) == ("namespace:alice", "alice", "alice")


def test_a_query_is_asked_first_and_a_file_may_begin_with_a_tilde(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = ["--runs", str(tmp_path / "runs"), "--grants", str(world.folder / "grants.yaml")]
    flags += ["--corpus", str(world.folder / "corpus"), "--project", "shop"]
    code, _, err = command("xray", ASKED["question"], "--budget", "900", "--out", "~/x.txt", *flags, capsys=capsys)
    assert code == 0, err
    text = (tmp_path / "x.txt").read_text(encoding="utf-8")
    assert text.startswith(f"=== Recall X-ray ===\nquery: {ASKED['question']}\n")
    assert " / 900 chars\n" in text
    for wrong in ("0", "-1", "many"):
        code, _, err = command("xray", ASKED["question"], "--budget", wrong, *flags, capsys=capsys)
        assert code == 2
        assert "--budget" in err
