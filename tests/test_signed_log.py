"""Lines of LOG are signed where there is a key: a log that was changed or lengthened without it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ask, indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures
from scoped_retrieval.pipeline.runs.log import LOG, RunLog

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
    assert run("--adopt", "status", capsys=capsys)[0] == 0
    ask(capsys=capsys)
    ask(capsys=capsys)
    monkeypatch.setenv("SCOPED_RETRIEVAL_TRUSTED_KEY", str(trusted))
    return shop / ".scoped-retrieval/runs"


def verified(capsys: pytest.CaptureFixture[str]) -> tuple[int, bool]:
    """The exit code of `verify`, and whether it reports the log."""
    code, out, _ = run("verify", "--json", capsys=capsys)
    problems = [problem for one in json.loads(out)["runs"] for problem in one["problems"]]
    return code, any(problem["part"] == LOG for problem in problems)


def test_every_writer_signs_its_line(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verified(capsys) == (0, False)
    monkeypatch.delenv("SCOPED_RETRIEVAL_TRUSTED_KEY")  # the corpus was indexed before there was a key
    row = {"question": "who has a role?", "project": "shop", "purpose": "answer-question"}
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    snapshot = json.loads(run("log", "--json", capsys=capsys)[1])[0]["snapshot_id"]
    Path("answer.txt").write_text("Nobody.")
    writers = [
        ("run", "q.jsonl"), ("verify", snapshot, "--answer", "answer.txt"), ("gc",),
        ("erase", "--user", "ana", "--project", "shop", "--yes"),
    ]  # fmt: skip
    for command in writers:
        before = len(RunLog(runs).lines())
        run(*command, capsys=capsys)
        lines = RunLog(runs).lines()
        assert len(lines) > before and all(line.signature for line in lines)


def test_a_line_of_somebody_without_the_key_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunLog(runs).commit("answer", {"run_id": RunLog(runs).lines()[-1].body["run_id"], "snapshot_id": "none"})
    assert verified(capsys) == (5, True)
