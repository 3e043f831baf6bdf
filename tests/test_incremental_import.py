"""Unchanged files are not read again, and the corpus is the one that reading everything gives."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from corpus_rows import HashEncoder
from failing_reads import unseen
from rereading_world import NOW, SECRET, World, git, paths_of, rows_of, world_fixture  # noqa: F401 - fixture
from scoped_retrieval.nodes.errors import MovedOnError, StoreError
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.corpus.source_states import FOLDER, SourceState
from scoped_retrieval.pipeline.indexing import importing
from scoped_retrieval.pipeline.indexing.importing import IndexRequest, index_into
from scoped_retrieval.pipeline.sources.incremental_import import IncrementalImport
from scoped_retrieval.pipeline.sources.report import SourceReport
from scoped_retrieval.pipeline.sources.same_source import same_folder
from scoped_retrieval.pipeline.sources.work_tree import read_work_tree

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
    kind = chance.choice(["write", "append", "append", "remove", "move", "link", "binary", "touch", "ignore"])
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


@pytest.mark.parametrize("with_git", [False, True], ids=["work tree", "history"])
@pytest.mark.parametrize("seed", range(4))
def test_after_random_edits_the_corpus_is_the_one_that_reading_everything_gives(
    tmp_path: Path, seed: int, with_git: bool
) -> None:
    chance = random.Random(seed)
    known, whole = World(tmp_path, with_git), World(tmp_path, with_git, whole=True, name="whole")
    known.write(README="# Shop\n\nText.\n")
    git(known.tree, "init", "-q", "-b", "main")
    unread = 0
    for _ in range(8):
        for _ in range(chance.randint(0, 3)):
            edit(known.tree, chance)
        if chance.random() < 0.7:
            git(known.tree, "add", "-A")
            amend = ["--amend"] if known.times and chance.random() < 0.15 else []
            git(known.tree, "commit", "-q", "--allow-empty", "-m", "x", *amend)
        mine, theirs = known.index(), whole.index()
        unread += sum(mine.unread.values())
        assert mine.generation == theirs.generation
        assert (mine.rows, mine.places, mine.masked) == (theirs.rows, theirs.places, theirs.masked)
        assert (mine.sources.skipped, mine.sources.notes) == (theirs.sources.skipped, theirs.sources.notes)
        assert not theirs.unread
    assert unread
    assert Corpus.open(known.corpus).verify() == []
    kept = b"".join(file.read_bytes() for file in (known.corpus / FOLDER).iterdir())
    assert SECRET.encode() not in kept


def test_a_masked_chunk_that_stands_still_stands(tmp_path: Path) -> None:
    """The corpus does not hold its text, so that its path is read from the beginning."""
    known, whole = World(tmp_path, git=True), World(tmp_path, git=True, whole=True, name="whole")
    git(tmp_path, "init", "-q", "-b", "main", "tree")
    for text in ("One", "Two"):
        known.write(a=f"# A\n\n{text}.\n\n# B\n\ntoken = '{SECRET}'\n")
        git(known.tree, "add", ".")
        git(known.tree, "commit", "-qm", text)
        mine, theirs = known.index(), whole.index()
        assert (mine.generation, mine.places, mine.masked) == (theirs.generation, theirs.places, theirs.masked)
    assert (mine.places["history"], mine.masked) == (3, 1)


def test_what_is_unchanged_is_counted_and_not_read(world: World) -> None:
    first, again = world.index(), world.index()
    assert (first.unread, again.unread, again.sources.read) == ({}, {"work tree": 2}, 0)
    assert again.text().splitlines()[:2] == ["work tree: 2 rows", "not read again: 2 files unchanged"]
    assert again.generation == first.generation


def test_a_file_of_the_same_size_and_time_with_other_text_is_read(world: World) -> None:
    world.index()
    file = world.tree / "a.md"
    times = file.stat()
    file.write_text("# A\n\nTwo.\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert world.index().unread == {"work tree": 1}


def test_a_file_that_was_younger_than_its_reading_is_told_by_its_content(world: World) -> None:
    """Two writes within one tick of the clock leave one status."""
    world.index()
    for started, stands in ((0, False), (2**62, True)):
        known = IncrementalImport("shop", None, (), started).source("workspace:tree", Path("tree"))
        status = known.status(os.fsencode(world.tree) + b"/a.md", 2**62)
        assert status is not None
        assert status.settled is stands
        known.before = SourceState("", paths={"a.md": status._replace(digest="of another text")})
        assert known.is_unchanged(world.tree, b"a.md", status, lambda path: 100, SourceReport()) is stands


def test_a_status_is_settled_by_itself_and_not_by_the_one_before(world: World) -> None:
    """A recently touched file with unchanged content may be written again within the tick."""
    world.index()
    reading = Corpus.open(world.corpus).source_state("shop", "workspace:tree")
    assert reading is not None
    known = IncrementalImport("shop", None, (), 0).source("workspace:tree", Path("tree"))
    known.before = replace(reading, paths={"a.md": reading.paths["a.md"]._replace(settled=True, changed=1)})
    status = known.status(os.fsencode(world.tree) + b"/a.md", 2**62)
    assert known.is_unchanged(world.tree, b"a.md", status, lambda path: 2**20, SourceReport())
    assert not known.standing["a.md"].settled


def test_only_a_settled_file_with_the_status_of_its_reading_stands_by_its_status(world: World) -> None:
    world.index()
    reading = Corpus.open(world.corpus).source_state("shop", "workspace:tree")
    assert reading is not None
    settled = reading.paths["a.md"]._replace(settled=True)
    changes = {"mode": 1, "inode": 1, "size": 1, "modified": 1, "changed": 1, "settled": False}
    others = [settled._replace(**{name: value}) for name, value in changes.items()]
    for before, started, recorded, stands in [
        (settled, 2**62, 2**52, True),
        (settled, 0, 2**52, False),
        (settled, 2**62, 0, False),
        *((other, 2**62, 2**52, False) for other in others),
    ]:
        known = IncrementalImport("shop", None, (), started).source("workspace:tree", Path("tree"))
        known.before = replace(reading, paths={"a.md": before})
        files = [b"a.md", b"gone.md", b"\xff.md"]
        left = list(known.in_question(world.tree, files, recorded, SourceReport()))
        assert left == files[stands:]
        assert known.standing == ({"a.md": before} if stands else {})


@pytest.mark.parametrize("modified", [10**9, 2**62])
def test_a_file_of_which_either_time_is_younger_than_the_import_does_not_stand_by_its_status(
    world: World, modified: int
) -> None:
    """The one was changed now and says it is old, the other says that it is from the future."""
    os.utime(world.tree / "a.md", ns=(modified, modified))
    world.index()
    status = (world.tree / "a.md").stat()
    started = status.st_ctime_ns - 1 if modified < status.st_ctime_ns else status.st_ctime_ns + 10**12
    known = IncrementalImport("shop", None, (), started).source("workspace:tree", Path("tree"))
    reading = known.status(os.fsencode(world.tree) + b"/a.md", 2**62)
    assert reading is not None
    known.before = SourceState("", paths={"a.md": reading._replace(settled=True)})
    assert list(known.in_question(world.tree, [b"a.md"], 2**53, SourceReport())) == [b"a.md"]


def test_a_file_behind_a_link_does_not_stand_by_its_status(world: World) -> None:
    world.write(**{"src/c": "# C\n"})
    world.index()
    reading = Corpus.open(world.corpus).source_state("shop", "workspace:tree")
    assert reading is not None
    (world.tree / "src").rename(world.tree.parent / "elsewhere")
    (world.tree / "src").symlink_to(world.tree.parent / "elsewhere")
    known = IncrementalImport("shop", None, (), 2**62).source("workspace:tree", Path("tree"))
    known.before = replace(reading, paths={"src/c.md": reading.paths["src/c.md"]._replace(settled=True)})
    assert list(known.in_question(world.tree, [b"src/c.md"], 2**52, SourceReport())) == [b"src/c.md"]


def test_what_was_said_of_files_is_said_again_in_their_order(world: World) -> None:
    world.index()
    reading = Corpus.open(world.corpus).source_state("shop", "workspace:tree")
    assert reading is not None
    said = json.dumps({"skipped": {}, "notes": {"a note": ["b.md"]}})
    paths = {"b.md": reading.paths["b.md"]._replace(settled=True, said=said)}
    known = IncrementalImport("shop", None, (), 2**62).source("workspace:tree", Path("tree"))
    known.before, report = replace(reading, paths=paths), SourceReport()
    questions = known.in_question(world.tree, [b"a.md", b"b.md", b"c.md"], 2**52, report)
    assert next(questions) == b"a.md"
    assert not report.notes
    assert next(questions) == b"c.md"
    assert report.noted_at == {"a note": ["b.md"]}


def test_what_is_ignored_from_now_on_ends(world: World) -> None:
    world.index()
    (world.tree / ".gitignore").write_text("b.md\n")
    world.index()
    assert paths_of(world.corpus) == {"a.md", ".gitignore"}


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(**{"src/a": "# A\n", "b": "# B\n"})
    git(world.tree, "init", "-q")
    git(world.tree, "add", ".")
    world.index()
    (world.tree / "src").rename(tmp_path / "elsewhere")
    (world.tree / "src").symlink_to(tmp_path / "elsewhere")
    world.index()
    assert paths_of(world.corpus) == {"b.md"}


@pytest.mark.parametrize("change", ["rules", "folder", "damage", "missing"])
def test_nothing_stands_when_what_decides_the_rows_changed(world: World, change: str) -> None:
    world.index()
    if change == "folder":
        world.tree.rename(world.folder / "old")
        (world.folder / "new").mkdir()
        (world.folder / "old").rename(world.folder / "new" / "tree")
        assert world.index(world.folder / "new" / "tree").unread == {}
        return
    if change == "rules":
        assert world.index(principal="eve").unread == {}
        return
    for file in (world.corpus / FOLDER).glob("*.arrow"):
        file.write_bytes(b"") if change == "damage" else file.unlink()
    assert world.index().unread == {}
    assert world.index().unread == {"work tree": 2}


def test_other_rows_of_a_source_make_it_unknown_and_those_of_others_do_not(world: World) -> None:
    world.index()
    other = world.folder / "rows.jsonl"
    settings = load_settings(
        {"corpus": str(world.corpus), "project": "shop", "principal": "ana"}, cwd=world.folder, environ={}, user=None
    )
    for source, unread in (("memory:x", {"work tree": 2}), ("workspace:tree", {})):
        other.write_text(f'{{"source_id": "{source}", "text": "x", "path": "c.md", "origin_class": "workspace"}}')
        index_into(settings, IndexRequest(evidence=(other,), semantic=False), now=NOW)
        assert world.index().unread == unread


def test_a_merge_and_a_cleaning_leave_what_is_known(world: World) -> None:
    world.index()
    world.write(a="# A\n\nOther.\n")
    world.index()
    corpus = Corpus.open(world.corpus)
    corpus.merge(now=NOW + timedelta(hours=1))
    corpus.gc()
    assert world.index().unread == {"work tree": 2}


def test_a_folder_that_nobody_can_look_at_is_not_taken_for_gone(tmp_path: Path) -> None:
    before, root = (tmp_path / name / "tree" for name in "ab")
    for folder in (before, root):
        folder.mkdir(parents=True)
    with unseen(before), pytest.raises(StoreError, match="tree"):
        same_folder(str(before), root)
    assert not same_folder(str(before), root)
    before.rmdir()
    assert same_folder(str(before), root)


@pytest.mark.parametrize("with_git", [False, True], ids=["work tree", "history"])
def test_erased_rows_do_not_come_back(world: World, with_git: bool) -> None:
    world.git = with_git
    git(world.tree, "init", "-q", "-b", "main")
    git(world.tree, "add", ".")
    git(world.tree, "commit", "-qm", "x")
    world.index()
    corpus = Corpus.open(world.corpus)
    frame = corpus.frame()
    row = frame.evidence["evidence_id"].to_pylist()[frame.evidence["path"].to_pylist().index("a.md")]
    ids, _ = corpus.erase(Selection("ana", frozenset({"shop"}), evidence=(row,)), now=NOW)
    corpus.finish_erasure(ids)
    assert not (world.corpus / FOLDER).exists()
    reports = [world.index(), world.index()]
    assert [report.unread for report in reports] == [{}, {"history" if with_git else "work tree": 2}]
    assert reports[0].published["erased_rows"] == 1
    world.write(a="# A\n\nOne.\n\n# More\n\nText.\n")
    git(world.tree, "commit", "-qam", "y")
    world.index()
    assert row not in Corpus.open(world.corpus).frame().evidence["evidence_id"].to_pylist()


def test_two_trees_of_one_name_are_read_whole(world: World) -> None:
    (world.folder / "x" / "tree").mkdir(parents=True)
    (world.folder / "x" / "tree" / "c.md").write_text("# C\n")
    both = (world.tree, world.folder / "x" / "tree")
    for _ in range(2):
        report = world.index(*both, source="tree")
        assert (report.unread, report.rows) == ({}, {"work tree": 3})
    assert paths_of(world.corpus) == {"a.md", "b.md", "c.md"}


@pytest.mark.parametrize("before", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("other", ["file", "file first", "rows"])
def test_a_source_that_two_readers_fill_is_read_whole(world: World, other: str, before: bool) -> None:
    """Else rows of the second would stay as long as a file of the first exists at the same path."""
    (world.tree / "docs").mkdir()
    (world.tree / "docs" / "a.md").write_text("# Another A\n")
    rows = world.folder / "rows.jsonl"
    rows.write_text('{"source_id": "workspace:s", "text": "x", "path": "a.md", "origin_class": "workspace"}')
    paths = {
        "file": (world.tree, world.tree / "docs" / "a.md"),
        "file first": (world.tree / "docs" / "a.md", world.tree),
    }
    both = {"evidence": (rows,)} if other == "rows" else {}
    if before:
        world.index(source="s")
    assert world.index(*paths.get(other, ()), source="s", **both).rows["work tree"] == (3 if other == "rows" else 4)
    assert "a.md" in paths_of(world.corpus)
    assert world.index(source="s").unread == {}
    whole = World(world.folder, whole=True, name="whole")
    whole.index(source="s")
    assert rows_of(world.corpus) == rows_of(whole.corpus)


def test_an_import_that_relied_on_a_generation_that_is_gone_writes_nothing(world: World) -> None:
    first = world.index()
    world.write(a="# A\n\nOther.\n")
    world.index()
    corpus = Corpus.open(world.corpus)
    table = next(read_work_tree(world.tree, project="shop", now=NOW, report=SourceReport()))
    with pytest.raises(MovedOnError, match=f"Expected generation {first.generation}, got {corpus.generation}"):
        corpus.publish(table.slice(0, 0), standing={"workspace:tree": ["a.md"]}, basis=first.generation, now=NOW)


def test_an_embedding_that_is_wanted_now_reads_everything(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "load_encoder", lambda choice, known: HashEncoder())
    monkeypatch.setattr(importing, "encoder_available", lambda: (True, ""))
    world.index()
    settings: Any = load_settings(
        {"corpus": str(world.corpus), "project": "shop", "principal": "ana"}, cwd=world.folder, environ={}, user=None
    )
    report = index_into(settings, IndexRequest(paths=(world.tree,)), now=NOW)
    assert (report.unread, Corpus.open(world.corpus).info()["encoded_rows"]) == ({}, 2)


def test_rows_that_were_too_many_to_be_embedded_are_when_they_no_longer_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "load_encoder", lambda choice, known: HashEncoder())
    monkeypatch.setattr(importing, "encoder_available", lambda: (True, ""))
    world.write(c="# C\n\nThree.\n")
    for limit, unread, encoded in ((2, 0, 0), (2, 3, 0), (3, 0, 3), (3, 0, 3), (3, 3, 3), (2, 3, 3), (3, 0, 3)):
        report = world.index(semantic=True, max_embedded_rows=limit)
        assert report.unread.get("work tree", 0) == unread
        assert Corpus.open(world.corpus).info()["encoded_rows"] == encoded


def test_a_reading_does_not_tell_what_a_file_holds(world: World) -> None:
    """Its digest is another one in every corpus, and where a secret was masked there is none."""
    world.write(secret=f"# Key\n\ntoken = '{SECRET}'\n")
    other = World(world.folder, name="other")
    digests = []
    for each in (world, other):
        each.index()
        each.index()
        reading = Corpus.open(each.corpus).source_state("shop", "workspace:tree")
        assert reading is not None
        digests.append({path: found.digest for path, found in reading.paths.items()})
        assert reading.digest((world.tree / "a.md").read_bytes()) == digests[-1]["a.md"]
    assert digests[0]["secret.md"] == digests[1]["secret.md"] == ""
    assert not {digests[0]["a.md"], digests[0]["b.md"]} & set(digests[1].values())


def test_readings_that_the_disk_does_not_take_cost_no_import(world: World) -> None:
    world.corpus.mkdir()
    (world.corpus / FOLDER).write_text("in the way")
    world.index()
    assert paths_of(world.corpus) == {"a.md", "b.md"}
    assert world.index().unread == {}
