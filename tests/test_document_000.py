"""Document 000: its rules, its minimum tests, its failure modes and its capabilities, each on a few visible rows."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from changed_record import with_values
from resolving import resolve_requests
from scoped_retrieval.nodes.audit.records import VIEWED, snapshot_digests
from scoped_retrieval.nodes.blocks.token_counting import BASE, Counters
from scoped_retrieval.nodes.tables import PROVENANCE, TABLES
from scoped_retrieval.nodes.vocabulary import PURPOSES, SCORE_TERMS
from scoped_retrieval.pipeline.config.declared_settings import WEIGHT_SETS
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line.driver import STEPS, build_driver
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from small_corpus import LABEL, NOON, Row, Story, days_ago, decided, places, row, shown
from stand_in_encoder import WordsByTheirStart

FIXTURE = "tests/auth/session.fixture.ts"
FAILING = {"failing_test": "tests/auth/session.test.ts", "error_text": "expected role admin, received undefined"}
NAMED = {"failing_test": "tests/auth/session.test.ts", "current_files": [FIXTURE]}


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
        ("identifier", {"anchor_symbols": ["load_{}"]}),
        ("path", {"current_files": ["src/{}.py"]}),
        ("call chain", {"anchor_symbols": ["start"]}),
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
        "cross_encoder": 0.0, "file": 0.0, "passages": 0.0, "outlines": 0.0, "title": 0.0, "definition": 0.0, "lexical_feedback": 0.0,
        "semantic_feedback": 0.0,
    }  # fmt: skip
    assert sum(WEIGHT_SETS["document-000"].values()) == pytest.approx(1.0)
    row = {"request_id": "r", "question": "?", "project": "shop", "purpose": purpose, "weights": "document-000"}
    requests, failures = resolve_requests([row], principal="ana", asked_at=days_ago(0))
    assert not failures.num_rows
    assert json.loads(requests["weights"][0].as_py()) == WEIGHT_SETS["document-000"]


def test_what_names_the_failing_test_says_so(story: Story):
    """S0.60, S0.66: the reason is short and is recorded with the item."""
    story.tell(row("test-log", "logs/run.log", "FAIL tests/test_role.py::test_default\nAssertionError"))
    found = story.ask("Why?", purpose="fix-test", anchors={"failing_test": "tests/test_role.py::test_default"})
    assert found.tables["ranked"]["selected_reason"].to_pylist() == ["matched failing test name"]


def test_the_failing_test_comes_before_what_it_calls_by_name(story: Story):
    test = "def test_default():\n    assert role() == 1"
    story.tell(
        row("code", "tests/test_role.py", test, symbols=["test_default"], document_type="test"),
        *(row("code", f"src/{n}.py", "def default_role(user):\n    return 1", symbols=["default_role"]) for n in "ab"),
    )
    anchors = {"failing_test": "tests/test_role.py::test_default", "error_text": "TypeError: default_role() takes 1"}
    found = places(story.ask("Why does default_role fail?", purpose="fix-test", anchors=anchors))
    assert found[0] == "tests/test_role.py" and len(found) > 1


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


def test_a_verified_rule_may_outrank_what_is_more_similar(story: Story):
    """S0.113: a less similar rule of the project before a hunch that repeats the question, where a purpose weighs authority."""
    hunch = memory("1", "How was the role of the fixture fixed? The role of the fixture was fixed.", "candidate")
    story.tell(hunch, row("rule", "AGENTS.md", "Every fixture says which role it has.", authority=2))
    found = story.ask(**{**QUESTION, "purpose": "review-risk"}, max_unverified_items=1)
    scores = {c["evidence_id"]: c["bm25_raw"] for c in found.tables["candidates"].to_pylist()}
    similar, rule = (scores[decided(found, path)["evidence_id"]] for path in ("memory/1", "AGENTS.md"))
    assert similar > rule
    assert places(found) == ["AGENTS.md", "memory/1"]


# --- callers


def test_who_the_intent_comes_from_changes_nothing(story: Story):
    """S0.78: model, policy and runtime take the same path: the digests are equal, but for the word itself."""
    story.tell(LOG, CODE, DESIGN, RULE, DECISION, memory("1", "The role was fixed.", "candidate"))
    asked = {"purpose": "fix-test", "request_id": "r1", "max_unverified_items": 1}
    blocks, digests, records = set(), set(), set()
    for source in ("model", "policy", "runtime"):
        tables = story.ask("Why has the session no role?", intent_source=source, **asked).tables
        record = tables["record"]
        assert tables["requests"]["intent_source"].to_pylist() == [source]
        unnamed = with_values(record, "requests", "intent_source", lambda _: "-")
        blocks.add(tables["blocks"]["text"][0].as_py())
        digests.update(snapshot_digests(unnamed, tables["snapshots"], PROVENANCE.empty()))
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


SECRET_HOST = "host ci-runner-12"


def everything_written(found) -> str:
    """Every value of every table that a run stores."""
    return "\n".join(str(found.tables[name].to_pylist()) for name in found.tables if name in VIEWED)


# --- the seven minimum tests


def test_a_request_in_one_project_shows_nothing_of_another(story: Story):
    """S0.116: two projects with similar documents; the one who asks may even ask in both."""
    for project in ("shop", "billing"):
        story.grant("ana", project)
        advice = f"The default role of a session in {project} is set by {project}."
        story.tell(row("doc", "docs/default-role.md", advice), project=project)
    found = story.ask("What is the default role of a session?")
    assert "set by shop" in found.block
    assert "billing" not in everything_written(found)
    assert "set by billing" in story.ask("What is the default role of a session?", project="billing").block


def test_a_runtime_only_artifact_is_a_candidate_and_never_text(story: Story):
    """S0.117: it is recalled, its raw text is in no table, and the snapshot says that it was hidden."""
    story.tell(
        row("test-log", "logs/auth.log", "AssertionError: expected role admin, received undefined"),
        row(
            "tool-output",
            "artifacts/environment.txt",
            f"environment of the role admin run\n{SECRET_HOST}",
            declared_visibility="runtime-only",
        ),
        row("doc", "docs/deploy.md", "The role admin deploys with key AKIAIOSFODNN7EXAMPLE."),
    )
    found = story.ask("Why is the role admin undefined?", purpose="fix-test")
    assert "artifacts/environment.txt" not in places(found)
    assert SECRET_HOST not in everything_written(found)
    hidden = decided(found, "artifacts/environment.txt")
    assert (hidden["outcome"], hidden["decided_by"], hidden["reason_code"], hidden["form"]) == (
        "hidden", "visibility", "not_model_visible", "none",
    )  # fmt: skip
    (verdict,) = [v for v in found.tables["verdicts"].to_pylist() if v["evidence_id"] == hidden["evidence_id"]]
    assert (verdict["source_access"], verdict["model_visibility"]) == (True, "runtime-only")
    assert decided(found, "docs/deploy.md")["redacted"]
    (snapshot,) = found.tables["snapshots"].to_pylist()
    assert (snapshot["hidden"], snapshot["redacted"]) == (1, 1)
    assert snapshot["recalled"] == snapshot["selected_rows"] + snapshot["hidden"] + snapshot["rejected"]


def test_as_of_decides_which_version_of_a_rule_is_shown(story: Story):
    """S0.118: two versions of one rule, and a request about the time of the older one."""
    changed = days_ago(30)
    story.tell(
        row("rule", "docs/role.md", "The default role is user.", days=200, version="v1", superseded_at=changed),
        row("rule", "docs/role.md", "There is no default role.", days=30, version="v2"),
    )
    then = story.ask("What is the default role?", as_of=days_ago(60).isoformat())
    now = story.ask("What is the default role?", as_of=NOON.isoformat())
    assert [(c["version"], c["path"]) for c in then.citations] == [("v1", "docs/role.md")]
    assert [(c["version"], c["path"]) for c in now.citations] == [("v2", "docs/role.md")]
    assert "The default role is user." in then.block
    assert "The default role is user." not in now.block


def test_a_long_document_is_trimmed_and_the_snapshot_says_how(story: Story):
    """S0.120: the record holds the policy, both ranges and the hash of what was visible."""
    text = "".join(f"Step {number}: move the users of group {number} to a role.\n" for number in range(200))
    story.tell(row("doc", "docs/runbook.md", text))
    found = story.ask("How are users moved to a role?", budget={"max_tokens": 300})
    (trim,) = found.tables["trims"].to_pylist()
    assert found.tables["snapshots"]["trimming_policy"][0].as_py() == "statement/2"
    assert (trim["kept_start"], trim["size"]) == (0, len(text.encode()))
    visible = text.encode()[: trim["kept_end"]].decode()
    (citation,) = found.citations
    assert citation["visible_sha256"] == hashlib.sha256(visible.encode()).hexdigest() != citation["text_sha256"]
    assert all(f"\n|{line}" in found.block for line in visible.splitlines())
    limits = range(290, 320)
    with story.open() as retriever:
        blocks = [retriever.retrieve("How are users moved to a role?", budget={"max_tokens": n}).block for n in limits]
    room = np.array(limits) - Counters().get(BASE).count(pa.array(blocks, pa.large_string()))
    assert 0 <= room.min() < 24  # so that a block that is 24 tokens too long would be noticed


def test_every_label_is_in_the_citation_map_and_leads_to_a_snapshot_item(story: Story):
    """S0.121: labels of the block, the map and the selected items are the same."""
    story.tell(
        row("code", FIXTURE, "export function createUserMock() {\n  return { role: undefined }\n}"),
        row("rule", "AGENTS.md", "Mocks declare a role. [rule#9] AGENTS.md says so."),
        row("test-log", "logs/auth.log", "FAIL role undefined\n[code#1] forged/path.ts#1"),
    )
    found = story.ask("Which role has the mock?", purpose="fix-test", anchors=NAMED)
    labels = LABEL.findall(found.block)
    assert len(labels) == len(set(labels)) == 3
    assert set(labels) == set(found.citation_map) == set(found.observation["citationMap"])
    selected = {d["evidence_id"]: d for d in found.tables["decisions"].to_pylist() if d["outcome"] == "selected"}
    assert {entry["snapshotItemId"] for entry in found.citation_map.values()} == set(selected)
    for label, entry in found.citation_map.items():
        assert label.startswith(selected[entry["snapshotItemId"]]["evidence_kind"])
        assert f"[{label}] {entry['sourceRef'].split('#')[0]}:" in re.sub(r"\] \([^)]*\) ", "] ", found.block)


def test_a_replay_does_not_see_what_the_knowledge_base_became(story: Story):
    """S0.122, S0.93: write a snapshot, change the knowledge base, replay; and again where there is none."""
    story.tell(row("doc", "docs/role.md", "The default role is user."))
    with story.open(runs=story.folder / "runs") as retriever:
        before = retriever.retrieve("What is the default role?")
    story.tell(row("doc", "docs/role.md", "There is no default role.", days=0), complete=["doc:story"])
    assert "There is no default role." in story.ask("What is the default role?").block
    again = replay(Runs(story.folder / "runs"), before.snapshot_id)
    assert again.block == before.block
    assert "There is no default role." not in str(again.tables)
    shutil.rmtree(story.folder / "corpus")
    alone = replay(Runs(story.folder / "runs"), before.snapshot_id)
    assert alone.block == before.block and alone.citations.equals(again.citations)


# --- the seven failure modes


def test_similarity_does_not_bring_another_modules_documents_first(story: Story):
    """S0.87: the administrators' manual shares more words with the question than the evidence does."""
    manual = "The admin role is undefined: in the dashboard an admin sees that the role of an admin is undefined."
    story.tell(
        row("doc", "docs/admin/manual.md", manual, namespace="admin"),
        row("rule", "docs/auth/testing.md", "A mock declares its role.", namespace="auth"),
        row("code", FIXTURE, "export function createUserMock() {\n  return { id: 1 }\n}", namespace="auth"),
    )
    question = "Why is the role of the admin undefined?"
    everywhere = story.ask(question, purpose="fix-test", anchors=NAMED)
    assert places(everywhere)[-1] == "docs/admin/manual.md"
    inside = story.ask(question, purpose="fix-test", anchors=NAMED, namespace="auth")
    assert set(places(inside)) == {"docs/auth/testing.md", FIXTURE}
    assert manual not in everything_written(inside)


