"""Who may open a corpus and runs: their owner alone, unless the owner opens their folders to others."""

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


def test_a_new_corpus_and_new_runs_are_open_to_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], umask: int
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, capsys)
    found = modes(tmp_path / ".scoped-retrieval")
    assert [found[name] for name in ("corpus", "runs", "corpus/grants.yaml")] == [0o700, 0o700, 0o600]


def test_an_opened_folder_has_the_access_that_the_umask_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], umask: int
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, capsys)
    (tmp_path / ".scoped-retrieval" / "corpus").chmod(0o750)
    written(tmp_path, capsys)
    found = modes(tmp_path / ".scoped-retrieval" / "corpus")
    assert (found.pop("."), found.pop("grants.yaml")) == (0o750, 0o600)
    kept = {path: mode for path, mode in found.items() if not path.startswith("cache")}
    assert {mode & 0o777 for mode in kept.values()} == {0o777 & ~umask, 0o666 & ~umask}


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
    corpus.chmod(0o755)
    assert said() == {"corpus access": "others can read what is in it"}
    (corpus / "grants.yaml").chmod(0o620)
    assert said()["grants access"] == f"others can write {corpus / 'grants.yaml'}"
    (corpus / "grants.yaml").chmod(0o600)
    corpus.chmod(0o770)
    assert said()["grants access"] == f"others can write {corpus}"
