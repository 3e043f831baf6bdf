"""The demo corpus, one switch at a time: every lane, intent, policy, shape, purpose and form changes what a model reads.

Each case asks one request twice, with one thing switched, and names what it brings into the block.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes import vocabulary
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.policies.tables import Policies, load_policies
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.line.driver import LANES
from scoped_retrieval.pipeline.sources.importing import normalize
from stand_in_encoder import WordsByTheirStart

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
WITHOUT_MODEL = tuple(lane for lane in LANES if lane != "semantic")
POLICIES = load_policies()
Request = dict[str, Any]

FAILING_TEST: Request = {
    "purpose": "fix-test",
    "question": "Why does the auth suite fail, and what may be changed?",
    "anchors": {
        "failing_test": "tests/auth/session.test.ts",
        "error_text": "expected role admin, received undefined",
        "current_files": ["src/auth/session.ts", "tests/auth/session.fixture.ts"],
    },
    "test_suite": "auth",
    "budget": {"max_tokens": 2400},
}
VERIFIED: Request = {"lifecycle": "verified", "declared_standing": "evidence"}
DEFAULT_ROLE: Request = {"purpose": "answer-question", "question": "What is the default role of a session?"}


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as it is installed, without model and repository."""
    return run_demo(tmp_path_factory.mktemp("demo") / "d", semantic=False, say=lambda _: None).folder


@pytest.fixture(scope="session")
def ask(demo_folder: Path) -> Callable[..., Retrieval]:
    """Ask as `ana` in `shop`, at nine in the morning of the story."""
    demo = Corpus.open(demo_folder / "corpus")

    def answer(request: Request, corpus: Corpus | None = None, **how: Any) -> Retrieval:
        return known(json.dumps(request)) if corpus is None and not how else fresh(request, corpus, **how)

    def fresh(request: Request, corpus: Corpus | None = None, **how: Any) -> Retrieval:
        options = {"lanes": WITHOUT_MODEL, "policies": POLICIES, "encoder": None, "clock": lambda: NOW} | how
        grants = demo_folder / "corpus" / "grants.yaml"
        with Retriever.open(corpus or demo, principal="ana", grants=grants, **options) as retriever:
            return retriever.retrieve({"project": "shop", "as_of": NOW.isoformat(), **request})

    known = functools.cache(lambda request: fresh(json.loads(request)))
    return answer


@pytest.fixture
def described(demo_folder: Path, tmp_path: Path) -> Callable[..., Corpus]:
    """A copy of the demo corpus in which the row of an entity, or the first of a path, is described otherwise."""

    def publish(named: str, encoder: Any = None, **columns: Any) -> Corpus:
        path = shutil.copytree(demo_folder / "corpus", tmp_path / f"corpus-{len(list(tmp_path.iterdir()))}")
        corpus = Corpus.open(path)
        frame = corpus.frame(["shop"])
        either = pc.or_kleene(pc.equal(frame.evidence["entity"], named), pc.equal(frame.evidence["path"], named))
        row = frame.evidence.filter(either).to_pylist()[0]
        (place,) = frame.placements.filter(pc.equal(frame.placements["evidence_id"], row["evidence_id"])).to_pylist()
        known = {**place, **row, **columns}
        fields = [field for field in IMPORT_ROWS.schema if field.name in known]
        rows = pa.Table.from_pylist([known], schema=pa.schema(fields))
        normal, _ = normalize(rows, project="shop", principal="ana", now=NOW)
        corpus.publish(normal, now=NOW, encoder=encoder)
        return corpus

    return publish


def places(found: Retrieval) -> list[str]:
    """The cited places, without their lines and sections."""
    return [citation["path"] for citation in found.citations]


def forms(found: Retrieval) -> dict[str, str]:
    """How each place is shown; of several items of a place the best."""
    form = {item["label"]: item["form"] for item in found.tables["trimmed"].to_pylist()}
    return {citation["path"]: form[citation["label"]] for citation in reversed(found.citations)}


def head(found: Retrieval, place: str) -> str:
    """What is said about the best text cited at a place, and what stands below that text."""
    at = re.search(rf"(?m)^\[[a-z-]+#\d+\] (\([^)]*\) )?{re.escape(place)}[:# ].*\n(?:\|.*\n)*(.*)$", found.block)
    return f"{at[1]}\n{at[2]}"


# --- lanes


LANE_CASES = {
    "lexical": (DEFAULT_ROLE, "docs/auth/default-role.md"),
    "symbol": (
        {"purpose": "explain-code", "question": "What guards it?", "anchors": {"symbols": ["renderDashboard"]}},
        "src/auth/session.ts",  # defines what renderDashboard calls, and names no dashboard
    ),
    "file": (
        {"purpose": "explain-code", "question": "Who may see the dashboard?", "budget": {"lane_k": 1}},
        "src/admin/dashboard.ts",  # says it all, though no chunk of it says most
    ),
    "recent": ({"purpose": "answer-question", "question": "What happened last?"}, "sessions/s-021"),
    "exact": ({"purpose": "answer-question", "question": "{}?"}, "forum-default-role.md"),  # asked for by its id
    "expansion": ({"purpose": "explain-code", "question": "Which token?"}, "memory/mem-source-record"),
    "graph": (
        {"purpose": "review-risk", "question": "What is startedAt?", "recall_effort": "graph", "budget": {"lane_k": 1}},
        "src/auth/roles.ts",  # imported by what says it
    ),
    "semantic": ({"purpose": "explain-code", "question": "Migrants?"}, "docs/runbooks/role-migration.md"),
}


