"""Erasure of what runs show of rows that the corpus does not hold any more, as after it was rebuilt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from erasing_world import KEPT, asked, holding, settings, told
from scoped_retrieval.pipeline.maintenance.erasure import erase
from scoped_retrieval.pipeline.runs import Runs, verify
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
