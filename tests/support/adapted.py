"""A small corpus in memory for the adapters, and what their documents have to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import SHOP
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.cli import main

QUESTION = "What is the default role?"
FIELDS = {"project": "shop", "as_of": "2030-06-01T12:00:00Z"}


@pytest.fixture(name="retriever")
def retriever_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """ana's retriever over a small work tree."""
    for name, text in SHOP.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    assert main(["index", "shop", "--project", "shop", "--no-semantic"]) == 0
    home = tmp_path / ".scoped-retrieval"
    lanes = ("lexical", "symbol", "exact")
    with Retriever.open(str(home / "corpus"), principal="ana", runs=str(home / "runs"), lanes=lanes) as retriever:
        yield retriever


def expect_cited(documents: list[tuple[str, dict[str, Any]]], retriever: Any) -> None:
    """Texts and metadata are those of the block that the same request has, under a snapshot that is stored."""
    found = retriever.retrieve({**FIELDS, "question": QUESTION})
    assert [metadata["label"] for _, metadata in documents] == [one["label"] for one in found.citations]
    snapshots = {metadata["snapshot_id"] for _, metadata in documents}
    assert len(snapshots) == 1 and snapshots != {found.snapshot_id}
    stored = retriever.runs.open(snapshots.pop()).snapshots["block_ref"].to_pylist()
    assert found.block_ref in stored
    for text, metadata in documents:
        assert metadata["block_ref"] == found.block_ref and metadata["evidence_id"] and metadata["locator"]
        assert all(line in found.block for line in text.splitlines())
