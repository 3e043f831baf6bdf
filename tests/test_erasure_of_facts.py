"""Values of a record in notes beside other items, in checks and in messages are erased with the record."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from erasing_world import GRANTS, QUESTION, holding, settings
from scoped_retrieval.pipeline.maintenance.erasure import erase
from scoped_retrieval.pipeline.runs import Runs, verify
from small_corpus import Story, row

MEMO = "The fee of ENG-001 is $50,000, said the memo."
NOTE = "on record: fee is $52,500"
VARIABLES = {"venture": "acme", "engagement": "e", "current_project": "p"}


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_no_byte_holds_what_an_erased_record_said_beside_other_items(tmp_path: Path, batch: bool) -> None:
    record = row("structured-fact", "sot/engagements.csv", "id: ENG-001\nfee: $52,500\n", entity="ENG-001", authority=3)
    memo = row("doc", "ventures/acme/projects/p/context/memo.md", MEMO)
    story = Story(tmp_path, record, memo)
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    question = QUESTION | {"question": "What is the fee of ENG-001?", "mode": "execution", "variables": VARIABLES}
    with story.open(runs=tmp_path / "runs") as retriever:
        if batch:
            summary = retriever.run([question])
        else:
            found = retriever.retrieve(question)
            assert NOTE in found.block
            retriever.close(compacted=False)
    store = Runs(tmp_path / "runs")
    snapshot = store.open(summary.run_id).snapshots["snapshot_id"][0].as_py() if batch else found.snapshot_id
    assert any(NOTE in str(text) for text in store.open(snapshot).texts["text"].to_pylist())

    erase(settings(tmp_path), source="structured-fact:story")
    assert holding(tmp_path, "52,500") == []
    assert holding(tmp_path / "runs", "said the memo") != [], "what the memo says is another source"
    assert verify(store, snapshot).status == "erased"
