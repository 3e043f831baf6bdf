"""Two high-trust records that give one field different values conflict without a label; anything less does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.runs.erasing import erase_evidence
from small_corpus import Story, days_ago, row

QUESTION = "what is the fee of ENG-001"


def record(file: str, text: str, **columns: Any) -> dict[str, Any]:
    name = f"structured-sot:{file}"
    return row("structured-fact", f"sot/{file}", text, source_id=name, entity="ENG-001", authority=3) | columns


def told(found: Retrieval) -> list[str]:
    return [each["message"] for each in found.conditions if each["condition"] == "conflicting"]


def asked(folder: Path, *rows: dict[str, Any], question: str = QUESTION, **fields: Any) -> list[str]:
    return told(Story(folder, *rows).ask(question, **fields))


FEE = record("engagements.csv", "id: ENG-001\nfee: $52,500\n")


def test_records_that_give_one_field_two_values_conflict(tmp_path: Path):
    other = record("billing.yaml", "id: eng-001\nfee: $50,000\n", entity="eng-001")
    assert asked(tmp_path, FEE, other) == ["high-trust rows disagree about fee"]


@pytest.mark.parametrize(
    "other",
    [
        record("billing.yaml", "id: ENG-001\nfee: 52500 USD\n"),
        record("billing.yaml", "id: ENG-001\nowner: ana\n"),
        record("billing.yaml", "id: ENG-002\nfee: $50,000\n", entity="ENG-002"),
        record("billing.yaml", "id: ENG-001\nfee: $50,000\n", declared_standing="untrusted"),
        record("billing.yaml", "id: ENG-001\nfee: $50,000\n", zone="restricted"),
    ],
    ids=["one value spelt twice", "another field", "another record", "untrusted", "not readable"],
)  # fmt: skip
def test_what_is_no_rival_does_not_conflict(tmp_path: Path, other: dict[str, Any]):
    assert asked(tmp_path, FEE, other) == []


def test_rows_that_two_files_number_alike_are_no_rivals(tmp_path: Path):
    numbered = [record(f"{n}.csv", f"id: 7\nfee: ${n}\n", entity="7") for n in (1, 2)]
    assert asked(tmp_path, *numbered, question="fee 7") == []


def test_an_earlier_version_is_no_rival_of_the_later_one(tmp_path: Path):
    place = "ventures/a/projects/b/engagements.csv"
    story = Story(tmp_path, FEE | {"path": place, "text": "fee: $50,000\n", "recorded_time": days_ago(5)})
    story.tell(FEE | {"path": place, "text": "fee: $52,500\n"}, complete=["structured-sot:engagements.csv"])
    review = {"mode": "review", "variables": {"venture": "a", "current_project": "b"}}
    found = story.ask(QUESTION, **review)
    assert {item["standing"] for item in found.tables["trimmed"].to_pylist()} == {"evidence", "history"}
    assert told(found) == []
    story.tell(record("billing.yaml", "fee: $50,000\n", path="ventures/a/projects/b/billing.yaml"))
    assert told(story.ask(QUESTION, **review)) == ["high-trust rows disagree about fee"]


def test_a_rival_of_something_that_is_not_shown_is_not_told(tmp_path: Path):
    other = record("billing.yaml", "id: ENG-001\nfee: $50,000\n")
    assert asked(tmp_path, FEE, other, max_items=1) == ["high-trust rows disagree about fee"]
    assert asked(tmp_path / "none", FEE, other, max_tokens=1) == []


def test_erasing_a_rival_takes_the_message_that_names_its_fields(tmp_path: Path):
    story = Story(tmp_path, FEE, record("billing.yaml", "id: ENG-001\nfee: $50,000\n"))
    with story.open(runs=tmp_path / "runs") as retriever:
        found = retriever.retrieve({"project": "shop", "question": QUESTION, "max_items": 1})
    (shown,) = (citation["evidence_id"] for citation in found.citations)
    (rival,) = set(found.tables["candidates"]["evidence_id"].to_pylist()) - {shown}
    store = Runs(tmp_path / "runs")
    assert erase_evidence(store, [rival], reason="asked for").texts
    (run_id,) = store.run_ids()
    assert not [text for text in store.open(run_id).texts["text"].to_pylist() if "disagree about" in text]
