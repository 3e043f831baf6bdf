"""`context …` at the command line: projected, recorded, replayed, compared, asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import ask, run
from context_session import Session
from scoped_retrieval.pipeline.cli.output import EXIT
from scoped_retrieval.pipeline.config.settings import load_settings

INPUTS = """\
project: shop
rules:
  - Only modify the current workspace.
tools: [read_file, apply_patch]
budget: {maxTokens: 4000}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    session = Session("Fix the failing tests.")
    session.failing("src/a.ts:1 error", turn=1)
    session.add("model.request", turn=1)
    session.add("file.read", turn=1, path="src/a.ts", version="1", content="export const a = 1;")
    session.add("model.request", turn=2)
    session.add("model.message", turn=2, text="I look at src/c.ts")
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(event) + "\n" for event in session.events))
    (tmp_path / "inputs.yaml").write_text(INPUTS)
    return tmp_path


def value_of(*args: str, capsys: Any) -> Any:
    code, out, err = run(*args, "--json", capsys=capsys)
    assert code == 0, err
    return json.loads(out)


def test_an_input_is_projected_recorded_and_replayed(place: Path, capsys: Any):
    code, out, err = run("context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--at", "5", capsys=capsys)
    assert (
        code == 0
        and out.startswith("<trusted_instructions ")
        and "input: s/5 (ok, " in err
        and "recorded in ctx-" in err
    )
    code, again, err = run("show", "s/5", capsys=capsys)
    assert (code, again) == (0, out)
    assert "input: s/5, recorded " in err
    listed = value_of("log", "--of", "inputs", capsys=capsys)
    assert [each["input_id"] for each in listed] == ["s/5"]
    code, by_record, _ = run("show", listed[0]["record"], capsys=capsys)
    assert by_record == out
    code, neutral, _ = run("show", "s/5", "--as", "neutral", capsys=capsys)
    assert json.loads(neutral)["messages"][0]["role"] == "system"
    log = place / ".scoped-retrieval/runs/LOG"
    log.write_bytes(log.read_bytes().replace(b'"s/5"', b'"x/5"'))
    code, out, err = run("log", "--of", "inputs", "--json", capsys=capsys)
    assert (code, json.loads(out)) == (0, []) and "1 damaged line;" in err


@pytest.mark.parametrize("shape", ["text", "neutral", "openai", "anthropic", "decisions", "ledger"])
def test_every_shape_is_printed(place: Path, capsys: Any, shape: str):
    code, out, _ = run("context", "project", "s.jsonl", "--no-record", "--format", shape, capsys=capsys)
    assert code == 0 and out
    if shape != "text":
        json.loads(out)
    assert run("log", "--of", "inputs", capsys=capsys)[1].count("ctx-") == 0, "nothing was recorded"


def test_every_request_of_a_log_gives_an_input(place: Path, capsys: Any):
    values = value_of("context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--all", capsys=capsys)
    assert [each["modelInputId"] for each in values] == ["s/2", "s/4"]
    asked = ("context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--all", "--no-record", "--at")
    assert value_of(*asked, "3", capsys=capsys) == values[:1]
    assert value_of(*asked, "4", capsys=capsys) == values, "what stands before a request of number 4 is before it too"
    found = value_of("diff", "s/2", "s/4", capsys=capsys)
    assert found["same_prefix"] and not found["same_input"] and "event:e3" in found["only_in_second"]
    code, out, _ = run("diff", "s/2", "s/4", capsys=capsys)
    assert code == 0 and "same prefix: yes" in out and "+| export const a = 1;" in out


def test_rules_that_are_asked_for_and_not_there_are_a_condition_of_every_input(place: Path, capsys: Any):
    (place / "tree").mkdir()
    asked = ("context", "project", "s.jsonl", "--rules", "tree", "--all")
    code, out, err = run(*asked, "--json", capsys=capsys)
    inputs = json.loads(out)
    conditions = [[each["condition"] for each in one["warnings"]] for one in inputs]
    assert (code, len(inputs), [each[-1] for each in conditions]) == (0, 2, ["rules_not_found"] * 2)
    assert err.count("warning: rules_not_found: no rule file was found in tree, looked for AGENTS.md, CLAUDE.md") == 2
    assert value_of("show", "s/2", capsys=capsys)["warnings"] == inputs[0]["warnings"], "it is recorded"
    (place / "tree" / "AGENTS.md").write_text("Never push.\n")
    found = value_of(*asked, capsys=capsys)
    assert [[each["condition"] for each in one["warnings"]] for one in found] == [each[:-1] for each in conditions]


def test_an_input_is_named_by_its_place_in_the_log_alone_and_among_all(place: Path, capsys: Any):
    alone = value_of("context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--at", "4", capsys=capsys)
    _, among = value_of("context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--all", capsys=capsys)
    assert alone["modelInputId"] == among["modelInputId"] == "s/4"
    assert alone["messages"] == among["messages"]
    assert value_of("context", "project", "s.jsonl", capsys=capsys)["modelInputId"] == "s/6"


def test_why_names_the_layer(place: Path, capsys: Any):
    run("context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--all", capsys=capsys)
    found = value_of("why", "s/4", "src/a.ts", "--log", "s.jsonl", capsys=capsys)
    assert found["layer"] == "model_did_not_use"
    code, out, _ = run("why", "s/4", "src/b.ts", capsys=capsys)
    assert code == 0 and out.startswith("retrieval_not_recalled: ")