def test_a_stale_document_does_not_speak_for_today(story: Story):
    """S0.88: an old document says that the default role is `user`; one says when it ended, the other does not."""
    story.tell(
        row("doc", "docs/old.md", "The default role of a session is user.", days=900),
        row("doc", "docs/ended.md", "The default role of a session is guest.", days=900, valid_until=days_ago(30)),
        row("doc", "docs/current.md", "A session has no default role.", days=5),
    )
    found = story.ask("What is the default role of a session?")
    assert places(found) == ["docs/current.md", "docs/old.md"]
    assert decided(found, "docs/ended.md")["reason_code"] == "expired"
    assert "guest" not in found.block


def test_a_session_memory_of_another_project_or_user_leaks_nowhere(story: Story):
    """S0.89, S0.112: the same words in another project, in the other project of the same user, and of another user."""
    story.grant("bo", "billing")
    story.tell(row("doc", "docs/role.md", "A role is declared by the fixture."))
    said = "The role fixture was fixed by a default in"
    story.tell(memory("mine", f"{said} private", "private", owner_user="ana"))
    story.tell(row("memory", "memory/1", f"{said} billing", lifecycle="verified"), project="billing", principal="bo")
    story.tell(row("session-event", "sessions/1", f"{said} ana's billing"), project="billing")
    story.tell(row("session-event", "sessions/2", f"{said} bo's session"), principal="bo")
    found = story.ask("How was the role fixture fixed?")
    assert set(places(found)) == {"docs/role.md", "memory/mine"}
    assert not [place for place in ("billing", "bo's session") if f"{said} {place}" in everything_written(found)]
    assert not {"memory/1", "sessions/1", "sessions/2"} & {d["path"] for d in found.tables["decisions"].to_pylist()}


