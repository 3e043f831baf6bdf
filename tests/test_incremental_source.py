"""When a source is known again, what of it is counted, and what is kept of it: the edges of `test_rereading.py`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from rereading_world import NOW, SECRET, World, git, paths_of, world_fixture  # noqa: F401 - fixture
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.source_states import FOLDER
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.sources.incremental_import import IncrementalImport
from scoped_retrieval.pipeline.sources.report import SourceReport
from scoped_retrieval.pipeline.sources.work_tree import read_work_tree


def test_a_place_that_began_with_the_last_known_commit_is_counted_once(tmp_path: Path) -> None:
    """It comes again when it ends."""
    known, whole = World(tmp_path, git=True), World(tmp_path, git=True, whole=True, name="whole")
    git(tmp_path, "init", "-q", "-b", "main", "tree")
    for text in ("One", "Two", "Three"):
        known.write(a=f"# A\n\n{text}.\n")
        git(known.tree, "add", ".")
        git(known.tree, "commit", "-qm", text)
        mine, theirs = known.index(), whole.index()
        assert (mine.generation, mine.rows, mine.places) == (theirs.generation, theirs.rows, theirs.places)


def test_an_uncommitted_file_leaves_the_history_of_its_path_known(world: World) -> None:
    world.git = True
    git(world.tree, "init", "-q", "-b", "main")
    git(world.tree, "add", ".")
    git(world.tree, "commit", "-qm", "x")
    world.write(a="# A\n\nNot committed.\n", new="# New\n")
    first, again = world.index(), world.index()
    assert (first.unread, again.unread) == ({}, {"history": 2})
    assert (again.rows, again.places) == (first.rows, first.places)


def test_rows_of_a_path_that_nobody_followed_make_a_source_unknown(world: World) -> None:
    known = IncrementalImport("shop", None, ()).source("workspace:tree", world.tree)
    (table,) = read_work_tree(world.tree, project="shop", now=NOW, report=SourceReport())
    rows, _ = normalize(table, project="shop", principal="ana", now=NOW)
    known.add(rows.append_column("id", rows["path"]))
    known.saw("a.md", SourceReport(), None)
    assert known.state() is None
    known.saw("b.md", SourceReport(), None)
    assert known.state() is not None


def test_a_file_over_the_size_limit_is_told_by_what_readers_look_at(world: World) -> None:
    (world.tree / "long.md").write_bytes(b"x" * 500_001)
    world.index()
    os.utime(
        world.tree / "long.md", ns=((world.tree / "long.md").stat().st_mtime_ns,) * 2
    )  # another status, same content
    assert world.index().unread == {"work tree": 3}


def test_a_copy_of_a_tree_is_told_by_the_files_of_which_a_digest_is_kept(tmp_path: Path) -> None:
    """Of a file with a masked secret none is."""
    world = World(tmp_path)
    world.write(a="# A\n", **{f"secret{number}": f"token = '{SECRET}'\n" for number in range(3)})
    world.index()
    copy = tmp_path / "copy" / "tree"
    shutil.copytree(world.tree, copy)
    (copy / "new.md").write_text("# New\n")
    world.index(copy)
    assert paths_of(world.corpus) >= {"a.md", "new.md"}
    world.write(a="# Another\n")
    with pytest.raises(InputError, match="got another folder of that name"):
        world.index()


def test_a_tree_of_which_half_the_files_are_as_they_were_is_the_same_one(world: World) -> None:
    world.index()
    copy = world.folder / "copy" / "tree"
    shutil.copytree(world.tree, copy)
    (copy / "a.md").write_text("# Another\n")
    assert world.index(copy).rows == {"work tree": 2}


def test_a_tree_whose_large_file_goes_on_another_way_is_another(tmp_path: Path) -> None:
    world, copy = World(tmp_path), tmp_path / "copy" / "tree"
    for tree, more in ((world.tree, ""), (copy, "y")):
        tree.mkdir(parents=True)
        (tree / "long.md").write_text("x" * 600_000 + more)
    world.index()
    with pytest.raises(InputError, match="got another folder of that name"):
        world.index(copy)


@pytest.mark.parametrize("left", ["no repository", "no commits"])
def test_a_history_whose_folder_has_none_any_more_is_another(tmp_path: Path, left: str) -> None:
    world, other = World(tmp_path, git=True), tmp_path / "other" / "tree"
    for tree in (world.tree, other):
        tree.mkdir(parents=True)
        (tree / "a.md").write_text(f"# {tree}\n")
        git(tree, "init", "-q", "-b", "main")
        git(tree, "add", ".")
        git(tree, "commit", "-qm", "x")
    world.index()
    shutil.rmtree(world.tree / ".git")
    if left == "no commits":
        git(world.tree, "init", "-q", "-b", "main")
    with pytest.raises(InputError, match="got another folder of that name"):
        world.index(other)


@pytest.mark.parametrize("other_first", [False, True])
def test_a_file_that_is_named_beside_its_known_tree_is_counted_once(world: World, other_first: bool) -> None:
    world.index()
    both = [world.tree, world.tree / "a.md"]
    report = world.index(*both[:: -1 if other_first else 1], source="tree")
    assert (report.rows, report.unread) == ({"work tree": 2}, {})


def test_a_reading_that_was_replaced_is_gone_with_its_salt(world: World) -> None:
    world.index()
    (before,) = (world.corpus / FOLDER).glob("*.arrow")
    world.write(a="# A\n\nOther.\n")
    world.index()
    (after,) = (world.corpus / FOLDER).glob("*.arrow")
    assert before != after


def test_the_reading_of_another_source_is_no_reading(world: World) -> None:
    """Files of readings are named by what they say and of which source: a state that mixes them up names none."""
    for name in ("one", "two"):
        world.index(source=name)
    state = world.corpus / FOLDER / "STATE.json"
    told = json.loads(state.read_bytes())
    (*one, file), (*two, other) = told["sources"]
    state.write_text(json.dumps(told | {"sources": [[*one, other], [*two, file]]}))
    corpus = Corpus.open(world.corpus)
    assert [corpus.source_state(*source) for source in (one, two)] == [None, None]


def test_readings_are_forgotten_where_the_disk_does_not_take_new_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    world.index()
    world.write(a="# A\n\nOther.\n")
    with monkeypatch.context() as patched:
        patched.setattr("scoped_retrieval.pipeline.corpus.source_states.write_atomic", full)
        world.index()
    assert not (world.corpus / FOLDER).exists()
    assert [world.index().unread for _ in range(2)] == [{}, {"work tree": 2}]


def test_a_file_that_is_younger_than_the_import_is_not_known_again(world: World) -> None:
    """Its rows say the time of the import in place of its own."""
    known = IncrementalImport("shop", None, ()).source("workspace:tree", world.tree)
    file = world.tree / "a.md"
    modified = file.stat().st_mtime_ns // 1_000
    assert known.status(os.fsencode(file), modified) is not None
    assert known.status(os.fsencode(file), modified - 1) is None


def test_what_was_said_of_a_path_whose_name_is_a_secret_is_said_again(tmp_path: Path) -> None:
    """Its name is not kept, so that the history is read from its beginning."""
    known, whole = World(tmp_path, git=True), World(tmp_path, git=True, whole=True, name="whole")
    git(tmp_path, "init", "-q", "-b", "main", "tree")
    known.write(**{SECRET: ""})
    for name in "ab":
        known.write(**{name: "# Text\n"})
        git(known.tree, "add", ".")
        git(known.tree, "commit", "-qm", name)
        mine, theirs = known.index(), whole.index()
        assert mine.sources.skipped == theirs.sources.skipped == {"empty": 1}


def test_a_file_that_was_changed_just_now_is_not_settled_however_old_it_says_it_is(world: World) -> None:
    file = world.tree / "a.md"
    os.utime(file, ns=(10**9, 10**9))
    known = IncrementalImport("shop", None, (), file.stat().st_ctime_ns).source("workspace:tree", world.tree)
    status = known.status(os.fsencode(file), 2**62)
    assert status is not None
    assert not status.settled
