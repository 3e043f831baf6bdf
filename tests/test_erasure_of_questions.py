"""Erasure of questions: no byte of a run has the words of a request any more, and those of other requests stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from erasing_world import GRANTS, KEPT, holding, settings
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.maintenance.erasure import erase
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart

SECRET = "velvetfox"
ASKED = {
    "question": f"does {SECRET} know the login token?", "project": "shop", "purpose": "explain-code",
    "context_summary": f"{SECRET} said so", "current_files": [f"src/{SECRET}.py"], "anchor_symbols": [f"{SECRET}_login"],
    "error_text": f"KeyError: {SECRET}", "failing_test": f"tests/test_{SECRET}.py", "state": {"note": SECRET},
}  # fmt: skip
SAME = "who keeps the login token?"


def world(folder: Path, **how: Any) -> Story:
    """A document of the project and a memory of bo's; ana audits, bo asks."""
    memory = row("memory", "m/1", "bo likes tokens", source_id="memory:bo", owner_user="bo", lifecycle="verified")
    story = Story(folder, row("doc", "docs/keep.md", KEPT, source_id="doc:other"), memory, **how)
    (folder / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    return story


def ask(story: Story, principal: str, *requests: dict[str, Any], batch: bool) -> list[str]:
    """The ids of the snapshots of some requests of a principal, in one run."""
    with story.open(principal=principal, runs=story.folder / "runs") as retriever:
        if not batch:
            found = [retriever.retrieve(request).snapshot_id or "" for request in requests]
            retriever.close(compacted=False)
            return found
        summary = retriever.run([{"request_id": f"r{at}"} | each for at, each in enumerate(requests)])
    return Runs(story.folder / "runs").open(summary.run_id).snapshots["snapshot_id"].to_pylist()


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
@pytest.mark.parametrize("encoder", [None, WordsByTheirStart()], ids=["lexical", "vectors"])
def test_no_byte_holds_a_question_of_an_erased_user(tmp_path: Path, batch: bool, encoder: Any) -> None:
    story = world(tmp_path, encoder=encoder)
    (snapshot,) = ask(story, "bo", ASKED, batch=batch)
    assert holding(tmp_path, SECRET) != []
    done = erase(settings(tmp_path, "bo"), user="bo")
    assert (done.rows, done.runs.questions) == (1, 1)
    assert holding(tmp_path, SECRET) == []
    store = Runs(tmp_path / "runs")
    report = verify(store, snapshot)
    assert (report.status, report.problems) == ("erased", ())
    assert replay(store, snapshot).status == "erased"
    left = store.open(snapshot).texts
    assert left["vector"].null_count == left.num_rows, "the vector of a query goes with the query"


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_questions_of_others_stay_even_where_they_are_the_same(tmp_path: Path, batch: bool) -> None:
    story = world(tmp_path)
    question = {"question": SAME, "project": "shop", "purpose": "answer-question"}
    ask(story, "bo", question, batch=batch)
    (kept,) = ask(story, "ana", question, batch=batch)
    erase(settings(tmp_path, "bo"), user="bo")
    store = Runs(tmp_path / "runs")
    assert verify(store, kept).status == "ok"
    assert SAME in store.open(kept).texts["text"].to_pylist()


def test_a_user_without_evidence_can_have_their_questions_erased(tmp_path: Path) -> None:
    story = Story(tmp_path, row("doc", "docs/keep.md", KEPT, source_id="doc:other"))
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    ask(story, "bo", ASKED, batch=True)
    done = erase(settings(tmp_path, "bo"), user="bo")
    assert (done.rows, done.runs.questions) == (0, 1)
    assert holding(tmp_path, SECRET) == []
    with pytest.raises(AccessError, match="evidence or requests that you may erase, got none"):
        erase(settings(tmp_path, "bo"), user="bo")


@pytest.mark.parametrize(
    ("principal", "selected", "erased"),
    [
        ("bo", {"user": "bo"}, True),
        ("ana", {"project": "shop"}, True),
        ("bo", {"user": "ana"}, False),
        ("bo", {"project": "other"}, False),
        ("bo", {"source": "memory:bo"}, False),
        ("ana", {"source": "doc:absent", "questions": True}, False),
    ],
)
def test_whoever_asked_or_audits_may_erase(
    tmp_path: Path, principal: str, selected: dict[str, Any], erased: bool
) -> None:
    story = world(tmp_path)
    (snapshot,) = ask(story, "bo", ASKED | {"question": f"does {SECRET} say bo likes tokens?"}, batch=True)
    assert "bo likes tokens" in (replay(Runs(tmp_path / "runs"), snapshot).block or "")
    dry: Any = None
    try:
        dry = erase(settings(tmp_path, principal), **selected, dry_run=True)
        assert holding(tmp_path / "runs", SECRET) != []
        done = erase(settings(tmp_path, principal), **selected)
        assert (done.runs.questions, done.runs.texts) == (dry.runs.questions, dry.runs.texts)
    except AccessError:
        assert dry is None
    assert (holding(tmp_path / "runs", SECRET) == []) is erased


def test_a_refused_request_loses_its_question_with_the_runs_of_who_asked(tmp_path: Path) -> None:
    story = world(tmp_path)
    ask(story, "bo", ASKED | {"purpose": "no-such-purpose"}, ASKED | {"question": SAME, "purpose": SECRET}, batch=True)
    erase(settings(tmp_path, "bo"), user="bo")
    assert holding(tmp_path, SECRET) == []


def test_the_path_of_an_erased_row_goes_unless_another_row_has_it(tmp_path: Path) -> None:
    one, other = "The login token is long.", "The login token is short."
    story = Story(
        tmp_path,
        row("doc", f"docs/{SECRET}.md", one, source_id="doc:one"),
        row("doc", "docs/both.md", one + " Truly.", source_id="doc:one"),
        row("doc", "docs/both.md", other, source_id="doc:other"),
    )
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    ask(story, "ana", {"question": SAME, "project": "shop", "purpose": "answer-question"}, batch=True)
    erase(settings(tmp_path), source="doc:one")
    assert holding(tmp_path, SECRET) == []
    (run,) = Runs(tmp_path / "runs").list()
    assert "docs/both.md" in run.texts["text"].to_pylist()
