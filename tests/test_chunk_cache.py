"""What was read before is not cut again, and the corpus is the one that reading everything gives."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from repositories import git
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.corpus.manifest import CACHE
from scoped_retrieval.pipeline.indexing import importing
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.indexing.report import IndexReport
from scoped_retrieval.pipeline.sources import document_reader, git_history

NOW = datetime.now(UTC) + timedelta(hours=1)
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@dataclass
class World:
    """A folder `tree` and the corpus that it is indexed into, each time a minute later; `whole` knows nothing from before."""

    folder: Path
    git: bool = False
    whole: bool = False
    name: str = "corpus"
    times: int = 0

    def index(self, *paths: Path, principal: str = "ana", **asked: Any) -> IndexReport:
        flags = {"corpus": str(self.corpus), "project": "shop", "principal": principal}
        settings = load_settings(flags, cwd=self.folder, environ={}, user=self.folder / "none.toml")
        if self.whole:
            shutil.rmtree(self.corpus / CACHE, ignore_errors=True)
        self.times += 1
        request = IndexRequest(**{"paths": paths or (self.tree,), "history": self.git, "semantic": False} | asked)
        return index_into(settings, request, now=NOW + timedelta(minutes=self.times))

    @property
    def corpus(self) -> Path:
        return self.folder / self.name

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.tree / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
            (self.tree / f"{name}.md").write_text(text)


def paths_of(corpus: Path) -> set[str]:
    """The paths of rows that have not ended."""
    frame = Corpus.open(corpus).frame()
    ended = [
        a or b for a, b in zip(*(frame.placements[n].to_pylist() for n in ("superseded_at", "deleted_at")), strict=True)
    ]
    rows = frame.placements["row"].to_pylist()
    return {frame.evidence["path"][row].as_py() for row, end in zip(rows, ended, strict=True) if end is None}


def rows_of(corpus: Path) -> set[str]:
    """The ids of rows that have not ended somewhere."""
    frame = Corpus.open(corpus).frame()
    columns = (frame.placements[name].to_pylist() for name in ("row", "superseded_at", "deleted_at"))
    return {
        frame.evidence["evidence_id"][row].as_py() for row, *ends in zip(*columns, strict=True) if ends == [None] * 2
    }


@pytest.fixture(name="world")
def world_fixture(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write(a="# A\n\nOne.\n", b="# B\n\nTwo.\n")
    return world


LINES = (
    "# Head\n",
    "Some text.\n",
    "def f(x):\n    return g(x)\n",
    "class A:\n    pass\n",
    "\n",
    f"token = '{SECRET}'\n",
)


def edit(tree: Path, chance: random.Random) -> None:
    """One change of a work tree: a file written, appended to, removed, moved, made a link, a binary, or only touched."""
    names = [f"{folder}{name}" for folder in ("", "src/") for name in ("a.py", "b.md", "c.txt", "d.py", "[x] *.md")]
    file, other = (tree / name for name in chance.sample(names, 2))
    file.parent.mkdir(exist_ok=True)
    kind = chance.choice(["write", "write", "append", "move", "move", "remove", "link", "binary", "touch", "ignore"])
    there = [tree / name for name in names if (tree / name).is_file()]
    if there and kind in ("append", "move", "remove", "touch"):
        file = chance.choice(there)
    if file.is_symlink() or kind == "remove":
        file.unlink(missing_ok=True)
    if kind in ("write", "append"):
        before = file.read_bytes() if kind == "append" and file.exists() else b""
        file.write_bytes(before + "".join(chance.choices(LINES, k=chance.randint(1, 8))).encode())
    elif kind == "move" and file.exists():
        other.parent.mkdir(exist_ok=True)
        file.replace(other)
    elif kind == "link":
        file.unlink(missing_ok=True)
        file.symlink_to("README.md")
    elif kind == "binary":
        file.write_bytes(b"\0\1")
    elif kind == "touch" and file.exists():
        modified = 1_600_000_000 + chance.randint(0, 99)
        os.utime(file, (modified, modified))
    elif kind == "ignore":
        (tree / ".gitignore").write_text(chance.choice(["", "src/\n", "*.txt\n"]))


def repository(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")


def commit(folder: Path, *more: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x", *more)


def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path of a history is published on its own."""
    monkeypatch.setattr(git_history, "BATCH_CHANGES", 1)
    monkeypatch.setattr(importing, "PART_PLACEMENTS", 1)


