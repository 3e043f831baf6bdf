"""Erasure where something was broken off: unfinished runs, what killed writers left, and erasures that failed halfway."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from context_session import Session, item, policy
from context_session import snapshot as snapshot_of
from erasing_world import (
    CANARY,
    KEPT,
    asked,
    holding,
    settings,
    told,
    unfinished,
)
from power_cut import each_cut
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.context.store import ContextStore
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.maintenance.erasure import erase
from scoped_retrieval.pipeline.runs import Runs, compact, replay, verify
from small_corpus import Story, row
from written_runs import log_again


def test_an_erasure_of_rows_removes_unfinished_runs(tmp_path: Path) -> None:
    run_id = unfinished(told(tmp_path))
    before = holding(tmp_path)
    assert erase(settings(tmp_path), source="doc:story", dry_run=True).runs.discarded == [run_id]
    assert holding(tmp_path) == before != []
    done = erase(settings(tmp_path), source="doc:story")
    assert (done.runs.discarded, Runs(tmp_path / "runs").unfinished()) == ([run_id], [])
    erase(settings(tmp_path), user="bo", project="shop")
    assert holding(tmp_path) == []


def test_an_erasure_of_rows_leaves_unfinished_runs_over_other_corpora(tmp_path: Path) -> None:
    run_id = unfinished(told(tmp_path))
    store = Runs(tmp_path / "runs")
    begun, *rest = [dict(line.body) for line in store.log.lines()]
    begun["pin"]["corpus_id"] = "another"
    log_again(store, *((body["kind"], body) for body in (begun, *rest)))
    assert erase(settings(tmp_path), source="doc:story").runs.discarded == []
    assert Runs(tmp_path / "runs").unfinished() == [run_id]


def cuts(folder: Path, act: Callable[[Path], object], every: int) -> Iterator[tuple[bool, Path]]:
    """Whether an action returned, and what it left of the folder `start`, for changes that lie some apart; each under
    TEST_PROFILE=full."""
    every = 1 if os.environ.get("TEST_PROFILE") == "full" else every
    for _, done, left in each_cut(folder / "start", folder, act, power=False, at_most=3_000, every=every):
        yield done, left


def test_an_erasure_of_an_unfinished_run_that_ended_at_any_step_is_done_by_asking_again(tmp_path: Path) -> None:
    unfinished(told(tmp_path / "start"))
    for _, left in cuts(tmp_path, lambda at: erase(settings(at), project="shop", questions=False), 7):
        erase(settings(left), project="shop", questions=False)
        assert holding(left) == []
        assert Runs(left / "runs").unfinished() == []


def test_an_erasure_of_rows_that_ended_at_any_step_is_done_by_another_one_who_asks(tmp_path: Path) -> None:
    told(tmp_path / "start")
    grants = {"principals": {name: {"projects": ["shop"], "audit": True} for name in ("ana", "cy")}}
    (tmp_path / "start/grants.yaml").write_text(yaml.safe_dump(grants), encoding="utf-8")
    for _, left in cuts(tmp_path, lambda at: erase(settings(at), project="shop", questions=False), 3):
        with suppress(AccessError):  # where all of it was done
            erase(settings(left, "cy"), project="shop", questions=False)
        assert holding(left) == []


@pytest.mark.parametrize(("batch", "every"), [(True, 7), (False, 29)], ids=["compacted", "interactive"])
def test_an_erasure_that_ended_at_any_step_is_done_by_asking_again(tmp_path: Path, batch: bool, every: int) -> None:
    snapshot = asked(told(tmp_path / "start"), batch=batch)
    for done, left in cuts(tmp_path, lambda at: erase(settings(at), project="shop"), every):
        assert Corpus.open(left / "corpus").verify() == []
        if not done:
            erase(settings(left), project="shop")
        assert holding(left) == []
        store = Runs(left / "runs")
        assert (verify(store, snapshot).status, replay(store, snapshot).status) == ("erased", "erased")


@pytest.mark.parametrize(("batch", "every"), [(True, 29), (False, 3)], ids=["run", "session"])
def test_no_byte_stays_of_what_a_writer_left_that_was_killed(tmp_path: Path, batch: bool, every: int) -> None:
    told(tmp_path / "start")
    begun = 0
    for _, left in cuts(tmp_path, lambda at: asked(Story.at(at), batch=batch), every):
        begun += any("runs" in name for name in holding(left))
        done = erase(settings(left), project="shop")
        assert done.runs.unreadable == []
        assert holding(left) == []
    assert begun > 1


def test_no_byte_stays_of_a_session_whose_files_a_loss_of_power_brought_back(tmp_path: Path) -> None:
    snapshot = asked(told(tmp_path), batch=False)
    store = Runs(tmp_path / "runs")
    run = store.open(snapshot)
    shutil.copytree(tmp_path / "runs/live", tmp_path / "aside")
    compact(store, run.run_id)
    shutil.copytree(tmp_path / "aside", tmp_path / "runs/live", dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "aside")
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert verify(store, snapshot).status == "erased"


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
