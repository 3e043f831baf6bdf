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


def at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))


@pytest.mark.parametrize("dated", [True, False])
def test_a_memory_in_two_imports_is_current_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], dated: bool
) -> None:
    """Importing the earlier file again changes nothing, as it says nothing new."""
    at_home(tmp_path, monkeypatch)
    records = (OLD | (FIRST if dated else {}), NEW | {"id": "m1"} | (SECOND if dated else {}))
    for name, record in zip("ab", records, strict=True):
        Path(f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    for name in "abaab":
        add = ("--add", f"memory={name}.jsonl", "--project", "p", "--no-semantic")
        assert run("index", *add, capsys=capsys)[0] == 0
        block = run("ask", "where does the walrus sleep", "--project", "p", capsys=capsys)[1]
    assert ("garden" in block, "hall" in block) == (True, False)


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
) -> None:
    at_home(tmp_path, monkeypatch)
    Path("memories").mkdir()
    for name, records in files.items():
        dated = [record | (FIRST, SECOND)["garden" in record["content"]] for record in records]
        Path("memories", name).write_text("".join(json.dumps(record) + "\n" for record in dated))
    code, _, err = run("index", "--add", "memory=memories", "--project", "p", "--no-semantic", capsys=capsys)
    assert code == 0, err
    code, block, err = run("ask", "where does the walrus sleep", "--project", "p", capsys=capsys)
    assert code == 0, err
    assert ("garden" in block, "hall" in block) == (True, False)