@pytest.mark.parametrize(("how", "seed"), [("work tree", 2), ("history", 9), ("history in parts", 2)])
def test_after_random_edits_the_corpus_is_the_one_that_reading_everything_gives(
    tmp_path: Path, seed: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, with_git = random.Random(seed), how.startswith("history")
    known, whole = World(tmp_path, with_git), World(tmp_path, with_git, whole=True, name="whole")
    known.write(README="# Shop\n\nText.\n")
    repository(known.tree)
    unread = 0
    for _ in range(8):
        for _ in range(chance.randint(0, 3)):
            edit(known.tree, chance)
        if chance.random() < 0.7:
            commit(known.tree, *(["--amend"] if known.times and chance.random() < 0.3 else []))
        with monkeypatch.context() as patch:
            if how == "history in parts":
                in_parts(patch)
            mine = known.index()
        theirs = whole.index()
        unread += sum(mine.unread.values())
        assert mine.generation == theirs.generation
        assert (mine.rows, mine.places, mine.sources.masked) == (theirs.rows, theirs.places, theirs.sources.masked)
        assert (mine.sources.skipped, mine.sources.notes) == (theirs.sources.skipped, theirs.sources.notes)
    assert unread
    assert Corpus.open(known.corpus).verify() == []
    kept = b"".join(file.read_bytes() for file in (known.corpus / CACHE).iterdir())
    assert SECRET.encode() not in kept


def test_what_is_unchanged_is_counted_and_not_read(world: World) -> None:
    first, again = world.index(), world.index()
    assert (first.unread, again.unread) == ({}, {"work tree": 2})
    assert again.generation == first.generation


def test_a_file_of_the_same_size_and_time_with_other_text_is_read(world: World) -> None:
    world.index()
    file = world.tree / "a.md"
    times = file.stat()
    file.write_text("# A\n\nTwo.\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert world.index().unread == {"work tree": 1}


def test_what_is_ignored_from_now_on_ends(world: World) -> None:
    world.index()
    (world.tree / ".gitignore").write_text("b.md\n")
    world.index()
    assert paths_of(world.corpus) == {"a.md", ".gitignore"}


@pytest.mark.parametrize("with_git", [False, True], ids=["work tree", "history"])
def test_chunks_of_other_readers_are_not_used(world: World, with_git: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world.git, whole = with_git, World(world.folder, with_git, whole=True, name="whole")
    repository(world.tree)
    commit(world.tree)
    for each in (world, whole):
        each.index()
    inner = document_reader.readable
    monkeypatch.setattr(document_reader, "readable", lambda kind, data: inner(kind, data.upper()))
    monkeypatch.setattr(importing, "reader_digest", lambda: "other readers")
    assert world.index().unread == {}
    whole.index()
    assert rows_of(world.corpus) == rows_of(whole.corpus)


@pytest.mark.parametrize("damage", ["cut", "flipped", "key lost"])
def test_a_damaged_cache_costs_time_alone(world: World, damage: str) -> None:
    first = world.index()
    folder = world.corpus / CACHE
    for file in [*folder.iterdir()]:
        data = file.read_bytes()
        if damage == "cut":
            file.write_bytes(data[: len(data) // 2])
        elif damage == "flipped":
            file.write_bytes(bytes([*data[:-40], data[-40] ^ 1, *data[-39:]]) if len(data) > 40 else data)
        elif file.name == "KEY":
            file.unlink()
    assert world.index().generation == first.generation
    assert world.index().unread == {"work tree": 2}


def test_a_blob_that_one_clone_lacks_and_another_has_is_read(tmp_path: Path) -> None:
    world = World(tmp_path, git=True)
    world.write(a="# A\n\nOne.\n")
    repository(world.tree)
    commit(world.tree)
    lacking, blob = tmp_path / "lacking", git(world.tree, "rev-parse", "HEAD:a.md").strip()
    shutil.copytree(world.tree, lacking)
    (lacking / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert world.index(lacking, world.tree).places["history"] == 1
    assert world.index(lacking, world.tree).places["history"] == 2


def test_a_killed_import_of_a_history_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, whole = World(tmp_path, git=True), World(tmp_path, git=True, whole=True, name="whole")
    world.write(**{name: f"# {name}\n\nText of {name}.\n" for name in "abcdef"})
    repository(world.tree)
    commit(world.tree)
    world.write(c="# c\n\nOther text.\n")
    commit(world.tree)
    in_parts(monkeypatch)
    inner, publications = importing._Import._publish, []

    def publish(self, *given, **named):
        publications.append(None)
        if len(publications) == 4:
            raise KeyboardInterrupt
        return inner(self, *given, **named)

    monkeypatch.setattr(importing._Import, "_publish", publish)
    with pytest.raises(KeyboardInterrupt):
        world.index()
    assert paths_of(world.corpus) == {f"{name}.md" for name in "abc"}
    world.write(d="# d\n\nAnother text.\n", e="# More\n\n# e\n\nText of e.\n")
    commit(world.tree)
    report = world.index()
    assert report.unread["history"] >= 3
    assert report.generation == whole.index().generation


@pytest.mark.parametrize("with_git", [False, True], ids=["work tree", "history"])
def test_erased_rows_do_not_come_back(world: World, with_git: bool) -> None:
    world.git = with_git
    repository(world.tree)
    commit(world.tree)
    world.index()
    corpus = Corpus.open(world.corpus)
    frame = corpus.frame()
    row = frame.evidence["evidence_id"].to_pylist()[frame.evidence["path"].to_pylist().index("a.md")]
    corpus.erase(Selection("ana", frozenset({"shop"}), evidence=(row,)), now=NOW)
    assert not (world.corpus / CACHE).exists()
    report = world.index()
    assert (report.unread, report.published["erased_rows"]) == ({}, 1)
    world.write(a="# A\n\nOne.\n\n# More\n\nText.\n")
    commit(world.tree)
    world.index()
    assert row not in Corpus.open(world.corpus).frame().evidence["evidence_id"].to_pylist()


def test_rows_of_another_reader_of_a_source_end_with_it(world: World) -> None:
    rows = world.folder / "rows.jsonl"
    rows.write_text('{"source_id": "workspace:s", "text": "x", "path": "c.md", "origin_class": "workspace"}')
    assert world.index(source="s", read=(("evidence", rows),)).rows == {"work tree": 2, "evidence": 1}
    assert paths_of(world.corpus) == {"a.md", "b.md", "c.md"}
    world.index(source="s")
    assert paths_of(world.corpus) == {"a.md", "b.md"}


def test_a_work_tree_that_is_read_with_its_history_has_no_rows_of_its_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(a="# A\n\nOne.\n")
    repository(world.tree)
    commit(world.tree)
    world.index()
    world.git = True
    world.index()
    frame = Corpus.open(world.corpus).frame()
    current = rows_of(world.corpus)
    rows = [
        row for row in frame.evidence.select(["evidence_id", "source_id"]).to_pylist() if row["evidence_id"] in current
    ]
    assert [row["source_id"] for row in rows] == ["git:tree"]


def test_any_number_of_workers_gives_one_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_reader, "TASK_TEXTS", 1)
    monkeypatch.setattr(document_reader, "TASKS_HERE", 0)
    pool, started = document_reader.ProcessPoolExecutor, list[int]()
    monkeypatch.setattr(
        document_reader, "ProcessPoolExecutor", lambda n, how, **given: started.append(n) or pool(n, how, **given)
    )
    alone, shared = World(tmp_path, name="alone"), World(tmp_path, name="shared")
    alone.write(**{f"n{number}": f"# Note {number}\n\nText {number}.\n" for number in range(5)})
    assert alone.index(workers=1).generation == shared.index(workers=2).generation
    assert started == [2]
