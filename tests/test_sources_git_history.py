"""The rows alive at a commit are its tree, and what survives a change stays one row."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from history_check import alive_at, differences
from placed import flat
from repositories import git
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.sources.document_reader import DocumentReader
from scoped_retrieval.pipeline.sources.git_commands import Git
from scoped_retrieval.pipeline.sources.git_history import commit_table, read_git_history
from scoped_retrieval.pipeline.sources.report import SourceReport

NOW = datetime(2024, 6, 1, tzinfo=UTC)
START = 1_700_000_000


def commit_times(repo: Path) -> pa.Table:
    """Every commit of the current branch's line, oldest first."""
    found = Git(repo)
    head = found.branch()[1]
    assert head is not None
    return commit_table(found.commits(head))


@dataclass
class Stream:
    """A repository written with `git fast-import`; files map a path to (mode, bytes), None removes it."""

    repo: Path
    parts: list[bytes] = field(default_factory=list)
    marks: int = 0

    def commit(
        self, files: Mapping[str, tuple[str, bytes] | bytes | str | None], *, time: int = 0, parents: Sequence[int] = (), branch: str = "main"
    ) -> int:  # fmt: skip
        self.marks += 1
        out = [
            f"commit refs/heads/{branch}\nmark :{self.marks}\ncommitter A <a@b.c> {START + time} +0000\ndata 0\n".encode()
        ]
        for number, parent in enumerate(parents):
            out.append(f"{'merge' if number else 'from'} :{parent}\n".encode())
        for path, content in files.items():
            if content is None:
                out.append(f'D "{path}"\n'.encode())
                continue
            mode, data = content if isinstance(content, tuple) else ("100644", content)
            data = data.encode() if isinstance(data, str) else data
            if mode == "160000":
                out.append(f'M 160000 {data.decode()} "{path}"\n'.encode())
            else:
                out.append(f'M {mode} inline "{path}"\ndata {len(data)}\n'.encode() + data + b"\n")
        self.parts.append(b"".join(out))
        return self.marks

    def write(self) -> Path:
        git(self.repo, "init", "-q", "-b", "main")
        git(self.repo, "fast-import", "--quiet", stdin=b"".join(self.parts))
        return self.repo


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    (tmp_path / "shop").mkdir()
    return Stream(tmp_path / "shop")


def read(
    repo: Path,
    *,
    report: SourceReport | None = None,
) -> pa.Table:
    reader = DocumentReader()
    return flat(list(read_git_history(repo, project="shop", now=NOW, report=report or SourceReport(), reader=reader)))


def placements(rows: pa.Table, path: str) -> list[tuple[object, ...]]:
    """section, line_start, recorded, superseded, deleted of a path's rows; times in seconds after START."""
    names = ("section", "line_start", "recorded_time", "superseded_at", "deleted_at")
    part = rows.filter(pc.equal(rows["path"], path)).select(names)
    return [tuple(_seconds(row[name]) for name in names) for row in part.to_pylist()]


def _seconds(value: object) -> object:
    return value.timestamp() - START if isinstance(value, datetime) else value


def function(name: str, body: str = "") -> str:
    return (
        f"def {name}():\n"
        + "".join(f"    {body or name}_{i} = compute({i})  # a statement\n" for i in range(8))
        + "\n\n"
    )


def some_file(rng: random.Random) -> tuple[str, bytes]:
    kind = rng.randrange(12)
    if kind == 0:
        return "100644", bytes(rng.randrange(256) for _ in range(40))
    if kind == 1:
        return "120000", b"target"
    if kind == 2:
        return "100755", b""
    names = rng.sample("abcdefgh", rng.randrange(1, 6))
    text = "\n".join(
        rng.choice([function(n), f"# {n}\n\ntext {n}\n", f"## {n}\n", "x" * rng.randrange(5_000)]) for n in names
    )
    text = rng.choice(["", "\ufeff"]) + text.replace("\n", rng.choice(["\n", "\r\n"]))
    return rng.choice(["100644", "100755"]), (text + rng.choice(["", "\n", "\n\n"])).encode()


