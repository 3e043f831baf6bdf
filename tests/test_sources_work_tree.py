"""A work tree gives every text file that is not ignored, never anything outside it, and never a traceback."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from repositories import git
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.sources.document_reader import DocumentReader
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.files import is_generated
from scoped_retrieval.pipeline.sources.report import SourceReport
from scoped_retrieval.pipeline.sources.work_tree import read_work_tree

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def write(root: Path, files: dict[str, bytes | str]) -> Path:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def read(root: Path, report: SourceReport | None = None) -> pa.Table:
    tables = list(
        read_work_tree(root, project="shop", now=NOW, report=report or SourceReport(), reader=DocumentReader())
    )
    return pa.concat_tables(tables) if tables else IMPORT_ROWS.empty()


def paths(rows: pa.Table) -> list[str]:
    return list(dict.fromkeys(rows["path"].to_pylist()))


TREE = {
    ".gitignore": "*.tmp\n/build/\n!keep.tmp\ndeep/**/x.py\n",
    "a.py": "x = 1\n",
    "drop.tmp": "no",
    "keep.tmp": "yes",
    "build/out.py": "no",
    "sub/build/in.py": "yes",
    "sub/.gitignore": "local.py\n!drop.tmp\n",
    "sub/local.py": "no",
    "sub/drop.tmp": "yes",
    "sub/other/local.py": "no",
    "deep/er/x.py": "no",
    "deep/y.py": "yes",
    "local.py": "yes",
}


@pytest.mark.parametrize("with_git", [False, True], ids=["folder", "git"])
def test_nested_ignore_files_are_honored(tmp_path: Path, with_git: bool) -> None:
    write(tmp_path, TREE)
    if with_git:
        git(tmp_path, "init", "-q")
    assert paths(read(tmp_path)) == [
        ".gitignore", "a.py", "deep/y.py", "keep.tmp", "local.py", "sub/.gitignore", "sub/build/in.py", "sub/drop.tmp"
    ]  # fmt: skip


def test_an_ignored_folder_is_reported(tmp_path: Path) -> None:
    results = write(tmp_path / "results", {"run.md": "# Run\n\nb\n", ".env": "KEY=value\n"})
    empty = write(tmp_path / "sub", {"x.tmp": "no"})
    write(tmp_path, {".gitignore": "results/\n*.tmp\n", "a.py": "x = 1\n"})
    git(tmp_path, "init", "-q")
    notes = []
    for folder in (tmp_path, results, empty):
        report = SourceReport()
        assert paths(read(folder, report)) == ([".gitignore", "a.py"] if folder == tmp_path else [])
        notes.append([*report.notes])
    note = "Git ignores this folder, so none of its files was read; copy it elsewhere"
    assert notes == [[], [note], []]


@pytest.mark.parametrize("with_git", [False, True], ids=["folder", "git"])
def test_links_are_not_followed(tmp_path: Path, with_git: bool) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "x = 1\n"})
    root = write(tmp_path / "root", {"a.py": "x = 1\n"})
    (root / "file_link.py").symlink_to(outside / "secret.py")
    (root / "folder_link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    if with_git:
        git(root, "init", "-q")
    report = SourceReport()
    assert paths(read(root, report)) == ["a.py"]
    assert report.skipped["symbolic link"] == 3


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"patterns": "*.py\n"})
    root = write(tmp_path / "root", {"a.py": "x = 1\n"})
    (root / ".gitignore").symlink_to(outside / "patterns")
    assert paths(read(root)) == ["a.py"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.md": "# A\n\nb\n", "zero.txt": b"a\0", "latin.txt": b"caf\xe9", "utf16.txt": "x\0".encode("utf-16"), "empty.py": b"",
         "blank.py": b" \n", "large.txt": b"x\n" * 250_001, "b.png": b"x", "node_modules/x.js": b"x", ".hg/config": b"x"},
    )  # fmt: skip
    os.mkfifo(tmp_path / "pipe.txt")
    report = SourceReport()
    assert paths(read(tmp_path, report)) == ["a.md"]
    assert dict(report.skipped) == {
        "binary": 2, "neither UTF-8 nor in a declared encoding": 1, "empty": 2, "over the size limit": 1, "not text by name": 1, "ignored": 2, "not a regular file": 1
    }  # fmt: skip
    assert report.complete_sources == {f"workspace:{tmp_path.name}"}


def test_what_is_no_regular_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x = 1\n", "src/deep/b.py": "x = 2\n", "was.py": "x = 3\n"})
    (tmp_path / "was.py").unlink()
    for name in ("was.py", "pipe", "src/deep/pipe.py"):
        os.mkfifo(tmp_path / name)
    report = SourceReport()
    assert paths(read(tmp_path, report)) == ["a.py", "src/deep/b.py"]
    assert report.skipped_at == {"not a regular file": ["pipe", "src/deep/pipe.py", "was.py"]}
    assert report.skipped == {"not a regular file": 3}


def test_bytes_are_kept_as_they_are_but_for_a_byte_order_mark(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf# A\r\n\r\nb\rc\r\n\x0c\r\n"
    rows = read(write(tmp_path, {"a.md": content}))
    assert "".join(rows["text"].to_pylist()).encode() == content[3:]
    assert rows["section"].to_pylist() == ["A"]
    assert rows["byte_end"].to_pylist()[-1] == len(content)


def test_rows_say_what_kind_of_file_they_are_from(tmp_path: Path) -> None:
    rows = read(
        write(
            tmp_path,
            {"a.py": "def f():\n    g()\n", "docs/a.rst": "A\n=\n\nb\n", "AGENTS.md": "be kind\n", "t.log": "x\n"},
        )
    )
    shown = rows.select(["path", "origin_class", "evidence_kind", "declared_standing", "language"]).to_pylist()
    assert [tuple(row.values()) for row in shown] == [
        ("AGENTS.md", "project-doc", "rule", "evidence", "markdown"),
        ("a.py", "workspace", "code", "evidence", "python"),
        ("docs/a.rst", "project-doc", "doc", "evidence", "rst"),
        ("t.log", "workspace", "test-log", "untrusted", None),
    ]
    assert set(rows["recorded_time"].to_pylist()) == {NOW}
    assert set(rows["source_id"].to_pylist()) == {f"workspace:{tmp_path.name}"}


def test_event_time_is_the_modification_time_but_never_later_than_now(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x = 1\n", "b.py": "x = 1\n"})
    os.utime(tmp_path / "a.py", (1_000, 1_000))
    os.utime(tmp_path / "b.py", (4e9, 4e9))
    assert read(tmp_path)["event_time"].to_pylist() == [datetime.fromtimestamp(1_000, UTC), NOW]


@pytest.mark.parametrize(
    ("path", "content", "generated"),
    [
        ("package-lock.json", b"{}", True),
        ("a.py", b"# @generated by tool\n", True),
        ("a.md", b"word " * 2_000, False),
        ("a.py", b"x = 1\n" * 400 + b"# @generated\n", False),
    ],
)
def test_generated_files_are_marked(path: str, content: bytes, generated: bool) -> None:
    assert is_generated(file_kind(path), content) is generated


def test_the_corpus_and_the_runs_of_the_tool_are_never_sources(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext\n")
    Corpus.create(tmp_path / ".scoped-retrieval" / "corpus")
    Runs(tmp_path / ".scoped-retrieval" / "runs")
    (tmp_path / ".scoped-retrieval" / "corpus" / "grants.yaml").write_text("principals: {}\n")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    tables = list(read_work_tree(tmp_path, project="p", now=now, report=SourceReport(), reader=DocumentReader()))
    assert {path for table in tables for path in table["path"].to_pylist()} == {"a.md"}


def test_a_large_log_is_read_and_another_large_file_is_left_out(tmp_path: Path) -> None:
    line = "2026-01-01T10:00:00Z step done without an error\n"
    rows = read(write(tmp_path, {"run.log": line * 12_000, "big.md": line * 12_000}))
    assert paths(rows) == ["run.log"]
    assert sum(text.count("step done") for text in rows["text"].to_pylist()) == 12_000


@pytest.mark.parametrize("at", [".", "below", "below/deeper"])
def test_a_folder_in_a_repository_is_read_as_git_lists_it_however_deep_it_lies(tmp_path: Path, at: str) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, {".git/info/exclude": "b.md\n", f"{at}/a.md": "# A\n", f"{at}/b.md": "# B\n"})
    assert paths(read(tmp_path / at)) == ["a.md"]
