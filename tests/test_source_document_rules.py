"""Rules of the source documents about ranking, memory states, callers and caps, each on a few visible rows."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.audit.records import snapshot_digests
from scoped_retrieval.nodes.tables import PROVENANCE
from scoped_retrieval.nodes.vocabulary import PURPOSES
from scoped_retrieval.pipeline.config.declared_settings import WEIGHT_SETS
from scoped_retrieval.pipeline.requests.resolve import resolve_requests
from scoped_retrieval.pipeline.runs import Runs, verify
from small_corpus import Row, Story, days_ago, decided, places, row, shown
from stand_in_encoder import WordsByTheirStart

FIXTURE = "tests/auth/session.fixture.ts"
FAILING = {"failing_test": "tests/auth/session.test.ts", "error_text": "expected role admin, received undefined"}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


# --- ranking

LOG = row("test-log", "logs/auth.log", "FAIL tests/auth/session.test.ts\nAssertionError: role undefined", days=0.1)
CODE = row("code", "src/auth/session.ts", "export function createSession(user) {\n  return { role: user.role }\n}")
DESIGN = row(
    "doc", "docs/architecture.md", "How roles and sessions are built: a role belongs to a session.", authority=2
)
RULE = row("rule", "docs/permissions.md", "Only an admin may grant a role.", days=500, authority=2)
DECISION = row("decision-record", "decisions/1.md", "Security: a session gets no default role.", days=800, authority=2)


@pytest.mark.parametrize(
    ("purpose", "before", "after"),
    [
        ("fix-test", {LOG["path"], CODE["path"]}, {DESIGN["path"]}),
        ("review-risk", {RULE["path"], DECISION["path"]}, {LOG["path"], CODE["path"], DESIGN["path"]}),
    ],
)
def test_the_purpose_decides_what_comes_first(story: Story, purpose: str, before: set[str], after: set[str]):
    """S0.16: fix-test prefers failures and related files, review-risk permission rules and security decisions."""
    story.tell(LOG, CODE, DESIGN, RULE, DECISION)
    found = places(story.ask("Why has the session no role?", purpose=purpose, anchors=FAILING))
    assert max(found.index(path) for path in before) < min(found.index(path) for path in after)


def test_a_current_file_beats_an_old_summary_and_a_decision_beats_a_generated_file(story: Story):
    """S0.32: authority is not absolute."""
    summary = row(
        "session-event", "sessions/1", "createClient builds the API client.", days=60, document_type="summary"
    )
    generated = row("code", "src/generated/client.ts", "export function createClient() {}", days=0, generated=True)
    current = row("code", "src/client.ts", "export const wrapped = createClient()")
    decision = row("decision-record", "decisions/7.md", "Do not edit the generated createClient by hand.", days=300)
    story.tell(summary, generated, current, decision)
    for purpose in ("fix-test", "explain-code", "review-risk"):
        found = places(story.ask("May I edit the generated createClient?", purpose=purpose))
        assert found.index("src/client.ts") < found.index("sessions/1"), purpose
        assert found.index("decisions/7.md") < found.index("src/generated/client.ts"), purpose


def test_the_latest_failure_comes_first_and_an_old_standard_still_counts(story: Story):
    """S0.33: newer is not better by itself."""
    logs = [row("test-log", f"logs/{days}.log", f"FAIL role undefined in run {days}", days=days) for days in (20, 1, 9)]
    standard = row("rule", "standards/roles.md", "A test declares the role it is about.", days=2000, authority=2)
    draft = row("rule", "notes/roles.md", "A test declares a role or none.", days=1, authority=1)
    story.tell(*logs, standard, draft)
    found = story.ask("Which role does the test declare, and why undefined?", purpose="fix-test")
    assert [path for path in places(found) if path.startswith("logs")] == ["logs/1.log", "logs/9.log", "logs/20.log"]
    assert places(found).index("standards/roles.md") < places(found).index("notes/roles.md")
    terms = {t["evidence_id"]: t["recency"] for t in found.tables["score_terms"].to_pylist()}
    assert terms[decided(found, "standards/roles.md")["evidence_id"]] == 1.0


SUITE = {"test_suite": "auth"}


@pytest.mark.parametrize(
    ("weakness", "seen"),
    [
        ({"origin_class": "external", "authority": 0, "declared_standing": "untrusted"}, True),
        ({"recorded_time": days_ago(3000)}, True),
        ({"test_suite": "admin"}, False),
    ],
    ids=["low authority", "stale", "weakly scoped"],
)
def test_what_is_only_similar_does_not_rank_first(tmp_path: Path, weakness: Row, seen: bool):
    """S0.97, S0.119: the fixture that the failing test names may, though it says hardly a word of the question."""
    question = "Why is the admin role of a session undefined?"
    story = Story(
        tmp_path,
        row("doc", "docs/similar.md", f"{question} The admin role of a session is undefined.") | SUITE | weakness,
        row(
            "code", FIXTURE, "export function createUserMock(overrides) {\n  return { id: 1, ...overrides }\n}", **SUITE
        ),
        encoder=WordsByTheirStart(),
    )
    found = story.ask(question, purpose="fix-test", anchors={**FAILING, "current_files": [FIXTURE]}, **SUITE)
    assert places(found) == [FIXTURE, *(["docs/similar.md"] if seen else [])]
    similar = {t["evidence_id"]: t["semantic"] for t in found.tables["score_terms"].to_pylist()}
    fixture = similar.pop(decided(found, FIXTURE)["evidence_id"])
    assert all(value > 2 * fixture for value in similar.values())


@pytest.mark.parametrize("wanted", ["a", "b"])
@pytest.mark.parametrize(
    ("signal", "anchors"),
    [
        ("identifier", {"symbols": ["load_{}"]}),
        ("path", {"current_files": ["src/{}.py"]}),
        ("call chain", {"symbols": ["start"]}),
        ("test name", {"failing_test": "tests/test_{}.py::test_{}"}),
        ("recent edit", {}),
        ("stack trace", {"stack_trace": 'Traceback\n  File "src/{}.py", line 1, in load_{}\nValueError'}),
    ],
)
def test_each_signal_of_code_decides_between_two_equal_files(story: Story, signal: str, anchors: dict, wanted: str):
    """S0.98: identifiers, paths, calls of what is named, test names, recent edits and stack traces."""
    for name in "ab":
        edited = 1 if (signal, name) == ("recent edit", wanted) else 90
        text = f"def load_{name}(value):\n    return value  # seen by tests/test_{name}.py::test_{name}\n"
        calls = ["start"] if (signal, name) == ("call chain", wanted) else []
        story.tell(row("code", f"src/{name}.py", text, days=edited, symbols=[f"load_{name}"], calls=calls))
    named = {
        key: [value.format(wanted) for value in values] if isinstance(values, list) else values.format(wanted, wanted)
        for key, values in anchors.items()
    }
    found = story.ask("Which value is returned?", purpose="fix-test", anchors=named)
    best, other = found.tables["ranked"].to_pylist()
    assert places(found)[0] == f"src/{wanted}.py"
    term = "recency" if signal == "recent edit" else "anchor"
    assert best[term] > other[term]


@pytest.mark.parametrize("purpose", PURPOSES.values)
def test_the_documents_formula_is_a_named_set_of_weights(purpose: str):
    """S0.95: its lexical match with anchors is two terms here."""
    assert WEIGHT_SETS["document-000"] == {
        "semantic": 0.20, "lexical": 0.10, "anchor": 0.10, "authority": 0.20, "recency": 0.15, "actionability": 0.15,
        "diversity": 0.10, "scope": 0.0, "turn_context": 0.0, "turn_answer": 0.0, "turn_session": 0.0,
        "cross_encoder": 0.0, "file": 0.0, "passages": 0.0, "outlines": 0.0, "file_name": 0.0, "definition": 0.0, "lexical_feedback": 0.0,
        "semantic_feedback": 0.0,
    }  # fmt: skip
    assert sum(WEIGHT_SETS["document-000"].values()) == pytest.approx(1.0)
    row = {"request_id": "r", "question": "?", "project": "shop", "purpose": purpose, "weights": "document-000"}
    requests, failures = resolve_requests([row], principal="ana", asked_at=days_ago(0))
    assert not failures.num_rows
    said = requests.to_pylist()[0]
    assert {name: said[f"weight_{name}"] for name in WEIGHT_SETS["document-000"]} == WEIGHT_SETS["document-000"]


def test_what_names_the_failing_test_says_so(story: Story):
    """S0.60, S0.66: the reason is short and is recorded with the item."""
    story.tell(row("test-log", "logs/run.log", "FAIL tests/test_role.py::test_default\nAssertionError"))
    found = story.ask("Why?", purpose="fix-test", anchors={"failing_test": "tests/test_role.py::test_default"})
    assert found.tables["ranked"]["selected_reason"].to_pylist() == ["matched failing test name"]


# --- memory


def memory(name: str, text: str, state: str, **columns: Any) -> Row:
    """A memory of the whole project."""
    return row("memory", f"memory/{name}", text, days=10, entity=name, lifecycle=state) | {"owner_user": "", **columns}


QUESTION = {"question": "How was the role of the fixture fixed?", "purpose": "answer-question"}


def test_a_verified_memory_is_evidence_in_every_state_of_the_question(story: Story):
    """S0.108: of the states, only verified is shown as evidence by default."""
    states = ("candidate", "verified", "deprecated", "expired", "revoked")
    story.tell(*(memory(state, f"The role of the fixture was fixed, says {state}.", state) for state in states))
    found = story.ask(**QUESTION, max_unverified_items=0)
    assert places(found) == ["memory/verified"]
    assert shown(found, "memory/verified")["standing"] == "evidence"
    assert decided(found, "memory/revoked")["outcome"] in ("hidden", "rejected")


def test_a_candidate_is_a_hint_at_most(story: Story):
    """S0.90, S0.109: if it is shown at all, it says that it is unverified; it never has the standing of evidence."""
    story.tell(memory("1", "The role of the fixture was fixed by a default.", "candidate"))
    kept = story.ask(**QUESTION, max_unverified_items=0)
    assert kept.block == "" and decided(kept, "memory/1")["reason_code"] in ("unverified_cap", "lifecycle_excluded")
    found = story.ask(**QUESTION, max_unverified_items=1)
    assert (shown(found, "memory/1")["standing"], shown(found, "memory/1")["form"]) == ("hint", "hint")
    assert ", unverified hint, weak signal" in found.block
    assert "unverified_only" in {c["condition"] for c in found.conditions}


def test_a_deprecated_memory_explains_history_and_no_more(story: Story):
    """S0.110: not recalled by default; where asked for, below what holds today and called history."""
    old = memory("old", "The role of the fixture was fixed by a default role: the role of the fixture.", "deprecated")
    story.tell(old, memory("new", "A fixture declares its role.", "verified"))
    assert places(story.ask(**QUESTION)) == ["memory/new"]
    found = story.ask(**QUESTION, allow_stale_memory=True)
    assert places(found) == ["memory/new", "memory/old"]
    assert (shown(found, "memory/old")["standing"], shown(found, "memory/old")["history"]) == ("history", True)
    assert ", history, not current" in found.block


def test_a_conflicted_memory_comes_with_its_other_side(story: Story):
    """S0.111: the convenient side is never shown alone: the other comes along, or neither is shown and the answer says so."""
    token = memory("token", "The role of the fixture comes from the token.", "verified", conflict_set="source")
    record = memory("record", "Users have it written down somewhere.", "verified", conflict_set="source")
    # Newer rows keep the record out of every lane but the one that follows conflict sets.
    others = [memory(str(n), f"Number {n} is newer.", "verified", recorded_time=days_ago(0.01)) for n in range(12)]
    story.tell(token, record, *others)
    both = story.ask(**QUESTION, lane_k=6)
    rival = decided(both, "memory/record")["evidence_id"]
    assert {h["via"] for h in both.tables["hits"].to_pylist() if h["evidence_id"] == rival} == {"conflict"}
    assert {"memory/token", "memory/record"} <= set(places(both))
    assert both.block.count("conflicting claim)") == 2
    assert "a competing claim may exist" not in both.block
    one = story.ask(**QUESTION, lane_k=6, max_tokens=110)
    assert "memory/token" not in places(one)
    (said,) = (c["message"] for c in one.conditions if c["condition"] == "conflicting")
    assert said == "competing claims have no room together, and none of them is shown"
    assert decided(one, "memory/token")["reason_code"] == "conflict_downrank"


def test_a_private_memory_is_read_by_its_user_in_its_project_alone(story: Story):
    """S0.112: similar as it may be."""
    story.grant("bo", "shop")
    story.grant("ana", "billing")
    story.tell(memory("mine", "The role of the fixture was fixed in private.", "private", owner_user="ana"))
    assert places(story.ask(**QUESTION)) == ["memory/mine"]
    assert story.ask(**QUESTION, principal="bo").block == ""
    assert story.ask(**QUESTION, project="billing").block == ""


def test_a_verified_rule_may_outrank_what_is_more_similar(story: Story):
    """S0.113: a less similar rule of the project before a hunch that repeats the question, where a purpose weighs authority."""
    hunch = memory("1", "How was the role of the fixture fixed? The role of the fixture was fixed.", "candidate")
    story.tell(hunch, row("rule", "AGENTS.md", "Every fixture says which role it has.", authority=2))
    found = story.ask(**{**QUESTION, "purpose": "review-risk"}, max_unverified_items=1)
    scores = {c["evidence_id"]: c["bm25_raw"] for c in found.tables["candidates"].to_pylist()}
    similar, rule = (scores[decided(found, path)["evidence_id"]] for path in ("memory/1", "AGENTS.md"))
    assert similar > rule
    assert places(found) == ["AGENTS.md", "memory/1"]


@pytest.mark.parametrize("cap", [0, 1, 2, 5])
def test_no_more_unverified_items_are_shown_than_asked_for(story: Story, cap: int):
    """S0.18: `max_unverified_items`; what it drops is recorded."""
    story.tell(*(memory(str(n), f"The role of fixture {n} was fixed in part {n}.", "candidate") for n in range(4)))
    found = story.ask(**QUESTION, evidence_policy={"max_unverified_items": cap}, max_items_per_source=9)
    assert len(found.citations) == min(cap, 4)
    reasons = [d["reason_code"] for d in found.tables["decisions"].to_pylist() if d["outcome"] != "selected"]
    assert len(reasons) == 4 - len(found.citations)
    assert set(reasons) <= {"unverified_cap", "lifecycle_excluded"}


# --- callers


def test_who_the_intent_comes_from_changes_nothing(story: Story):
    """S0.78: model, policy and runtime take the same path: the digests are equal, but for the word itself."""
    story.tell(LOG, CODE, DESIGN, RULE, DECISION, memory("1", "The role was fixed.", "candidate"))
    asked = {"purpose": "fix-test", "request_id": "r1", "max_unverified_items": 1}
    blocks, digests, records = set(), set(), set()
    for source in ("model", "policy", "runtime"):
        tables = story.ask("Why has the session no role?", intent_source=source, **asked).tables
        requests = tables["request_record"]
        assert tables["requests"]["intent_source"].to_pylist() == [source]
        at = requests.column_names.index("requests.intent_source")
        unnamed = tables | {"request_record": requests.set_column(at, requests.schema.field(at), pa.array(["-"]))}
        blocks.add(tables["blocks"]["text"][0].as_py())
        digests.update(snapshot_digests(unnamed, PROVENANCE.empty(), requests["request_id"]))
        records.add(tables["snapshots"]["snapshot_digest"][0].as_py())
    assert len(blocks) == len(digests) == 1
    assert len(records) == 3


def test_a_block_leaves_only_with_its_snapshot(story: Story):
    """S0.18, `requireSnapshot`: without a folder of runs nothing leaves; with one the snapshot is there first."""
    story.tell(CODE)
    policy = {"requireSnapshot": True}
    refused = story.ask("createSession", evidencePolicy=policy)
    assert (refused.status, refused.action, refused.block, refused.citations) == ("failed", "block", "", [])
    assert refused.event["selectedCount"] == 0
    with story.open(runs=story.folder / "runs") as retriever:
        found = retriever.retrieve("createSession", evidencePolicy=policy)
        assert verify(Runs(story.folder / "runs"), found.snapshot_id).ok
    assert "createSession" in found.block


def test_the_event_and_the_observation_have_their_shapes(story: Story):
    """S0.83 and S0.84, with the citation map of S0.101; neither event nor map holds text."""
    story.tell(LOG, CODE)
    intent = {
        "kind": "retrieval.request",
        "id": "intent-7",
        "purpose": "fix-test",
        "question": "Why has the session no role?",
        "anchors": {"failingTest": "tests/auth/session.test.ts", "currentFiles": ["src/auth/session.ts"]},
        "requiredEvidence": ["current-code", "test-log"],
        "project": "shop",
    }
    with story.open(runs=story.folder / "runs") as retriever:
        found = retriever.retrieve(intent)
    assert found.event == {
        "type": "retrieval.snapshot.created",
        "snapshotId": found.snapshot_id,
        "intentId": "intent-7",
        "selectedCount": 2,
        "visibleTextHash": hashlib.sha256(found.block.encode()).hexdigest(),
        "blockRef": re.match("Evidence package snapshot: (.*)", found.block)[1],
    }
    assert found.observation == {
        "type": "retrieval.observation",
        "snapshotId": found.snapshot_id,
        "blockRef": found.event["blockRef"],
        "contextBlock": found.block,
        "citationMap": found.citation_map,
    }
    for label, entry in found.citation_map.items():
        assert set(entry) == {"snapshotItemId", "sourceRef", "visibleTextHash", "authority", "evidenceKind"}
        assert label.startswith(f"{entry['evidenceKind']}#")
        assert entry["authority"] in ("high", "medium", "low")
