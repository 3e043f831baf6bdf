"""Lists of answers and runs: each principal's own, the last ones, and nothing of what was erased."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ask, indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures


@pytest.fixture(name="asked")
def asked_fixture(shop: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The runs of ana: two questions one by one, and a batch of one."""
    ask(capsys=capsys)
    ask(capsys=capsys)
    row = {"question": "who has a role?", "project": "shop", "purpose": "answer-question"}
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    assert run("run", "q.jsonl", capsys=capsys)[0] == 0
    return shop / ".scoped-retrieval/runs"


def lists(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str, str]]:
    return [
        run("log", "--of", what, *form, capsys=capsys) for what in ("answers", "runs") for form in ((), ("--json",))
    ]


def test_each_principal_gets_their_own_list(
    asked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(json.loads(lists(capsys)[1][1])) == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert json.loads(lists(capsys)[1][1]) == []
    assert json.loads(lists(capsys)[3][1]) == []


def test_a_run_that_changed_is_read_again(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists(capsys)
    ask(capsys=capsys)
    assert len(json.loads(lists(capsys)[1][1])) == 4
    file = next(asked.glob("live/*"))
    file.write_bytes(file.read_bytes()[:9])
    assert "damaged" in run("log", capsys=capsys)[2]


@pytest.mark.parametrize(("last", "listed", "said"), [("1", 1, True), ("2", 2, True), ("3", 3, False), ("0", 3, False)])
def test_the_last_snapshots_are_listed_and_that_there_are_others(
    asked: Path, capsys: pytest.CaptureFixture[str], last: str, listed: int, said: bool
) -> None:
    everything = json.loads(run("log", "--json", capsys=capsys)[1])
    code, out, err = run("log", "--json", "-n", last, capsys=capsys)
    assert (code, json.loads(out)) == (0, everything[:listed])
    assert (f"the last {last}; older ones are not listed: -n 0 lists all" in err) is said
    of_one = everything[0]["snapshot_id"].rpartition("-")[0].replace("retr-snap-", "run-")
    assert len(json.loads(run("log", of_one, "--json", "-n", "1", capsys=capsys)[1])) == 1
    assert json.loads(run("log", "--json", "-n", last, "--status", "denied", capsys=capsys)[1]) == []


def test_an_erasure_leaves_no_question_in_it(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "who has a role?" in "".join(out for _, out, _ in lists(capsys))
    assert run("erase", "--user", "ana", "--project", "shop", "--yes", capsys=capsys)[0] == 0
    assert "who has a role?" not in "".join(out for _, out, _ in lists(capsys))
    assert not any(b"who has a role?" in file.read_bytes() for file in asked.rglob("*") if file.is_file())
