"""`connect` writes what each client reads and keeps what is there."""

from __future__ import annotations

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


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_told_how_to_start_the_server_and_what_is_there_stays(shop: Path, client: str, capsys):
    declared = CLIENTS[client]
    file, key = shop / declared.file, declared.key
    assert run("connect", client, "--print", capsys=capsys)[0] == 0 and not file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    other = {"command": "other", "args": ["é"]}
    toml = f'# mine\nmodel = "x"\n\n[{key}.other]\ncommand = "other"\nargs = ["é"]\n'
    before = toml if file.suffix == ".toml" else json.dumps({key: {"other": other}, "kept": [1, 2]})
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
    assert read(file) == (tomllib.loads if file.suffix == ".toml" else json.loads)(before)
    written = file.read_text()
    assert run("connect", client, "--remove", capsys=capsys)[0] == 0 and file.read_text() == written


def test_what_is_written_starts_the_server(shop: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    assert run("connect", "claude-code", capsys=capsys)[0] == 0
    server = read(shop / ".mcp.json")["mcpServers"]["scoped-retrieval"]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    command = [server["command"], *server["args"], "--json"]
    found = subprocess.run(command, cwd=shop, capture_output=True, text=True, check=False)
    pytest.importorskip("mcp", reason="needs the extra serve")
    assert json.loads(found.stdout) == {"principal": "ana", "projects": ["shop"], "transport": "stdio"}


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


@pytest.mark.parametrize(("client", "name"), [("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")])
def test_a_hook_is_added_once_and_removed_beside_those_of_others(shop: Path, client: str, name: str, capsys):
    file = shop / name
    file.parent.mkdir()
    mine = {"hooks": [{"type": "command", "command": "/opt/my-scoped-retrieval.sh"}]}
    before = {"model": "x", "hooks": {"Stop": [mine], "UserPromptSubmit": [mine]}}
    file.write_text(json.dumps(before))
    for _ in range(2):
        assert run("connect", client, "--hook", "--project", "shop", capsys=capsys)[0] == 0
        found = read(file)
        assert (found["model"], found["hooks"]["Stop"]) == ("x", [mine])
        first, ours = found["hooks"]["UserPromptSubmit"]
        assert first == mine
    declared = CLIENTS[client]
    assert "scoped-retrieval" in read(shop / declared.file)[declared.key], "the server that the hook calls"
    pytest.importorskip("mcp", reason="needs the extra serve")
    from scoped_retrieval.pipeline.servers.mcp_tools import NAMED, arguments_of

    hook = ours["hooks"][0]
    assert arguments_of(NAMED[hook["tool"]], hook["input"]) == hook["input"]
    assert run("connect", client, "--remove", capsys=capsys)[0] == 0
    assert read(file) == before


def test_below_the_top_of_a_repository_the_file_at_the_top_is_written_and_nothing_of_it_is_left(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    (shop / "src").mkdir()
    monkeypatch.chdir(shop / "src")
    subprocess.run(["git", "init", "-q", str(shop)], check=True)
    assert run("connect", "claude-code", "--hook", "--corpus", "../kept", capsys=capsys)[0] == 0
    assert read(shop / ".mcp.json")["mcpServers"]["scoped-retrieval"]["args"][-2:] == ["--corpus", "kept"]
    assert run("connect", "junie", capsys=capsys)[0] == 0 and (shop / ".junie/mcp/mcp.json").is_file()
    for which, removed in (("claude-code", 2), ("junie", 1)):
        assert run("connect", which, "--remove", capsys=capsys)[1].count(": removed\n") == removed
    assert not {".mcp.json", ".claude", ".junie"} & {each.name for each in shop.iterdir()}
    assert [*(shop / "src").iterdir()] == []


def test_a_hook_in_one_group_with_the_users_own_is_replaced_and_removed_alone() -> None:
    file, own = Path("settings.json"), {"type": "command", "command": "echo hi"}
    written = json.loads(with_hook(None, file, added=True))
    (group,) = written["hooks"]["UserPromptSubmit"]
    ours = [*group["hooks"]]
    group["hooks"].append(own)
    again = json.loads(with_hook(json.dumps(written), file, added=True))["hooks"]["UserPromptSubmit"]
    assert again == [{"hooks": [own]}, {"hooks": ours}]
    left = json.loads(with_hook(json.dumps(written), file, added=False))["hooks"]["UserPromptSubmit"]
    assert left == [{"hooks": [own]}]
