"""A manifest that is no JSON is unreadable, and no tampering."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures


def batch(capsys: pytest.CaptureFixture[str], **fields: str) -> str:
    """The id of a run of one request."""
    row = {"question": "default role", "project": "shop", "purpose": "answer-question"} | fields
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    return json.loads(run("run", "q.jsonl", "--json", capsys=capsys)[1])["run_id"]


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
    assert "unreadable" in run("log", "--of", "runs", capsys=capsys)[1]
    changed = json.loads(whole) | {"created_at": "2020-01-01T00:00:00+00:00"}
    at.write_text(json.dumps(changed))
    code, out, _ = run("verify", made, capsys=capsys)
    assert (code, f"{made}: changed" in out) == (5, True)
    at.write_bytes(whole)
    assert run("verify", capsys=capsys)[0] == 0
