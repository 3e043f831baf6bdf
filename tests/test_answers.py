"""`verify --answer` from a run alone: exit codes, JSON, erased snapshots and whose snapshot it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import ask, indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures
from scoped_retrieval.pipeline.runs import Runs


@pytest.fixture(name="snapshot")
def snapshot_fixture(shop: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A snapshot of the shop, whose corpus is gone."""
    _, snapshot = ask(capsys=capsys)
    shutil.rmtree(shop / ".scoped-retrieval" / "corpus" / "packs")
    return snapshot


def cited(snapshot: str, path: str) -> str:
    found = Runs(".scoped-retrieval/runs").open(snapshot).table("citations", texts=True).to_pylist()
    return next(c["label"] for c in found if c["path"] == path)


def answered(text: str, snapshot: str, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    Path("answer.md").write_text(text, encoding="utf-8")
    return run("verify", snapshot, "--answer", "answer.md", *args, capsys=capsys)


def test_a_faithful_answer_exits_0_and_a_wrong_one_5(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    label = cited(snapshot, "docs/roles.md")
    code, out, _ = answered(f'"There is no default role." [{label}]\n', snapshot, capsys)
    assert (code, out.splitlines()[-1]) == (0, f"0 wrong, {len(out.splitlines()) - 1} noted")
    code, out, _ = answered(f'"There is a default role." [{label}] since 2019\n', snapshot, capsys)
    assert code == 5
    assert out.splitlines()[:2] == [
        f"line 1: quotes text that is not in the visible text: There is a default role. [{label}]",
        "line 1: gives a value that is not in the visible text: 2019",
    ]


def test_lines_of_a_place_in_the_block_are_right_and_those_around_it_noted(snapshot: str, capsys) -> None:
    label = cited(snapshot, "src/session.ts")
    code, out, _ = answered(f"The role is set in src/session.ts:2 [{label}].\n", snapshot, capsys)
    assert (code, "src/session.ts" in out) == (0, False)
    code, out, _ = answered(f"The role is set in src/session.ts:2-70 [{label}].\n", snapshot, capsys)
    assert code == 0 and "src/session.ts:2-70" in out


def test_json_has_every_finding(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answered("As in [doc#99].", snapshot, capsys, "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["wrong"], found["status"]) == (5, False, 1, "ok")
    wrong = [row for row in found["findings"] if row["wrong"]]
    assert [(row["finding"], row["label"], row["line"]) for row in wrong] == [("unknown_citation", "doc#99", 1)]


def test_every_verified_answer_is_listed_for_whoever_may_read_its_snapshot(
    snapshot: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = [
        json.loads(answered(text, snapshot, capsys, "--json")[1])["logged"] for text in ("As in [doc#99].", "So.")
    ]
    assert len(set(logged)) == 2
    code, out, _ = run("log", "--of", "checks", "--json", capsys=capsys)
    found = json.loads(out)
    assert (code, [(e["snapshot_id"], e["principal"], e["ok"]) for e in found]) == (
        0,
        [(snapshot, "ana", True), (snapshot, "ana", False)],
    )
    assert run("log", snapshot, "--of", "checks", "--json", capsys=capsys)[1] == out
    assert run("verify", snapshot, capsys=capsys)[0] == 0
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert json.loads(run("log", "--of", "checks", "--json", capsys=capsys)[1]) == []
    code, out, err = run("log", snapshot, "--of", "checks", capsys=capsys)
    assert (code, out, "Expected a snapshot that you may read" in err) == (3, "", True)


def test_an_answer_to_another_principals_snapshot_is_refused(
    snapshot: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    code, out, err = answered("x", snapshot, capsys)
    assert (code, out) == (3, "")
    assert "Expected a snapshot that you may read" in err


def test_an_erased_snapshot_cannot_be_judged(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, snapshot = ask(capsys=capsys)
    code, out, _ = run("erase", "--project", "shop", "--yes", capsys=capsys)
    assert code == 0, out
    code, out, _ = answered("There is no default role.", snapshot, capsys)
    assert (code, out.splitlines()[-1]) == (6, "cannot tell: texts of this snapshot were erased")
    assert run("show", snapshot, capsys=capsys)[0] == 6
