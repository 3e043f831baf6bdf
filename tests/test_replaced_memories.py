"""A memory that was replaced is history and never current, however the files say so, by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run

OLD = {"id": "m1", "content": "The walrus sleeps in the hall.", "status": "verified", "confidence": "high"}
NEW = {"id": "m2", "content": "The walrus sleeps in the garden.", "status": "verified", "confidence": "high"}
FIRST, SECOND = {"createdAt": "2026-05-01T00:00:00Z"}, {"createdAt": "2026-06-01T00:00:00Z"}


@pytest.mark.parametrize(
    "times",
    [
        (FIRST, SECOND),
    ],
    ids=["times"],
)
@pytest.mark.parametrize(
    "files",
    [
        {"a.jsonl": [OLD | {"supersededBy": "m2"}, NEW]},
        {"a.jsonl": [OLD, NEW | {"supersedes": "m1"}]},
        {"a.jsonl": [NEW | {"supersedes": ["m1"]}], "b.jsonl": [OLD]},
        {"2026-05-01.jsonl": [OLD], "2026-06-01.jsonl": [NEW | {"id": "m1"}]},
        {"a.jsonl": [OLD | {"supersededBy": "elsewhere"}], "b.jsonl": [NEW]},
    ],
    ids=["supersededBy", "supersedes", "other file", "same id", "unknown"],
)
def test_a_replaced_memory_is_never_current(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, list[dict[str, Any]]],
    times: tuple[dict[str, str], dict[str, str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Path("memories").mkdir()
    for name, records in files.items():
        dated = [record | times["garden" in record["content"]] for record in records]
        Path("memories", name).write_text("".join(json.dumps(record) + "\n" for record in dated))
    code, _, err = run("index", "--add", "memory=memories", "--project", "p", "--no-semantic", capsys=capsys)
    assert code == 0, err
    code, block, err = run("ask", "where does the walrus sleep", "--project", "p", capsys=capsys)
    assert code == 0, err
    assert ("garden" in block, "hall" in block) == (True, False)
