"""The head of LOG is signed where there is a key: a log that was changed, lengthened or set back without it is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import ask, indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures
from scoped_retrieval.pipeline.corpus.trust import Trust
from scoped_retrieval.pipeline.runs.log import log_at
from scoped_retrieval.pipeline.runs.signed_head import FILE, sign_next

pytest.importorskip("cryptography", reason="needs the extra `sign`")
from signing_keys import keys  # only with the extra


@pytest.fixture(name="runs")
def runs_fixture(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The runs of two questions, asked with a signing key that is trusted from now on."""
    folder = tmp_path / "keys"
    folder.mkdir()
    signing, trusted = keys(folder)
    monkeypatch.setenv("SCOPED_RETRIEVAL_SIGNING_KEY", str(signing))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    assert run("--adopt", "corpus", "info", capsys=capsys)[0] == 0
    ask(capsys=capsys)
    ask(capsys=capsys)
    assert run("corpus", "upgrade", capsys=capsys)[0] == 0  # it was indexed before there was a key
    monkeypatch.setenv("SCOPED_RETRIEVAL_TRUSTED_KEY", str(trusted))
    return shop / ".scoped-retrieval/runs"


def verified(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of `verify`, and what it says of the head."""
    code, out, _ = run("verify", "--json", capsys=capsys)
    problems = [problem for one in json.loads(out)["runs"] for problem in one["problems"]]
    said = {problem["detail"] for problem in problems if problem["part"] == FILE}
    return code, "".join(said)


def forged(runs: Path) -> None:
    """A line that fits, added without the key."""
    lines = log_at(runs).lines()
    log_at(runs).append("answer", lines[-1].run_id, entry="0" * 64, snapshot_id="none")


def test_every_writer_signs_the_head(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(capsys) == (0, "")
    row = {"question": "who has a role?", "project": "shop", "purpose": "answer-question"}
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    snapshot = json.loads(run("snapshots", "--json", capsys=capsys)[1])[0]["snapshot_id"]
    Path("answer.txt").write_text("Nobody.")
    writers = [
        ("run", "q.jsonl"), ("verify-answer", snapshot, "answer.txt"), ("compact",), ("runs", "upgrade"),
        ("erase", "--user", "ana", "--project", "shop", "--yes"),
    ]  # fmt: skip
    for command in writers:
        before = (runs / FILE).read_text()
        run(*command, capsys=capsys)
        assert verified(capsys)[1] == ""
        assert ((runs / FILE).read_text() == before) is (command == ("runs", "upgrade"))
    assert "signed with" in run("doctor", capsys=capsys)[1]


def test_a_line_of_somebody_without_the_key_is_refused_and_never_signed(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = (runs / FILE).read_bytes()
    forged(runs)
    ask(capsys=capsys)
    assert (runs / FILE).read_bytes() == head
    code, said = verified(capsys)
    assert code == 5 and said.startswith("lines follow the signed head")
    assert "lines follow the signed head" in run("doctor", capsys=capsys)[1]


def test_a_log_without_a_signed_head_or_with_that_of_another_key_is_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / FILE).unlink()
    ask(capsys=capsys)
    assert not (runs / FILE).exists()
    assert verified(capsys)[0] == 5
    other, _ = keys(tmp_path, "eve")
    with monkeypatch.context() as patch:
        patch.setenv("SCOPED_RETRIEVAL_SIGNING_KEY", str(other))
        patch.delenv("SCOPED_RETRIEVAL_TRUSTED_KEY")
        assert "signed" in run("runs", "upgrade", capsys=capsys)[2]
    assert verified(capsys) == (5, "the trusted key did not sign the head")
    assert "signed" in run("runs", "upgrade", capsys=capsys)[2]
    assert verified(capsys) == (0, "")


def test_a_log_that_was_set_back_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(runs, tmp_path / "older")
    ask(capsys=capsys)
    ask(capsys=capsys)
    assert verified(capsys) == (0, "")
    shutil.copy(tmp_path / "older" / "LOG", runs / "LOG")
    assert "rolled back" in run("doctor", capsys=capsys)[1]
    shutil.rmtree(runs)
    shutil.copytree(tmp_path / "older", runs)  # with its signed head: only who saw more can tell
    run("--adopt", "runs", capsys=capsys)  # a restored folder is another one
    code, said = verified(capsys)
    assert code == 5 and said.startswith("a line seen earlier is missing or different")


def test_a_crash_between_head_and_line_is_no_finding(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = log_at(runs).lines()[-1]
    sign_next(runs, Trust(signing_key=tmp_path / "keys" / "ann.pem"), last.hash, last.sequence, "0" * 64)
    assert "0" * 64 in (runs / FILE).read_text()
    assert verified(capsys) == (0, "")
    ask(capsys=capsys)
    assert verified(capsys) == (0, "")


@pytest.mark.parametrize("command", ["ask", "run"])
def test_a_log_that_lost_its_last_line_after_it_was_on_disk_was_set_back(
    command: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Removing the last answer with its line is distinguished from a crash, even if the line was never read before."""
    before, there = (runs / "LOG").read_bytes(), {*runs.glob("run-*"), *runs.glob("run-*/live/*")}
    if command == "ask":
        ask(capsys=capsys)
    else:
        row = {"question": "who has a role?", "project": "shop", "purpose": "answer-question"}
        Path("q.jsonl").write_text(json.dumps(row) + "\n")
        assert run("run", "q.jsonl", capsys=capsys)[0] == 0
    for path in {*runs.glob("run-*"), *runs.glob("run-*/live/*")} - there:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    (runs / "LOG").write_bytes(before)
    assert verified(capsys) == (5, "the log ends before the signed line: it was rolled back")
    ask(capsys=capsys)
    assert verified(capsys)[0] == 5
