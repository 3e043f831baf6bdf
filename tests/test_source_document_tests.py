"""The seven minimum tests and the defences against the seven failure modes, each on a corpus of a few visible rows."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scoped_retrieval.nodes.audit.records import VIEWED
from scoped_retrieval.nodes.blocks.token_counting import BASE, Counters
from scoped_retrieval.pipeline.runs import Runs, replay
from small_corpus import LABEL, NOON, Story, days_ago, decided, places, row

FIXTURE = "tests/auth/session.fixture.ts"
FAILING = {"failing_test": "tests/auth/session.test.ts", "current_files": [FIXTURE]}
SECRET_HOST = "host ci-runner-12"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


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
    assert trim["policy"] == found.tables["snapshots"]["trimming_policy"][0].as_py() == "statement/1"
    (kept,), (dropped,) = trim["kept_ranges"], trim["dropped_ranges"]
    assert (kept["start"], kept["end"], dropped["end"]) == (0, dropped["start"], len(text.encode()))
    visible = text.encode()[: kept["end"]].decode()
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
    found = story.ask("Which role has the mock?", purpose="fix-test", anchors=FAILING)
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
        row("doc", "docs/admin/roles.md", manual, namespace="admin"),
        row("rule", "docs/auth/testing.md", "A mock declares its role.", namespace="auth"),
        row("code", FIXTURE, "export function createUserMock() {\n  return { id: 1 }\n}", namespace="auth"),
    )
    question = "Why is the role of the admin undefined?"
    everywhere = story.ask(question, purpose="fix-test", anchors=FAILING)
    assert places(everywhere)[-1] == "docs/admin/roles.md"
    inside = story.ask(question, purpose="fix-test", anchors=FAILING, namespace="auth")
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
    """S0.89: the same words in another project, in the other project of the same user, and of another user."""
    story.grant("bo", "billing")
    story.tell(row("doc", "docs/role.md", "A role is declared by the fixture."))
    memory = "The role fixture was fixed by a default in"
    story.tell(row("memory", "memory/1", f"{memory} billing", lifecycle="verified"), project="billing", principal="bo")
    story.tell(row("session-event", "sessions/1", f"{memory} ana's billing"), project="billing")
    story.tell(row("session-event", "sessions/2", f"{memory} bo's session"), principal="bo")
    found = story.ask("How was the role fixture fixed?")
    assert places(found) == ["docs/role.md"]
    assert memory not in everything_written(found)
    assert not {"memory/1", "sessions/1", "sessions/2"} & {d["path"] for d in found.tables["decisions"].to_pylist()}


def test_a_citation_is_kept_with_the_text_that_was_visible(story: Story):
    """S0.91: every cited text can be read again from the record, and its hash is that of what was in the block."""
    story.tell(
        row("rule", "docs/role.md", "# Role\n\nThere is no default role.\n"),
        {
            "source_id": "project-doc:wiki",
            "path": "wiki/roles",
            "text": "A role is copied. Nobody adds a default role.",
        },
    )
    with story.open(runs=story.folder / "runs") as retriever:
        found = retriever.retrieve("Is there a default role?")
    shutil.rmtree(story.folder / "corpus")
    record = replay(Runs(story.folder / "runs"), found.snapshot_id)
    texts = {item["label"]: item["visible_text"] for item in record.tables["trimmed"].to_pylist()}
    assert {citation["path"] for citation in found.citations} == {"docs/role.md", "wiki/roles"}
    for citation in record.citations.to_pylist():
        text = texts[citation["label"]]
        assert hashlib.sha256(text.encode()).hexdigest() == citation["visible_sha256"]
        assert all(f"\n|{line}" in found.block for line in text.splitlines())
        assert citation["resolves"]
    (wiki,) = [c for c in found.citations if c["path"] == "wiki/roles"]
    assert (wiki["line_start"], wiki["version"][:7]) == (None, "sha256:")


def test_what_a_cut_took_away_can_be_found(story: Story):
    """S0.92: the exception is in the half that was cut; of a log the cut keeps the error."""
    exception = "Exception: never change a production default while users are moved."
    runbook = "".join(f"Step {number}: move the users of group {number}.\n" for number in range(80)) + exception
    log = "".join(f"ok {number} users moved\n" for number in range(80)) + "AssertionError: users without a role\n"
    story.tell(row("doc", "docs/runbook.md", runbook), row("test-log", "logs/run.log", log))
    budget = {"max_tokens": 1200, "max_chunk_tokens": 150}
    found = story.ask("How are users moved?", purpose="fix-test", budget=budget)
    assert exception not in found.block
    (trim,) = [
        t
        for t in found.tables["trims"].to_pylist()
        if t["evidence_id"] == decided(found, "docs/runbook.md")["evidence_id"]
    ]
    cut = b"".join(runbook.encode()[gap["start"] : gap["end"]] for gap in trim["dropped_ranges"])
    assert exception in cut.decode()
    assert trim["bound_by"] == "max_chunk_tokens"
    assert ("over_budget", "max_chunk_tokens") in {(c["condition"], c["subject"]) for c in found.conditions}
    assert "lines …" in found.block
    assert "AssertionError: users without a role" in found.block
