"""Who may read a part of a run may not change it; a manifest that is no JSON is unreadable, and no tampering."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures


def batch(capsys: pytest.CaptureFixture[str], **fields: str) -> str:
    """The id of a run of one request."""
    row = {"question": "default role", "project": "shop", "purpose": "answer-question"} | fields
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    return json.loads(run("run", "q.jsonl", "--json", capsys=capsys)[1])["run_id"]


def test_a_run_is_upgraded_by_who_started_it_and_by_auditors(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    people = {
        "ana": {"projects": ["shop"], "act_as": [{"principal": "bo", "project": "shop", "reason": "on call"}]},
        "bo": {"projects": ["shop"]},
        "cy": {"projects": ["shop"], "audit": True},
    }
    people["ana"]["act_as"][0]["expires"] = "2099-01-01T00:00:00Z"
    (shop / ".scoped-retrieval/corpus/grants.yaml").write_text(yaml.safe_dump({"principals": people}))
    made = batch(capsys, principal="bo")
    codes = {}
    for principal in ("ana", "bo", "cy", "eve"):
        monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", principal)
        listed = json.loads(run("runs", "--json", capsys=capsys)[1])["runs"]
        codes[principal] = (len(listed), run("runs", "upgrade", made, capsys=capsys)[0])
    assert codes == {"ana": (1, 0), "bo": (1, 3), "cy": (1, 0), "eve": (0, 3)}


@pytest.mark.parametrize("content", [b"garbage", b"", b"{", b"\xff\xfe"])
def test_a_manifest_that_is_no_json_is_unreadable(
    shop: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    made = batch(capsys)
    at = shop / f".scoped-retrieval/runs/{made}/manifest.json"
    whole = at.read_bytes()
    at.write_bytes(content)
    for args in (("verify",), ("verify", made)):
        code, out, _ = run(*args, capsys=capsys)
        assert (code, f"{made}: unreadable" in out) == (7, True)
    assert "unreadable" in run("runs", capsys=capsys)[1]
    changed = json.loads(whole) | {"created_at": "2020-01-01T00:00:00+00:00"}
    at.write_text(json.dumps(changed))
    code, out, _ = run("verify", made, capsys=capsys)
    assert (code, f"{made}: changed" in out) == (5, True)
    at.write_bytes(whole)
    assert run("verify", capsys=capsys)[0] == 0