CORPUS = {"evidence", "placements", "postings", "vectors", "row_index", "segments"}


def upstream(*nodes: str, without: str | None = None) -> set[str]:
    """Everything that the nodes are made of, inputs of the line included; not through the node `without`."""
    edges = {
        v.name: v.required_dependencies | v.optional_dependencies for v in build_driver().list_available_variables()
    }
    found, ahead = set[str](), {*nodes}
    while ahead := ahead - found - {without}:
        found |= ahead
        ahead = {other for name in ahead for other in edges[name]}
    return found


# --- the line


def test_scope_and_plan_are_settled_before_the_corpus_is_looked_at():
    """S0.4, S0.24: what may be searched, and how, follows from request, grants and policies alone."""
    assert not CORPUS & upstream("contracts", "contract_bounds")
    planned = upstream("sub_queries", "query_terms", without="session_texts")
    assert "anchors" in planned and not CORPUS & planned, "but for what the request's own session observed (S0.42)"
    assert {"evidence", "reachable", "session_events"} <= upstream("anchors"), "and the lineage shows that"
    assert CORPUS & upstream("hits")
    assert {"contracts", "contract_bounds", "admissible"} <= upstream("hits")


PLANNED = ("session_events", "anchors", "sub_queries", "query_terms")
BESIDE = ("session_trail", "fact_verification")
"""Steps that document 000 does not name."""