def test_a_log_folder_is_appended_to_and_opened(place: Path, capsys: Any):
    found = value_of("context", "log", "log", "--session", "s", "--append", "s.jsonl", capsys=capsys)
    assert found == {"session_id": "s", "events": 6, "appended": 6}
    again = value_of("context", "log", "log", "--append", "s.jsonl", capsys=capsys)
    assert again == {"session_id": "s", "events": 6, "appended": 0}
    assert value_of("context", "open", "log", "event:e3", capsys=capsys)["text"].count("export const a = 1;") == 1
    code, out, _ = run(
        "context", "project", "log", "--at", "5", "--inputs", "inputs.yaml", "--no-record", capsys=capsys
    )
    assert code == 0 and "export const a = 1;" in out


def test_a_turn_without_room_fails_with_an_honest_ledger(place: Path, capsys: Any):
    code, out, err = run(
        "context", "project", "s.jsonl", "--inputs", "inputs.yaml", "--max-tokens", "1030", "--json", capsys=capsys
    )
    value = json.loads(out)
    assert (code, value["status"], value["messages"][0]["content"]) == (4, "over_budget", "")
    assert value["estimatedTokens"] == sum(value["partTokens"].values()) > 1030 - 1024
    assert "warning: over_budget: " in err and value["ledger"]["included"] == [] and value["ledger"]["excluded"]


def test_an_input_draws_on_snapshots_of_this_project_and_replay_returns_them(shop: Any, tmp_path: Path, capsys: Any):
    block, snapshot = ask(capsys=capsys)
    session = Session("What is the default role?")
    session.add("retrieval.snapshot.created", turn=1, snapshotId=snapshot)
    session.add("retrieval.snapshot.created", turn=1, snapshotId="retr-snap-01k8044eu07u0255ub-0001")
    log = tmp_path / "asked.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in session.events))
    value = value_of("context", "project", str(log), capsys=capsys)
    label = block.split("[", 1)[1].split("]")[0]
    ref = block.splitlines()[0].rsplit(" ", 1)[1]
    assert f"[{ref}:{label}]" in value["messages"][1]["content"], "labels are qualified by their block"
    assert [row["condition"] for row in value["warnings"]] == ["snapshot_missing"]
    again = value_of("show", "asked/3", capsys=capsys)
    assert [each["snapshot_id"] for each in again["snapshots"]] == [snapshot] and again["snapshots"][0][
        "status"
    ] == "ok"


def test_an_input_is_shown_only_to_who_may_still_see_all_that_it_shows(shop: Any, tmp_path: Path, capsys: Any):
    _, snapshot = ask(capsys=capsys)
    item = value_of("show", snapshot, capsys=capsys)["citations"][0]
    session = Session("What is the default role?")
    session.add("retrieval.snapshot.created", turn=1, snapshotId=snapshot)
    log = tmp_path / "asked.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in session.events))
    value_of("context", "project", str(log), capsys=capsys)
    assert run("show", "asked/2", capsys=capsys)[0] == 0
    grants = load_settings().grants_path
    before = grants.read_text()
    grants.write_text(f"principals: {{ana: {{projects: [shop], denied_paths: ['{item['path']}']}}}}\n")
    for words in (("show", "asked/2"), ("why", "asked/2", item["path"]), ("show", "asked/2", "--as", "ledger")):
        code, out, err = run(*words, capsys=capsys)
        assert code == EXIT["denied"] and item["path"] not in out + err, words
    grants.write_text(before)
    assert run("show", "asked/2", capsys=capsys)[0] == 0


def test_audit_answers_prefer_what_the_model_really_saw_and_an_erasure_reaches_it(
    shop: Any, tmp_path: Path, capsys: Any
):
    _, snapshot = ask(capsys=capsys)
    citations = value_of("show", snapshot, capsys=capsys)["citations"]
    evidence = citations[0]["evidence_id"]
    before = value_of("why", snapshot, evidence, capsys=capsys)[0]
    assert before["outcome"] == "selected" and "model input" not in before["reason_text"]
    session = Session("What is the default role?")
    session.add("retrieval.snapshot.created", turn=1, snapshotId=snapshot)
    log, cut = tmp_path / "seen.jsonl", tmp_path / "cut.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in session.events))
    value_of("context", "project", str(log), capsys=capsys)
    shown = value_of("why", snapshot, evidence, capsys=capsys)[0]
    assert (shown["outcome"], shown["stage"]) == ("selected", "project") and "model input seen/2" in shown[
        "reason_text"
    ]
    session.add("file.modified", turn=2, path=citations[0]["path"], version="2", text="changed since")
    cut.write_text("".join(json.dumps(event) + "\n" for event in session.events))
    value_of("context", "project", str(cut), capsys=capsys)
    stale = value_of("why", snapshot, evidence, capsys=capsys)[0]
    assert (stale["outcome"], stale["reason_code"]) == ("rejected", "stale_version")
    assert run("verify", capsys=capsys)[0] == 0, "records of inputs are no runs"
    assert "ctx-" not in json.dumps(value_of("log", "--of", "runs", capsys=capsys))
    code, _, err = run("erase", "--evidence", evidence, "--yes", capsys=capsys)
    assert code == 0, err
    code, out, err = run("show", "seen/2", capsys=capsys)
    assert (code, out) == (6, "") and f"erased: the text of item:{snapshot}:" in err
