"""Document 001's three worked examples (S1.34 to S1.36) on the sample portfolio, and their laws on generated ones."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from portfolio import NOW, PORTFOLIO, VARIABLES, asked, cited, indexed
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.reading.answers import answer_report, answers_of, verify_facts
from scoped_retrieval.pipeline.runs import Runs, verify
from scoped_retrieval.pipeline.runs.erasing import erase_evidence
from small_corpus import settings_of

PRICING = "What pricing tiers should we offer for the new audit service?"
CRITERIA = "What are the acceptance criteria for deliverable DEL-12345?"
SPRINT = "Why did sprint 3 fail to meet the deadline?"
SPRINT_3: dict[str, Any] = {"include_after": "2025-09-29T00:00:00Z", "exclude_after": "2025-10-11T00:00:00Z"}
PROJECT = "ventures/acme/projects/proj-001"


@pytest.fixture(scope="module")
def corpus() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        indexed(Path(folder) / "corpus")
        yield Path(folder) / "corpus"


def test_planning_finds_comparable_offers_decisions_and_the_playbook(corpus: Path) -> None:
    found = asked(corpus, PRICING, mode="planning", variables={"current_venture": "security-co"})
    assert {
        "ventures/security-co/offers/audit-lite/context/offer_brief_v01.md",
        "ventures/acme/offers/fleet-care/context/offer_brief_v01.md",
        "decisions/2025-07-02_pricing-tiers_v01.md",
        "context/playbooks/pricing_strategy_v01.md",
    } <= set(cited(found))
    assert not any(part in path for path in cited(found) for part in ("northwind", "charter", "logs/", "sprints/"))
    contract = found.tables["contracts"].to_pylist()[0]
    assert (contract["lane_k"], contract["pool_k"], contract["max_items"]) == (30, 60, 8)


def test_execution_gives_the_specification_verified_against_the_record(corpus: Path) -> None:
    found = asked(corpus, CRITERIA, mode="execution", variables=VARIABLES)
    assert {f"{PROJECT}/deliverables/del-12345/context/deliverable_spec_v01.md", "sot/deliverables.csv"} <= set(
        cited(found)
    )
    checks = {(row["value"], row["finding"], row["locator"]) for row in found.tables["fact_checks"].to_pylist()}
    assert ("DEL-12345", "match", "sot/deliverables.csv#2 (DEL-12345)") in checks
    assert ("2025-10-10", "match", "sot/deliverables.csv#2 (DEL-12345)") in checks
    assert ("DEL-99999", "unknown_key", None) in checks
    assert found.tables["citations"].num_rows <= 6


@pytest.mark.parametrize("name", ["DEL-12345", "del-12345"])
def test_execution_takes_in_the_records_that_the_asked_record_depends_on(tmp_path: Path, name: str) -> None:
    """S1.14, S1.18: also where more rows than the mode shows are like the asked one, and whatever the case of the id."""
    root = tmp_path / "portfolio"
    shutil.copytree(PORTFOLIO, root)
    with (root / "sot" / "deliverables.csv").open("a") as file:
        file.writelines(f"DEL-{n},proj-001,planned,2025-12-0{n},2025-10-05\n" for n in (2, 3, 4))
        file.writelines(f"DEL-30{n},proj-001,in progress,2025-10-10,2025-10-05\n" for n in range(8))
    table = (root / "sot" / "deliverables.csv").read_text().splitlines()
    rows = [f"{line},{'DEL-2; DEL-3; DEL-4' if line.startswith('DEL-12345') else ''}" for line in table[1:]]
    (root / "sot" / "deliverables.csv").write_text("\n".join([f"{table[0]},depends_on", *rows]) + "\n")
    with (root / "sot" / "deliverables.schema.yaml").open("a") as file:
        file.write("  depends_on: text\n")
    indexed(tmp_path / "corpus", root)
    question = f"What does {name} depend on, and is it in progress?"
    found = asked(tmp_path / "corpus", question, mode="execution", variables=VARIABLES)
    facts = [row["section"] for row in found.tables["citations"].to_pylist() if row["path"] == "sot/deliverables.csv"]
    assert facts[:1] == ["DEL-12345"]
    assert {"DEL-2", "DEL-3", "DEL-4"} <= set(facts)


def test_the_record_of_the_engagement_that_the_request_names_comes_first(tmp_path: Path) -> None:
    """S1.41: the request names it as a variable; records of other engagements match the words of the question as well."""
    root = tmp_path / "portfolio"
    shutil.copytree(PORTFOLIO, root)
    with (root / "sot" / "engagements.csv").open("a") as file:
        file.writelines(f"ENG-00{n},fleet fee,$1{n}000,2025-11-0{n},2025-10-01\n" for n in (3, 4))
    indexed(tmp_path / "corpus", root)
    found = asked(tmp_path / "corpus", "What is the engagement fee?", mode="execution", variables=VARIABLES)
    facts = [row["section"] for row in found.tables["citations"].to_pylist() if row["path"] == "sot/engagements.csv"]
    assert facts[:1] == ["ENG-001"]


def test_review_gives_retrospective_logs_decisions_and_own_actions_of_the_sprint(corpus: Path) -> None:
    found = asked(corpus, SPRINT, mode="review", variables=VARIABLES, **SPRINT_3)
    assert {
        f"{PROJECT}/sprints/sprint-003/retro_notes.md",
        f"{PROJECT}/logs/tasks.csv",
        "ventures/acme/decisions/2025-10-08_sprint-003-scope_v01.md",
        "logs/context_actions.csv",
    } <= set(cited(found))
    assert "bob" not in found.block and "Sprint 1" not in found.block and "Sprint 4" not in found.block
    assert found.tables["contracts"]["max_items"].to_pylist() == [10]


def test_a_review_is_in_order_of_time_newest_first(corpus: Path) -> None:
    found = asked(corpus, SPRINT, mode="review", variables=VARIABLES)
    days = re.findall(r"(?m)^\[[^\]]+\] \([^)]*(2025-\d\d-\d\d)\)", found.block)
    assert len(days) > 3 and days == sorted(days, reverse=True)
    assert f"{PROJECT}/logs/tasks.csv" in cited(found)


def test_logs_older_than_the_window_do_not_return_and_decisions_do(corpus: Path) -> None:
    later = NOW + timedelta(days=45)
    paths = cited(asked(corpus, SPRINT, now=later, mode="review", variables=VARIABLES))
    assert not any("logs/" in path for path in paths)
    assert "ventures/acme/decisions/2025-10-08_sprint-003-scope_v01.md" in paths


def test_a_contradicted_value_is_shown_with_the_record_and_logged(corpus: Path) -> None:
    found = asked(corpus, "What is the engagement fee?", mode="execution", variables=VARIABLES)
    assert "but on record: fee is $52,500 in sot/engagements.csv#2 (ENG-001)" in found.block
    assert "The engagement fee is $50,000" in found.block
    assert [c["action"] for c in found.conditions if c["condition"] == "fact_mismatch"] == ["warn"]
    (fact,) = verify_facts("The engagement fee is $50,000.", found.tables)
    assert (fact.finding, fact.canonical) == ("mismatch", "$52,500")


def test_every_value_of_an_answer_is_told_with_what_records_say_and_logged_without_words(
    corpus: Path, tmp_path: Path
) -> None:
    found = asked(corpus, "What is the engagement fee?", mode="execution", variables=VARIABLES, runs=tmp_path)
    store, said = Runs(tmp_path), "The fee of ENG-001 is $50,000. See ENG-777."
    settings = settings_of(corpus.parent, corpus=corpus, runs=tmp_path, grants=corpus.parent / "grants.yaml")
    report, entry, _ = answer_report(settings, found.snapshot_id, said)
    told = {fact.value: (fact.finding, fact.field, fact.canonical) for fact in report.facts}
    assert told["$50,000"][0] == "mismatch"
    assert told["$50,000"][2] == "$52,500"
    assert told["ENG-777"] == ("unknown_key", None, None)
    found_wrong = [row for row in report.findings.to_pylist() if row["finding"] == "contradicted_fact"]
    assert [(row["subject"], row["expected"], row["line"]) for row in found_wrong] == [("$50,000", "$52,500", 1)]
    (logged,), _ = answers_of(settings, found.snapshot_id)
    assert entry is not None
    stored = (tmp_path / "LOG").read_text()
    assert not [word for word in ("$50,000", "52,500", "ENG-777", "ENG-001", "engagements") if word in stored]
    words = [word for fact in report.facts for word in (fact.value, fact.canonical) if word]
    assert not [word for word in words if hashlib.sha256(word.encode()).hexdigest() in stored]
    assert {"mismatch", "unknown_key"} <= {fact["finding"] for fact in logged["facts"]}
    (run_id,) = store.run_ids()
    assert verify(store, run_id).ok
    (record,) = {f["record_id"] for f in logged["facts"] if f["finding"] == "mismatch"}
    assert erase_evidence(store, [record], reason="asked for").texts
    assert answers_of(settings, found.snapshot_id)[0] == [logged]
    right, _, _ = answer_report(settings, found.snapshot_id, "The fee is $52,500.")
    assert "contradicted_fact" not in right.findings["finding"].to_pylist()
    assert verify(store, store.run_ids()[0]).ok


def test_records_older_than_thirty_days_raise_a_condition_that_names_the_file(corpus: Path) -> None:
    def stale(now: datetime) -> list[str]:
        found = asked(corpus, CRITERIA, now=now, mode="execution", variables=VARIABLES)
        return [c["message"] for c in found.conditions if c["condition"] == "sot_stale"]

    assert not stale(NOW)
    (message,) = stale(NOW + timedelta(days=20))
    assert "sot/deliverables.csv" in message


def test_parents_and_neighbors_expand_in_planning_and_not_in_execution(corpus: Path) -> None:
    def links(mode: str) -> set[str]:
        found = asked(corpus, "pricing tiers acceptance fee deadline", mode=mode, variables=VARIABLES)
        return {row["via"] for row in found.tables["hits"].to_pylist() if row["via"]}

    assert "neighbour" in links("planning") and "record" not in links("planning")
    assert "record" in links("execution") and "neighbour" not in links("execution")


def test_a_variable_without_a_value_is_refused_at_the_door(corpus: Path) -> None:
    with pytest.raises(InputError, match=r"Expected a value for {engagement} of .*, got none - at request.variables"):
        asked(corpus, CRITERIA, mode="execution", variables={"venture": "acme", "current_project": "proj-001"})


def test_the_mode_of_a_work_tree_comes_from_its_handoff_object(corpus: Path, tmp_path: Path) -> None:
    shutil.copy(PORTFOLIO / "SHO.json", tmp_path)
    found = asked(corpus, CRITERIA, work_trees=[tmp_path], workspace_root=str(tmp_path))
    assert found.tables["contracts"]["mode"].to_pylist() == ["execution"]
    named = asked(
        corpus, CRITERIA, work_trees=[tmp_path], workspace_root=str(tmp_path), mode="review", variables=VARIABLES
    )
    assert named.tables["contracts"]["mode"].to_pylist() == ["review"]


def test_deleted_text_is_history_in_review_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(PORTFOLIO, tree)
    indexed(tmp_path / "corpus", tree)
    (tree / PROJECT / "sprints" / "sprint-003" / "retro_notes.md").unlink()
    indexed(tmp_path / "corpus", tree, now=NOW + timedelta(hours=1))
    later = NOW + timedelta(hours=2)
    found = asked(tmp_path / "corpus", SPRINT, now=later, mode="review", variables=VARIABLES)
    retro = [
        row for row in found.tables["citations"].to_pylist() if "retro_notes" in row["path"] and "003" in row["path"]
    ]
    assert {row["standing"] for row in retro} == {"history"}
    assert not any("sprint-003/retro" in path for path in cited(asked(tmp_path / "corpus", SPRINT, now=later)))


def test_every_retrieval_is_listed_and_review_finds_the_callers_own(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    asked(corpus, CRITERIA, runs=runs, mode="execution", variables=VARIABLES)
    asked(corpus, PRICING, runs=runs, now=NOW + timedelta(minutes=1))
    grants = str(corpus.parent / "grants.yaml")
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    assert main(["log", "--as", "csv", "--runs", str(runs), "--grants", grants]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["mode"], row["k_in"], row["k_out"], row["principal"]) for row in rows] == [
        ("", "50", "12", "ana"),
        ("execution", "20", "6", "ana"),
    ]
    assert "/sot/" in rows[1]["scope"] and "sot/deliverables.csv#2 (DEL-12345)" in rows[1]["citations"]
    assert rows[0]["scope"] == "all paths"
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "bob")
    assert main(["log", "--as", "csv", "--runs", str(runs), "--grants", grants, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