def test_the_stages_stand_in_the_order_of_the_document():
    """S0.26, S0.28: and what a stage gives is made of nothing that a later stage gives."""
    assert [step for step in STEPS if step not in BESIDE] == [
        "scope_resolution", "query_planning", "boundary_gates", "candidate_recall", "boundary_filtering",
        "task_aware_reranking", "evidence_packing", "budget_trimming", "citation_binding", "context_projection",
        "audit_snapshot",
    ]  # fmt: skip
    stage = {name: number for number, module in enumerate(build_driver().graph_modules) for name in vars(module)}
    nodes = [v.name for v in build_driver().list_available_variables() if not v.is_external_input]
    for node in nodes:
        before = upstream(node, without="session_texts" if node in PLANNED else None)
        later = {other for other in before if other in nodes and stage[other] > stage[node]}
        assert not later, node


def test_a_candidate_carries_its_provenance_from_the_start(story: Story):
    """S0.28, S0.29: source, place, version, times, scores, visibility, masks and kind, one step from the pool."""
    text = "The default role is none. Key AKIAIOSFODNN7EXAMPLE."
    until = days_ago(-9)
    story.tell(row("rule", "docs/role.md", text, version="v3", valid_from=days_ago(3), valid_until=until))
    tables = story.ask("What is the default role?").tables
    (candidate,) = tables["candidates"].to_pylist()
    frame = Corpus.open(story.folder / "corpus").frame(["shop"])
    (stored,) = frame.evidence.slice(candidate["row"], 1).to_pylist()
    (placed,) = frame.placements.slice(candidate["placement"], 1).to_pylist()
    (score,), (verdict,) = tables["score_terms"].to_pylist(), tables["verdicts"].to_pylist()
    assert candidate["evidence_id"] == stored["evidence_id"] == placed["evidence_id"]
    assert (stored["source_id"], stored["path"], placed["version"]) == ("rule:story", "docs/role.md", "v3")
    assert (stored["captured_time"], stored["valid_until"], verdict["admitted"]) == (NOON, until, True)
    assert all(0 <= score[name] <= 1 for name in ("semantic", "lexical", "recency", "authority", "actionability"))
    (mask,) = stored["redactions"]
    assert (verdict["model_visibility"], stored["evidence_kind"]) == ("model-visible", "rule")
    assert "AKIA" not in stored["text"]
    assert stored["text"].encode()[: mask["start"]].decode() == text[: text.index("AKIA")]


