"""`connect` writes what each client reads and keeps what is there; `prompt-hook` gives a block and stops no prompt."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import run
from scoped_retrieval.pipeline.servers.clients import CLIENTS, with_hook


def read(file: Path) -> dict:
    text = file.read_text()
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("written", [{}, {"indent": "\t", "ensure_ascii": False}, {"separators": (",", ":")}])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_told_how_to_start_the_server_and_what_is_there_stays_as_it_is_written(
    shop: Path, client: str, written: dict, capsys
):
    declared = CLIENTS[client]
    file, key = shop / declared.file, declared.key
    assert run("connect", client, "--print", capsys=capsys)[0] == 0 and not file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    other = {"command": "other", "args": ["é"]}
    toml = f'# mine\nmodel = "x"\n\n[{key}.other]\ncommand = "other"\nargs = ["é"]\n'
    before = toml if file.suffix == ".toml" else json.dumps({key: {"other": other}, "kept": [1, 2]}, **written)
    file.write_text(before)
    file.chmod(0o640)
    for options in (("--project", "old"), (), ()):  # what it wrote before is replaced
        assert run("connect", client, *options, capsys=capsys)[0] == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        found = read(file)
        assert found[key]["other"] == other and (found.get("kept", [1, 2]), found.get("model", "x")) == ([1, 2], "x")
    server = found[key]["scoped-retrieval"]
    command = server["command"] if declared.joined else [server["command"], *server["args"]]
    assert command == ["scoped-retrieval", "serve", "--stdio"], "no path, no name of a person: the file is committed"
    assert file.suffix != ".toml" or file.read_text().startswith(toml)
    assert [one.name for one in file.parent.iterdir() if one.name.startswith(".tmp")] == []
    assert run("connect", client, "--remove", capsys=capsys)[0] == 0
    assert file.read_text() == before


def test_what_is_written_starts_the_server(shop: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    assert run("connect", "claude-code", capsys=capsys)[0] == 0
    server = read(shop / ".mcp.json")["mcpServers"]["scoped-retrieval"]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    command = [server["command"], *server["args"], "--json"]
    found = subprocess.run(command, cwd=shop, capture_output=True, text=True, check=False)
    pytest.importorskip("mcp", reason="needs the extra serve")
    assert json.loads(found.stdout) == {"principal": "ana", "project": "shop", "transport": "stdio"}


@pytest.mark.parametrize(
    ("client", "text", "message"),
    [
        ("vscode", '{// mine\n"servers": {}}', "Expected JSON without comments"),
        ("codex", "[a", "Expected TOML, got another text"),
        ("codex", '[mcp_servers]\nscoped-retrieval = {command = "x"}\n', "Expected a table"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(shop: Path, client, text, message, capsys):
    file = shop / CLIENTS[client].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    code, _, err = run("connect", client, capsys=capsys)
    assert code == 2 and message in err and file.read_text() == text


def test_a_link_to_a_file_kept_elsewhere_stays_a_link(shop: Path, capsys):
    (shop / "dotfiles").mkdir()
    (shop / ".mcp.json").symlink_to("dotfiles/mcp.json")
    assert run("connect", "claude-code", capsys=capsys)[0] == 0
    assert (shop / ".mcp.json").is_symlink() and "scoped-retrieval" in read(shop / "dotfiles/mcp.json")["mcpServers"]


def test_a_hook_is_added_once_and_removed_beside_those_of_others(shop: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    file = shop / ".claude/settings.json"
    file.parent.mkdir()
    mine = {"hooks": [{"type": "command", "command": "/opt/my-scoped-retrieval prompt-hook.sh"}]}
    before = {"model": "x", "hooks": {"Stop": [mine], "UserPromptSubmit": [mine]}}
    file.write_bytes(written := json.dumps(before, indent=4).replace("\n", "\r\n").encode())
    for _ in range(2):
        assert run("connect", "claude-code", "--hook", "--project", "shop", capsys=capsys)[0] == 0
        found = read(file)
        assert (found["model"], found["hooks"]["Stop"]) == ("x", [mine])
        first, ours = found["hooks"]["UserPromptSubmit"]
        assert first == mine
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "prompt": "default role"})
    command = ours["hooks"][0]["command"]
    ran = subprocess.run(command, shell=True, input=event, capture_output=True, text=True, check=True, cwd=shop)
    said = json.loads(ran.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "UserPromptSubmit" and "There is no default role." in said["additionalContext"]
    assert run("connect", "claude-code", "--hook", "--remove", capsys=capsys)[0] == 0
    assert file.read_bytes() == written


def test_below_the_top_of_a_repository_the_file_at_the_top_is_written_and_nothing_of_it_is_left(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    (shop / "src").mkdir()
    monkeypatch.chdir(shop / "src")
    subprocess.run(["git", "init", "-q", str(shop)], check=True)
    assert run("connect", "claude-code", "--corpus", "../kept", capsys=capsys)[0] == 0
    assert read(shop / ".mcp.json")["mcpServers"]["scoped-retrieval"]["args"][-2:] == ["--corpus", "kept"]
    assert run("connect", "claude-code", "--hook", capsys=capsys)[0] == 0
    assert run("connect", "junie", capsys=capsys)[0] == 0 and (shop / ".junie/mcp/mcp.json").is_file()
    for which in (["claude-code"], ["claude-code", "--hook"], ["junie"]):
        assert run("connect", *which, "--remove", capsys=capsys)[1].endswith(": removed\n")
    assert not {".mcp.json", ".claude", ".junie"} & {each.name for each in shop.iterdir()}
    assert [*(shop / "src").iterdir()] == []


def test_a_hook_in_one_group_with_the_users_own_is_replaced_and_removed_alone() -> None:
    file, own = Path("settings.json"), {"type": "command", "command": "echo hi"}
    written = json.loads(with_hook(["prompt-hook"], None, file))
    (group,) = written["hooks"]["UserPromptSubmit"]
    ours = [*group["hooks"]]
    group["hooks"].append(own)
    again = json.loads(with_hook(["prompt-hook"], json.dumps(written), file))["hooks"]["UserPromptSubmit"]
    assert again == [{"hooks": [own]}, {"hooks": ours}]
    left = json.loads(with_hook(None, json.dumps(written), file))["hooks"]["UserPromptSubmit"]
    assert left == [{"hooks": [own]}]


@pytest.mark.parametrize(("prompt", "asked"), [("ok do it", False), ("role", False), ("zebra quokka", True)])
def test_a_prompt_without_a_subject_or_that_nothing_matches_strongly_gets_no_block(
    shop: Path, prompt: str, asked: bool, monkeypatch, capsys
):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"prompt": prompt})))
    code, out, err = run("prompt-hook", "--project", "shop", capsys=capsys)
    assert (code, out, "snapshot:" in err) == (0, "", asked)


@pytest.mark.parametrize(
    "given", ["", "{", "[]", "[" * 100_000, '{"prompt": 1}', '{"prompt": "a", "session_id": "\\u0000"}']
)
def test_whatever_goes_wrong_the_prompt_goes_on(shop: Path, given: str, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    code, out, err = run("prompt-hook", "--project", "shop", capsys=capsys)
    assert (code in (0, 1), out) == (True, "") or "additionalContext" in out
    assert code != 2 and ("no block for this prompt" in err or "snapshot:" in err)


def test_where_nothing_is_granted_no_block_stands_before_a_prompt(shop: Path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"prompt": "default role"}'))
    code, out, err = run("prompt-hook", "--project", "pay", capsys=capsys)
    assert (code, out) == (0, "") and "(denied)" in err
