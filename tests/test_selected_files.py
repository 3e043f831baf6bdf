"""Which files `index` reads, by the command line: ignore files, patterns, submodules, parts of a repository, and Git's refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from repositories import committed, git

FILES = {
    ".gitignore": "build/\n",
    "docs/old/a.md": "# Old\n",
    "docs/new.md": "# New\n",
    "build/out.md": "# Zebra\n",
    "build/other.md": "# Walrus\n",
}


@pytest.fixture(autouse=True)
def _ana(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def write(folder: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text(text)


def repository(folder: str, files: dict[str, str]) -> None:
    write(folder, files)
    committed(Path(folder))


def index(capsys: pytest.CaptureFixture[str], *flags: str, code: int = 0) -> str:
    got, out, err = run("index", *flags, "--project", "p", "--no-semantic", "--json", capsys=capsys)
    assert got == code, err
    return out


def paths(capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    """The paths whose rows a question about every word finds."""
    code, out, err = run("ask", "old new zebra walrus lib excluded", "--project", "p", "--json", *flags, capsys=capsys)
    assert code == 0, err
    return sorted({one["path"] for one in json.loads(out)["citations"] if one["path"].endswith(".md")})


@pytest.mark.parametrize(
    ("with_git", "ignore", "flags", "expected"),
    [
        (True, "", [], ["docs/new.md", "docs/old/a.md"]),
        (False, "", [], ["docs/new.md", "docs/old/a.md"]),
        (True, "docs/old/\n", [], ["docs/new.md"]),
        (False, "docs/old/\n", [], ["docs/new.md"]),
        (True, "!build/out.md\n", [], ["build/out.md", "docs/new.md", "docs/old/a.md"]),
        (False, "docs/*\n!docs/new.md\n", [], ["docs/new.md"]),
        (True, "", ["--exclude", "docs/", "--include", "build/"], ["build/other.md", "build/out.md"]),
        (False, "docs/new.md\n", ["--include", "new.md", "--exclude", "a.md"], ["docs/new.md"]),
    ],
)
def test_ignore_files_and_patterns_select(
    capsys: pytest.CaptureFixture[str], ignore: str, flags: list[str], expected: list[str], with_git: bool
) -> None:
    (repository if with_git else write)("tree", FILES)
    if ignore:
        write("tree", {".scopedignore": ignore})
    index(capsys, "tree", *flags)
    assert paths(capsys) == expected


def test_ignore_files_above_and_below_the_folder_count(capsys: pytest.CaptureFixture[str]) -> None:
    repository("tree", FILES | {".scopedignore": "old/\n", "docs/.scopedignore": "!a.md\nnew.md\n"})
    index(capsys, "tree/docs")
    assert paths(capsys) == ["old/a.md"]


def test_a_history_has_no_rows_of_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    repository("tree", FILES)
    write("tree", {".scopedignore": "old/\n"})
    index(capsys, "tree", "--history", "--exclude", "nothing")
    assert paths(capsys) == ["docs/new.md"]
    index(capsys, "tree", "--history", "--exclude", "docs/", code=0)
    assert paths(capsys) == []


def test_the_history_of_a_folder_is_read_below_it_with_its_paths(capsys: pytest.CaptureFixture[str]) -> None:
    repository("tree", FILES)
    write("tree", {"docs/other.md": "# Walrus\n", "top.md": "# Zebra\n"})
    index(capsys, "tree/docs", "--history")
    assert paths(capsys, "--set", "workspace_root=") == ["new.md", "old/a.md"]
    assert paths(capsys) == ["new.md", "old/a.md", "other.md"]


def test_submodules_are_read_on_request_with_paths_from_the_root(capsys: pytest.CaptureFixture[str]) -> None:
    repository("lib", {"lib.md": "# Lib\n", "docs/new.md": "# New\n"})
    repository("tree", FILES)
    git(
        Path("tree"),
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(Path("lib").resolve()),
        "parts/lib",
    )
    assert json.loads(index(capsys, "tree"))["sources"]["skipped_at"]["submodule"] == ["parts/lib"]
    assert "parts/lib/lib.md" not in paths(capsys)
    index(capsys, "tree", "--submodules", "--exclude", "parts/lib/docs/")
    assert paths(capsys) == ["docs/new.md", "docs/old/a.md", "parts/lib/lib.md"]


def test_a_denied_name_of_a_folder_denies_what_is_below_and_one_of_nothing_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("tree", {"hr/old.md": "# Old\n", "hr.md": "# New\n"})
    index(capsys, "tree")
    assert paths(capsys) == ["hr.md", "hr/old.md"]
    grants = Path(".scoped-retrieval/corpus/grants.yaml")
    grants.write_text("principals:\n  ana:\n    audit: true\n    projects: [p]\n    denied_paths: [hr, finance]\n")
    assert paths(capsys) == ["hr.md"]
    code, out, _ = run("contract", "--project", "p", "--json", capsys=capsys)
    found = [one["message"].split()[0] for one in json.loads(out)["findings"] if one["at"].endswith("denied_paths")]
    assert (code, found) == (0, ["finance"])
    code, _, err = run("ask", "old", "--set", "denied_paths=hr.md;payroll/", "--project", "p", capsys=capsys)
    assert (code, "payroll/" in err, "hr.md matches" in err) == (0, True, False)