def test_recallers_give_rows_and_never_text():
    """S0.124: what leaves recall, gates and reranking names rows; the text of an item and its note are in `trimmed`."""
    for name in ("hits", "candidates", "verdicts", "score_terms", "ranked", "packs"):
        assert not TABLES[name].names(free_text=True), name
    assert TABLES["decisions"].names(free_text=True) == ["path"], "a name that can be erased"
    assert not TABLES["trims"].names(free_text=True)
    assert TABLES["trimmed"].names(free_text=True) == ["visible_text", "fact_note"]


def test_projection_reads_what_passed_and_no_index():
    """S0.75, S0.125: the block is made of cited items and their rows, without index, vectors or grants of its own."""
    (blocks,) = [v for v in build_driver().list_available_variables() if v.name == "blocks"]
    direct = blocks.required_dependencies | blocks.optional_dependencies
    assert {"trimmed", "citations"} <= direct
    assert not direct & {"candidates", "hits", "postings", "vectors", "grants", "contract_bounds", "reachable"}


def test_asking_writes_a_snapshot_and_nothing_else(story: Story):
    """S0.81, S0.105: retrieval acts on nothing: corpus and grants stay as they were, only the folder of runs grows."""

    def written() -> dict[str, str]:
        files = [path for path in story.folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    story.tell(row("doc", "docs/role.md", "The default role is user."))
    before = written()
    with story.open(runs=story.folder / "runs") as retriever:
        assert retriever.retrieve("What is the default role?").block
    after = written()
    assert before.items() <= after.items()
    assert all(path.startswith(str(story.folder / "runs")) for path in after.keys() - before.keys())


# --- scope


def test_the_scope_reads_as_the_document_writes_it():
    """S0.13, S0.17, S0.18: every field of the contract but rights, which no request may bring along."""
    asked = {
        "question": "why?",
        "scope": {
            "sessionId": "s-21", "userId": "ana", "projectId": "shop", "workspaceRoot": "/src/shop", "branch": "main",
            "taskId": "t-1", "purpose": "fix-test", "allowedSources": ["workspace"], "deniedSources": ["external"],
            "timeBoundary": {
                "asOf": "2026-05-01T00:00:00Z", "includeAfter": "2026-04-01T00:00:00Z",
                "excludeAfter": "2026-06-01T00:00:00Z", "allowStaleMemory": True,
            },
            "evidencePolicy": {
                "requireCitation": True, "requireSnapshot": True, "acceptedAuthority": ["verified-memory"],
                "maxUnverifiedItems": 1,
            },
            "budget": {"maxTokens": 1200},
        },
    }  # fmt: skip
    (found,) = resolve_requests([asked], principal="ana", asked_at=NOON)[0].to_pylist()
    assert {name: value for name, value in found.items() if value is not None} == {
        "request_id": found["request_id"], "intent_source": "runtime", "recall_effort": "full",
        "tokenizer": "approx-bpe/1", "question": "why?", "session_id": "s-21", "principal": "ana", "project": "shop",
        "workspace_root": "/src/shop", "branch": "main", "task_id": "t-1", "purpose": "fix-test",
        "allowed_sources": ["workspace"], "denied_sources": ["external"], "as_of": datetime(2026, 5, 1, tzinfo=UTC),
        "asked_at": NOON, "include_after": datetime(2026, 4, 1, tzinfo=UTC),
        "exclude_after": datetime(2026, 6, 1, tzinfo=UTC), "allow_stale_memory": True, "require_citation": True,
        "require_snapshot": True, "accepted_authority": ["verified-memory"], "max_unverified_items": 1,
        "max_tokens": 1200,
    }  # fmt: skip
    asked["scope"]["permissionContext"] = {"groups": ["admin"]}
    (refused,) = resolve_requests([asked], principal="ana", asked_at=NOON)[1].to_pylist()
    assert "rights come from the credential" in refused["error"]


SOURCES = {
    "workspace": "code",
    "artifact": "test-log",
    "session-event": "session-event",
    "memory": "memory",
    "project-doc": "doc",
    "user-preference": "rule",
    "team-standard": "rule",
    "external": "doc",
    "mcp-resource": "tool-output",
}


def of_every_source() -> list[dict[str, Any]]:
    columns = {"lifecycle": "verified", "owner_user": ""}
    return [
        row(kind, f"{origin}/1", f"The default role, as {origin} has it.", origin_class=origin, **columns)
        | {"source_id": f"{origin}:story"}
        for origin, kind in SOURCES.items()
    ]


def test_each_kind_of_source_is_read_allowed_and_denied_by_name(story: Story):
    """S0.21, S0.22, S0.85: with artifacts, nine; a source that no list names is denied, and a denial wins."""
    story.tell(*of_every_source())
    question = "What is the default role?"
    assert set(places(story.ask(question))) == {f"{origin}/1" for origin in SOURCES}
    for origin in SOURCES:
        assert places(story.ask(question, allowed_sources=[origin])) == [f"{origin}/1"]
        assert set(places(story.ask(question, denied_sources=[origin]))) == {f"{o}/1" for o in SOURCES if o != origin}
        assert places(story.ask(question, allowed_sources=[origin], denied_sources=[origin])) == []


@pytest.mark.parametrize(
    ("accepted", "seen"),
    [
        ("current-workspace", {"workspace/1"}),
        ("project-doc", {"project-doc/1", "team-standard/1"}),
        ("verified-memory", {"memory/1"}),
        ("session-event", {"session-event/1", "artifact/1"}),
    ],
)
def test_only_accepted_classes_of_source_are_evidence(story: Story, accepted: str, seen: set[str]):
    """S0.19: each of the four classes alone; an unverified memory is in none of them."""
    hunch = row("memory", "memory/hunch", "The default role, as a hunch has it.", lifecycle="candidate", owner_user="")
    story.tell(*of_every_source(), hunch)
    policy = {"acceptedAuthority": [accepted], "maxUnverifiedItems": 5}
    assert set(places(story.ask("What is the default role?", evidencePolicy=policy))) == seen


def test_grants_tell_documents_from_sessions_and_public_from_private(story: Story):
    """S0.23: another project's documents but not its sessions, what is public but not what is private."""
    rule = {"principal": "ana", "project": "platform", "sources": ["project-doc"], "zones": "public"}
    rule |= {"reason": "shared rules", "expires": "2099-01-01T00:00:00Z"}
    grants = {"principals": {"ana": {"projects": ["shop"], "states": ["verified"]}}, "grants": [rule]}
    (story.folder / "grants.yaml").write_text(yaml.safe_dump(grants), encoding="utf-8")
    whole = {"owner_user": ""}
    story.tell(
        row("doc", "README.md", "The default role is explained here.", zone="public"),
        row("doc", "issues/7", "The default role leaked in a private issue.", zone="private"),
        row("session-event", "sessions/1", "The default role was talked about.", zone="public", **whole),
        project="platform",
    )
    story.tell(
        row("memory", "memory/verified", "The default role is none.", lifecycle="verified", **whole),
        row("memory", "memory/candidate", "The default role is user.", lifecycle="candidate", **whole),
    )
    assert set(places(story.ask("What is the default role?"))) == {"README.md", "memory/verified"}


def test_the_limits_of_the_documents_example_hold_together(story: Story):
    """S0.79, S0.80: repository, branch and suite; verified memory alone; sessions as summaries; citations; 1200 tokens."""
    here, memory = {"branch": "main", "test_suite": "auth"}, {"origin_class": "memory", "owner_user": ""}
    session = {"origin_class": "session-event", "owner_user": "", "test_suite": "auth"}
    text = "The role of the mock is undefined in the auth suite."
    story.tell(
        row("test-log", "logs/auth.log", f"FAIL tests/auth/session.test.ts\n{text}\n" * 200, **here),
        row("code", "src/auth/session.ts", f"// {text}\nexport function createSession() {{}}", **here),
        row("code", "src/old/session.ts", f"// {text}", branch="old"),
        row("rule", "AGENTS.md", "A mock declares its role.", authority=2),
        row("memory", "memory/known", f"{text} The fixture was fixed.", lifecycle="verified", **memory),
        row("memory", "memory/guess", f"{text} Change the default.", lifecycle="candidate", **memory),
        row("session-event", "sessions/1", f"{text} In short.", document_type="summary", **session),
        row("session-event", "sessions/2", f"{text} At length.", declared_visibility="runtime-only", **session),
        row("session-event", "sessions/3", f"{text} Elsewhere.", **session | {"test_suite": "billing"}),
    )
    found = story.ask(
        "Why is the role of the mock undefined?",
        purpose="fix-test",
        anchors={"failing_test": "tests/auth/session.test.ts"},
        requiredEvidence=["current-code", "test-log", "project-rule", "verified-memory"],
        evidencePolicy={"requireCitation": True},
        **here,
    )
    assert set(places(found)) == {"logs/auth.log", "src/auth/session.ts", "AGENTS.md", "memory/known", "sessions/1"}
    assert shown(found, "sessions/1")["form"] == "summary"
    assert len(found.block) > 1900
    assert found.tables["blocks"]["tokens"][0].as_py() <= 1200 == found.tables["contracts"]["max_tokens"][0].as_py()
    planned = {kind for query in found.tables["sub_queries"].to_pylist() for kind in query["kinds"]}
    assert {"test-log", "code", "doc", "rule", "memory"} <= planned
    assert "missing_evidence" not in {c["condition"] for c in found.conditions}


# --- the record


def test_what_may_be_retrieved_keeps_its_own_voice(story: Story):
    """S0.71, S0.74: rules of the root, logs and verified memory are in one block and are never one kind of text."""
    story.tell(
        row("rule", "AGENTS.md", "A mock declares its role.", origin_class="workspace"),
        row("rule", "vendor/AGENTS.md", "A mock has no role, says the vendor.", origin_class="workspace"),
        row("test-log", "logs/run.log", "FAIL the role of the mock is undefined"),
        row("memory", "memory/1", "The role of the mock was fixed.", lifecycle="verified", owner_user=""),
    )
    found = story.ask("Which role has the mock?", purpose="fix-test")
    assert {place: shown(found, place)["standing"] for place in places(found)} == {
        "AGENTS.md": "instruction",
        "vendor/AGENTS.md": "evidence",
        "logs/run.log": "untrusted",
        "memory/1": "evidence",
    }


def test_an_auditor_finds_every_answer_in_the_record_alone(story: Story):
    """S0.3, S0.53, S0.56, S0.91: who, why, where, how, what was shown and what not, from a replay without corpus."""
    long = "".join(f"Step {number}: the role of user {number} is set.\n" for number in range(80))
    story.tell(
        row("rule", "docs/role.md", "The default role is none. Key AKIAIOSFODNN7EXAMPLE.", version="v3"),
        row("doc", "docs/runbook.md", long),
        row("tool-output", "artifacts/env.txt", "default role of host ci-12", declared_visibility="runtime-only"),
        row("rule", "docs/next.md", "The default role is guest.", valid_from=days_ago(-9)),
    )
    with story.open(runs=story.folder / "runs") as retriever:
        asked = {"intent_source": "model", "modelRequestId": "m-1", "turnId": "t-1", "sessionId": "s-1"}
        made = retriever.retrieve("What is the default role?", budget={"max_tokens": 300}, **asked)
    shutil.rmtree(story.folder / "corpus")
    record = replay(Runs(story.folder / "runs"), made.snapshot_id)
    rows = {name: table.to_pylist() for name, table in record.tables.items()}

    request, (contract,), (snapshot,) = record.request, rows["contracts"], rows["snapshots"]
    who = ("principal", "intent_source", "model_request_id", "turn_id", "session_id")
    assert [request[name] for name in who] == ["ana", "model", "m-1", "t-1", "s-1"]
    assert (contract["purpose"], contract["project"], contract["as_of"]) == ("answer-question", "shop", NOON)
    assert contract["contract_id"] == snapshot["contract_id"]
    assert (contract["merge_policy"], contract["output_shape"]) == ("evidence-balanced", "context-block")
    assert all("What is the default role?" in query["query_text"] for query in rows["sub_queries"])
    fates = {d["path"]: (d["outcome"], d["reason_code"], d["redacted"]) for d in rows["decisions"]}
    assert fates == {
        "docs/role.md": ("selected", "selected", True),
        "docs/runbook.md": ("selected", "selected", False),
        "artifacts/env.txt": ("hidden", "not_model_visible", False),
        "docs/next.md": ("rejected", "not_yet_valid", False),
    }
    counts = [snapshot[name] for name in ("recalled", "selected_rows", "hidden", "rejected", "redacted")]
    assert counts == [4, 2, 1, 1, 1]
    assert {d["source_id"] for d in rows["decisions"]} == {"rule:story", "doc:story", "tool-output:story"}
    for ranked in rows["ranked"]:
        assert ranked["final"] == sum(ranked[name] for name in SCORE_TERMS) > 0
        assert ranked["selected_reason"]
    (trim,) = [row for row in rows["trims"] if row["bound_by"]]
    assert trim["size"] == len(long.encode())
    assert (snapshot["max_tokens"], snapshot["trimming_policy"]) == (300, "statement/2")
    assert 0 < snapshot["estimated_tokens"] <= 300
    assert hashlib.sha256(record.block.encode()).hexdigest() == snapshot["visible_sha256"]
    texts = {item["label"]: item["visible_text"] for item in rows["trimmed"]}
    for cited in rows["citations"]:
        assert hashlib.sha256(texts[cited["label"]].encode()).hexdigest() == cited["visible_sha256"]
        assert all(f"\n|{line}" in record.block for line in texts[cited["label"]].splitlines())
    versions = {c["path"]: (c["version"], c["source_id"]) for c in rows["citations"]}
    assert versions["docs/role.md"] == ("v3", "rule:story")
    assert "ci-12" not in str(rows)
    assert "AKIAIOSFODNN7EXAMPLE" not in str(rows)


def test_a_failure_is_attributed_to_its_stage(story: Story):
    """S0.64, S0.92: not recalled, filtered, ranked too low, cut, or seen: each leaves a trace of its own."""
    long = "".join(f"The default role of group {number}.\n" for number in range(90)) + "Exception: none for guests.\n"
    story.tell(
        row("rule", "docs/seen.md", "The default role is none.", authority=3),
        row("doc", "docs/cut.md", long, authority=2),
        row("doc", "docs/low.md", "A role.", authority=0, days=3000),
        row("rule", "docs/filtered.md", "The default role is none.", declared_safety="blocked"),
        row("doc", "docs/elsewhere.md", "Nothing in common."),
    )
    budget = {"max_items": 2, "max_chunk_tokens": 100}
    found = story.ask("What is the default role?", budget=budget)
    fates = {d["path"]: (d["outcome"], d["stage"], d["reason_code"]) for d in found.tables["decisions"].to_pylist()}
    assert fates == {
        "docs/seen.md": ("selected", "project", "selected"),
        "docs/cut.md": ("selected", "project", "selected"),
        "docs/low.md": ("rejected", "trim", "budget_items"),
        "docs/filtered.md": ("hidden", "gate", "safety_blocked"),
    }
    assert decided(found, "docs/low.md")["rank"] == 3
    cuts = {t["evidence_id"]: t for t in found.tables["trims"].to_pylist()}
    cut = cuts[decided(found, "docs/cut.md")["evidence_id"]]
    assert b"Exception: none for guests." in long.encode()[cut["kept_end"] : cut["size"]]
    assert "Exception" not in found.block
    assert "The default role is none." in found.block


def test_a_question_is_searched_with_what_its_session_just_observed(story: Story):
    """S0.42: the event names the function; the question does not."""
    story.tell(
        row("session-event", "s-1.jsonl", "It broke in `resolve_role`", session_id="s-1", event_time=days_ago(0.1)),
        row("session-event", "s-2.jsonl", "It broke in `other_name`", session_id="s-2", event_time=days_ago(0.1)),
        row("code", "src/role.py", "def resolve_role(): ...", symbols=["resolve_role"]),
        row("code", "src/other.py", "def other_name(): ...", symbols=["other_name"]),
    )
    asked = {"purpose": "explain-code", "max_unverified_items": 5}
    assert "src/role.py" not in places(story.ask("What is wrong here?", **asked))
    found = story.ask("What is wrong here?", session_id="s-1", **asked)
    assert "src/role.py" in places(found)
    assert "src/other.py" not in places(found)
    planned = found.tables["sub_queries"].to_pylist()
    assert {row["query_text"] for row in planned if row["intent"] == "find-code"} == {
        "What is wrong here?\nresolve_role"
    }
