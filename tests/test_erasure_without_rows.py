"""Erasure of what runs show of rows that the corpus does not hold any more, as after it was rebuilt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from erasing_world import KEPT, asked, holding, settings, told
from scoped_retrieval.nodes.errors import AccessError
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
    assert erase(settings(tmp_path), project="shop", dry_run=True).runs.unheld
    done = erase(settings(tmp_path), project="shop")
    assert (holding(tmp_path), len(done.runs.unheld)) == ([], 2)
    assert "2 rows that the corpus does not hold any more" in done.text()
    assert verify(Runs(tmp_path / "runs"), snapshot).status == "erased"


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_a_lost_row_goes_by_its_source_and_by_its_id(tmp_path: Path, batch: bool) -> None:
    snapshot = rebuilt(tmp_path, batch=batch)
    trimmed = replay(Runs(tmp_path / "runs"), snapshot).tables["trimmed"].to_pylist()
    (monday,) = [item["evidence_id"] for item in trimmed if "on Mondays" in item["visible_text"]]
    assert erase(settings(tmp_path), evidence=(monday,)).runs.unheld == {monday}
    assert not holding(tmp_path, "on Mondays") and holding(tmp_path)
    erase(settings(tmp_path), source="doc:story")
    assert holding(tmp_path) == []


def test_a_row_that_the_corpus_holds_goes_only_by_what_the_corpus_says(tmp_path: Path) -> None:
    rebuilt(tmp_path, batch=True)
    erase(settings(tmp_path), source="doc:story")
    assert [name for name in holding(tmp_path, KEPT) if name.startswith("corpus")]


def test_who_neither_asked_nor_audits_erases_nothing(tmp_path: Path) -> None:
    snapshot = rebuilt(tmp_path, batch=True)
    shown = replay(Runs(tmp_path / "runs"), snapshot).tables["trimmed"]["evidence_id"].to_pylist()
    for wanted in ({"evidence": tuple(shown)}, {"source": "doc:story"}, {"project": "shop"}):
        with pytest.raises(AccessError):
            erase(settings(tmp_path, "bo"), **wanted)
    assert holding(tmp_path)
