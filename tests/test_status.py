"""`status`, `grants` and `-c`: what a user asks before a question."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
import yaml
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures

GRANTS = Path(".scoped-retrieval/corpus/grants.yaml")


def test_status_tells_what_changed_since_the_files_were_read(shop: Path, capsys):
    assert run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    (known,) = json.loads(run("status", "--json", capsys=capsys)[1])["followed"]
    assert (known["project"], known["current"]) == ("shop", True)
    readme = shop / "shop" / "README.md"
    later = readme.stat().st_mtime + 60
    os.utime(readme, (later, later))
    (known,) = json.loads(run("status", "--json", capsys=capsys)[1])["followed"]
    assert known["current"] is False


def test_a_token_opens_a_server_and_the_file_has_only_its_hash(shop: Path, capsys):
    code, token, _ = run("grants", "token", "ana", capsys=capsys)
    tokens = yaml.safe_load(GRANTS.read_text())["tokens"]
    assert (code, tokens) == (0, {hashlib.sha256(token.strip().encode()).hexdigest(): "ana"})
    before = GRANTS.read_bytes()
    code, out, err = run("grants", "token", "nobody", capsys=capsys)
    assert (code != 0, out, "nobody" in err, GRANTS.read_bytes() == before) == (True, "", True, True)


def test_grants_of_others_are_shown_to_auditors_of_their_projects(shop: Path, monkeypatch, capsys):
    GRANTS.write_text(
        yaml.safe_dump(
            {"principals": {"ana": {"projects": ["shop"], "audit": True}, "bo": {"projects": ["shop", "pay"]}}}
        )
    )
    shown = json.loads(run("grants", "show", "--json", capsys=capsys)[1])
    assert [(row["principal"], row["project"]) for row in shown] == [("ana", "shop"), ("bo", "shop")]
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "bo")
    shown = json.loads(run("grants", "show", "--json", capsys=capsys)[1])
    assert [(row["principal"], row["project"]) for row in shown] == [("bo", "shop"), ("bo", "pay")]


def test_a_setting_for_one_command_counts_before_and_after_it(shop: Path, capsys):
    code, out, _ = run("-c", "lanes=exact", "doctor", "-c", "progress=false", "--json", capsys=capsys)
    found = {each["name"]: each for each in json.loads(out)["settings"]}
    assert (found["lanes"]["value"], found["lanes"]["origin"]) == (["exact"], "flag -c lanes")
    assert found["progress"]["value"] is False
    code, _, err = run("ask", "q", "-c", "lane=exact", capsys=capsys)
    assert (code, "-c lane" in err) == (2, True)


def test_a_shell_completes_the_names_of_commands(monkeypatch: pytest.MonkeyPatch, capfd):
    monkeypatch.setenv("COMP_WORDS", "scoped-retrieval xr")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_SCOPED_RETRIEVAL_COMPLETE", "complete_bash")
    from scoped_retrieval.pipeline.cli import main

    main([])
    assert capfd.readouterr().out.split() == ["xray"]


def test_the_last_answer_is_the_last_one_that_was_asked_for_whoever_s_rights_it_has(shop: Path, monkeypatch, capsys):
    GRANTS.write_text(
        yaml.safe_dump(
            {"principals": {"ana": {"projects": ["shop"], "act_as": ["bob"]}, "bob": {"projects": ["shop"]}}}
        )
    )
    assert run("ask", "default role", "--project", "shop", capsys=capsys)[0] == 0
    asked = run("ask", "createSession", "--project", "shop", "--set", "principal=bob", capsys=capsys)
    assert (asked[0], run("show", "@", capsys=capsys)[:2]) == (0, (0, asked[1]))


def test_a_field_is_given_once(shop: Path, capsys):
    for flags in (
        ("--set", "question=other"),
        ("--as-of", "2026-01-01T00:00:00Z", "--set", "time.as_of=2026-01-01T00:00:00Z"),
    ):
        code, out, err = run("ask", "default role", *flags, capsys=capsys)
        assert (code, out, f"at {flags[-2]} {flags[-1].partition('=')[0]}" in err) == (2, "", True)