@pytest.mark.parametrize("lane", LANE_CASES)
def test_each_lane_brings_evidence_that_no_other_lane_brings(ask, described, demo_folder, lane: str):
    request, place = LANE_CASES[lane]
    frame = Corpus.open(demo_folder / "corpus").frame(["shop"])
    named = frame.evidence.filter(pc.equal(frame.evidence["path"], place))["evidence_id"][0].as_py()
    request = {**request, "question": request["question"].format(named)}
    encoder = WordsByTheirStart() if lane == "semantic" else None
    corpus = described(place, encoder) if encoder else None
    lanes = LANES if encoder else WITHOUT_MODEL
    with_lane = ask(request, corpus, lanes=lanes, encoder=encoder)
    without = ask(request, corpus, lanes=[each for each in lanes if each != lane], encoder=encoder)
    assert place in places(with_lane)
    assert place not in places(without)
    assert with_lane.block != without.block


# --- intents


@pytest.mark.parametrize(
    ("intent", "place"),
    [
        ("find-error", "vitest-auth-2026-05-20.log"),
        ("find-code", "tests/auth/session.fixture.ts"),
        ("find-rule", "docs/auth/testing.md"),
        ("find-memory", "memory/mem-fixture"),
        ("find-decision", "2026-04-14_no-default-role_v01.md"),
    ],
)
def test_each_intent_brings_evidence_that_no_other_intent_brings(ask, intent: str, place: str):
    rules = POLICIES.plan_rules.filter(pc.not_equal(POLICIES.plan_rules["intent"], intent))
    less: Policies = dataclasses.replace(POLICIES, plan_rules=rules)
    roomy = FAILING_TEST | {"budget": {"max_tokens": 4000, "max_items": 20}}
    planned, unplanned = ask(roomy), ask(roomy, policies=less)
    assert place in places(planned)
    assert place not in places(unplanned)
    assert planned.block != unplanned.block


def test_no_lane_and_no_intent_is_left_out_here():
    missing = set(LANES) ^ set(LANE_CASES)
    assert not missing, f"add to LANE_CASES a request and what this lane alone brings: {sorted(missing)}"
    assert set(LANES) == set(vocabulary.LANES.values)
    assert set(POLICIES.plan_rules["intent"].to_pylist()) == set(vocabulary.INTENTS.values)


# --- merge policies, shapes, purposes


@pytest.mark.parametrize(
    ("purpose", "order"),
    [
        ("fix-test", ["test-log", "session-event", "doc", "code"]),
        ("explain-code", ["doc", "test-log", "session-event", "code"]),
        ("review-risk", ["rule", "decision-record", "doc", "session-event"]),
        ("answer-question", ["session-event", "test-log", "doc", "code"]),
    ],
)
def test_each_purpose_answers_the_same_question_in_its_own_order(ask, purpose: str, order: list[str]):
    found = {each: ask({**FAILING_TEST, "purpose": each}) for each in vocabulary.PURPOSES.values}
    mine = found.pop(purpose)
    assert all(mine.block != other.block for other in found.values())
    kinds = [citation["evidence_kind"] for citation in mine.citations]
    assert list(dict.fromkeys(kinds))[:4] == order  # what comes last depends on how long the others are


# --- the seven forms of projection


@pytest.mark.parametrize(
    ("form", "entity", "place", "off", "words"),
    [
        ("summary", "sum-014", "sessions/s-014", {"document_type": None}, "summary"),
        ("fact", "WIDGET-3", "widgets/refunds", {"evidence_kind": "doc"}, "recorded fact"),
        ("conflict-note", "mem-source-token", "memory/mem-source-token", {"conflict_set": None}, "conflicting claim"),
        ("hint", "mem-default", "memory/mem-default", VERIFIED, "unverified hint, weak signal"),
    ],
)
def test_a_row_is_shown_in_the_form_that_its_description_gives(
    ask, described, form: str, entity: str, place: str, off: Request, words: str
):
    request = {"purpose": "answer-question", "question": QUESTIONS[entity], "budget": {"max_tokens": 2400}}
    as_stored, otherwise = ask(request), ask(request, described(entity, **off))
    assert (forms(as_stored)[place], forms(otherwise)[place]) == (form, "full")
    assert words in head(as_stored, place)
    assert words not in head(otherwise, place)


QUESTIONS = {
    "sum-014": "What happened in session s-014?",
    "WIDGET-3": "How often does the widget for refunds refresh?",
    "mem-source-token": "Which token?",
    "mem-default": "Which production defaults?",
}
