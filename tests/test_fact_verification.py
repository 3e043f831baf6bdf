"""Values of items and answers against the records that a contract admits: found, compared, never corrected."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.facts.fact_matching import names_field
from scoped_retrieval.nodes.tables import CONTRACTS, FACT_CHECKS, STRUCTURED_FACTS
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.reading.answers import verify_facts
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.runs.erasing import erase_evidence
from selection_line import CONTRACT, line
from small_corpus import Story, days_ago, row

RECORD: dict[str, Any] = {
    "text": "id: ENG-001\nfee: $52,500\ndeadline: 2025-11-15\nsprints: 4\n",
    "entity": "ENG-001",
    "origin_class": "structured-sot",
    "evidence_kind": "structured-fact",
    "path": "sot/engagements.csv",
    "section": "ENG-001",
    "line_start": 2,
}
LOOKING_UP = {"r1": {"exact_lookups": True}}


def checks(text: str, *, record: dict[str, Any] | None = None, **item: Any) -> dict[str, str]:
    made = line([{"text": text, **item}, {**RECORD, **(record or {})}], requests=LOOKING_UP).run("fact_checks")
    return {row["value"]: row["finding"] for row in FACT_CHECKS.check(made["fact_checks"]).to_pylist()}


def test_an_id_that_agrees_names_the_field_that_holds_it() -> None:
    record = {"text": "deadline: 2025-11-15\nengagement_id: eng-001\nfee: $52,500\n"}
    made = line([{"text": "ENG-001 it is"}, RECORD | record], requests=LOOKING_UP).run("fact_checks")
    (found,) = made["fact_checks"].to_pylist()
    assert (found["finding"], found["field"], found["canonical"]) == ("match", "engagement_id", "eng-001")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fee of ENG-001: $52,500.", {"ENG-001": "match", "$52,500": "match"}),
        ("Fee of ENG-001: 52,500 EUR", {"ENG-001": "match", "52,500 EUR": "mismatch"}),
        ("ENG-001 has its deadline on 15 November 2025", {"ENG-001": "match", "15 November 2025": "match"}),
        ("ENG-001 met on 2025-11-20", {"ENG-001": "match", "2025-11-20": "unknown_key"}),
        (
            "ENG-001 began 2025-09-01, its deadline is 2025-11-15",
            {"ENG-001": "match", "2025-09-01": "unknown_key", "2025-11-15": "match"},
        ),
        ("Nothing to check, 3 times.", {}),
    ],
)
def test_a_value_is_compared_with_the_field_its_line_names(text: str, found: dict[str, str]) -> None:
    assert checks(text) == found


def test_the_folder_of_an_item_says_which_record_it_is_about() -> None:
    path = "ventures/acme/engagements/eng-001/brief.md"
    assert checks("The engagement fee is $50,000", path=path) == {"$50,000": "mismatch"}
    assert checks("The engagement fee is $50,000", path="ventures/acme/brief.md") == {"$50,000": "unknown_key"}


def test_agreement_with_a_stale_record_is_no_match_and_a_difference_stays_one() -> None:
    old = {"recorded_time": datetime(2025, 4, 1, tzinfo=UTC)}
    assert checks("The fee of ENG-001 is $52,500", record=old)["$52,500"] == "stale_sot"
    assert checks("The fee of ENG-001 is $50,000", record=old)["$50,000"] == "mismatch"


def test_nothing_is_checked_without_exact_look_ups() -> None:
    made = line([{"text": "The fee of ENG-001 is $50,000"}, RECORD]).run("fact_checks")
    assert made["fact_checks"].num_rows == made["structured_facts"].num_rows == 0


def test_a_record_of_another_request_is_an_unknown_key() -> None:
    requests = {"r1": {"exact_lookups": True}, "r2": {"exact_lookups": True}}
    rows = [{"text": "The fee of ENG-001 is $50,000"}, RECORD]
    made = line(rows, requests=requests, pool={"r1": [0, 1], "r2": [0]}).run("fact_checks")
    found = {(row["request_id"], row["value"]): row["finding"] for row in made["fact_checks"].to_pylist()}
    assert (found["r1", "$50,000"], found["r2", "$50,000"]) == ("mismatch", "unknown_key")
    assert (found["r1", "ENG-001"], found["r2", "ENG-001"]) == ("match", "unknown_key")


def test_a_mismatch_shows_the_canonical_value_beside_the_item() -> None:
    made = line([{"text": "The fee of ENG-001 is $50,000"}, RECORD], requests=LOOKING_UP)
    block = made.block()
    assert (
        "(but on record: fee is $52,500 in sot/engagements.csv#2 (ENG-001)) src/file_0.py:1\n|The fee of ENG-001"
        in block
    )
    assert "on record" not in line([{"text": "The fee of ENG-001 is $52,500"}, RECORD], requests=LOOKING_UP).block()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("52.500,00 EUR due", []),
        ("version 1.2.3 on 10.0.0.1, 15px, $52.5k, 2 million", []),
        ("it fell by -$5, $-7", ["$-7", "-$5"]),
        ("the fee is 10 20 30", ["10", "20", "30"]),
    ],
)
def test_what_has_no_one_reading_is_not_compared_and_a_sign_is_part_of_its_value(text: str, values: list[str]) -> None:
    found = verify_facts(f"The fee of ENG-001: {text}", tables_of({"field": "fee", "value": "$1"}))
    assert [one.value for one in found if one.value != "ENG-001"] == values


def test_an_answer_that_names_none_of_several_records_differs_from_none() -> None:
    two = (
        {"field": "fee", "value": "$52,500"},
        {"field": "fee", "value": "$18,000", "entity": "ENG-002", "evidence_id": "e2"},
    )
    said = {"The engagement fee is $50,000.": "unknown_key", "The fee is $18,000.": "match",
            "The fee of ENG-001 is $50,000.": "mismatch"}  # fmt: skip
    assert {text: verify_facts(text, tables_of(*two))[0].finding for text in said} == said
    (fee,) = [f for f in verify_facts("The fee of ENG-001 is $50,000.", tables_of(*two)) if f.kind == "money"]
    assert fee.canonical == "$52,500"
    assert verify_facts("The fee is $50,000.", tables_of(two[0]))[0].finding == "mismatch"


def test_a_field_is_named_by_the_words_that_tell_it_from_others() -> None:
    fields = ["due_date", "date", "fee"]
    named = {
        line: [field for field in fields if names_field(line, field)]
        for line in ("due on", "the deadline", "a date", "Date of the fee")
    }
    assert named == {
        "due on": ["due_date"],
        "the deadline": ["due_date"],
        "a date": ["date"],
        "Date of the fee": ["date", "fee"],
    }


def tables_of(*facts: dict[str, Any]) -> dict[str, pa.Table]:
    common = {"request_id": "r1", "evidence_id": "e1", "entity": "ENG-001", "locator": "sot/x.csv#2", "stale": False}
    return {
        "contracts": CONTRACTS.from_rows([CONTRACT | {"request_id": "r1"}]),
        "structured_facts": STRUCTURED_FACTS.from_rows([common | fact for fact in facts]),
    }


def test_an_answer_is_checked_and_left_as_it_is() -> None:
    tables = tables_of({"field": "fee", "value": "$52,500"})
    (found,) = verify_facts("The engagement fee is $50,000.", tables)
    assert (found.value, found.finding, found.canonical, found.locator) == (
        "$50,000",
        "mismatch",
        "$52,500",
        "sot/x.csv#2",
    )
    assert [f.finding for f in verify_facts("ENG-001 costs; its fee is $52,500.", tables)] == ["match", "match"]
    assert [f.finding for f in verify_facts("ENG-002: fee $52,500, 2025-01-01", tables_of())] == ["unknown_key"] * 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fee of eng-001: $52,500.", {"eng-001": "match", "$52,500": "match"}),
        ("eng-999 is new.\nThe fee is $9.", {"eng-999": "unknown_key", "$9": "unknown_key"}),
        ("The deadline of ENG-001 is 11/15/2025.", {"ENG-001": "match", "11/15/2025": "match"}),
        ("The deadline of ENG-001 is November 15th 2025.", {"ENG-001": "match", "November 15th 2025": "match"}),
        ("The deadline of ENG-001 is 30.11.2025.", {"ENG-001": "match", "30.11.2025": "mismatch"}),
        ("The deadline of ENG-001 is 03-04-2025.", {"ENG-001": "match", "03-04-2025": "unread"}),
        ("The deadline of ENG-001 is Sept 30, 2025.", {"ENG-001": "match", "Sept 30, 2025": "mismatch"}),
        ("The task of ENG-001 may 3 times fail.", {"ENG-001": "match"}),
    ],
)  # fmt: skip
def test_ids_in_any_case_name_records_and_unknown_ids_contradict_none(text: str, found: dict[str, str]) -> None:
    assert checks(text) == found
    tables = line([RECORD], requests=LOOKING_UP).run("fact_checks")
    assert {row.value: row.finding for row in verify_facts(text, tables)} == found


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
