"""A writer that ends, loses power or is overtaken at any step: the corpus is in the old or the new state, and can be
written again. Every step is tried under TEST_PROFILE=full, else a fraction."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus_rows import SOURCE, content, day, history, import_rows
from failing_store import FailingStore, PausedStore
from power_cut import each_cut
from scoped_retrieval.pipeline.corpus import Corpus, Selection, publishing
from scoped_retrieval.pipeline.storage.places import Place
from stored_corpus import generations, heads, written_again

FULL = os.environ.get("TEST_PROFILE") == "full"
NAMES = ("bank", "mill", "pier")


def began(path: Place) -> Corpus:
    """A corpus of many small packs, with commits, changes to stored rows and earlier generations."""
    corpus = Corpus.create(path)
    for name in NAMES:
        rows = import_rows({"text": name, "owner_project": name})
        corpus.publish(rows, commits={SOURCE: history(3)}, project=name, now=day(1))
    rows = import_rows({"text": "one"}, {"text": "two", "path": "b.md"})
    corpus.publish(rows, commits={SOURCE: history(1)}, project="shop", now=day(1))
    corpus.append(import_rows({"text": "more"}), now=day(1))
    corpus.append(import_rows({"text": "more", "title": "Another"}), now=day(1))
    return corpus


UPDATE = (
    {"text": "one, changed", "recorded_time": day(2)},
    {"text": "two", "path": "b.md", "zone": "private"},
    {"text": "more", "title": "Guide"},
)


def publish(corpus: Corpus) -> None:
    after = {SOURCE: history(1, 2)}
    rows = import_rows(*map(dict, UPDATE))
    corpus.publish(rows, complete_sources={SOURCE}, commits=after, project="shop", now=day(2))


def erase(corpus: Corpus) -> None:
    corpus.erase(Selection("ana", frozenset({"shop"}), source=SOURCE, project="shop"), now=day(2))


ACTIONS: dict[str, Callable[[Corpus], object]] = {
    "publish": publish,
    "return to earlier content": lambda corpus: corpus.append(import_rows({"text": "more"}), now=day(2)),
    "merge": lambda corpus: written_again(corpus, day(2)),
    "gc": lambda corpus: corpus.gc(keep=1),
    "erase": erase,
}


def state_of(corpus: Corpus) -> tuple[object, list[dict]]:
    """Rows and commits."""
    commits = [row for name in corpus.projects() for row in corpus.commits(name).to_pylist()]
    return content(corpus.frame()), commits


def expect_whole(path: Place) -> None:
    """Every stored generation can be opened, and all that it names is there."""
    for name in generations(path):
        assert Corpus.open(path, name).verify() == []


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize("name", ACTIONS)
def test_a_writer_that_ends_at_any_step_leaves_the_state_before_or_after(
    tmp_path: Path, name: str, power: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "FAN_IN", 3)  # there are as many small packs: they are gathered
    act, start = ACTIONS[name], tmp_path / "start"
    began(start)
    shutil.copytree(start, tmp_path / "done")
    act(Corpus.open(tmp_path / "done"))
    allowed = [state_of(Corpus.open(tmp_path / at)) for at in ("start", "done")]
    kept = {} if name in ("gc", "erase") else {at: state_of(Corpus.open(start, at)) for at in generations(start)}
    acknowledged = False

    def acted(path: Path) -> None:
        nonlocal acknowledged
        acknowledged = False
        act(Corpus.open(path))
        acknowledged = True

    for step, _, left in each_cut(start, tmp_path, acted, power=power, every=1 if FULL else 5):
        survivor = Corpus.open(left)
        assert state_of(survivor) in (allowed[1:] if acknowledged else allowed), step
        expect_whole(left)
        assert {at: state_of(Corpus.open(left, at)) for at in kept} == kept
        act(survivor)  # leftovers of a crash do not block it
        assert state_of(Corpus.open(left)) == allowed[1]
        survivor.gc(keep=1)
        assert Corpus.open(left).verify() == []
        assert not list(left.rglob(".tmp-*"))
        packs = {each.name for each in (left / "packs").iterdir()}
        assert packs == survivor._base.manifest.packs.keys()
        assert len(list((left / "generations").iterdir())) == 1
        if name == "erase":
            assert not [file for file in left.rglob("*.arrow") if b"two" in file.read_bytes()]


TURNS: dict[str, Callable[[Corpus], object]] = {
    "publish": lambda corpus: corpus.append(import_rows({"text": "theirs", "path": "t.md"}), now=day(3)),
    "the same": lambda corpus: corpus.append(import_rows({"text": "mine", "path": "m.md"}), now=day(2)),
    "merge": lambda corpus: written_again(corpus, day(3)),
    "gc": lambda corpus: corpus.gc(keep=1),
    "erase": lambda corpus: corpus.erase(Selection("bo", frozenset({"bank"}), project="bank"), now=day(3)),
}
MINE: dict[str, Callable[[Corpus], object]] = {
    "publish": lambda corpus: corpus.append(import_rows({"text": "mine", "path": "m.md"}), now=day(2)),
    "gc": lambda corpus: corpus.gc(keep=1),
    "erase": lambda corpus: corpus.erase(Selection("ana", frozenset({"mill"}), project="mill"), now=day(2)),
}


PAIRS = [(name, turn) for name in MINE for turn in TURNS if "publish" in (name, turn) or name == turn]


@pytest.mark.parametrize(("name", "turn"), PAIRS)
def test_a_writer_of_an_object_store_that_is_overtaken_at_any_step_loses_nothing(
    tmp_path: Path, name: str, turn: str
) -> None:
    """Both are told that they succeeded, and both did; what is left is whole."""
    pytest.importorskip("fsspec", reason="needs the extra remote")
    began(tmp_path / "start")
    files = {file.relative_to(tmp_path / "start").as_posix(): file for file in (tmp_path / "start").rglob("*.*")}
    lines = (tmp_path / "start/HEADS").read_bytes().splitlines()
    calls = 0
    while True:
        at = f"{tmp_path.name}-{calls}"
        place = FailingStore().at(at)
        for file in (each for each in files if files[each].is_file() and not each.startswith(".")):
            (place / file).write_bytes(files[file].read_bytes())
        for number, line in enumerate(lines, start=1):
            (place / f"HEADS/{number:09d}").write_bytes(line)
        paused = PausedStore(lambda place=place: TURNS[turn](Corpus.open(place)), calls)
        MINE[name](Corpus.open(paused.at(at)))
        after = Corpus.open(place)
        texts = set(after.frame().evidence["text"].to_pylist())
        wanted = {"one", "two", "more", *NAMES}
        overtaken = paused.calls < 0
        wanted |= {"mine"} if name == "publish" or (turn == "the same" and overtaken) else set()
        wanted |= {"theirs"} if turn == "publish" and overtaken else set()
        wanted -= {"mill"} if name == "erase" else set()
        wanted -= {"bank"} if turn == "erase" and overtaken else set()
        assert texts == wanted, calls
        assert after.verify() == []
        expect_whole(place)
        after.gc(keep=1)
        assert Corpus.open(place).verify() == []
        left = {name.split("/")[1] for name in place.files() if name.startswith("packs/")}
        assert left == Corpus.open(place)._base.manifest.packs.keys()
        if not overtaken:
            break
        calls += 1 if FULL else 4
    assert calls > 12


def test_content_that_returns_to_an_earlier_state_is_opened_where_it_was_written_last(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    earlier = corpus.generation
    corpus.append(import_rows({"text": "one", "title": "Another"}), now=day(2))
    corpus.append(import_rows({"text": "one"}), now=day(3))
    assert [line.number for line in heads(tmp_path) if line.body["generation"] == earlier] == [2, 4]
    corpus.gc(keep=1)
    assert Corpus.open(tmp_path, earlier)._base.manifest.number == 4


KILLED = """
import os, sys
from pathlib import Path
left = int(sys.argv[2])
def watch(event, args):
    global left
    if event == "open" or event.startswith("os."):
        left -= 1
        if left < 0:
            os._exit(9)
sys.path.insert(0, sys.argv[3])
from corpus_rows import SOURCE, day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus
corpus = Corpus.open(Path(sys.argv[1]))
rows = import_rows({"text": "new"})
sys.addaudithook(watch)
corpus.publish(rows, complete_sources={SOURCE}, now=day(2))
"""


@pytest.mark.parametrize("step", [4, 10, 14, 20])
def test_a_killed_writer_leaves_no_lock(tmp_path: Path, step: int) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "old"}), now=day(1))
    support = str(Path(__file__).parent / "support")
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(step), support]
    assert subprocess.run(command, check=False, env=dict(os.environ)).returncode == 9
    survivor = Corpus.open(tmp_path)
    assert survivor.verify() == []
    survivor.publish(import_rows({"text": "new"}), complete_sources={SOURCE}, now=day(2))
    assert sorted(survivor.frame().evidence["text"].to_pylist()) == ["new", "old"]
