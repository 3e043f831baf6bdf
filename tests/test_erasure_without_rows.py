"""Erasure of what runs show of rows that the corpus does not hold any more, as after it was rebuilt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from context_session import Session, item, policy
from context_session import snapshot as snapshot_of
from erasing_world import CANARY, KEPT, asked, holding, settings, told
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.context.store import ContextStore
from scoped_retrieval.pipeline.maintenance.erasure import erase
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from small_corpus import Story, row


def rebuilt(folder: Path, *, batch: bool) -> str:
    """A snapshot that shows rows of which the corpus of today holds `KEPT` alone."""
    snapshot = asked(told(folder), batch=batch)
    shutil.rmtree(folder / "corpus")
    Story(folder, row("doc", "docs/keep.md", KEPT, source_id="doc:other"))
    assert {Path(name).parts[0] for name in holding(folder)} == {"runs"}
    return snapshot


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_a_project_goes_from_runs_although_the_corpus_has_lost_its_rows(tmp_path: Path, batch: bool) -> None:
    snapshot = rebuilt(tmp_path, batch=batch)
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert verify(Runs(tmp_path / "runs"), snapshot).status == "erased"


def shown(folder: Path, snapshot: str, words: str) -> str:
    """The id of the row with these words in a snapshot."""
    trimmed = replay(Runs(folder / "runs"), snapshot).tables["trimmed"].to_pylist()
    (found,) = [item["evidence_id"] for item in trimmed if words in item["visible_text"]]
    return found


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
@pytest.mark.parametrize("questions", [None, True])
def test_a_lost_row_goes_by_its_source_and_by_its_id(tmp_path: Path, batch: bool, questions: bool | None) -> None:
    monday = shown(tmp_path, rebuilt(tmp_path, batch=batch), "on Mondays")
    assert erase(settings(tmp_path), evidence=(monday,), dry_run=True).runs.texts
    assert erase(settings(tmp_path), evidence=(monday,)).runs.questions == 0
    assert not holding(tmp_path, "on Mondays") and holding(tmp_path)
    assert erase(settings(tmp_path), source="doc:story", questions=questions).runs.questions == bool(questions)
    assert not holding(tmp_path, CANARY + " is kept")
    assert bool(holding(tmp_path / "runs", KEPT)) is not questions


@pytest.mark.parametrize("selected", [{"source": "doc:story"}, {"project": "shop"}], ids=["source", "project"])
def test_a_lost_row_goes_from_recorded_inputs(tmp_path: Path, selected: dict[str, str]) -> None:
    lost = shown(tmp_path, rebuilt(tmp_path, batch=True), "on Mondays")
    session = Session()
    session.failing("src/a.ts:1 error", turn=0)
    inputs = policy().project_turns(
        turns=[{"asOfSeq": 2, "turnId": "1", "snapshotIds": ["snap-1"]}],
        events=session.events,
        snapshots=[snapshot_of(item(evidence_id=lost))],
        session_id="s",
    )
    ContextStore(tmp_path / "runs", principal="ana").record(inputs)
    assert holding(tmp_path, "export const a")
    erase(settings(tmp_path), **selected)
    assert not holding(tmp_path, "export const a")


def test_a_row_that_the_corpus_holds_goes_only_by_what_the_corpus_says(tmp_path: Path) -> None:
    rebuilt(tmp_path, batch=True)
    erase(settings(tmp_path), source="doc:story")
    assert [name for name in holding(tmp_path, KEPT) if name.startswith("corpus")]
    with pytest.raises(AccessError):
        erase(settings(tmp_path, "bo"), source="doc:other")


def test_who_neither_asked_nor_audits_erases_no_lost_row(tmp_path: Path) -> None:
    snapshot = rebuilt(tmp_path, batch=True)
    for wanted in (
        {"evidence": (shown(tmp_path, snapshot, "on Mondays"),)},
        {"source": "doc:story"},
        {"project": "shop"},
    ):
        with pytest.raises(AccessError):
            erase(settings(tmp_path, "bo"), **wanted)
    assert holding(tmp_path)
