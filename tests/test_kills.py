"""A process killed at any touch of a file leaves nothing half-visible, and the next one does exactly the rest.

Nine seeded kills here and the last steps of a run one by one; two hundred under TEST_PROFILE=full.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import killed
import pytest
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs, verify
from stored_corpus import heads

SEEDS = 100 if os.environ.get("TEST_PROFILE") == "full" else 3
LAST = range(-8, 0)
"""Counted from the last touch: the manifest is there, the stage half removed, the line of the log not written."""
SCRIPT = Path(killed.__file__)
KILLED = (9, None)


Child = Callable[[str, Path, int], tuple[int, int | None]]


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """Does something in a process of its own: its exit code, and how many touches there were."""
    with subprocess.Popen([sys.executable, str(SCRIPT)], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin and process.stdout
        asked, told = process.stdin, process.stdout

        def done(what: str, folder: Path, at: int) -> tuple[int, int | None]:
            print(json.dumps([what, str(folder), at]), file=asked, flush=True)
            code, touches = json.loads(told.readline())
            return code, touches

        yield done
        asked.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shop indexed and run without a kill."""
    folder = tmp_path_factory.mktemp("whole")
    killed.index(folder)
    killed.run(folder)
    return folder


@pytest.fixture(scope="module")
def touches(child: Child, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How often an undisturbed process touches a file."""
    folder = tmp_path_factory.mktemp("counted")
    return {what: child(what, folder, -1)[1] or 0 for what in ("index", "run")}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_killed_index_is_whole_or_not_there(
    seed: int, whole: Path, child: Child, touches: dict[str, int], tmp_path: Path
) -> None:
    at = random.Random(seed).randrange(touches["index"])
    assert child("index", tmp_path, at) == KILLED
    if (tmp_path / "corpus" / "HEADS").exists() and heads(tmp_path / "corpus"):
        survivor = Corpus.open(tmp_path / "corpus")
        assert survivor.verify() == []
        assert survivor.generation in (Corpus.open(whole / "corpus").generation, empty_generation(tmp_path))
    assert killed.index(tmp_path) == Corpus.open(whole / "corpus").generation


@pytest.mark.parametrize("seed", [*range(SEEDS), *LAST])
def test_a_killed_run_is_finished_by_resume(
    seed: int, whole: Path, child: Child, touches: dict[str, int], tmp_path: Path
) -> None:
    shutil.copytree(whole / "corpus", tmp_path / "corpus")
    at = touches["run"] + seed if seed < 0 else random.Random(1000 + seed).randrange(touches["run"])
    if child("run", tmp_path, at)[0] == 0:  # how often a lock is looked at varies by one: it ended before
        shutil.rmtree(tmp_path / "runs")
        assert child("run", tmp_path, at - 1) == KILLED
    store = Runs(tmp_path / "runs")
    for run in store.list():
        assert run.snapshots.num_rows == 12
    run_id = store.list()[0].run_id if store.list() and not store.unfinished() else killed.run(tmp_path)
    assert verify(store, run_id).ok
    assert digests(store, run_id) == digests(Runs(whole / "runs"), Runs(whole / "runs").list()[0].run_id)
    assert len(store.list()) == 1 and store.unfinished() == []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_killed_erasure_is_done_by_asking_again(seed: int, whole: Path, child: Child, tmp_path: Path) -> None:
    counted, folder = tmp_path / "counted", tmp_path / "killed"
    for copy in (counted, folder):
        shutil.copytree(whole, copy)
    code, touches = child("erase", counted, -1)
    assert code == 0 and touches
    assert child("erase", folder, random.Random(2000 + seed).randrange(touches)) == KILLED
    assert Corpus.open(folder / "corpus").verify() == []
    assert killed.erase(folder) == killed.erase(counted) > 0
    store = Runs(folder / "runs")
    assert verify(store, store.list()[0].run_id).status == "erased"
    for corpus in (folder, counted):
        assert {p.name for p in (corpus / "corpus" / "packs").iterdir()} == {
            *Corpus.open(corpus / "corpus")._base.packs
        }
    assert Corpus.open(folder / "corpus").generation == Corpus.open(counted / "corpus").generation


def empty_generation(folder: Path) -> str:
    return Corpus.create(folder / "empty").generation


def digests(store: Runs, run_id: str) -> dict[str, str]:
    rows = store.open(run_id).snapshots
    return dict(zip(rows["request_id"].to_pylist(), rows["snapshot_digest"].to_pylist(), strict=True))
