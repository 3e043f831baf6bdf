"""Capabilities of document 000 that no other file shows, each on a few visible rows; `tests/capabilities.md` lists all."""

from __future__ import annotations

import hashlib
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line.driver import PLANNED, STEPS, build_driver
from scoped_retrieval.pipeline.requests.resolve import resolve_requests
from scoped_retrieval.pipeline.runs import Runs, replay
from small_corpus import NOON, Story, days_ago, decided, places, row, shown

CORPUS = {"evidence", "placements", "postings", "vectors", "row_index", "segments"}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


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
    assert not CORPUS & upstream("contracts", "contract_bounds", "contract_layers")
    planned = upstream("sub_queries", "query_terms", without="session_texts")
    assert "anchors" in planned and not CORPUS & planned, "but for what the request's own session observed (S0.42)"
    assert {"evidence", "reachable", "session_events"} <= upstream("anchors"), "and the lineage shows that"
    assert CORPUS & upstream("hits")
    assert {"contracts", "contract_bounds", "admissible"} <= upstream("hits")


BESIDE = ("session_trail", "relevance_feedback", "fact_verification")
"""Steps that document 000 does not name."""


def test_the_stages_stand_in_the_order_of_the_document():
    """S0.26, S0.28: and what a stage gives is made of nothing that a later stage gives."""
    assert [step for step in STEPS if step not in BESIDE] == [
        "scope_resolution", "query_planning", "boundary_gates", "candidate_recall", "boundary_filtering",
        "task_aware_reranking", "evidence_packing", "budget_trimming", "citation_binding", "context_projection",
        "audit_snapshot",
    ]  # fmt: skip
    stage = {name: number for number, module in enumerate(build_driver().graph_modules) for name in vars(module)}
    ranking = STEPS.index("task_aware_reranking")  # feedback reads its scores, and gives it terms: one stage
    stage |= dict.fromkeys(vars(build_driver().graph_modules[STEPS.index("relevance_feedback")]), ranking)
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
    """S0.124: what leaves recall, gates and reranking names rows; the text of an item and its note are in `fits`."""
    for name in ("hits", "candidates", "verdicts", "score_terms", "ranked", "packs"):
        assert not TABLES[name].names(free_text=True), name
    assert TABLES["decisions"].names(free_text=True) == ["path"], "a name that can be erased"
    assert TABLES["fits"].names(free_text=True) == ["visible_text", "fact_note"]


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


@pytest.mark.parametrize(
    ("visibility", "outcome"), [("model-visible", "selected"), ("runtime-only", "hidden"), ("user-only", "hidden")]
)
def test_each_visibility_is_a_verdict_of_its_own(story: Story, visibility: str, outcome: str):
    """S0.30, S0.43, S0.47: the system may read the row in every case, the model only in one; the record has all."""
    story.tell(row("doc", "docs/role.md", "The default role is user.", declared_visibility=visibility))
    found = story.ask("What is the default role?")
    (verdict,) = found.tables["verdicts"].to_pylist()
    assert (verdict["source_access"], verdict["model_visibility"]) == (True, visibility)
    assert decided(found, "docs/role.md")["outcome"] == outcome
    assert ("The default role is user." in found.block) == (outcome == "selected")


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
    """S0.3, S0.53, S0.56: who, why, where, how, what was shown and what not, from a replay without corpus."""
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
    (trim,) = rows["trims"]
    assert trim["dropped_ranges"][0]["end"] == len(long.encode())
    assert (snapshot["max_tokens"], snapshot["trimming_policy"]) == (300, trim["policy"])
    assert 0 < snapshot["estimated_tokens"] <= 300
    assert hashlib.sha256(record.block.encode()).hexdigest() == snapshot["visible_sha256"]
    versions = {c["path"]: (c["version"], c["source_id"]) for c in rows["citations"]}
    assert versions["docs/role.md"] == ("v3", "rule:story")
    assert "ci-12" not in str(rows)
    assert "AKIAIOSFODNN7EXAMPLE" not in str(rows)


def test_a_failure_is_attributed_to_its_stage(story: Story):
    """S0.64: not recalled, filtered, ranked too low, cut, or seen: each leaves a trace of its own."""
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
    (gap,) = cuts[decided(found, "docs/cut.md")["evidence_id"]]["dropped_ranges"]
    assert b"Exception: none for guests." in long.encode()[gap["start"] : gap["end"]]
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
