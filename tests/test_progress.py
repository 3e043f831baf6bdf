"""Lines about how far something is: at each tenth at most, and none for what is soon done."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.indexing.importing import _Embedding
from scoped_retrieval.pipeline.progress import StepReporter, counted, taking
from scoped_retrieval.pipeline.sources import path_history
from scoped_retrieval.pipeline.sources.git_history import read_git_history
from scoped_retrieval.pipeline.sources.report import SourceReport


@pytest.mark.parametrize(
    ("total", "least", "told"),
    [
        (1, 1, []),
        (3, 1, [1, 2]),
        (10, 1, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (25, 1, [3, 6, 9, 12, 15, 18, 21, 24]),
        (25, 10, [10, 20]),
        (25, 50, []),
    ],
)
def test_a_line_stands_at_each_tenth_and_not_at_the_end(total: int, least: int, told: list[int]):
    said: list[str] = []
    tell = StepReporter(said.append, "{:,} of {:,}", least=least)
    for done in range(total + 1):
        tell(done, total)
    assert said == [f"{done} of {total}" for done in told]


def test_what_takes_long_is_told_with_an_estimate():
    said: list[str] = []
    times = iter([0.0, 0.0, 10.0, 200.0])
    tell = StepReporter(said.append, "{:,} of {:,}", clock=lambda: next(times))
    for done in (0, 5, 8):
        tell(done, 10)
    assert said == ["5 of 10", "8 of 10"]
    times = iter([0.0, 0.0, 100.0])
    tell = StepReporter(said.append, "{:,} of {:,}", clock=lambda: next(times))
    for done in (0, 1):
        tell(done, 10)
    assert said[-1] == "1 of 10; about 15 minutes left"


def test_a_long_history_is_told_by_commits_and_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(path_history, "LEAST_REPORTED", 1)
    repository = tmp_path / "shop"
    repository.mkdir()
    for name in "abcd":
        (repository / f"{name}.md").write_text(f"# {name}\n\nText.\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    said: list[str] = []
    now = datetime(2030, 1, 1, tzinfo=UTC)
    list(read_git_history(repository, project="shop", now=now, report=SourceReport(), say=said.append))
    assert said == ["reading 1 commit of shop", *(f"read {n} of 4 changes" for n in (1, 2, 3))]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((1, "part"), "1 part"),
        ((0, "part"), "0 parts"),
        ((3000, "request"), "3,000 requests"),
        ((2, "query", "queries"), "2 queries"),
    ],
)
def test_a_count_agrees_with_its_noun(counts: tuple[int, str], said: str):
    assert counted(*counts) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "1 second"), (60, "60 seconds"), (720, "12 minutes"), (3600 * 3.5, "3.5 hours")]
)
def test_a_time_is_told_as_people_say_it(seconds: float, said: str):
    assert taking(seconds) == said


@pytest.mark.parametrize(("step", "told"), [(10.0, True), (0.1, False)])
def test_a_long_embedding_says_after_its_first_piece_how_long_it_takes(step: float, told: bool):
    said: list[str] = []
    times = iter((0.0, step))
    with _Embedding(progress=False, say=said.append, clock=lambda: next(times)) as embedding:
        for done in range(0, 1281, 128):
            embedding(done, 1280)
    estimate = "embedding takes about 90 seconds; if it is interrupted, the next `index` resumes there"
    assert (said[1] == estimate.replace("90 seconds", "2 minutes")) is told
