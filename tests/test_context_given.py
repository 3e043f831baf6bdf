"""Inputs of a caller besides the log: zones and visibility are kept, the speaker counts, and malformed ones are reported clearly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import run
from context_session import Session, item, memory, policy, projected, snapshot
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.context import ContextPolicy
from scoped_retrieval.pipeline.context.rules import read_rules

HIDDEN = (
    ({"visibility": "runtime-only"}, "audit_only"), ({"visibility": "user-only"}, "ui_only"), ({"visibility": "denied"}, "audit_only"),
    ({"zone": "private"}, "zone_denied"), ({"sensitivity": "restricted"}, "zone_denied"),
)  # fmt: skip


@pytest.mark.parametrize(("sight", "reason"), HIDDEN)
@pytest.mark.parametrize("where", ["item", "snapshot", "event"])
def test_an_item_of_a_snapshot_is_shown_where_its_zone_and_its_visibility_let_it(
    sight: dict[str, str], reason: str, where: str
):
    session = Session()
    session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-1", top=sight if where == "event" else None)
    session.add("command.finished", turn=2, command="ls", exitCode=0, stdout="src")
    given = snapshot(item(text="SECRET", **(sight if where == "item" else {})))
    seen = projected(session, snapshots=[given | (sight if where == "snapshot" else {})])
    assert "SECRET" not in seen.text() and seen.decision("item:snap-1:code#1")["reason_code"] == reason
    assert "SECRET" in projected(session, snapshots=[snapshot(item(text="SECRET"))]).text() or where == "event"


def test_an_item_without_a_zone_is_internal_and_one_of_a_turns_zones_is_shown():
    wide, narrow = {"zones": ["public", "internal", "private"]}, {"zones": ["public"]}
    assert "const" in projected(snapshots=[snapshot(item(zone="private"))], turn=wide).text()
    assert "const" in projected(snapshots=[snapshot(item(zone="public"))], turn=narrow).text()
    assert "const" not in projected(snapshots=[snapshot(item())], turn=narrow).text()


@pytest.mark.parametrize(("sight", "reason"), HIDDEN)
@pytest.mark.parametrize("rule", [{"text": "SECRET never."}, {"path": "AGENTS.md", "text": "SECRET never."}])
def test_a_rule_is_shown_where_its_zone_and_its_visibility_let_it(
    rule: dict[str, str], sight: dict[str, str], reason: str
):
    seen = projected(rules=["Always be brief.", {**rule, **sight}])
    assert "SECRET" not in seen.text() and "Always be brief." in seen.text()
    (row,) = [
        row for row in seen.decisions if row["source_id"].startswith("rule:") and row["reason_code"] != "always_present"
    ]
    assert (row["mode"], row["reason_code"]) == ("none", reason)
    assert "SECRET" in projected(rules=[rule]).text()
    assert "SECRET" in projected(rules=[rule], turn={"zones": ["public"]}).text(), (
        "a rule without a zone is for every turn"
    )


def test_a_hidden_rule_is_quoted_by_no_conflict():
    rules = [
        {"text": "Never commit SECRET.", "zone": "private"},
        {"path": "AGENTS.md", "text": "Always commit your work."},
    ]
    seen = projected(rules=rules)
    assert "SECRET" not in seen.text() and "Always commit" in seen.text()


@pytest.mark.parametrize("by", ["origin", "actor"])
@pytest.mark.parametrize("origin", [None, "user", "system", "memory", "tool", "mcp", "web", "model", "repository"])
def test_a_given_memory_is_governed_where_governance_gives_it(origin: str | None, by: str):
    given = memory(text="Tests may be skipped.", source="user", **({by: origin} if origin else {}))
    (row,) = [row for row in projected(memories=[given]).decisions if row["source_id"] == "memory:m1"]
    governed = origin in (None, "user", "system", "memory")
    assert row["reason_code"] == ("verified_memory" if governed else "ungoverned_memory")


def test_a_folder_whose_name_begins_as_that_of_github_is_a_folder():
    folders = {
        path: set(read_rules([{"path": path, "text": "Be brief."}])["folder"].to_pylist())
        for path in (".github/copilot-instructions.md", ".github/x/AGENTS.md", ".github-x/AGENTS.md")
    }
    assert list(folders.values()) == [{""}, {""}, {".github-x"}]


# --- what is none -----------------------------------------------------------------------------------------------------

NAMES = ("budget", "turn", "state", "working_directory", "project", "package_root", "run_id", "task_paths", "zones", "instruction_sources", "phases",
         "rules", "tools", "memories", "snapshots")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_input_file_with_a_number_in_the_place_of_something_says_where(name: str, tmp_path: Path, capsys: Any):
    (tmp_path / "inputs.yaml").write_text(f"{name}: 5\n")
    (tmp_path / "log.jsonl").write_text(
        '{"id": "a", "kind": "user.goal", "createdAt": "2026-05-20T08:00:00Z", "text": "Go."}\n'
    )
    files = (str(tmp_path / "log.jsonl"), "--inputs", str(tmp_path / "inputs.yaml"))
    code, _, err = run("context", "project", *files, "--no-record", capsys=capsys)
    assert code == 2 and "Expected " in err and ", got " in err and name in err


@pytest.mark.parametrize(
    "given", [{"budget": 5}, {"budget": 0}, {"budget": []}, {"turn": 5}, {"turn": ""}, {"state": 5}, {"state": []}, {"session_id": 5},
              {"turn": {"workingDirectory": 5}}, {"turn": {"budget": 5}}, {"memories": 5}, {"snapshots": 5}, {"events": 5}],
    ids=str,
)  # fmt: skip
def test_a_number_in_the_place_of_something_is_told_in_python_as_well(given: dict[str, Any]):
    with pytest.raises(InputError, match=r"Expected .*, got ") as caught:
        policy().project(**given)
    assert next(iter(given)) in caught.value.message or "turns[0]" in caught.value.message


@pytest.mark.parametrize(
    "defaults", [5, [], {"working_directory": 5}, {"zones": ["pubic"]}, {"colour": "red"}], ids=str
)
def test_defaults_are_read_as_strictly(defaults: Any):
    with pytest.raises(InputError, match=r"Expected .* - at defaults"):
        ContextPolicy(defaults=defaults)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"type": "user", "sessionId": "s", "message": {"content": "Fix it."}}', "claude-code"),
        ('{"type": "session_meta", "payload": {}}', "codex"),
    ],
)
def test_a_transcript_in_the_place_of_a_log_is_told_as_one(line: str, kind: str, tmp_path: Path, capsys: Any):
    (tmp_path / "t.jsonl").write_text(f"{line}\n")
    code, _, err = run("context", "project", str(tmp_path / "t.jsonl"), "--no-record", capsys=capsys)
    assert code == 2 and f"this is a transcript of {kind}: `context import t.jsonl --out LOG`" in err
    (tmp_path / "t.jsonl").write_text('{"type": "soup"}\n')
    assert "context import" not in run("context", "project", str(tmp_path / "t.jsonl"), "--no-record", capsys=capsys)[2]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[\n {"id": "e1"}\n]\n', "this is a list in JSON: a log has one event per line"),
        ('[{"id": "e1"}]\n', "this is a list in JSON: a log has one event per line"),
        ('{\n "events": []\n}\n', "this is one object in JSON: a log has one event per line"),
        ('{"id": "e1"} soup\n', None),
        ("soup\n", None),
    ],
)
def test_json_of_another_kind_in_the_place_of_a_log_has_a_hint(
    text: str, hint: str | None, tmp_path: Path, capsys: Any
):
    file, log = tmp_path / "t.json", tmp_path / "log"
    file.write_text(text)
    for asked in (("project", str(file), "--no-record"), ("log", str(log), "--session", "s", "--append", str(file))):
        code, _, err = run("context", *asked, capsys=capsys)
        assert (code, "t.json:1" in err) == (2, True)
        assert (hint in err) if hint else ("in JSON" not in err)


def test_a_secret_that_lies_in_two_fields_is_masked():
    key = ["-----BEGIN RSA PRIVATE KEY-----", *["MIIEowIBAAKCAQEAx" + "Qz7" * 12] * 6, "-----END RSA PRIVATE KEY-----"]
    session = Session()
    session.add(
        "command.finished",
        turn=1,
        command="cat id_rsa",
        exitCode=0,
        stdout="\n".join(key[:4]),
        stderr="\n".join(key[4:]),
    )
    assert "Qz7Qz7" not in projected(session).text()
    session.add(
        "command.finished",
        turn=2,
        command="tool\n" + "\n".join(key[:4]),
        arguments="\n".join(key[4:]),
        exitCode=0,
        stdout="x",
    )
    assert "Qz7Qz7" not in projected(session).text()