def random_history(stream: Stream, commits: int, seed: int) -> None:
    """Edits, renames, removals, reverts, mode changes, merges, times that repeat and run backwards."""
    rng = random.Random(seed)
    paths = ["a.py", "b.md", "sub/c.txt", "sub/d.rst", "e.ts", "f.log", "g.yaml", "sub"]
    tree: dict[str, tuple[str, bytes]] = {}
    trees: dict[int, dict[str, tuple[str, bytes]]] = {}
    line: list[int] = []

    def changed(tree: dict[str, tuple[str, bytes]]) -> dict[str, tuple[str, bytes]]:
        tree = dict(tree)
        for _ in range(rng.randrange(1, 3)):
            what, path = rng.randrange(5), rng.choice(paths)
            if what == 0:
                tree.pop(path, None)
            elif what == 1 and tree:
                tree[rng.choice(paths)] = tree.pop(rng.choice(sorted(tree)))
            elif what == 2 and trees:
                tree = dict(trees[rng.choice(sorted(trees))])
            else:
                tree[path] = some_file(rng)
        if "sub" in tree:
            tree = {path: file for path, file in tree.items() if not path.startswith("sub/")}
        return tree

    def put(
        old: dict[str, tuple[str, bytes]], new: dict[str, tuple[str, bytes]], parents: list[int], branch: str
    ) -> int:
        files: dict[str, tuple[str, bytes] | None] = {path: None for path in old if path not in new}
        files |= {path: file for path, file in new.items() if old.get(path) != file}
        mark = stream.commit(files, time=rng.choice([0, 0, 5, 1, 9]), parents=parents, branch=branch)
        trees[mark] = new
        return mark

    for _ in range(commits):
        if line and rng.random() < 0.2:
            side = put(tree, changed(tree), line[-1:], "side")
            merged = changed(trees[side])
            line.append(put(tree, merged, [line[-1], side], "main"))
        else:
            merged = changed(tree)
            line.append(put(tree, merged, line[-1:], "main"))
        tree = merged


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_alive_at_a_commit_are_its_tree(stream: Stream, seed: int) -> None:
    random_history(stream, 40, seed)
    rows = read(stream.write())
    line = commit_times(stream.repo).to_pylist()
    assert len(line) == 40
    assert [
        c["version"] for c in line if differences(stream.repo, c["version"], alive_at(rows, c["recorded_time"]))
    ] == []


def test_a_chunk_that_stays_is_one_row_and_one_that_moves_is_placed_again(stream: Stream) -> None:
    stream.commit({"a.py": function("f") + function("g")}, time=0)
    stream.commit({"a.py": function("f") + function("new") + function("g")}, time=10, parents=[1])
    rows = read(stream.write())
    assert placements(rows, "a.py") == [
        ("g", 12, 0.0, 10.0, None),
        ("f", 1, 0.0, None, None),
        ("new", 12, 10.0, None, None),
        ("g", 23, 10.0, None, None),
    ]
    first, second = git(stream.repo, "rev-list", "--reverse", "HEAD").split()
    assert rows["version"].to_pylist() == [first, first, second, second]
    assert set(map(_seconds, rows["event_time"].to_pylist())) == {0.0, 10.0}
    assert _seconds(rows["event_time"].to_pylist()[3]) == 0.0


def test_a_revert_places_the_same_row_again(stream: Stream) -> None:
    stream.commit({"a.py": function("f", "one")}, time=0)
    stream.commit({"a.py": function("f", "two")}, time=1, parents=[1])
    stream.commit({"a.py": function("f", "one")}, time=2, parents=[2])
    rows = read(stream.write())
    assert placements(rows, "a.py") == [("f", 1, 0.0, 1.0, None), ("f", 1, 1.0, 2.0, None), ("f", 1, 2.0, None, None)]
    texts = rows["text"].to_pylist()
    assert texts[0] == texts[2] != texts[1]
    assert [_seconds(t) for t in rows["event_time"].to_pylist()] == [0.0, 1.0, 0.0]


def test_removal_deletes_and_rename_deletes_and_adds(stream: Stream) -> None:
    stream.commit({"a.py": function("f"), "b.py": function("g")}, time=0)
    stream.commit({"a.py": None, "b.py": None, "c.py": function("g")}, time=3, parents=[1])
    rows = read(stream.write())
    assert placements(rows, "a.py") == [("f", 1, 0.0, None, 3.0)]
    assert placements(rows, "b.py") == [("g", 1, 0.0, None, 3.0)]
    assert placements(rows, "c.py") == [("g", 1, 3.0, None, None)]


def test_a_merge_is_what_it_did_to_its_first_parent(stream: Stream) -> None:
    stream.commit({"a.py": function("f")}, time=0)
    stream.commit({"b.py": function("g")}, time=1, parents=[1], branch="side")
    stream.commit({"b.py": function("g")}, time=5, parents=[1, 2])
    rows = read(stream.write())
    assert placements(rows, "b.py") == [("g", 1, 5.0, None, None)]


