"""Files that differ from HEAD are rows of their work tree, in the source of the history they shadow."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from placed import flat
from repositories import git
from scoped_retrieval.pipeline.sources.document_reader import DocumentReader
from scoped_retrieval.pipeline.sources.git_history import read_git_history, read_uncommitted
from scoped_retrieval.pipeline.sources.report import SourceReport

NOW = datetime(2124, 6, 1, tzinfo=UTC)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    git(tmp_path / "shop", "init", "-q", "-b", "main")
    return tmp_path / "shop"


def commit(repo: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (repo / path).write_text(text)
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "all")


def read(repo: Path, reader: Callable[..., object] = read_uncommitted) -> pa.Table:
    tables = list(reader(repo, project="shop", now=NOW, report=SourceReport(), reader=DocumentReader()))  # type: ignore[call-overload]  # readers share these
    return flat(tables)


def function(name: str) -> str:
    return f"def {name}():\n" + "".join(f"    {name}_{i} = compute({i})  # a statement\n" for i in range(8)) + "\n\n"


def test_uncommitted_files_carry_their_work_tree(repo: Path) -> None:
    commit(
        repo,
        {"same.py": function("f"), "edited.py": function("f"), "gone.py": function("f"), "now_binary.py": function("f"),
         ".gitignore": "ignored.py\n"}
    )  # fmt: skip
    (repo / "edited.py").write_text(function("edited"))
    (repo / "ignored.py").write_text(function("ignored"))
    (repo / "sub").mkdir()
    (repo / "sub" / "new.py").write_text(function("new"))
    (repo / "staged.py").write_text(function("staged"))
    (repo / "now_binary.py").write_bytes(b"\0")
    (repo / "gone.py").unlink()
    git(repo, "add", "staged.py")
    rows = read(repo)
    assert rows["path"].to_pylist() == ["edited.py", "gone.py", "now_binary.py", "staged.py", "sub/new.py"]
    assert set(rows["workspace_root"].to_pylist()) == {str(repo.resolve())}
    history = read(repo, read_git_history)
    assert set(history["source_id"].to_pylist()) == set(rows["source_id"].to_pylist()) == {"git:shop"}
    assert set(history["workspace_root"].to_pylist()) == {None}
    assert set(rows["recorded_time"].to_pylist()) == {NOW}
    assert all(moment <= NOW for moment in rows["event_time"].to_pylist())
    by_path = {row["path"]: row for row in rows.to_pylist()}
    assert by_path["edited.py"]["version"].startswith("uncommitted:")
    assert by_path["gone.py"]["text"] == "gone.py: removed in the work tree, not committed.\n"
    assert by_path["now_binary.py"]["text"] == "now_binary.py: not readable as text in the work tree, not committed.\n"
    assert by_path["gone.py"]["line_start"] is None


def test_a_clean_or_bare_repository_has_nothing_uncommitted(repo: Path, tmp_path: Path) -> None:
    commit(repo, {"a.py": function("f")})
    assert read(repo).num_rows == 0
    git(repo, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    assert read(tmp_path / "bare.git").num_rows == 0
    assert set(read(tmp_path / "bare.git", read_git_history)["source_id"].to_pylist()) == {"git:bare"}


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_bytes_decide_whether_a_file_differs_apart_from_line_endings(tmp_path: Path, form: str) -> None:
    repo = tmp_path / "shop"
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={form}", "shop")
    crlf = function("g").replace("\n", "\r\n")
    commit(repo, {"same.py": function("f"), "dos.py": function("f"), "unix.py": crlf, "x.py": function("x")})
    git(repo, "config", "core.autocrlf", "true")
    git(repo, "update-index", "--chmod=+x", "same.py")
    (repo / "dos.py").write_bytes(function("f").replace("\n", "\r\n").encode())
    (repo / "unix.py").write_text(function("g"))
    (repo / "x.py").write_text(function("y"))
    os.utime(repo / "x.py", (repo / "same.py").stat()[7:9])
    assert read(repo)["path"].to_pylist() == ["x.py"]
