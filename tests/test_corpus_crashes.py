"""A writer that ends at any step: the corpus is in the old or the new state, and can be written again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from corpus_rows import SOURCE, content, day, history, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, manifest, publishing
from scoped_retrieval.pipeline.storage import places
from scoped_retrieval.pipeline.storage.places import place_of
from small_corpus import Story, row


class _Crash(BaseException):
    """Represents the end of the process: no handler of the code under test expects it."""


class _Fault:
    """Lets the n-th change to the file system fail, like a process that ends there."""

    def __init__(self) -> None:
        self.left: int | None = None
        sys.addaudithook(self.watch)

    def watch(self, event: str, args: tuple) -> None:
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        if self.left is None or not (writes or event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir")):
            return
        self.left -= 1
        if self.left < 0:
            raise _Crash


@pytest.fixture(scope="module")
def fault() -> Iterator[_Fault]:
    hook = _Fault()
    yield hook
    hook.left = None


def state_of(corpus: Corpus) -> tuple[object, list[dict]]:
    """Rows and commits."""
    commits = [row for name in corpus.projects() for row in corpus.commits(name).to_pylist()]
    return content(corpus.frame()), commits


@pytest.mark.parametrize("action", ["publish", "return", "merge", "gc"])
def test_a_crash_at_any_step_leaves_the_generation_before_or_the_next(
    tmp_path: Path, fault: _Fault, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "TRIMMED_FROM", 0)
    start = Corpus.create(tmp_path / "start")
    for name in ("bank", "mill", "pier"):
        rows = import_rows({"text": name, "owner_project": name})
        start.publish(rows, commits={SOURCE: history(3)}, project=name, now=day(1))
    rows = import_rows({"text": "one"}, {"text": "two", "path": "b.md"})
    start.publish(rows, commits={SOURCE: history(1)}, project="shop", now=day(1))
    start.append(import_rows({"text": "more"}), now=day(1))
    earlier = start.generation
    described = import_rows({"text": "more", "title": "Another"})
    start.append(described, now=day(1))
    update = import_rows(
        {"text": "one, changed", "recorded_time": day(2)},
        {"text": "two", "path": "b.md", "zone": "private"},
        {"text": "more", "title": "Guide"},
    )

    def act(corpus: Corpus) -> None:
        if action == "publish":
            after = {SOURCE: history(1, 2)}
            corpus.publish(update, complete_sources={SOURCE}, commits=after, project="shop", now=day(2))
        elif action == "return":
            corpus.append(import_rows({"text": "more"}), now=day(2))
            assert corpus.generation == earlier
        elif action == "merge":
            corpus.merge(now=day(2))
        else:
            corpus.gc(keep=1)

    monkeypatch.setattr(publishing, "FAN_IN", 3)  # there are as many small packs: they are gathered
    shutil.copytree(tmp_path / "start", tmp_path / "done")
    act(Corpus.open(tmp_path / "done"))
    allowed = [state_of(Corpus.open(tmp_path / name)) for name in ("start", "done")]
    known = [] if action == "gc" else manifest.generations(tmp_path / "start")
    kept = {name: state_of(Corpus.open(tmp_path / "start", name)) for name in known}
    for step in range(200):
        path = tmp_path / f"crash-{step}"
        shutil.copytree(tmp_path / "start", path)
        corpus, fault.left = Corpus.open(path), step
        try:
            act(corpus)
        except _Crash:
            crashed = True
        else:
            crashed = False
        finally:
            fault.left = None
        survivor = Corpus.open(path)
        assert state_of(survivor) in allowed
        assert survivor.verify() == []
        assert set(kept) <= set(manifest.generations(path))
        act(survivor)  # leftovers of a crash do not block it
        assert state_of(Corpus.open(path)) == allowed[1]
        assert {name: state_of(Corpus.open(path, name)) for name in kept} == kept
        survivor.gc(keep=1)
        assert not list(path.rglob(".tmp-*"))
        shutil.rmtree(path)
        if not crashed:
            break
    assert step >= 3


def crashed_before_current(corpus: Corpus, monkeypatch: pytest.MonkeyPatch, act: Callable[[Corpus], object]) -> None:
    """Let a writer end between its manifest and the pointer."""
    real = manifest.write_atomic

    def write(path: Path, data: bytes) -> None:
        if path.name == "CURRENT":
            raise _Crash
        real(path, data)

    with monkeypatch.context() as patched, pytest.raises(_Crash):
        patched.setattr(manifest, "write_atomic", write)
        act(corpus)


@pytest.mark.parametrize("next_", [
    lambda corpus: corpus.append(import_rows({"text": "three"}), now=day(4)),
    lambda corpus: corpus.merge(now=day(4)),
    lambda corpus: corpus.gc(keep=9),
], ids=["publish", "merge", "gc"])  # fmt: skip
def test_a_generation_outlives_a_writer_that_died_while_it_returned_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_: Callable[[Corpus], object]
) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    earlier, before = corpus.generation, state_of(corpus)
    corpus.append(import_rows({"text": "one", "title": "Another"}), now=day(2))
    known = manifest.generations(tmp_path)
    crashed_before_current(corpus, monkeypatch, lambda c: c.append(import_rows({"text": "one"}), now=day(3)))
    assert manifest.generations(tmp_path) == known
    survivor = Corpus.open(tmp_path)
    next_(survivor)
    assert [name for name in manifest.generations(tmp_path) if name != survivor.generation] == [
        name for name in known if name != survivor.generation
    ]
    assert state_of(Corpus.open(tmp_path, earlier)) == before
    assert Corpus.open(tmp_path, earlier).verify() == []
    survivor.append(import_rows({"text": "one"}, {"text": "three"}), now=day(5))
    assert manifest.generations(tmp_path)[-1] == survivor.generation


def test_a_writer_that_was_open_knows_of_a_merge_that_died_before_its_pointer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Corpus.create(tmp_path)
    other.publish(import_rows({"text": "one"}), now=day(1))
    other.append(import_rows({"text": "two"}), now=day(1))
    crashed_before_current(Corpus.open(tmp_path), monkeypatch, lambda c: c.merge(now=day(2)))
    Corpus.open(tmp_path).gc(keep=1)  # removes what was merged
    other.append(import_rows({"text": "three"}), now=day(3))
    assert sorted(Corpus.open(tmp_path).frame().evidence["text"].to_pylist()) == ["one", "three", "two"]


@pytest.mark.parametrize("next_", ["publish", "gc", "gc of a copy that kept no times"])
def test_a_generation_whose_writer_died_never_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_: str
) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    kept = manifest.generations(tmp_path)
    crashed_before_current(corpus, monkeypatch, lambda c: c.append(import_rows({"text": "ghost"}), now=day(2)))
    assert len(list((tmp_path / "generations").glob("*.json"))) == len(kept) + 1
    again = Corpus.open(tmp_path)
    if next_ == "publish":
        again.append(import_rows({"text": "two"}), now=day(2))
        kept = [*kept, again.generation]
    else:
        for path in [*(tmp_path / "generations").iterdir(), tmp_path / "generations"] if "copy" in next_ else []:
            os.utime(path, (1, 1))  # before the pointer
        again.gc(keep=9)
    assert manifest.generations(tmp_path) == kept
    assert sorted(path.stem for path in (tmp_path / "generations").glob("*.json")) == sorted(kept)


def test_a_writer_looks_at_no_manifest_where_none_came_since_the_pointer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    pointer = (tmp_path / "CURRENT").stat().st_mtime_ns
    os.utime(tmp_path / "generations", ns=(pointer - 1, pointer - 1))
    with monkeypatch.context() as patched:
        patched.setattr(manifest, "entries", lambda _: pytest.fail("however many generations there are"))
        corpus.append(import_rows({"text": "two"}), now=day(2))
    assert len(manifest.generations(tmp_path)) == 3


@pytest.mark.parametrize("dated", [True, False])
def test_on_a_store_too_what_a_writer_left_that_died_before_the_pointer_is_no_generation(
    s3: str, monkeypatch: pytest.MonkeyPatch, dated: bool
):
    monkeypatch.setattr(places, "_PUT", places._PUT if dated else ())
    story = Story(place_of(f"{s3}/{dated}"), row("doc", "docs/0.md", "Handler 0."))
    folder = story.folder / "corpus/generations"
    before = {path.name for path in folder.iterdir()}
    with monkeypatch.context() as patched, pytest.raises(_Crash):
        patched.setattr(manifest, "_point", lambda *_: (_ for _ in ()).throw(_Crash))
        story.tell(row("doc", "docs/ghost.md", "A ghost."))
    (ghost,) = {path.name for path in folder.iterdir()} - before
    story.tell(row("doc", "docs/other.md", "Another handler."))
    assert ghost not in {path.name for path in folder.iterdir()}


def test_what_a_writer_reads_does_not_grow_with_the_generations(s3: str, monkeypatch: pytest.MonkeyPatch):
    story, read, whole = (
        Story(place_of(f"{s3}/growing"), row("doc", "docs/0.md", "Handler 0.")),
        list[str](),
        manifest.read_whole,
    )
    monkeypatch.setattr(manifest, "read_whole", lambda place: read.append(str(place)) or whole(place))
    monkeypatch.setattr(manifest, "PUT_WITHIN_NS", -10_000_000_000)  # as if they were put far apart
    counts = []
    for number in range(1, 5):
        read.clear()
        story.tell(row("doc", f"docs/{number}.md", f"Handler {number}."))
        counts.append(len([name for name in read if "/generations/" in name]))
    assert counts[0] and counts == counts[:1] * 4


def test_a_merge_that_died_before_its_pointer_leaves_a_corpus_that_can_be_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    corpus.append(import_rows({"text": "two"}), now=day(1))
    crashed_before_current(corpus, monkeypatch, lambda c: c.merge(now=day(2)))
    survivor = Corpus.open(tmp_path)
    survivor.gc(keep=1)
    assert manifest.generations(tmp_path) == [survivor.generation]
    assert sorted(Corpus.open(tmp_path).frame().evidence["text"].to_pylist()) == ["one", "two"]


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


@pytest.mark.parametrize("step", [4, 10, 14, 20, 26])
def test_a_killed_writer_leaves_no_lock_and_no_half_generation(tmp_path: Path, step: int) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "old"}), now=day(1))
    support = str(Path(__file__).parent / "support")
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(step), support]
    assert subprocess.run(command, check=False).returncode == 9
    survivor = Corpus.open(tmp_path)
    assert survivor.verify() == []
    survivor.publish(import_rows({"text": "new"}), complete_sources={SOURCE}, now=day(2))
    assert sorted(survivor.frame().evidence["text"].to_pylist()) == ["new", "old"]
