"""`connect` writes what each client reads and keeps what is there; `prompt-hook` gives a block and stops no prompt."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures

FILES = {
    "claude-code": (".mcp.json", "mcpServers"), "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"), "codex": (".codex/config.toml", "mcp_servers"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.parametrize("flags", [(), ("--write",), ("--json",)])
def test_a_corpus_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    code, shown, said = run("connect", "claude-code", "--project", "shop", *flags, capsys=capsys)
    warned = f"no readable corpus at {tmp_path / '.scoped-retrieval/corpus'}: the server does not start before"
    assert code == 0 and f"warning: {warned}" in said
    if flags == ("--json",):
        assert json.loads(shown)["warnings"][0].startswith(warned)


def file_of(client: str, shop: Path, home: Path) -> Path:
    return (home if client == "codex" else shop) / FILES[client][0]


def read(file: Path) -> dict:
    text = file.read_text()
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("client", FILES)
def test_a_client_is_told_where_the_server_is_and_what_is_there_stays(shop: Path, home: Path, client: str, capsys):
    file, key = file_of(client, shop, home), FILES[client][1]
    code, shown, said = run("connect", client, "--project", "shop", capsys=capsys)
    assert (
        code == 0
        and not file.exists()
        and f"not written; pass --write to write it: {file}" in said
        and "warn" not in said
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    other = {"command": "other", "args": ["é"]}
    toml = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "other"\nargs = ["é"]\n'
    file.write_text(toml if client == "codex" else json.dumps({"kept": 1, key: {"other": other}}))
    file.chmod(0o640)
    for _ in range(2):
        assert run("connect", client, "--project", "shop", "--write", capsys=capsys)[0] == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        found = read(file)
        assert found[key]["other"] == other and (found.get("kept", 1), found.get("model", "x")) == (1, "x")
        server = found[key]["scoped-retrieval"]
        assert server["args"][server["args"].index("mcp") :][:3] == ["mcp", "--project", "shop"]
        assert server["args"][-6:] == [
            "--corpus", str(shop / ".scoped-retrieval/corpus"), "--runs", str(shop / ".scoped-retrieval/runs"),
            "--grants", str(shop / ".scoped-retrieval/corpus/grants.yaml"),
        ]  # fmt: skip
        assert server["env"] == {"SCOPED_RETRIEVAL_PRINCIPAL": "ana", "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    assert [one.name for one in file.parent.iterdir() if one.name.startswith(".tmp")] == []
    if client == "codex":
        assert file.read_text().startswith(toml)
    assert ("stdio" in shown) is (client == "vscode")


def test_what_is_written_starts_the_server(shop: Path, capsys):
    assert run("connect", "claude-code", "--project", "shop", "--write", capsys=capsys)[0] == 0
    server = read(shop / ".mcp.json")["mcpServers"]["scoped-retrieval"]
    command = [server["command"], *server["args"], "--json"]
    found = subprocess.run(command, env=server["env"], cwd="/", capture_output=True, text=True, check=False)
    pytest.importorskip("mcp", reason="needs the extra serve")
    assert json.loads(found.stdout) == {"principal": "ana", "project": "shop", "transport": "stdio"}


@pytest.mark.parametrize(
    ("client", "text", "message"),
    [
        ("vscode", '{// mine\n"servers": {}}', "Expected JSON without comments"),
        ("cursor", "[]", "Expected an object, got a list"),
        ("claude-code", '{"mcpServers": []}', "Expected an object, got a list"),
        ("cursor", "[" * 100_000, "Expected JSON without comments"),
        ("codex", "[a", "Expected TOML, got another text"),
        ("codex", "a = " + "[" * 100_000, "Expected TOML, got another text"),
        (
            "codex",
            '[mcp_servers.scoped-retrieval]\ncommand = "x"\n',
            "Expected no other server scoped-retrieval, got one",
        ),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(shop: Path, home: Path, client, text, message, capsys):
    file = file_of(client, shop, home)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    code, _, err = run("connect", client, "--project", "shop", "--write", capsys=capsys)
    assert code == 2 and message in err and file.read_text() == text


def test_a_file_that_is_no_text_is_left_alone(shop: Path, capsys):
    (shop / ".mcp.json").write_bytes(b'{"a": "\xff"}')
    code, _, err = run("connect", "claude-code", "--project", "shop", "--write", capsys=capsys)
    assert code == 2 and f"Expected text in UTF-8, got other bytes - at {shop / '.mcp.json'}" in err
    assert (shop / ".mcp.json").read_bytes() == b'{"a": "\xff"}'


def test_a_link_to_a_file_kept_elsewhere_stays_a_link(shop: Path, capsys):
    (shop / "dotfiles").mkdir()
    (shop / ".mcp.json").symlink_to("dotfiles/mcp.json")
    for present in (None, '{"mcpServers": {"other": {"command": "other"}}}'):
        if present:
            (shop / "dotfiles/mcp.json").write_text(present)
        assert run("connect", "claude-code", "--project", "shop", "--write", capsys=capsys)[0] == 0
        assert (shop / ".mcp.json").is_symlink()
        assert ("other" in read(shop / "dotfiles/mcp.json")["mcpServers"]) is bool(present)


def test_grants_and_lanes_that_are_set_anywhere_are_written_out(shop: Path, monkeypatch, capsys):
    """Without them, a server that the client starts would answer by the grants of the corpus."""
    monkeypatch.setenv("SCOPED_RETRIEVAL_GRANTS", "narrow.yaml")
    monkeypatch.setenv("SCOPED_RETRIEVAL_LANES", "lexical")
    for flags in ((), ("--hook",)):
        _, shown, _ = run("connect", "claude-code", "--project", "shop", *flags, "--json", capsys=capsys)
        text = json.loads(shown)["text"].replace('",\n        "', " ")
        assert f"--grants {shop / 'narrow.yaml'} --lanes lexical" in text


def test_another_client_is_an_error_that_names_them(shop: Path, capsys):
    code, _, err = run("connect", "emacs", capsys=capsys)
    assert code == 2 and "Expected one of claude-code, codex, cursor, vscode, got 'emacs'" in err
    code, _, err = run("connect", "cursor", "--hook", capsys=capsys)
    assert code == 2 and "Expected one of claude-code" in err


def test_a_hook_of_somebody_else_stays_whatever_it_is_called(shop: Path, capsys):
    file = shop / ".claude/settings.json"
    file.parent.mkdir()
    theirs = {"type": "command", "command": "/opt/my-prompt-hook.sh"}
    older = {"type": "command", "command": "'/a b/scoped-retrieval' prompt-hook --project old"}
    file.write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [theirs, older]}]}}))
    assert run("connect", "claude-code", "--hook", "--project", "shop", "--write", capsys=capsys)[0] == 0
    first, ours = read(file)["hooks"]["UserPromptSubmit"]
    assert first == {"hooks": [theirs]} and "--project shop" in ours["hooks"][0]["command"]


def test_a_table_of_toml_that_cannot_be_extended_is_an_error_and_stays(shop: Path, home: Path, capsys):
    file = file_of("codex", shop, home)
    file.parent.mkdir(parents=True)
    file.write_text('mcp_servers = {a = {command = "x"}}\n')
    code, _, err = run("connect", "codex", "--project", "shop", "--write", capsys=capsys)
    assert code == 2 and "Expected a table [mcp_servers], which can be extended" in err
    assert file.read_text() == 'mcp_servers = {a = {command = "x"}}\n'


def test_a_hook_is_added_once_beside_those_that_are_there(shop: Path, capsys):
    file = shop / ".claude/settings.json"
    file.parent.mkdir()
    mine = {"hooks": [{"type": "command", "command": "date"}]}
    file.write_text(json.dumps({"model": "x", "hooks": {"Stop": [mine], "UserPromptSubmit": [mine]}}))
    for _ in range(2):
        assert run("connect", "claude-code", "--hook", "--project", "shop", "--write", capsys=capsys)[0] == 0
        found = read(file)
        assert (found["model"], found["hooks"]["Stop"]) == ("x", [mine])
        first, ours = found["hooks"]["UserPromptSubmit"]
        assert first == mine and "prompt-hook --project shop" in ours["hooks"][0]["command"]
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "prompt": "default role"})
    command = ours["hooks"][0]["command"]
    ran = subprocess.run(command, shell=True, input=event, capture_output=True, text=True, check=True, cwd="/")
    said = json.loads(ran.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "UserPromptSubmit" and "There is no default role." in said["additionalContext"]
    code, out, _ = run("explain", "s-1", "--format", "json", capsys=capsys)
    assert code == 0 and json.loads(out)["snapshot"]["query"] == "default role"


@pytest.mark.parametrize(
    "given", ["", "{", "[]", "[" * 100_000, '{"prompt": 1}', '{"prompt": "a", "session_id": "\\u0000"}']
)
def test_whatever_goes_wrong_the_prompt_goes_on(shop: Path, given: str, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    code, out, err = run("prompt-hook", "--project", "shop", capsys=capsys)
    assert (code in (0, 1), out) == (True, "") or "additionalContext" in out
    assert code != 2 and ("no block for this prompt" in err or "snapshot:" in err)


@pytest.mark.parametrize("wrong", [("--projct", "shop"), ("--max-tokens", "many"), ("--max-tokens", "0"), ("extra",)])
def test_a_hook_that_is_set_up_wrongly_says_so_and_stops_no_prompt(
    shop: Path, wrong: tuple[str, ...], monkeypatch, capsys
):
    """Claude Code withholds the prompt of a hook that exits with 2."""
    monkeypatch.setattr("sys.stdin", io.StringIO('{"prompt": "default role"}'))
    code, out, err = run("prompt-hook", *wrong, capsys=capsys)
    assert (code, out) == (1, "") and "error: " in err and "no block for this prompt" in err


def test_a_setting_that_is_wrong_stops_no_prompt(shop: Path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"prompt": "default role"}'))
    (shop / "scoped-retrieval.toml").write_text('lanes = "none"\n')
    code, out, err = run("prompt-hook", "--project", "shop", capsys=capsys)
    assert (code, out) == (1, "") and "no block for this prompt" in err and "lanes" in err


def test_where_nothing_is_granted_no_block_stands_before_a_prompt(shop: Path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"prompt": "default role"}'))
    code, out, err = run("prompt-hook", "--project", "pay", capsys=capsys)
    assert (code, out) == (0, "") and "(denied)" in err


def test_a_client_is_given_the_profile_in_use(shop: Path, home: Path, capsys):
    with (shop / "scoped-retrieval.toml").open("a") as file:
        file.write('\n[profiles.words]\nlanes = ["lexical"]\n')
    assert run("--profile", "words", "connect", "claude-code", "--write", capsys=capsys)[0] == 0
    env = read(file_of("claude-code", shop, home))["mcpServers"]["scoped-retrieval"]["env"]
    assert env["SCOPED_RETRIEVAL_PROFILE"] == "words"
    _, shown, _ = run("doctor", "--json", capsys=capsys)
    values = {row["name"]: row["value"] for row in json.loads(shown)["settings"]}
    assert values["profile"] is None  # the flag holds for one command
