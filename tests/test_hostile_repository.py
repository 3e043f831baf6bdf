"""Nothing that a repository configures is executed, and nothing outside the folder is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import run
from context_session import Session
from hostile_repository import Hostile, hostile_repository_fixture
from repositories import committed, git
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.evaluation.synthetic import commit_collection

__all__ = ["hostile_repository_fixture"]

INDEX = ("index", "--no-semantic", "--project", "p", "--corpus", "../corpus")


@pytest.fixture(autouse=True)
def of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and state of this test alone, and variables that redirect Git."""
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")


def test_the_settings_of_the_hostile_repository_are_executed_by_ordinary_commands(hostile_repository: Hostile):
    working = ["-c", "filter.whole.process=", "-c", "core.fsmonitor=false"]
    commands = (
        ["status"], [*working, "status"], ["hash-object", "a.py"], [*working, "diff", "a.py"], [*working, "diff", "c.txt"], ["log", "-p"], ["st"],
        ["cat-file", "-e", hostile_repository.missing],
    )  # fmt: skip
    wanted = (
        {"core.fsmonitor", "filter.whole.process"}, {"post-index-change"}, {"filter.text.clean"}, {"diff.text.command"}, {"diff.external"},
        {"gpg.program", "gpg.ssh.program", "gpg.x509.program", "diff.text.textconv"}, {"alias.st"}, {"ext"},
    )  # fmt: skip
    for names, command in zip(wanted, commands, strict=True):
        ran = set[str]()
        for seconds in range(1_000_000_000, 1_000_000_020):  # Git need not read a file again at once
            for file in filter(Path.is_file, hostile_repository.folder.iterdir()):
                os.utime(file, (seconds, seconds))
            with suppress(subprocess.CalledProcessError):
                git(hostile_repository.folder, *command)
            ran |= set(hostile_repository.ran())
            if names <= ran:
                break
        assert names <= ran, command


def test_no_command_executes_what_a_repository_configures(hostile_repository: Hostile, tmp_path, monkeypatch, capsys):
    folder = hostile_repository.folder
    monkeypatch.chdir(folder)
    session = Session("Fix the failing tests.")
    session.add("model.request", turn=1)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in session.events))
    asked = ("ask", "retry", "--project", "p", "--corpus", "../corpus", "--runs", "../runs")
    commands = (
        (*INDEX, ".", "--history"), (*INDEX, ".", "--history"), (*INDEX, ".", "--source", "plain"), (*INDEX, "sub", "--source", "below"),
        (*INDEX, "--add", "artifacts=.", "--source", "artifacts"), (*asked, "--as-of", f"commit:{hostile_repository.commit}"),
        (*asked, "--workspace", "."), ("doctor", "--corpus", "../corpus", "--runs", "../runs"), ("demo", "--folder", "../demo", "--no-semantic"),
        ("context", "project", "../log.jsonl", "--rules", ".", "--no-record"),
    )  # fmt: skip
    for command in commands:
        code, _, err = run(*command, capsys=capsys)
        assert (code, hostile_repository.ran()) == (0, []), (command, err)
    with pytest.raises(InputError, match="unable to read"):  # an object that its remote promises
        commit_collection(folder, 100)
    assert hostile_repository.ran() == []


def test_a_bare_repository_is_read_without_its_settings(hostile_repository: Hostile, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(hostile_repository.folder)
    (hostile_repository.folder / ".git").rename(tmp_path / "bare.git")
    code, out, err = run(*INDEX, "../bare.git", "--history", "--json", capsys=capsys)
    assert (code, hostile_repository.ran()) == (0, []), err
    assert json.loads(out)["sources"]["complete_sources"] == ["git:bare"]


@pytest.fixture(name="plain")
def plain_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, the working folder of the test."""
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(folder)
    return committed(folder)


def test_a_work_tree_elsewhere_is_refused_and_nothing_of_it_is_read(plain: Path, tmp_path, capsys):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.py").write_text("OUTSIDE = 1\n")
    git(plain, "config", "core.worktree", str(tmp_path / "outside"))
    code, out, err = run(*INDEX, ".", "--history", capsys=capsys)
    assert (code, "core.worktree" in err) == (2, True)
    code, out, err = run(*INDEX, ".", capsys=capsys)
    assert (code, "core.worktree" in err, "private.py" in out + err) == (2, True, False)


def pointed(plain: Path, private: Path) -> None:
    shutil.rmtree(plain / ".git")
    (plain / ".git").write_text(f"gitdir: {private / '.git'}\n")


def linked(plain: Path, private: Path) -> None:
    shutil.rmtree(plain / ".git")
    (plain / ".git").symlink_to(private / ".git")


def shared(plain: Path, private: Path) -> None:
    (plain / ".git" / "commondir").write_text(f"{private / '.git'}\n")


@pytest.mark.parametrize("way", [pointed, linked, shared])
def test_a_repository_elsewhere_is_not_read(plain: Path, tmp_path, capsys, way):
    private = tmp_path / "private"
    shutil.copytree(plain, private)
    (private / "own.py").write_text("OUTSIDE = 1\n")
    git(private, "add", "--all")
    git(private, "commit", "--quiet", "--message=own")
    way(plain, private)
    code, out, err = run(*INDEX, ".", "--history", capsys=capsys)
    assert (code, "Expected the repository of the folder" in err, "OUTSIDE" in out + err) == (2, True, False)


def test_a_linked_work_tree_and_a_submodule_are_read(plain: Path, tmp_path, capsys):
    git(plain, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    assert run(*INDEX, str(tmp_path / "linked"), "--history", capsys=capsys)[0] == 0
    git(plain, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "linked"), "sub")
    assert run(*INDEX, "sub", "--history", capsys=capsys)[0] == 0


@pytest.mark.parametrize("fault", ["configuration", "search path", "git file"])
def test_the_reason_of_a_failure_of_git_is_in_the_message(plain: Path, tmp_path, monkeypatch, capsys, fault):
    if fault == "configuration":
        (plain / ".git" / "config").write_text("[core\n")
        reason = "bad config line 1"
    elif fault == "git file":
        (plain / ".git").rename(tmp_path / "moved")
        (plain / ".git").write_text("gitdir: ../nowhere\n")
        reason = "not a git repository"
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
        reason = "search path"
    for flags in ([], ["--history"]):
        code, _, err = run(*INDEX, ".", *flags, capsys=capsys)
        assert (code, reason in err) == (2, True)