def test_commit_times_increase_where_clocks_do_not(stream: Stream) -> None:
    for number, time in enumerate([5, 5, 0, 7]):
        stream.commit({"a.py": function("f", f"v{number}")}, time=time, parents=[number] if number else [])
    rows = read(stream.write())
    expected = [5.0, 5.000001, 5.000002, 7.0]
    assert [row[2] for row in placements(rows, "a.py")] == pytest.approx(expected, abs=5e-7)
    line = commit_times(stream.repo)
    assert line["recorded_time"].to_pylist() == rows["recorded_time"].to_pylist()


def test_what_is_left_out_is_counted(stream: Stream) -> None:
    stream.commit(
        {
            "a.py": function("f"),
            "link.py": ("120000", b"a.py"),
            "module": ("160000", b"1" * 40),
            "zero.txt": b"a\0b",
            "latin.txt": b"caf\xe9",
            "empty.py": b"",
            "blank.py": b"\n\n",
            "large.txt": b"word\n" * 100_001,
            "image.png": b"text",
        }
    )
    report = SourceReport()
    rows = read(stream.write(), report=report)
    assert rows["path"].to_pylist() == ["a.py"]
    assert dict(report.skipped) == {
        "symbolic link": 1, "submodule": 1, "binary": 1, "neither UTF-8 nor in a declared encoding": 1, "empty": 2, "over the size limit": 1, "not text by name": 1
    }  # fmt: skip
    assert (report.read, report.complete_sources) == (1, {"git:shop"})


def test_a_partial_clone_is_read_as_far_as_it_goes(stream: Stream, tmp_path: Path) -> None:
    stream.commit({"a.md": "# A\n\nOld words.\n"})
    stream.commit({"a.md": "# A\n\nNew words.\n", "b.md": "# B\n\nText.\n"}, time=10)
    git(stream.write(), "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", stream.repo.as_uri(), "clone")
    report = SourceReport()
    rows = read(tmp_path / "clone", report=report)
    assert {row["text"] for row in rows.to_pylist()} == {"# A\n\nNew words.\n", "# B\n\nText.\n"}
    assert report.skipped == {"blob not in the repository": 1}


def test_rows_have_the_trust_columns_of_files(stream: Stream) -> None:
    stream.commit(
        {"a.py": function("f"), "AGENTS.md": "# Rules\n\nBe kind.\n", "run.log": "Traceback\n", "uv.lock": "x = 1\n"}
    )
    rows = read(stream.write())
    assert all(rows.schema.field(f.name).type == f.type for f in IMPORT_ROWS.schema if f.name in rows.schema.names)
    by_path = {row["path"]: row for row in rows.to_pylist()}
    assert {
        (r["zone"], r["declared_visibility"], r["authority"], r["lifecycle"], r["declared_safety"])
        for r in by_path.values()
    } == {("internal", "model-visible", 1, "verified", "safe")}
    assert {p: r["declared_standing"] for p, r in by_path.items()} == {
        "a.py": "evidence", "AGENTS.md": "evidence", "run.log": "untrusted", "uv.lock": "evidence"
    }  # fmt: skip
    assert {p for p, r in by_path.items() if r["generated"]} == {"uv.lock"}
    assert (by_path["AGENTS.md"]["evidence_kind"], by_path["AGENTS.md"]["title"]) == ("rule", "Rules")
    assert by_path["a.py"]["symbols"] == ["f"]
    assert by_path["a.py"]["owner_project"] == "shop"


def test_no_folder_and_no_repository_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Expected a folder, got none - at "):
        read(tmp_path / "absent")
    (tmp_path / "plain").mkdir()
    with pytest.raises(InputError, match="Expected a git repository, got a folder without one - at "):
        read(tmp_path / "plain")


def test_the_header_of_the_last_version_with_a_text_says_its_zone(stream: Stream) -> None:
    def page(zone: str, *sections: str) -> str:
        return f"---\nzone: {zone}\n---\n" + "".join(f"# {name}\n\nWhat {name} says.\n\n" for name in sections)

    stream.commit({"a.md": page("restricted", "Old", "Kept")})
    stream.commit({"a.md": page("public", "Kept", "Shown")}, time=1, parents=[1])
    stream.commit({"a.md": page("private", "Shown")}, time=2, parents=[2])
    rows = read(stream.write()).select(["section", "zone"]).to_pylist()
    assert {row["section"]: row["zone"] for row in rows} == {
        "Old": "restricted",
        "Kept": "internal",
        "Shown": "private",
    }
