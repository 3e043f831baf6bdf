"""The commands about contracts: text and JSON, exit codes by meaning, presets that go round."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from command_line import ask, run

GRANTS = Path(".scoped-retrieval/corpus/grants.yaml")


def found(*args: str, capsys) -> tuple[int, dict]:
    code, out, err = run(*args, "--json", capsys=capsys)
    assert out, err
    return code, json.loads(out)


def grant(**principals: dict) -> None:
    GRANTS.write_text(yaml.safe_dump({"principals": principals}))


def test_lint_exits_by_its_worst_finding(shop, capsys):
    assert found("contract", capsys=capsys)[1]["findings"] == []
    code, value = found("contract", "--set", "denied_paths=old/", capsys=capsys)
    assert [(one["level"], one["rule"], one["at"]) for one in value["findings"]] == [
        ("warning", "matches_nothing", "request.denied_paths")
    ]
    assert code == 0
    code, value = found("contract", "--set", "as_of=2001-01-01T00:00:00Z", capsys=capsys)
    assert code == 3
    assert {"allows_nothing"} == {one["rule"] for one in value["findings"]}


def test_a_delegated_preset_bounds_ask_and_run(shop, capsys):
    Path("parent.yaml").write_text(
        "{project: shop, purpose: explain-code, allowed_paths: [docs/, src/], budget: {max_items: 3}}"
    )
    code, value = found(
        "contract", "delegate", "parent.yaml", "--set", "allowed_paths=**/*.md", "--set", "max_items=9", "--out", "child.json",
        capsys=capsys,
    )  # fmt: skip
    assert (code, value["rows"]) == (0, {"parent": 2, "child": 1, "outside": 0})
    assert value["preset"] == json.loads(Path("child.json").read_text())
    assert value["preset"]["max_items"] == 3
    code, asked = found("ask", "default role", "--preset", "child.json", "--set", "allowed_paths=**", capsys=capsys)
    assert (code, [item["path"] for item in asked["citations"]]) == (0, ["docs/roles.md"])
    _, value = found("contract", asked["snapshot_id"], capsys=capsys)
    assert value["who"] == "ana in shop for explain-code"
    code, _, err = run("contract", "check", "none.yaml", capsys=capsys)
    assert (code, "such as @, got 'none.yaml' - at REQUEST" in err) == (2, True)
    assert found("contract", "check", "@", capsys=capsys)[1]["contract_id"] == value["contract_id"]
    Path("rows.jsonl").write_text('{"question": "default role", "allowed_paths": ["src/", "docs/"]}\n')
    code, done = found("run", "rows.jsonl", "--preset", "child.json", capsys=capsys)
    assert (code, done["statuses"]) == (0, {"ok": 1})
    _, snapshots = found("log", done["run_id"], capsys=capsys)
    _, value = found("diff", snapshots[0]["snapshot_id"], "child.json", capsys=capsys)
    assert value["rows"] == {"only_a": 0, "only_b": 0, "both": 1}


def test_a_request_that_stands_elsewhere_than_its_preset_is_refused(shop, capsys):
    Path("preset.json").write_text('{"branch": "main", "purpose": "explain-code"}')
    code, _, err = run("ask", "q", "--preset", "preset.json", "--set", "branch=dev", capsys=capsys)
    assert code == 2
    assert "Expected 'main', as in the preset or parent contract, got 'dev' - at request.branch" in err
    code, _, err = run("ask", "q", "--preset", "none.json", capsys=capsys)
    assert (code, "No such file or directory: file of request fields" in err) == (2, True)


def test_a_difference_shows_ids_to_auditors_alone(shop, capsys):
    Path("a.json").write_text('{"allowed_paths": ["docs/"]}')
    Path("b.json").write_text('{"allowed_paths": ["src/"]}')
    grant(ana={"projects": ["shop"]})
    _, value = found("diff", "a.json", "b.json", capsys=capsys)
    assert (value["rows"], "ids" in value) == ({"only_a": 1, "only_b": 1, "both": 0}, False)
    grant(ana={"projects": ["shop"], "audit": True})
    _, value = found("diff", "a.json", "b.json", capsys=capsys)
    assert [len(ids) for ids in value["ids"].values()] == [1, 1]


def test_asking_for_another_takes_a_grant_and_refuses_all_others_in_one_voice(shop, capsys, monkeypatch):
    grant(ana={"projects": ["shop"]}, cyd={"projects": ["shop"]}, bot={"act_as": ["ana"]})
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "bot")
    block, snapshot = ask("--set", "principal=ana", capsys=capsys)
    assert "There is no default role" in block
    _, rows = found("log", capsys=capsys)
    assert [row["snapshot_id"] for row in rows] == [snapshot]
    _, value = found("contract", snapshot, capsys=capsys)
    assert value["who"] == "ana in shop for answer-question, asked by bot"
    answers = []
    for name in ("cyd", "nobody"):
        code, out, err = run("ask", "q", "--project", "shop", "--set", f"principal={name}", capsys=capsys)
        answers.append((code, out, [line for line in err.splitlines() if not line.startswith("snapshot:")]))
    assert answers[0] == answers[1]
    assert answers[0][0] == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    assert snapshot in [row["snapshot_id"] for row in found("log", capsys=capsys)[1]]
