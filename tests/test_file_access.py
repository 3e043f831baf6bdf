"""Who may read what is written: its owner alone, unless the folder was opened."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Mode of the folder and of everything below, by relative path."""
    every = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in every}


def written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Index, ask, run, compact, erase, and read what is there."""
    for name, text in {"a.md": "# Retry\n\nThe retry limit is five.\n", "b.md": "# Cache\n\nTen minutes.\n"}.items():
        (folder / "docs").mkdir(exist_ok=True)
        (folder / "docs" / name).write_text(text)
    (folder / "requests.jsonl").write_text(
        '{"question": "retry limit", "purpose": "fix-test", "project": "shop"}\n' * 1
    )
    for command in (
        ("index", "docs", "--project", "shop", "--no-semantic"),
        ("ask", "retry limit", "--project", "shop"),
        ("run", "requests.jsonl"),
        ("gc",),
        ("ask", "cache", "--project", "shop"),
        ("index", "docs", "--project", "shop", "--no-semantic"),
        ("erase", "--source", "workspace:docs", "--project", "shop", "--yes"),
        ("log",),
    ):
        code, _, error = run(*command, capsys=capsys)
        assert code == 0, (command, error)


def test_everything_below_corpus_and_runs_is_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], umask: int
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, capsys)
    found = modes(tmp_path / ".scoped-retrieval")
    assert len(found) > 20
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


def test_a_folder_that_was_opened_opens_what_is_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], umask: int
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("corpus", "runs"):
        (tmp_path / ".scoped-retrieval" / name).mkdir(parents=True)
        (tmp_path / ".scoped-retrieval" / name / "README").touch()
        (tmp_path / ".scoped-retrieval" / name).chmod(0o750)
    monkeypatch.setenv("SCOPED_RETRIEVAL_RUNS", ".scoped-retrieval/runs")
    assert run("--adopt", "log", capsys=capsys)[0] == 0
    written(tmp_path, capsys)
    found = modes(tmp_path / ".scoped-retrieval" / "corpus")
    assert {oct(mode) for path, mode in found.items() if path not in ("README", "grants.yaml")} == {"0o750", "0o640"}
    assert found["grants.yaml"] == 0o600


def test_doctor_names_what_others_can_read_and_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, capsys)

    def said() -> dict[str, str]:
        out = json.loads(run("doctor", "--json", capsys=capsys)[1])
        return {check["name"]: check["found"] for check in out["checks"] if check["name"].endswith("access")}

    assert said() == {}
    corpus = tmp_path / ".scoped-retrieval" / "corpus"
    (corpus / "HEADS").chmod(0o644)
    assert said() == {}, "nobody else reaches it"
    corpus.chmod(0o755)
    assert said() == {"corpus access": "others can read 1 file, such as HEADS"}
    (corpus / "grants.yaml").chmod(0o620)
    assert said()["grants access"] == f"others can write {corpus / 'grants.yaml'}"
    (corpus / "grants.yaml").chmod(0o600)
    corpus.chmod(0o770)
    assert said()["grants access"] == f"others can write {corpus}"
